//! What all sessions of a run share.

use super::journal::{Entry, Journal, Line};
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::time::Instant;

/// See the module.
pub(crate) struct World {
    began: Instant,
    /// Where the gateways are.
    pub(crate) gateways: Vec<SocketAddr>,
    values: Cell<u64>,
    /// When the newest request that has an answer was sent.
    answered: Cell<u64>,
    requests: Cell<u64>,
    go_on: Cell<bool>,
    /// Of all sessions, by number.
    journals: RefCell<Vec<Journal>>,
    strange: RefCell<Vec<String>>,
}

impl World {
    /// In which nothing has happened.
    pub(crate) fn new(gateways: Vec<SocketAddr>) -> Self {
        Self {
            began: Instant::now(),
            gateways,
            values: Cell::new(0),
            answered: Cell::new(0),
            requests: Cell::new(0),
            go_on: Cell::new(true),
            journals: RefCell::default(),
            strange: RefCell::default(),
        }
    }

    /// Nanoseconds since the run began.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).expect("a run is shorter than centuries")
    }

    /// Begins a journal; answers its number.
    pub(crate) fn begin(&self, timeout: u32) -> usize {
        let mut journals = self.journals.borrow_mut();
        let number = journals.len();
        journals.push(Journal::new(number, timeout));
        number
    }

    /// Looks at a journal, or writes to it.
    pub(crate) fn journal<T>(&self, number: usize, with: impl FnOnce(&mut Journal) -> T) -> T {
        with(&mut self.journals.borrow_mut()[number])
    }

    /// Notes that something happened now; answers where it stands.
    pub(crate) fn note(&self, number: usize, entry: Entry) -> usize {
        let at = self.now();
        self.journal(number, |journal| {
            journal.lines.push(Line { at, entry });
            journal.lines.len() - 1
        })
    }

    /// A value that nobody wrote before.
    pub(crate) fn value(&self) -> String {
        self.values.set(self.values.get() + 1);
        format!("value-{}", self.values.get())
    }

    /// A request that was sent then was answered.
    pub(crate) fn answered(&self, sent: u64) {
        self.answered.set(self.answered.get().max(sent));
        self.requests.set(self.requests.get() + 1);
    }

    /// When the newest request that has an answer was sent.
    pub(crate) fn last_answered(&self) -> u64 {
        self.answered.get()
    }

    /// How many were answered.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.get()
    }

    /// Whether the load goes on.
    pub(crate) fn goes_on(&self) -> bool {
        self.go_on.get()
    }

    /// Has the load come to its end.
    pub(crate) fn stop(&self) {
        self.go_on.set(false);
    }

    /// All journals as they are now.
    pub(crate) fn journals(&self) -> Vec<Journal> {
        self.journals.borrow().clone()
    }

    /// Something made no sense.
    pub(crate) fn strange(&self, what: String) {
        self.strange.borrow_mut().push(what);
    }

    /// What made no sense.
    pub(crate) fn strangeness(&self) -> Vec<String> {
        self.strange.borrow().clone()
    }
}
