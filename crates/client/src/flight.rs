//! A frame on its way: what replicas said about it (the reply rule, protocols.md §1.1).

use crate::Config;
use crate::ballot::Ballot;
use crate::budget::Budget;
use crate::queue::Share;
use bytes::Bytes;
use std::sync::Arc;
use troth_types::{Digest, Frame, Group, Place, RefusalReason, ReplicaId, Reply, ReplyBody, Seq, Time};

/// What f+1 replicas agree on.
#[derive(Clone, Debug)]
pub(crate) struct Agreed {
    vote: Digest,
    /// What the reply says, without its proof: a result may come with a later one.
    said: Digest,
    pub(crate) events_up_to: u64,
    /// Where the frame was ordered: part of what was voted for.
    pub(crate) seq: Seq,
}

/// A result that a replica sent before enough others confirmed it.
#[derive(Clone, Debug)]
struct Body {
    results: Vec<Bytes>,
    bytes: usize,
}

/// A frame that was sent and occupies its slot of the window.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) frame: Arc<Frame>,
    pub(crate) shares: Vec<Share>,
    /// Submissions that still want the outcome; at 0 the client only waits for the slot.
    pub(crate) wanted: usize,
    pub(crate) sent_at: Time,
    pub(crate) resend_at: Time,
    pub(crate) pause: u64,
    /// Whether it was sent more than once, to anybody.
    pub(crate) sent_again: bool,
    /// Agreed on by f+1 distinct replicas; then the frame was executed, once, with this outcome.
    pub(crate) agreed: Option<Agreed>,
    /// The results that belong to what was agreed.
    pub(crate) results: Option<Vec<Bytes>>,
    votes: Ballot<Digest>,
    bodies: Vec<Option<Body>>,
    refusals: Ballot<RefusalReason>,
    /// Whether a full reply was asked for at once because the designated replica failed to give
    /// it; a liar gets one such haste per frame out of us.
    hastened: bool,
    /// Whether one of those that agree was asked for the results.
    one_was_asked: bool,
}

impl Flight {
    pub(crate) fn new(group: &Group, frame: Arc<Frame>, shares: Vec<Share>, now: Time, pause: u64) -> Self {
        Self {
            frame,
            wanted: shares.len(),
            shares,
            sent_at: now,
            resend_at: now.after(pause),
            pause,
            sent_again: false,
            agreed: None,
            results: None,
            votes: Ballot::new(group.n()),
            bodies: vec![None; group.n()],
            refusals: Ballot::new(group.n()),
            hastened: false,
            one_was_asked: false,
        }
    }

    /// Counts a reply.
    pub(crate) fn on_reply(
        &mut self,
        config: &Config,
        from: ReplicaId,
        mut reply: Reply,
        place: Option<&Place>,
        budget: &mut Budget,
    ) {
        let group = &config.group;
        if self.results.is_some() {
            return;
        }
        let (digest, body) = match reply.body {
            // A correct reply has one result per operation.
            ReplyBody::Full(results) if results.len() != self.frame.operations().len() => return,
            ReplyBody::Full(results) => (Reply::results_digest(&results), Some(results)),
            ReplyBody::Digest(digest) => (digest, None),
        };
        reply.body = ReplyBody::Digest(digest);
        let said = reply.vote();
        let vote = match (&config.history, place) {
            (None, None) => said,
            (Some(history), Some(place)) => match history.vote(from, &self.frame, &reply, place) {
                Some(vote) => vote,
                None => return,
            },
            // Of a group of the other kind.
            _ => return,
        };
        if self.votes.word(from) != Some(&vote) {
            self.drop_body(from, budget);
        }
        if self.votes.cast(from, vote) >= config.believed() && self.agreed.is_none() {
            self.agreed = Some(Agreed { vote, said, events_up_to: reply.events_up_to, seq: reply.seq });
            self.results = self.take_body_of(group, vote);
            self.drop_bodies(group, budget);
        }
        match (&self.agreed, body) {
            (Some(agreed), Some(results)) if agreed.said == said => self.results = Some(results),
            (None, Some(results)) => self.keep_body(from, results, budget),
            _ => {}
        }
    }

    /// Counts a refusal; answers the reason when f+1 replicas give the same.
    pub(crate) fn on_refusal(
        &mut self,
        config: &Config,
        from: ReplicaId,
        reason: RefusalReason,
    ) -> Option<RefusalReason> {
        (self.refusals.cast(from, reason) >= config.believed()).then_some(reason)
    }

    /// Whether the results are missing although they are agreed on, and nobody need wait for the designated replica:
    /// it has answered something else, or it owes answers; true once.
    pub(crate) fn must_hasten(&mut self, designated: ReplicaId, owes: bool) -> bool {
        let failed = self.lacks_results() && (owes || self.votes.word(designated).is_some());
        failed && !std::mem::replace(&mut self.hastened, true)
    }

    /// Whether it is agreed what the results are, and they are missing.
    pub(crate) fn lacks_results(&self) -> bool {
        self.agreed.is_some() && self.results.is_none()
    }

    /// Whether a replica has said nothing of this frame.
    pub(crate) fn is_silent(&self, replica: ReplicaId) -> bool {
        self.votes.word(replica).is_none()
    }

    /// Whether the results are here, or those that this replica gives.
    pub(crate) fn has_results_of(&self, replica: ReplicaId) -> bool {
        self.results.is_some() || self.bodies[usize::from(replica.0)].is_some()
    }

    /// One of those that agreed and did not send the results, to be asked for them before everybody is, once: whoever
    /// has the results has them, and all the others would only repeat what they said.
    pub(crate) fn whom_to_ask(&mut self, group: &Group, designated: ReplicaId) -> Option<ReplicaId> {
        let agreed = self.agreed.as_ref().filter(|_| self.results.is_none())?;
        if std::mem::replace(&mut self.one_was_asked, true) {
            return None;
        }
        // Not always the same one: it is somebody else's turn with each frame.
        let n = group.n() as u64;
        let turns = (0..n).map(|step| ReplicaId(((self.frame.number() + step) % n) as u16));
        let mut agreeing =
            turns.filter(|one| *one != designated && self.votes.word(*one) == Some(&agreed.vote));
        agreeing.next()
    }

    /// Whether the results are asked for although nobody waited for them.
    pub(crate) fn is_hastened(&self) -> bool {
        self.hastened
    }

    fn keep_body(&mut self, from: ReplicaId, results: Vec<Bytes>, budget: &mut Budget) {
        self.drop_body(from, budget);
        let bytes = results.iter().map(|result| result.len() + size_of::<Bytes>()).sum();
        if budget.take(from, bytes) {
            self.bodies[usize::from(from.0)] = Some(Body { results, bytes });
        }
    }

    fn drop_body(&mut self, from: ReplicaId, budget: &mut Budget) {
        if let Some(body) = self.bodies[usize::from(from.0)].take() {
            budget.give_back(from, body.bytes);
        }
    }

    /// Forgets unconfirmed results.
    pub(crate) fn drop_bodies(&mut self, group: &Group, budget: &mut Budget) {
        for replica in group.all() {
            self.drop_body(replica, budget);
        }
    }

    fn take_body_of(&mut self, group: &Group, vote: Digest) -> Option<Vec<Bytes>> {
        let holder = group.all().find(|replica| {
            self.votes.word(*replica) == Some(&vote) && self.bodies[usize::from(replica.0)].is_some()
        })?;
        // Copied handles only; drop_bodies gives the bytes back.
        self.bodies[usize::from(holder.0)].as_ref().map(|body| body.results.clone())
    }
}
