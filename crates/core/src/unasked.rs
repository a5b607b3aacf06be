//! Frames whose clients ask others for the answer.

use std::collections::{BTreeMap, BTreeSet};
use troth_types::ClientId;

/// Frames kept of a client; it has no more under way. Whoever is forgotten is answered.
const MOST: usize = 256;

/// Numbers of frames that came from their clients with the wish for no answer, until they are executed or asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unasked {
    of: BTreeMap<ClientId, BTreeSet<u64>>,
}

impl Unasked {
    /// The client wants no answer to this frame for now.
    pub(crate) fn note(&mut self, client: ClientId, number: u64) {
        let numbers = self.of.entry(client).or_default();
        numbers.insert(number);
        if numbers.len() > MOST {
            numbers.pop_first();
        }
    }

    /// Whether it wants none, once: what is asked for after this is answered.
    pub(crate) fn take(&mut self, client: ClientId, number: u64) -> bool {
        let Some(numbers) = self.of.get_mut(&client) else { return false };
        let wants_none = numbers.remove(&number);
        if numbers.is_empty() {
            self.of.remove(&client);
        }
        wants_none
    }

    /// The client is gone.
    pub(crate) fn forget(&mut self, client: ClientId) {
        self.of.remove(&client);
    }
}
