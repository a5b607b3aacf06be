//! The paper's rule that has a flaw, for the simulator alone: a replica that had a state sent has its history log advance to
//! behind that state, where here it appends what led there (deviation D2).

use crate::A2mPbftE;

/// Flaws of the paper (guide.md, "Flaws by name"), each of which the simulator can put back to show the counter-example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flaw {
    /// F-A6: after a state transfer the history log advances to what others say. The component's digests must be as printed,
    /// too, or the log says that it jumped (A2M-L7).
    Advance,
}

impl Flaw {
    /// Every flaw, with the name by which the simulator's command line knows it.
    pub const ALL: [(Self, &'static str); 1] = [(Self::Advance, "F-A6")];
}

#[cfg(feature = "literal")]
impl A2mPbftE {
    /// Follows the rule of this flaw.
    #[must_use]
    pub fn literally(mut self, flaw: Option<Flaw>) -> Self {
        self.literal = flaw;
        self
    }

    /// Whether this flaw's rule is in force: never, outside the simulator.
    pub(crate) fn follows(&self, flaw: Flaw) -> bool {
        self.literal == Some(flaw)
    }

    /// Has the log advance to behind the stable state that came from others. A CHECKPOINT carries no digest of the history
    /// before it (deviation D3), so it is the slot above that the log advances to: what it attests from there on is the same.
    pub(crate) fn advance_history(&mut self) {
        if !self.follows(Flaw::Advance) || !self.pbft.has_stable_state() {
            return;
        }
        let proof = self.pbft.stable_proof();
        let (seq, _) = proof.target();
        if let Some(history) = proof.history() {
            self.history.log.advance_behind(seq, history.digest);
        }
    }
}

#[cfg(not(feature = "literal"))]
impl A2mPbftE {
    #[inline(always)]
    pub(crate) const fn follows(&self, _: Flaw) -> bool {
        false
    }

    #[inline(always)]
    pub(crate) const fn advance_history(&self) {}
}
