//! I1, agreement: correct replicas that executed a number executed the same batch there.

use std::collections::BTreeMap;
use troth_core::Ordered;
use troth_types::{Digest, Seq, Time};

/// What was executed where, first.
#[derive(Debug, Default)]
pub struct Agreed {
    batches: BTreeMap<Seq, (Time, Vec<Digest>, usize)>,
}

impl Agreed {
    /// A correct node executed a batch.
    pub fn executed(&mut self, node: usize, ordered: &Ordered) -> Result<(), String> {
        if let Some((time, frames, first)) = self.batches.get(&ordered.seq) {
            let same = *time == ordered.time
                && frames.len() == ordered.frames.len()
                && frames.iter().zip(&ordered.frames).all(|(known, frame)| *known == frame.digest());
            if same {
                return Ok(());
            }
            let other: Vec<Digest> = ordered.frames.iter().map(|frame| frame.digest()).collect();
            return Err(format!(
                "at {} node {first} executed {frames:?} at {time}, node {node} {other:?} at {}",
                ordered.seq, ordered.time
            ));
        }
        let frames = ordered.frames.iter().map(|frame| frame.digest()).collect();
        self.batches.insert(ordered.seq, (ordered.time, frames, node));
        Ok(())
    }

    /// The highest number that any correct node executed.
    #[must_use]
    pub fn highest(&self) -> Seq {
        self.batches.last_key_value().map_or(Seq(0), |(seq, _)| *seq)
    }
}
