//! I9, recovery: what a correct replica starts again from is a state that the group went through.

use super::EqualCheckpoints;
use troth_types::{Digest, Seq};

/// Judges restored states.
#[derive(Debug, Default)]
pub struct RecoveredPrefix;

impl RecoveredPrefix {
    /// A correct node restored a snapshot.
    pub fn restored(&self, seq: Seq, digest: Digest, known: &EqualCheckpoints) -> Result<(), String> {
        match known.digest(seq) {
            Some(expected) if expected == digest => Ok(()),
            Some(expected) => Err(format!("restored {digest:?} at {seq}, where the group was {expected:?}")),
            None => Err(format!("restored a state at {seq}, where nobody took a checkpoint")),
        }
    }
}
