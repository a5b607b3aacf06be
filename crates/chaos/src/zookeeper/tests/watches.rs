//! Every watched change is told once, and in time.

use super::{Book, complains, is_content, journals};
use crate::zookeeper::checks::watches;
use crate::zookeeper::journal::{Ask, Change, Done, Lasts, Stat};
use troth_zookeeper::Code;

/// Somebody who writes `/a` at 7.
fn writer() -> Book {
    Book::new(1).writes("/a", 1, 7)
}

fn wrong(watcher: Book) -> Vec<String> {
    watches(&journals(vec![watcher, writer()])).wrong
}

#[test]
fn a_change_that_is_told_once_and_in_time_is_right() {
    let book = Book::new(0).watches("/a", 0, 5).told(7, Change::Data, "/a").sees(7);
    let told = watches(&journals(vec![book, writer()]));
    is_content(&told.wrong);
    assert_eq!((told.events, told.shown), (1, 0));
    // Nothing is said of what it did not see yet.
    is_content(&wrong(Book::new(0).watches("/a", 0, 5).sees(6)));
    // Nor of what happened before it watched.
    is_content(&wrong(Book::new(0).watches("/a", 7, 7).sees(9)));
}

#[test]
fn a_change_that_is_not_told_is_wrong() {
    complains(&wrong(Book::new(0).watches("/a", 0, 5).sees(7)), "without an event");
    // Nor by itself: what it reads tells that there was one.
    let book = Book::new(0).watches("/a", 0, 5).asks(
        Ask::Get { path: "/a".to_owned(), watch: false },
        9,
        Ok(Done::Value { value: String::new(), stat: Stat { modified: 8, ..Stat::default() } }),
    );
    complains(&watches(&journals(vec![book])).wrong, "without an event");
}

#[test]
fn a_session_that_is_closed_need_not_be_told_what_that_changes() {
    is_content(&wrong(Book::new(0).watches("/a", 0, 5).closes(7)));
}

#[test]
fn an_event_that_comes_twice_is_wrong() {
    let twice = Book::new(0).watches("/a", 0, 5).told(7, Change::Data, "/a").told(7, Change::Data, "/a");
    complains(&wrong(twice), "twice on one connection");
    // Even where it is watched again.
    let twice = Book::new(0).watches("/a", 0, 5).told(7, Change::Data, "/a");
    let twice = twice.watches("/a", 7, 7).told(7, Change::Data, "/a");
    complains(&wrong(twice), "twice on one connection");
}

#[test]
fn an_event_that_nobody_watches_for_is_wrong() {
    complains(&wrong(Book::new(0).told(7, Change::Data, "/a")), "did not watch");
    let after = Book::new(0).watches("/a", 0, 5).told(7, Change::Data, "/a").told(8, Change::Data, "/a");
    complains(&wrong(after), "did not watch");
    let of_children = Book::new(0).watches("/a", 0, 5).told(7, Change::Children, "/a");
    complains(&wrong(of_children), "did not watch");
}

#[test]
fn set_watches_shows_what_was_missed() {
    let (book, to) = Book::new(0).watches("/a", 0, 5).reconnects().rewatches(5, &["/a"]);
    let told = watches(&journals(vec![book.told(9, Change::Data, "/a").answered(to, 9), writer()]));
    is_content(&told.wrong);
    assert_eq!((told.events, told.shown), (1, 1));
    let (book, to) = Book::new(0).watches("/a", 0, 5).reconnects().rewatches(5, &["/a"]);
    complains(&wrong(book.answered(to, 9)), "without an event");
}

#[test]
fn a_client_that_does_not_say_what_it_watches_is_wrong() {
    let (book, _) = Book::new(0).watches("/a", 0, 5).reconnects().rewatches(5, &["/b"]);
    complains(&wrong(book), "the client says that it watches");
}

#[test]
fn nodes_that_come_and_children_are_watched_too() {
    let creates = |number| {
        let stat = Stat { created: 7, modified: 7, ..Stat::default() };
        let ask = Ask::Create { path: "/d/n".to_owned(), value: String::new(), lasts: Lasts::Always };
        Book::new(number).asks(ask, 7, Ok(Done::Created { path: "/d/n".to_owned(), stat }))
    };
    let waits = |number| {
        let ask = Ask::Exists { path: "/d/n".to_owned(), watch: true };
        Book::new(number).asks(ask, 5, Err(Code::NoNode.number()))
    };
    let lists = |number| {
        let children = Done::Children { names: Vec::new(), stat: Stat::default() };
        Book::new(number).asks(Ask::Children { path: "/d".to_owned(), watch: true }, 5, Ok(children))
    };
    let all = vec![
        creates(0),
        waits(1).told(7, Change::Created, "/d/n").sees(7),
        lists(2).told(7, Change::Children, "/d").sees(7),
    ];
    is_content(&watches(&journals(all)).wrong);
    complains(&watches(&journals(vec![creates(0), waits(1).sees(7)])).wrong, "/d/n (Coming)");
    complains(&watches(&journals(vec![creates(0), lists(1).sees(7)])).wrong, "/d (Children)");
}
