//! Moving the pages of a large map, so that the memory between them is given back.
//!
//! While much is written each checkpoint replaces a large part of the pages, and two or three versions of each are there at
//! a time. When that is over, those that stay lie among the places of those that went: an allocator can give back whole
//! pages of the system only, and in a state of ten million keys half of its memory was such holes. A pass over the map
//! makes each page anew, one after the other. The new ones fill holes, and what the old ones leave behind is free in whole.
//!
//! What a version holds is not changed by it, nor are its digests, nor what is known of where parts are stored. Other
//! versions go on holding the old pages, so a pass waits where too many of those are still there: checkpoints that are kept,
//! or a snapshot that is being written.

use super::node::{self, Node};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// Maps with fewer entries are not worth it.
const LEAST: u64 = 1 << 16;
/// As many writes as this part of the entries, in layers that replace many of the pages each, leave holes.
const REPLACED: u64 = 8;
/// A layer with fewer writes than this part of the entries replaces few of the pages: a pass is worth it.
const CALM: u64 = 64;
/// Old pages that may be there still: at most this part of the entries, which is some four of a hundred pages.
const HELD: u64 = 256;

/// How far a map's pages are moved. A clone of the map begins with nothing.
#[derive(Default)]
pub(super) struct Moving {
    /// Writes of layers that were not calm, since the last pass began.
    written: u64,
    /// The path of the next page, while a pass is under way.
    next: Option<Vec<u8>>,
    /// Whether it rests, as what is written replaces pages as quickly as it would.
    rests: bool,
    /// Old pages that other versions held when they were moved.
    held: VecDeque<Weak<Node>>,
}

/// How many more old pages may be there.
fn room(held: &VecDeque<Weak<Node>>, entries: u64) -> usize {
    usize::try_from(entries / HELD).unwrap_or(usize::MAX).saturating_sub(held.len())
}

impl Clone for Moving {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Moving {
    /// A layer of so many writes was merged into a map of so many entries.
    pub(super) fn merged(&mut self, writes: usize, entries: u64) {
        let writes = writes as u64;
        self.rests = entries < LEAST || writes > entries / CALM;
        if self.rests {
            self.written = self.written.saturating_add(writes);
        } else if self.next.is_none() && self.written >= entries / REPLACED {
            self.written = 0;
            self.next = Some(Vec::new());
        }
    }

    /// Whether a pass is under way and may go on.
    pub(super) fn is_ready(&self, entries: u64) -> bool {
        let is_free = |held: &Weak<Node>| held.strong_count() == 0;
        self.next.is_some()
            && !self.rests
            && (room(&self.held, entries) > 0 || self.held.front().is_some_and(is_free))
    }

    /// Moves pages while the budget (units of about a microsecond) lasts.
    pub(super) fn go_on(&mut self, root: &mut Arc<Node>, budget: &mut usize) {
        let Some(next) = self.next.as_mut().filter(|_| !self.rests) else { return };
        while self.held.front().is_some_and(|held| held.strong_count() == 0) {
            self.held.pop_front();
        }
        let mut room = room(&self.held, root.entries());
        let (from, held) = (core::mem::take(next), &mut self.held);
        let done = node::move_pages(root, &from, next, &mut |cost, old| {
            if *budget == 0 || room == 0 {
                return false;
            }
            *budget = budget.saturating_sub(cost);
            if Arc::strong_count(old) > 1 {
                held.push_back(Arc::downgrade(old));
                room -= 1;
            }
            true
        });
        if done {
            self.next = None;
            // What is left of those that are gone would lie among the rest until the next pass.
            self.held.clear();
        }
    }
}
