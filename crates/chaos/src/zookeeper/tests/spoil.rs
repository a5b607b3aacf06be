//! What is made wrong on purpose is found.

use super::{Book, is_content, journals};
use crate::zookeeper::checks;
use crate::zookeeper::journal::{Ask, Change, Done, Entry, Journal, Lasts, Stat};
use crate::zookeeper::spoil::unnoticed;

const FIRST: &str = "0-1-0000000000";
const SECOND: &str = "1-1-0000000001";

fn contends(book: Book, name: &str, zxid: i64) -> Book {
    let stat = Stat { created: zxid, modified: zxid, owner: book.0.session, ..Stat::default() };
    let ask =
        Ask::Create { path: "/locks/0/".to_owned(), value: String::new(), lasts: Lasts::SessionNumbered };
    book.asks(ask, zxid, Ok(Done::Created { path: format!("/locks/0/{name}"), stat }))
}

/// A small run in which everything is right and all kinds of things happen.
fn right() -> Vec<Journal> {
    let first = contends(Book::new(0).creates("/groups/0/0", 2), FIRST, 4);
    let first = first.lists("/locks/0", &[FIRST, SECOND], 5).watches("/watched/0", 0, 6);
    let first = first.lists("/groups/0", &["0", "1"], 7).told(8, Change::Data, "/watched/0").sees(8).sees(9);
    let first = first.deletes(&format!("/locks/0/{FIRST}"), 10).closes(12);
    let second = contends(Book::new(1).creates("/groups/0/1", 3), SECOND, 5);
    let second = second.lists("/locks/0", &[FIRST, SECOND], 6).writes("/watched/0", 1, 8);
    let second = second.lists("/locks/0", &[SECOND], 10).lists("/groups/0", &["1"], 13);
    journals(vec![first, second])
}

#[test]
fn what_is_right_has_no_complaints_and_every_wrong_is_found() {
    is_content(&checks::all(&right()));
    assert_eq!(unnoticed(&right()), Vec::<String>::new());
}

#[test]
fn journals_without_a_place_for_a_wrong_are_not_enough() {
    let few = journals(vec![Book::new(0).sees(3).line(Entry::Lost)]);
    assert_eq!(unnoticed(&few).len(), 6);
}
