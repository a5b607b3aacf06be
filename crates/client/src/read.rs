//! A fast read on its way (design.md §6, Reads).

use crate::Ticket;
use crate::ballot::Ballot;
use crate::budget::Budget;
use bytes::Bytes;
use troth_types::{ClientId, Digest, Group, ReadReply, ReplicaId, Reply, ReplyBody, Time};

/// What a read's replies have come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Open,
    /// All replicas agree and the result is there.
    Agreed,
    /// They do not all agree; the read must be ordered.
    Split,
}

/// A read that every replica was asked.
#[derive(Clone, Debug)]
pub(crate) struct FastRead {
    pub(crate) ticket: Ticket,
    pub(crate) operation: Bytes,
    pub(crate) give_up_at: Time,
    /// Set once all agree; the read may still wait for events.
    pub(crate) events_up_to: Option<u64>,
    number: u64,
    votes: Ballot<(Digest, u64)>,
    body: Option<(Digest, Bytes)>,
}

impl FastRead {
    pub(crate) fn new(
        group: &Group,
        ticket: Ticket,
        operation: Bytes,
        number: u64,
        give_up_at: Time,
    ) -> Self {
        let votes = Ballot::new(group.n());
        Self { ticket, operation, give_up_at, events_up_to: None, number, votes, body: None }
    }

    /// Counts a reply.
    pub(crate) fn on_reply(
        &mut self,
        group: &Group,
        from: ReplicaId,
        reply: ReadReply,
        budget: &mut Budget,
    ) -> Standing {
        if self.events_up_to.is_some() {
            return Standing::Agreed;
        }
        let designated = group.designated(reply.client, self.number);
        let digest = match reply.body {
            ReplyBody::Digest(digest) => digest,
            ReplyBody::Full(results) => {
                let digest = Reply::results_digest(&results);
                let [result] = results.as_slice() else { return Standing::Split };
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
        let same = self.votes.cast(from, (digest, reply.events_up_to));
        if same == group.n() {
            if self.body.as_ref().is_none_or(|(of, _)| *of != digest) {
                return Standing::Split;
            }
            self.events_up_to = Some(reply.events_up_to);
            return Standing::Agreed;
        }
        if self.votes.unanimous() { Standing::Open } else { Standing::Split }
    }

    /// Gives up the unconfirmed result.
    pub(crate) fn forget(&mut self, group: &Group, client: ClientId, budget: &mut Budget) {
        if let Some((_, result)) = self.body.take() {
            budget.give_back(group.designated(client, self.number), result.len());
        }
    }

    /// The result that all replicas agreed on.
    pub(crate) fn result(&self) -> Option<Bytes> {
        self.events_up_to?;
        self.body.as_ref().map(|(_, result)| result.clone())
    }
}
