//! An ephemeral node lives as long as its session.

use super::{Book, complains, is_content, journals, session};
use crate::zookeeper::checks::{ephemerals, left_behind};
use crate::zookeeper::journal::{Ask, Change, Done, Entry, Stat};

/// A session that shows at 5 that it is there, and lives at 9.
fn alive() -> Book {
    Book::new(0).creates("/g/0", 5).sees(9)
}

fn wrong(books: Vec<Book>) -> Vec<String> {
    ephemerals(&journals(books))
}

#[test]
fn nodes_that_come_and_go_with_their_sessions_are_right() {
    let other = Book::new(1).lists("/g", &[], 4).lists("/g", &["0"], 5).lists("/g", &["0"], 9);
    let other = other.told(12, Change::Deleted, "/g/0").lists("/g", &[], 12).misses("/g/0", 13);
    is_content(&wrong(vec![alive().closes(12), other]));
    // What its client deletes may be gone at any time after it asked.
    let other = Book::new(1).lists("/g", &[], 7);
    is_content(&wrong(vec![Book::new(0).creates("/g/0", 5).deletes("/g/0", 7).sees(9), other]));
}

#[test]
fn a_node_that_is_gone_before_its_session_is_wrong() {
    let looks = [
        Book::new(1).lists("/g", &["7"], 8),
        Book::new(1).misses("/g/0", 8),
        Book::new(1).told(8, Change::Deleted, "/g/0"),
    ];
    for look in looks {
        complains(&wrong(vec![alive(), look]), "predeceased");
    }
}

#[test]
fn a_node_that_is_there_after_its_session_is_wrong() {
    let look = |stat: Stat| {
        Book::new(1).asks(Ask::Exists { path: "/g/x".to_owned(), watch: false }, 12, Ok(Done::Stat(stat)))
    };
    complains(&wrong(vec![alive().closes(12), Book::new(1).lists("/g", &["0"], 12)]), "outlived");
    // One that its client does not know to have created, too.
    let stat = Stat { owner: session(0), ..Stat::default() };
    complains(&wrong(vec![alive().closes(12), look(stat)]), "outlived");
    is_content(&wrong(vec![alive().closes(13), look(stat)]));
}

#[test]
fn a_node_that_is_there_when_its_session_was_known_to_be_over_is_wrong() {
    let expired = || alive().later(20_000).line(Entry::Expired);
    is_content(&wrong(vec![expired(), Book::new(1).lists("/g", &["0"], 11)]));
    complains(&wrong(vec![expired(), Book::new(1).later(30_000).lists("/g", &["0"], 11)]), "outlived");
}

#[test]
fn sessions_end_once_and_are_not_answered_afterwards() {
    let both = Book::new(0).creates("/g/0", 5).creates("/h/0", 6);
    let tells = |at| Book::new(1).told(12, Change::Deleted, "/g/0").told(at, Change::Deleted, "/h/0");
    complains(&wrong(vec![both, tells(13)]), "more than once");
    let both = Book::new(0).creates("/g/0", 5).creates("/h/0", 6);
    assert!(!wrong(vec![both, tells(12)]).iter().any(|wrong| wrong.contains("more than once")));
    let answered = alive().closes(12).sees(14);
    complains(&wrong(vec![answered]), "was answered at 0xe");
}

#[test]
fn a_session_does_not_end_before_its_time() {
    complains(&wrong(vec![alive().later(5_000).line(Entry::Expired)]), "after a sign of life");
    is_content(&wrong(vec![alive().later(10_000).line(Entry::Expired)]));
    // Where others see it.
    complains(&wrong(vec![alive(), Book::new(1).later(5_000).lists("/g", &[], 11)]), "before the time");
    is_content(&wrong(vec![alive(), Book::new(1).later(10_000).lists("/g", &[], 11)]));
    // But at any time when its client has asked for that.
    is_content(&wrong(vec![alive().sends(Ask::Close).line(Entry::Lost).line(Entry::Expired)]));
}

#[test]
fn a_deleted_node_that_is_there_is_wrong() {
    let other = Book::new(1).lists("/g", &["0"], 8);
    complains(
        &wrong(vec![Book::new(0).creates("/g/0", 5).deletes("/g/0", 7).sees(9), other]),
        "was gone at 0x7",
    );
}

#[test]
fn what_is_left_in_the_end_is_said() {
    let left = [("/g/0".to_owned(), session(0)), ("/g".to_owned(), 0), ("/g/9".to_owned(), session(9))];
    let all = journals(vec![alive().closes(12)]);
    let wrong = left_behind(&left, &all);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    complains(&wrong, "/g/0 outlived session 0x100, which was closed");
    complains(&wrong, "nobody knows");
    complains(&left_behind(&left, &journals(vec![alive().line(Entry::Abandoned)])), "was abandoned");
}
