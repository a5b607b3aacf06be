//! I5, validity: every executed frame was signed by its client, or sent by it with an authenticator.

use std::collections::BTreeSet;
use troth_core::Ordered;
use troth_types::{Digest, Frame};

/// What clients signed.
#[derive(Debug, Default)]
pub struct Validity {
    signed: BTreeSet<Digest>,
}

impl Validity {
    /// A client signed this frame. The digest covers operations and signature; of an authenticator, of which a relay may
    /// spoil parts, what the tags cover counts.
    pub fn signed(&mut self, frame: &Frame) {
        self.signed.insert(name(frame));
    }

    /// A correct node executed a batch.
    pub fn executed(&self, ordered: &Ordered) -> Result<(), String> {
        match ordered.frames.iter().find(|frame| !self.signed.contains(&name(frame))) {
            None => Ok(()),
            Some(frame) => Err(format!(
                "the frame ({}, {}) executed at {} was never signed by its client",
                frame.client(),
                frame.number(),
                ordered.seq
            )),
        }
    }
}

fn name(frame: &Frame) -> Digest {
    if frame.is_signed() { frame.digest() } else { *frame.signing_digest() }
}
