//! Places for callers who have not said who they are.
//!
//! Whoever can open a TCP connection can leave it silent. Were such callers to wait for a place, a
//! few dozen silent connections would lock everybody out; so a new caller always has one, and where
//! there is none left the oldest caller loses its own.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use tokio::sync::Notify;

/// A bounded number of places.
pub(crate) struct Places {
    most: usize,
    next: Cell<u64>,
    /// Who holds one, oldest first.
    held: RefCell<VecDeque<(u64, Rc<Notify>)>>,
}

/// One caller's place, free again when dropped.
pub(crate) struct Place {
    places: Rc<Places>,
    number: u64,
    lost: Rc<Notify>,
}

impl Places {
    /// So many places, all free.
    pub(crate) fn new(most: usize) -> Rc<Self> {
        Rc::new(Self { most, next: Cell::new(0), held: RefCell::default() })
    }

    /// A place for a new caller; the oldest caller loses its own where none is free.
    pub(crate) fn take(self: &Rc<Self>) -> Place {
        let mut held = self.held.borrow_mut();
        while held.len() >= self.most
            && let Some((_, oldest)) = held.pop_front()
        {
            oldest.notify_one();
        }
        let number = self.next.get();
        self.next.set(number + 1);
        let lost = Rc::new(Notify::new());
        held.push_back((number, Rc::clone(&lost)));
        Place { places: Rc::clone(self), number, lost }
    }
}

impl Place {
    /// Works for the caller, and gives up when its place is lost.
    pub(crate) async fn hold<T>(self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.lost.notified() => None,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.held.borrow_mut().retain(|(number, _)| *number != self.number);
    }
}
