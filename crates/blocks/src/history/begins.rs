//! Where the history log of a component begins: with the group, or, where the component was admitted in the place of another,
//! within the group's history (`docs/protocols/a2m-pbft-e.md`, N1 to N3).

use super::{HistoryLog, Marks};
use troth_types::{Digest, Seq};

/// Where the log of this replica's component begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins {
    /// With the group: its first slot is 1.
    WithTheGroup,
    /// The component was admitted by this batch, in the place of another: the first slot is above it.
    Above(Seq),
    /// The component is not, or not yet, or not any more, the one that the group knows: it fills nothing.
    Nowhere,
}

impl HistoryLog {
    /// Where the log begins is known, or is another place than was thought.
    pub fn begins(&mut self, begins: Begins) {
        self.begins = begins;
    }

    /// Whether the component holds nothing yet and was admitted by a batch: its log begins where this replica's state is
    /// known to be the group's.
    #[must_use]
    pub fn is_to_begin(&self) -> bool {
        self.begins != Begins::WithTheGroup && self.grows().is_none()
    }

    /// A certificate of a state that is this replica's own shows the digest of the history up to there: a log that is to
    /// begin goes on from it. Returns whether it does.
    pub fn begin_at(&mut self, at: Seq, digest: Digest) -> bool {
        let Begins::Above(admitted) = self.begins else { return false };
        let Some(marks) = self.marks else { return false };
        if at < admitted || at <= marks.end || !(self.is_to_begin() || self.opens) {
            return false;
        }
        self.go_on_behind(at, digest);
        true
    }

    /// F-A6: where others must tell what the log lacks, it advances instead, to behind a state that is certified and that this
    /// replica has. Returns whether it does.
    #[cfg(feature = "literal")]
    pub fn advance_behind(&mut self, at: Seq, digest: Digest) -> bool {
        let lags = self.lacks().is_some() && self.marks.is_some_and(|marks| marks.end < at);
        if lags {
            self.go_on_behind(at, digest);
        }
        lags
    }

    /// The next slot is the one above this number, filled by an advance from the digest of the history up to it.
    fn go_on_behind(&mut self, at: Seq, digest: Digest) {
        (self.marks, self.opens) = (Some(Marks { low: at, end: at, digest }), true);
        // Nothing of what was before will ever be in this log.
        self.compared = at;
        (self.restored, self.waiting) = (None, self.waiting.split_off(&at.next()));
    }

    /// Where the log ends, if it may be filled.
    pub(super) fn grows(&self) -> Option<Marks> {
        let marks = self.marks?;
        let may = match self.begins {
            Begins::WithTheGroup => true,
            Begins::Above(_) => marks.end > Seq(0),
            Begins::Nowhere => false,
        };
        may.then_some(marks)
    }
}
