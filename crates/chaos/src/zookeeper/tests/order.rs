//! A session goes forward.

use super::{Book, complains, is_content, journals};
use crate::zookeeper::checks::order;
use crate::zookeeper::journal::Change;

#[test]
fn a_session_that_goes_forward_is_right() {
    let book = Book::new(0).sees(5).sees(5).told(6, Change::Data, "/a").sees(6).reconnects().sees(9);
    is_content(&order(&journals(vec![book])));
}

#[test]
fn a_reply_that_goes_back_is_wrong() {
    complains(&order(&journals(vec![Book::new(0).sees(5).sees(4)])), "reflects 0x4");
    complains(&order(&journals(vec![Book::new(0).sees(5).reconnects().sees(4)])), "reflects 0x4");
}

#[test]
fn an_event_after_what_reveals_it_is_wrong() {
    complains(
        &order(&journals(vec![Book::new(0).sees(6).told(6, Change::Data, "/a")])),
        "only after a reply",
    );
}

#[test]
fn what_set_watches_brings_needs_no_transaction() {
    let (book, to) = Book::new(0).sees(6).reconnects().rewatches(6, &["/a"]);
    is_content(&order(&journals(vec![book.told(6, Change::Data, "/a").answered(to, 8)])));
    let (book, to) = Book::new(0).sees(6).reconnects().rewatches(6, &["/a"]);
    let late = book.answered(to, 8).told(6, Change::Data, "/a");
    complains(&order(&journals(vec![late])), "only after a reply");
}
