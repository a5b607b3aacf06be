//! I7, equal checkpoints: the same number has the same digest at all correct replicas, whether they
//! executed up to it, took it over, or call it stable.

use std::collections::BTreeMap;
use troth_types::{Digest, Seq};

/// The digest of each number.
#[derive(Debug, Default)]
pub struct EqualCheckpoints {
    digests: BTreeMap<Seq, Digest>,
}

impl EqualCheckpoints {
    /// A correct node says that the state at a number has this digest.
    pub fn taken(&mut self, seq: Seq, digest: Digest) -> Result<(), String> {
        let known = *self.digests.entry(seq).or_insert(digest);
        if known == digest { Ok(()) } else { Err(format!("the state at {seq} is {known:?} and {digest:?}")) }
    }

    /// The digest of a number, if any correct node told it.
    #[must_use]
    pub fn digest(&self, seq: Seq) -> Option<Digest> {
        self.digests.get(&seq).copied()
    }
}
