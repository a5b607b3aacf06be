//! Tests of the checks on journals written by hand, and of the client against bytes.

mod ephemerals;
mod faults;
mod figures;
mod locks;
mod order;
mod registers;
mod spoil;
mod watches;
mod wire;

use super::journal::{Ask, Change, Done, Entry, Journal, Lasts, Line, Stat};
use troth_zookeeper::Code;

/// Nanoseconds of a millisecond.
const MILLI: u64 = 1_000_000;

/// A journal that is being written, a millisecond from line to line.
struct Book(Journal);

impl Book {
    /// Of a session with a time-out of ten seconds and one connection.
    fn new(number: usize) -> Self {
        let mut journal = Journal::new(number, 10_000);
        journal.session = session(number);
        Self(journal).line(Entry::Connected { gateway: 0 })
    }

    fn line(mut self, entry: Entry) -> Self {
        self.add(entry);
        self
    }

    fn add(&mut self, entry: Entry) -> usize {
        let at = self.0.lines.last().map_or(0, |line| line.at) + MILLI;
        self.0.lines.push(Line { at, entry });
        self.0.lines.len() - 1
    }

    /// Lets time pass.
    fn later(mut self, millis: u64) -> Self {
        self.add(Entry::Pong);
        self.0.lines.last_mut().unwrap().at += millis * MILLI;
        self
    }

    /// A request that never gets an answer.
    fn sends(self, ask: Ask) -> Self {
        self.line(Entry::Sent(ask))
    }

    /// A request and its answer.
    fn asks(mut self, ask: Ask, zxid: i64, outcome: Result<Done, i32>) -> Self {
        let to = self.add(Entry::Sent(ask));
        self.line(Entry::Reply { to, zxid, outcome })
    }

    fn told(self, zxid: i64, change: Change, path: &str) -> Self {
        self.line(Entry::Fired { zxid, change, path: path.to_owned() })
    }

    fn reconnects(self) -> Self {
        self.line(Entry::Lost).line(Entry::Connected { gateway: 1 })
    }

    /// Creates a node that lives as long as the session.
    fn creates(self, path: &str, zxid: i64) -> Self {
        let stat = Stat { created: zxid, modified: zxid, owner: self.0.session, ..Stat::default() };
        let ask = Ask::Create { path: path.to_owned(), value: String::new(), lasts: Lasts::Session };
        self.asks(ask, zxid, Ok(Done::Created { path: path.to_owned(), stat }))
    }

    /// Finds a directory with these children.
    fn lists(self, path: &str, names: &[&str], zxid: i64) -> Self {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let outcome = Ok(Done::Children { names, stat: Stat::default() });
        self.asks(Ask::Children { path: path.to_owned(), watch: false }, zxid, outcome)
    }

    fn deletes(self, path: &str, zxid: i64) -> Self {
        self.asks(Ask::Delete { path: path.to_owned() }, zxid, Ok(Done::Nothing))
    }

    fn closes(self, zxid: i64) -> Self {
        self.asks(Ask::Close, zxid, Ok(Done::Nothing))
    }

    /// Reads a node, with a watch, that was last written at `modified`.
    fn watches(self, path: &str, modified: i64, zxid: i64) -> Self {
        let stat = Stat { modified, ..Stat::default() };
        let ask = Ask::Get { path: path.to_owned(), watch: true };
        self.asks(ask, zxid, Ok(Done::Value { value: format!("of {modified}"), stat }))
    }

    /// Writes a node without regard to its version.
    fn writes(self, path: &str, version: i32, zxid: i64) -> Self {
        let stat = Stat { modified: zxid, version, ..Stat::default() };
        let ask = Ask::Set { path: path.to_owned(), value: format!("of {zxid}"), expected: None };
        self.asks(ask, zxid, Ok(Done::Stat(stat)))
    }

    /// Finds no such node.
    fn misses(self, path: &str, zxid: i64) -> Self {
        let ask = Ask::Exists { path: path.to_owned(), watch: false };
        self.asks(ask, zxid, Err(Code::NoNode.number()))
    }

    /// Sees what the order has come to, and nothing else.
    fn sees(self, zxid: i64) -> Self {
        let ask = Ask::Exists { path: "/".to_owned(), watch: false };
        self.asks(ask, zxid, Ok(Done::Stat(Stat::default())))
    }

    /// Says anew what it watches.
    fn rewatches(mut self, seen: i64, data: &[&str]) -> (Self, usize) {
        let data = data.iter().map(|path| (*path).to_owned()).collect();
        let to = self.add(Entry::Sent(Ask::Rewatch { seen, data, exists: Vec::new(), children: Vec::new() }));
        (self, to)
    }

    fn answered(self, to: usize, zxid: i64) -> Self {
        self.line(Entry::Reply { to, zxid, outcome: Ok(Done::Nothing) })
    }
}

fn session(number: usize) -> i64 {
    0x100 + i64::try_from(number).unwrap()
}

fn journals(books: Vec<Book>) -> Vec<Journal> {
    books.into_iter().map(|book| book.0).collect()
}

/// Expects one complaint that says this.
#[track_caller]
fn complains(wrong: &[String], what: &str) {
    assert!(wrong.iter().any(|wrong| wrong.contains(what)), "'{what}' is not in {wrong:#?}");
}

#[track_caller]
fn is_content(wrong: &[String]) {
    assert!(wrong.is_empty(), "{wrong:#?}");
}
