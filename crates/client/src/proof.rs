//! By what a frame shows whose it is: signed, or, where the group takes it, with an authenticator (PBFT, OSDI '99 §5.2).

use crate::core::ClientCore;
use std::sync::Arc;
use troth_types::{Frame, FrameDraft, FrameProof};

/// Microseconds for which everything is signed once an authenticator alone was not answered in time: some replica takes
/// none of this client, or cannot, or the group stood still for a moment. Which of them it was shows afterwards: each
/// further time it is twice as long, up to the second number.
const SIGNED_FIRST: u64 = 1_000_000;
const SIGNED_LONGEST: u64 = 16_000_000;
/// As many times as long authenticators must have been answered for this to be forgotten.
const FORGOTTEN_AFTER: u64 = 8;

impl ClientCore {
    /// A frame as it is sent first.
    pub(crate) fn prove(&self, draft: FrameDraft) -> Frame {
        match &self.config.authenticators {
            Some(keys) if self.now >= self.signs_until => {
                let tags = keys.of(&draft.signing_digest());
                draft.prove(FrameProof::Authenticator(tags))
            }
            _ => self.sign(draft),
        }
    }

    fn sign(&self, draft: FrameDraft) -> Frame {
        let signature = self.signer.sign(&draft.signing_digest());
        draft.sign(signature)
    }

    /// The frame of this number as it is sent again: with its signature, which every replica can check and without which
    /// none suspects a primary that leaves it out.
    pub(crate) fn sign_flight(&mut self, number: u64) {
        let unsigned = self.flights.get(&number).filter(|flight| !flight.frame.is_signed());
        let Some(draft) = unsigned.map(|flight| flight.frame.draft()) else { return };
        let signed = Arc::new(self.sign(draft));
        self.sign_for_a_while();
        if let Some(flight) = self.flights.get_mut(&number) {
            flight.frame = signed;
        }
    }

    /// From now on everything is signed for a while. What was sent before and is sent again meanwhile says nothing new.
    fn sign_for_a_while(&mut self) {
        if self.now < self.signs_until {
            return;
        }
        let again = self.now < self.signs_until.after(self.signs_for.saturating_mul(FORGOTTEN_AFTER));
        self.signs_for = if again { (2 * self.signs_for).min(SIGNED_LONGEST) } else { SIGNED_FIRST };
        self.signs_until = self.now.after(self.signs_for);
    }
}
