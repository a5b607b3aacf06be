//! What clients ask for again where replies prove their place.

use std::collections::BTreeMap;
use troth_types::{ClientId, Seq};

/// Entries kept; whoever is forgotten has its frame ordered once more.
const MOST: usize = 1 << 14;
/// How often a client is answered from one place before its frame is ordered again.
const PATIENCE: u32 = 2;

/// Frames asked for again, by (client, number).
#[derive(Clone, Debug, Default)]
pub(crate) struct Repetitions {
    /// Under which batch a frame is answered, other than the one that executed it.
    places: BTreeMap<(ClientId, u64), Seq>,
    /// How often it was answered from a place.
    asked: BTreeMap<(ClientId, u64), (Seq, u32)>,
    /// Whose clients asked for the full result, and the events that they have seen.
    full: BTreeMap<(ClientId, u64), u64>,
}

impl Repetitions {
    /// A batch held a frame that was executed at `executed`.
    pub(crate) fn answered(&mut self, client: ClientId, number: u64, executed: Seq, at: Seq) {
        if executed != at {
            self.places.insert((client, number), at);
        }
    }

    /// Under which batch a frame is answered, where it is another than that which executed it.
    pub(crate) fn place(&self, client: ClientId, number: u64) -> Option<Seq> {
        self.places.get(&(client, number)).copied()
    }

    /// Counts an answer from a place; whether the client has had enough of them.
    pub(crate) fn is_impatient(&mut self, client: ClientId, number: u64, at: Seq) -> bool {
        let asked = self.asked.entry((client, number)).or_insert((at, 0));
        if asked.0 != at {
            *asked = (at, 0);
        }
        asked.1 += 1;
        asked.1.is_multiple_of(PATIENCE)
    }

    /// The client wants the full result from everybody, and the events after these, with the next proof.
    pub(crate) fn asks_for_all(&mut self, client: ClientId, number: u64, events_seen: u64) {
        self.full.insert((client, number), events_seen);
    }

    /// Whether it does, once: the events that it has seen.
    pub(crate) fn wants_all(&mut self, client: ClientId, number: u64) -> Option<u64> {
        self.full.remove(&(client, number))
    }

    /// Proofs up to here are gone.
    pub(crate) fn stable(&mut self, seq: Seq) {
        self.places.retain(|_, at| *at > seq);
        self.asked.retain(|_, (at, _)| *at > seq);
        if self.full.len() > MOST {
            self.full.clear();
        }
    }
}
