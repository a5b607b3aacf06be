//! What keeps views from starting: frames that a start names and that are not here.

use std::collections::BTreeSet;
use troth_types::Digest;

/// Starts of views that wait for nothing but frames. To choose a start again takes long, and they may come one by one, as
/// slowly as a faulty replica shows them: so it is done when one of them has all.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LackedFrames(Vec<BTreeSet<Digest>>);

impl LackedFrames {
    /// What starts lack is found out anew.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// One lacks these.
    pub fn lacks(&mut self, frames: impl Iterator<Item = Digest>) {
        self.0.push(frames.collect());
    }

    /// Whether one of them lacks this frame.
    #[must_use]
    pub fn has(&self, frame: &Digest) -> bool {
        self.0.iter().any(|lacked| lacked.contains(frame))
    }

    /// A frame came. Whether one of them lacks none any more.
    pub fn came(&mut self, frame: &Digest) -> bool {
        let mut complete = false;
        for lacked in &mut self.0 {
            complete |= lacked.remove(frame) && lacked.is_empty();
        }
        complete
    }
}
