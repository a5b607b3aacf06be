//! Replies that wait until the places of their batches are proven.

use std::collections::BTreeMap;
use troth_types::{ClientId, Reply, Seq};

/// Bytes of replies that wait, over all batches: a history that cannot grow proves nothing, for as long as that lasts.
pub const HELD_REPLIES: usize = 32 << 20;
/// Replies beyond of which it is kept whose they are: what the table keeps of them then leaves with their proof.
pub const HELD_NAMES: usize = 1 << 17;
/// What a reply takes beside its results.
const REPLY: usize = size_of::<Reply>() + 64;

/// A reply that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// As it is.
    Here(Reply),
    /// Where there was no room for it: whose it is, and of which number.
    InTable(ClientId, u64),
}

/// What waits of one batch.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Batch {
    replies: Vec<Held>,
    bytes: usize,
    names: usize,
}

/// The replies of batches.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct HeldReplies {
    batches: BTreeMap<Seq, Batch>,
    bytes: usize,
    names: usize,
}

impl HeldReplies {
    /// Keeps those of a batch as far as there is room for them, and of the others whose they are; beyond that their clients
    /// ask again.
    pub(crate) fn hold(&mut self, seq: Seq, replies: Vec<Reply>) {
        self.remove(seq);
        let mut batch = Batch { replies: Vec::with_capacity(replies.len()), bytes: 0, names: 0 };
        for reply in replies {
            let bytes = reply.body.size() + REPLY;
            if self.bytes + batch.bytes + bytes <= HELD_REPLIES {
                batch.bytes += bytes;
                batch.replies.push(Held::Here(reply));
            } else if self.names + batch.names < HELD_NAMES {
                batch.names += 1;
                batch.replies.push(Held::InTable(reply.client, reply.number));
            }
        }
        if batch.replies.is_empty() {
            return;
        }
        // As many as had room: where there is none, that of the others would be in no count.
        batch.replies.shrink_to_fit();
        self.bytes += batch.bytes;
        self.names += batch.names;
        self.batches.insert(seq, batch);
    }

    /// Takes those of a batch out, and forgets those before it: proofs come in the order of batches.
    pub(crate) fn release(&mut self, seq: Seq) -> Vec<Held> {
        self.forget_below(seq);
        self.remove(seq)
    }

    fn remove(&mut self, seq: Seq) -> Vec<Held> {
        let Batch { replies, bytes, names } = self.batches.remove(&seq).unwrap_or_default();
        self.bytes -= bytes;
        self.names -= names;
        replies
    }

    /// Forgets those of batches before this one.
    pub(crate) fn forget_below(&mut self, seq: Seq) {
        while let Some((first, _)) = self.batches.first_key_value().filter(|(first, _)| **first < seq) {
            let first = *first;
            self.remove(first);
        }
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
    use troth_types::{ReplyBody, View};

    fn reply(number: u64, bytes: usize) -> Reply {
        let body = ReplyBody::Full(vec![Bytes::from(vec![0; bytes])]);
        Reply { client: ClientId(1), number, seq: Seq(1), view: View(0), events_up_to: 0, body }
    }

    fn held(held: &HeldReplies) -> (usize, usize) {
        let here = |held: &&Held| matches!(held, Held::Here(_));
        let all = || held.batches.values().flat_map(|batch| &batch.replies);
        (all().filter(here).count(), all().count())
    }

    #[test]
    fn what_waits_for_a_proof_is_bounded_over_all_batches() {
        let mut replies = HeldReplies::default();
        for seq in 1..=40 {
            replies.hold(Seq(seq), vec![reply(seq, 1 << 20)]);
        }
        assert_eq!(held(&replies), (31, 40), "with what each takes beside its results");
        assert!(matches!(replies.release(Seq(10))[..], [Held::Here(_)]));
        assert_eq!(held(&replies), (21, 30), "what was passed over is proven no more");
        for seq in 41..=60 {
            replies.hold(Seq(seq), vec![reply(seq, 1 << 20)]);
        }
        assert_eq!(held(&replies), (31, 50), "there was room again for as many as had gone");
        assert_eq!(replies.release(Seq(35)), [Held::InTable(ClientId(1), 35)]);
        replies.forget_below(Seq(100));
        assert_eq!((held(&replies), replies.bytes, replies.names), ((0, 0), 0, 0));
    }

    #[test]
    fn large_replies_of_a_batch_leave_the_small_ones_their_answers() {
        let mut replies = HeldReplies::default();
        let large = (0..40).map(|number| reply(number, 1 << 20));
        replies.hold(Seq(1), large.chain([reply(40, 10)]).collect());
        let answered = replies.release(Seq(1));
        assert_eq!(answered.len(), 41);
        assert!(matches!(answered[40], Held::Here(_)), "it is small");
    }

    #[test]
    fn names_are_bounded_too() {
        let mut replies = HeldReplies::default();
        let shared = reply(0, 32 << 20);
        for seq in 1..=3 {
            let many = (0..1 << 16).map(|number| Reply { number, ..shared.clone() });
            replies.hold(Seq(seq), many.collect());
        }
        assert_eq!(held(&replies), (0, HELD_NAMES));
        assert_eq!(replies.batches.len(), 2, "nothing is kept of a batch that has no room");
    }
}
