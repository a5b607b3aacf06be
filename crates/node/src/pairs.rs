//! The keys that a replica shares with its clients (`auth = "mac"`): from the static keys of their connections, so that
//! nothing more has to be handed out.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use troth_auth::{PairKey, PairKeys};
use troth_link::{FRAME_TAGS, Identity, LinkKey};
use troth_types::ClientId;

/// Keys kept at most; beyond, all are computed anew.
const MOST_KEPT: usize = 1 << 16;

/// Computes each key once: a Diffie-Hellman secret takes as long as a signature's check.
pub(crate) struct LinkPairs {
    identity: Identity,
    known: Mutex<BTreeMap<[u8; 32], Option<PairKey>>>,
}

impl LinkPairs {
    /// Of the replica with this identity.
    pub(crate) fn new(identity: Identity) -> Self {
        Self { identity, known: Mutex::default() }
    }
}

impl fmt::Debug for LinkPairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LinkPairs({:?})", self.identity)
    }
}

impl PairKeys for LinkPairs {
    fn with(&self, _: ClientId, link: &[u8; 32]) -> Option<PairKey> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_KEPT && !known.contains_key(link) {
            known.clear();
        }
        let secret = || self.identity.shared_with(FRAME_TAGS, &LinkKey(*link));
        known.entry(*link).or_insert_with(|| secret().map(|secret| PairKey::new(&secret))).clone()
    }
}
