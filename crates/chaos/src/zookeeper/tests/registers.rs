//! Registers: what becomes of requests in the judge's history, and versions.

use super::{Book, MILLI, complains, is_content, journals};
use crate::history::{Outcome, Record, Verb};
use crate::zookeeper::checks::{records, versions};
use crate::zookeeper::journal::{Ask, Done, Entry, Lasts, Stat};
use troth_zookeeper::Code;

const PATH: &str = "/registers/0-1";

fn stat(version: i32, modified: i64) -> Stat {
    Stat { version, modified, ..Stat::default() }
}

fn created() -> Book {
    let ask = Ask::Create { path: PATH.to_owned(), value: "a".to_owned(), lasts: Lasts::Always };
    Book::new(0).asks(ask, 3, Ok(Done::Created { path: PATH.to_owned(), stat: stat(0, 3) }))
}

fn set(value: &str, expected: Option<i32>) -> Ask {
    Ask::Set { path: PATH.to_owned(), value: value.to_owned(), expected }
}

fn get() -> Ask {
    Ask::Get { path: PATH.to_owned(), watch: false }
}

fn found(value: &str, version: i32, modified: i64) -> Result<Done, i32> {
    Ok(Done::Value { value: value.to_owned(), stat: stat(version, modified) })
}

#[test]
fn requests_become_records() {
    let book = created()
        .asks(set("b", Some(0)), 5, Ok(Done::Stat(stat(1, 5))))
        .asks(set("c", None), 6, Ok(Done::Stat(stat(2, 6))))
        .asks(set("d", Some(0)), 6, Err(Code::BadVersion.number()))
        .asks(get(), 7, found("c", 2, 6))
        .sends(set("e", Some(2)))
        .line(Entry::Lost)
        .writes("/watched/1", 1, 9);
    let all: Vec<_> = records(&journals(vec![book]))
        .into_iter()
        .map(|record| (record.verb, record.value, record.expected, record.outcome, record.version))
        .collect();
    let row =
        |verb, value: &str, expected, outcome, version| (verb, value.to_owned(), expected, outcome, version);
    let expected = [
        row(Verb::Cas, "a", None, Outcome::Ok, Some(1)),
        row(Verb::Cas, "b", Some(1), Outcome::Ok, Some(2)),
        row(Verb::Put, "c", None, Outcome::Ok, Some(3)),
        row(Verb::Cas, "d", Some(1), Outcome::Other, None),
        row(Verb::Get, "c", None, Outcome::Ok, Some(3)),
        row(Verb::Cas, "e", Some(3), Outcome::Unknown, None),
    ];
    assert_eq!(all, expected);
    let all: Vec<Record> = records(&journals(vec![created()]));
    assert_eq!((all[0].call, all[0].returned, all[0].key.as_str()), (2 * MILLI, Some(3 * MILLI), PATH));
}

#[test]
fn versions_that_count_are_right() {
    let book =
        created().asks(set("b", Some(0)), 5, Ok(Done::Stat(stat(1, 5)))).asks(get(), 7, found("b", 1, 5));
    is_content(&versions(&journals(vec![book])));
}

#[test]
fn versions_that_do_not_count_are_wrong() {
    let skips = created().asks(set("b", Some(0)), 5, Ok(Done::Stat(stat(2, 5))));
    complains(&versions(&journals(vec![skips])), "and after a write 2");
    let twice = created().asks(set("b", None), 5, Ok(Done::Stat(stat(1, 5))));
    let twice = twice.asks(set("c", None), 6, Ok(Done::Stat(stat(1, 6))));
    complains(&versions(&journals(vec![twice])), "version 1 of");
    let other = created().asks(get(), 7, found("z", 0, 3));
    complains(&versions(&journals(vec![other])), "version 0 of");
    let backwards = created().asks(set("b", None), 9, Ok(Done::Stat(stat(1, 9))));
    let backwards = backwards.asks(get(), 9, found("c", 2, 8));
    complains(&versions(&journals(vec![backwards])), "written later");
}
