//! Locks have one owner at a time.

use super::{Book, complains, is_content, journals};
use crate::zookeeper::checks::{locks, owned};
use crate::zookeeper::journal::{Ask, Change, Done, Entry, Lasts, Stat};
use crate::zookeeper::layout;
use troth_zookeeper::Code;

const FIRST: &str = "0-1-0000000004";
const SECOND: &str = "1-1-0000000005";

fn contends(number: usize, name: &str, zxid: i64) -> Book {
    let book = Book::new(number);
    let (path, session) = (format!("/locks/3/{name}"), book.0.session);
    let stat = Stat { created: zxid, modified: zxid, owner: session, ..Stat::default() };
    let ask =
        Ask::Create { path: "/locks/3/".to_owned(), value: String::new(), lasts: Lasts::SessionNumbered };
    book.asks(ask, zxid, Ok(Done::Created { path, stat }))
}

/// The first, who owns it from 7 on.
fn first() -> Book {
    contends(0, FIRST, 5).lists("/locks/3", &[SECOND, FIRST], 7)
}

/// The second, who owns it from then on.
fn second(from: i64) -> Book {
    contends(1, SECOND, 6).lists("/locks/3", &[SECOND, FIRST], 7).lists("/locks/3", &[SECOND], from)
}

fn node(name: &str) -> String {
    format!("/locks/3/{name}")
}

fn guarded(book: Book, zxid: i64) -> Book {
    let stat = Stat { modified: zxid, version: 4, ..Stat::default() };
    let ask = Ask::Set { path: "/guards/3".to_owned(), value: String::new(), expected: Some(3) };
    book.asks(ask, zxid, Ok(Done::Stat(stat)))
}

#[test]
fn names_say_who_is_first() {
    let names = [SECOND, "7-12-0000000011", FIRST].map(str::to_owned);
    assert_eq!(layout::lowest(&names), Some(FIRST));
    assert_eq!(layout::before(&names, SECOND), Some(FIRST));
    assert_eq!(layout::before(&names, FIRST), None);
    assert_eq!(layout::journal_of("7-12-0000000011"), Some(7));
    assert!(layout::is_lock("/locks/3") && !layout::is_lock("/locks") && !layout::is_lock("/locks/3/x"));
    assert_eq!(layout::lock_of("/guards/3").as_deref(), Some("/locks/3"));
    assert_eq!(layout::lock_of("/registers/3"), None);
}

#[test]
fn a_lock_that_goes_from_hand_to_hand_is_right() {
    let all = journals(vec![guarded(first(), 8).deletes(&node(FIRST), 10), guarded(second(10), 11)]);
    is_content(&locks(&all));
    let all: Vec<(usize, i64, i64)> =
        owned(&all).iter().map(|own| (own.journal, own.from, own.until)).collect();
    assert_eq!(all, [(0, 7, 9), (1, 10, 11)]);
    is_content(&locks(&journals(vec![first().closes(10), second(10)])));
    // Others saw it end.
    let seen = Book::new(2).told(10, Change::Deleted, &node(FIRST));
    is_content(&locks(&journals(vec![first().sees(9), second(10), seen])));
}

#[test]
fn a_lock_with_two_owners_is_wrong() {
    // It was deleted later.
    complains(&locks(&journals(vec![first().deletes(&node(FIRST), 10), second(9)])), "was owned by session");
    // Its session lived.
    complains(&locks(&journals(vec![first().sees(12), second(10)])), "was owned by session");
    // It was closed later.
    complains(&locks(&journals(vec![first().closes(14), second(10)])), "was owned by session");
    // Nobody knows when it was deleted, but not before that was asked for.
    let unknown = |seen| first().sees(seen).sends(Ask::Delete { path: node(FIRST) }).line(Entry::Lost);
    complains(&locks(&journals(vec![unknown(12), second(10)])), "was owned by session");
    is_content(&locks(&journals(vec![unknown(9), second(10)])));
}

#[test]
fn who_does_not_own_a_lock_must_not_write_what_it_protects() {
    let early = guarded(contends(1, SECOND, 6), 8);
    complains(&locks(&journals(vec![first().deletes(&node(FIRST), 10), early])), "did not own /locks/3");
    let late = guarded(first().deletes(&node(FIRST), 10), 11);
    complains(&locks(&journals(vec![late])), "did not own /locks/3");
}

#[test]
fn an_owner_finds_what_it_left() {
    let ask = Ask::Set { path: "/guards/3".to_owned(), value: String::new(), expected: Some(3) };
    let refused = first().asks(ask, 8, Err(Code::BadVersion.number()));
    complains(&locks(&journals(vec![refused])), "somebody else had written");
}
