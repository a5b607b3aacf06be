//! A fast read on its way.

use crate::Ticket;
use crate::ballot::Ballot;
use crate::budget::Budget;
use crate::inbox::Told;
use bytes::Bytes;
use troth_auth::EndedAt;
use troth_types::{ClientId, Digest, Group, Read, ReadReply, ReplicaId, Reply, ReplyBody, Time};

/// Marks the place that implements a rule of `docs/protocols/a2m-pbft-e.md` or `a2m-pbft-ea.md`, for `cargo xtask paper`.
macro_rules! rule {
    ($label:literal) => {};
}

/// What a read's replies have come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Open,
    /// As many replicas agree as must, and the result is there.
    Agreed,
    /// Too few can still agree, or the result will not come; the read must be asked again or ordered.
    Split,
}

/// What a replica answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    result: Digest,
    events_up_to: u64,
    /// Where its history ended, where that counts.
    end: Option<EndedAt>,
}

/// What a read may still do that need not show the present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recent {
    /// Whether it may be asked once more where replicas answer it from different states, before it is ordered.
    pub(crate) again: bool,
}

/// A read that every replica was asked.
#[derive(Clone, Debug)]
pub(crate) struct FastRead {
    pub(crate) ticket: Ticket,
    pub(crate) operation: Bytes,
    pub(crate) sent_at: Time,
    /// When the first replica answered.
    pub(crate) first_at: Option<Time>,
    pub(crate) give_up_at: Time,
    /// Set once enough agree; the read may still wait for events.
    pub(crate) events_up_to: Option<u64>,
    /// What it must be answered under, where answers prove the ends of histories.
    pub(crate) nonce: Option<Digest>,
    /// Whether it need not show the present.
    pub(crate) recent: Option<Recent>,
    number: u64,
    /// What was told before it began.
    after: Told,
    /// Equal answers that it needs.
    needed: usize,
    /// What each replica answered; nothing of use, where it refused.
    words: Ballot<Option<Word>>,
    body: Option<(Digest, Bytes)>,
}

impl FastRead {
    pub(crate) fn new(
        group: &Group,
        needed: usize,
        ticket: Ticket,
        read: Read,
        (sent_at, give_up_at): (Time, Time),
        after: Told,
        recent: Option<Recent>,
    ) -> Self {
        let words = Ballot::new(group.n());
        let Read { nonce, number, operation, .. } = read;
        let (first_at, events_up_to, body) = (None, None, None);
        Self {
            ticket,
            operation,
            sent_at,
            first_at,
            give_up_at,
            events_up_to,
            nonce,
            recent,
            number,
            after,
            needed,
            words,
            body,
        }
    }

    /// Whether the state that a history up to `end` leads to, with so many events, shows all that brought about the events
    /// that were delivered before the read began.
    pub(crate) fn shows_what_was_told(&self, end: &EndedAt, events_up_to: u64) -> bool {
        rule!("A2MPBFTE-E5");
        rule!("A2MPBFTEA-E5");
        end.reaches(self.after.batch) && events_up_to >= self.after.index
    }

    /// Whether a replica has not answered.
    pub(crate) fn is_silent(&self, replica: ReplicaId) -> bool {
        self.words.word(replica).is_none()
    }

    /// Whether what this replica says may still count. Where it must be checked first, its first word is all that does:
    /// who speaks on has nobody check without end.
    pub(crate) fn hears(&self, from: ReplicaId) -> bool {
        self.events_up_to.is_none() && self.words.word(from).is_none()
    }

    /// Counts a reply, with the end of its sender's history where that is proven.
    pub(crate) fn on_reply(
        &mut self,
        group: &Group,
        from: ReplicaId,
        reply: ReadReply,
        end: Option<EndedAt>,
        budget: &mut Budget,
    ) -> Standing {
        if self.events_up_to.is_some() {
            return Standing::Agreed;
        }
        // That events were lost is told without the batches that brought them about, so a state that reflects the batch which
        // a recent read names may be from before them.
        if self.recent.is_some() && reply.events_up_to < self.after.index {
            return self.on_refusal(group, from, reply.client);
        }
        let designated = group.designated(reply.client, self.number);
        let digest = match reply.body {
            ReplyBody::Digest(digest) => digest,
            ReplyBody::Full(results) => {
                let digest = Reply::results_digest(&results);
                let [result] = results.as_slice() else {
                    return self.on_refusal(group, from, reply.client);
                };
                if from == designated {
                    self.forget(group, reply.client, budget);
                    if !budget.take(from, result.len()) {
                        return Standing::Split;
                    }
                    self.body = Some((digest, result.clone()));
                }
                digest
            }
        };
        self.words.cast(from, Some(Word { result: digest, events_up_to: reply.events_up_to, end }));
        self.standing(designated)
    }

    /// Counts an answer that is none: its sender will not be among those that agree.
    pub(crate) fn on_refusal(&mut self, group: &Group, from: ReplicaId, client: ClientId) -> Standing {
        if self.events_up_to.is_some() {
            return Standing::Agreed;
        }
        self.words.cast(from, None);
        self.standing(group.designated(client, self.number))
    }

    /// What enough replicas answered.
    fn agreed(&self) -> Option<Word> {
        let count = |word: &Word| self.words.all().filter(|other| **other == Some(*word)).count();
        self.words.all().flatten().find(|word| count(word) >= self.needed).copied()
    }

    /// Whether nothing is missing but the result, from the one that was to send it.
    pub(crate) fn lacks_result(&self) -> bool {
        self.events_up_to.is_none() && self.agreed().is_some()
    }

    fn standing(&mut self, designated: ReplicaId) -> Standing {
        let Some(Word { result, events_up_to, .. }) = self.agreed() else {
            return if self.attainable() >= self.needed { Standing::Open } else { Standing::Split };
        };
        if self.body.as_ref().is_some_and(|(of, _)| *of == result) {
            self.events_up_to = Some(events_up_to);
            return Standing::Agreed;
        }
        // The result may be on its way yet, unless the one that was to send it has answered.
        if self.words.word(designated).is_none() { Standing::Open } else { Standing::Split }
    }

    /// How many can still come to give one answer.
    fn attainable(&self) -> usize {
        let same = |word| self.words.all().filter(|other| **other == Some(word)).count();
        self.words.silent() + self.words.all().flatten().map(|word| same(*word)).max().unwrap_or(0)
    }

    /// Gives up the unconfirmed result.
    pub(crate) fn forget(&mut self, group: &Group, client: ClientId, budget: &mut Budget) {
        if let Some((_, result)) = self.body.take() {
            budget.give_back(group.designated(client, self.number), result.len());
        }
    }

    /// The result that enough replicas agreed on.
    pub(crate) fn result(&self) -> Option<Bytes> {
        self.events_up_to?;
        self.body.as_ref().map(|(_, result)| result.clone())
    }
}
