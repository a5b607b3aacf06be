//! Rewrites at the level of bytes: what an attacker without any knowledge of the protocol can do.

use crate::{Message, Protocol, Rng};
use bytes::Bytes;
use troth_core::PeerMessage;
use troth_types::Wire;

/// The message with a few of its bytes changed, where the result still decodes to something else.
pub fn scramble<P: Protocol>(
    rng: &mut Rng,
    message: &PeerMessage<Message<P>>,
) -> Option<PeerMessage<Message<P>>> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    for _ in 0..rng.range(1, 3) {
        let at = rng.index(bytes.len());
        match rng.below(4) {
            0 => bytes[at] ^= 1 << rng.below(8),
            1 => bytes[at] = rng.below(256) as u8,
            2 => bytes[at] = bytes[at].wrapping_add(1),
            _ => {
                let from = rng.index(bytes.len());
                bytes[at] = bytes[from];
            }
        }
    }
    let changed = PeerMessage::from_wire(&Bytes::from(bytes)).ok()?;
    (changed != *message).then_some(changed)
}
