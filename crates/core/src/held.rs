//! Replies that wait until the places of their batches are proven.

use std::collections::BTreeMap;
use troth_types::{Reply, Seq};

/// Bytes of replies that wait, over all batches. A history that cannot grow proves nothing, for as long as that lasts: what
/// comes then has its clients ask again, once there is a proof.
pub const HELD_REPLIES: usize = 32 << 20;
/// What a reply takes beside its results.
const REPLY: usize = size_of::<Reply>() + 64;

/// The replies of batches, each executed behind the last.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct HeldReplies {
    batches: BTreeMap<Seq, (usize, Vec<Reply>)>,
    bytes: usize,
}

impl HeldReplies {
    /// Keeps those of a batch, where there is room for them.
    pub(crate) fn hold(&mut self, seq: Seq, mut replies: Vec<Reply>) {
        let mut bytes = replies.iter().map(|reply| reply.body.size() + REPLY).sum();
        if self.bytes + bytes > HELD_REPLIES {
            (replies, bytes) = (Vec::new(), 0);
        }
        let before = self.batches.insert(seq, (bytes, replies)).map_or(0, |(bytes, _)| bytes);
        self.bytes += bytes;
        self.bytes -= before;
    }

    /// Takes those of a batch out, and forgets those before it.
    pub(crate) fn release(&mut self, seq: Seq) -> Vec<Reply> {
        self.forget_below(seq);
        let (bytes, replies) = self.batches.remove(&seq).unwrap_or_default();
        self.bytes -= bytes;
        replies
    }

    /// Forgets those of batches before this one.
    pub(crate) fn forget_below(&mut self, seq: Seq) {
        let kept = self.batches.split_off(&seq);
        let gone: usize = self.batches.values().map(|(bytes, _)| bytes).sum();
        self.batches = kept;
        self.bytes -= gone;
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use troth_types::{ClientId, ReplyBody, View};

    fn reply(bytes: usize) -> Reply {
        let body = ReplyBody::Full(vec![Bytes::from(vec![0; bytes])]);
        Reply { client: ClientId(1), number: 1, seq: Seq(1), view: View(0), events_up_to: 0, body }
    }

    fn held(held: &HeldReplies) -> usize {
        held.batches.values().map(|(_, replies)| replies.len()).sum()
    }

    #[test]
    fn what_waits_for_a_proof_is_bounded_over_all_batches() {
        let mut replies = HeldReplies::default();
        for seq in 1..=40 {
            replies.hold(Seq(seq), vec![reply(1 << 20)]);
        }
        assert_eq!(held(&replies), 31, "with what each takes beside its results");
        assert_eq!(replies.release(Seq(10)).len(), 1);
        assert_eq!(held(&replies), 21, "what was passed over is proven no more");
        for seq in 41..=60 {
            replies.hold(Seq(seq), vec![reply(1 << 20)]);
        }
        assert_eq!(held(&replies), 31, "there was room again for as many as had gone");
        replies.forget_below(Seq(100));
        assert_eq!((held(&replies), replies.bytes), (0, 0));
    }
}
