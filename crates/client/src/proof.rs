//! By what a frame shows whose it is: signed, or, where the group takes it, with an authenticator (PBFT, OSDI '99 §5.2).

use crate::core::ClientCore;
use std::sync::Arc;
use troth_types::{Frame, FrameDraft, FrameProof};

/// Microseconds for which everything is signed once an authenticator alone was not answered in time: some replica takes
/// none of this client, or cannot.
const SIGNED_FOR: u64 = 10_000_000;

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
        let Some(draft) = unsigned.map(|flight| flight.frame.draft().clone()) else { return };
        let signed = Arc::new(self.sign(draft));
        self.signs_until = self.now.after(SIGNED_FOR);
        if let Some(flight) = self.flights.get_mut(&number) {
            flight.frame = signed;
        }
    }
}
