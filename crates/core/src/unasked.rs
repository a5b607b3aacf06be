//! Frames whose clients ask others for the answer.

use std::collections::{BTreeMap, BTreeSet};
use troth_types::ClientId;

/// Frames kept of a client; no window is larger, so it has no more under way. Whoever is forgotten is answered.
const MOST: usize = 1024;
/// Bytes that are kept of a client, at most: both sets, half empty.
pub const UNASKED: usize = 2 * MOST * 24;

/// Numbers of frames that came from their clients with the wish for no answer, until they are executed or asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unasked {
    of: BTreeMap<ClientId, BTreeSet<u64>>,
    /// Those that were asked for, and for which there was no room: whoever shows them takes nothing of that back.
    asked: BTreeMap<ClientId, BTreeSet<u64>>,
}

impl Unasked {
    /// The client wants no answer to this frame for now.
    pub(crate) fn note(&mut self, client: ClientId, number: u64) {
        insert(&mut self.of, client, number);
    }

    /// The client wants an answer to this frame, which nothing is kept of.
    pub(crate) fn is_asked(&mut self, client: ClientId, number: u64) {
        insert(&mut self.asked, client, number);
    }

    /// Another replica shows this frame, and it is not this one's turn to answer.
    pub(crate) fn is_shown(&mut self, client: ClientId, number: u64) {
        if !self.asked.get(&client).is_some_and(|numbers| numbers.contains(&number)) {
            self.note(client, number);
        }
    }

    /// Whether it wants none, once: what is asked for after this is answered.
    pub(crate) fn take(&mut self, client: ClientId, number: u64) -> bool {
        remove(&mut self.asked, client, number);
        remove(&mut self.of, client, number)
    }

    /// The client is gone.
    pub(crate) fn forget(&mut self, client: ClientId) {
        self.of.remove(&client);
        self.asked.remove(&client);
    }
}

fn insert(numbers: &mut BTreeMap<ClientId, BTreeSet<u64>>, client: ClientId, number: u64) {
    let numbers = numbers.entry(client).or_default();
    numbers.insert(number);
    if numbers.len() > MOST {
        numbers.pop_first();
    }
}

fn remove(all: &mut BTreeMap<ClientId, BTreeSet<u64>>, client: ClientId, number: u64) -> bool {
    let Some(numbers) = all.get_mut(&client) else { return false };
    let was = numbers.remove(&number);
    if numbers.is_empty() {
        all.remove(&client);
    }
    was
}
