//! A frame on its way: what replicas said about it (the reply rule, guide.md §1.1).

use crate::Config;
use crate::ballot::Ballot;
use crate::budget::Budget;
use crate::inbox::Told;
use crate::queue::Share;
use crate::standing::Standings;
use bytes::Bytes;
use std::sync::Arc;
use troth_auth::Placed;
use troth_types::{
    Digest, Frame, Group, Place, RefusalReason, Renewed, ReplicaId, Reply, ReplyBody, Seq, Time, View,
};

/// Marks the place that implements a rule of `docs/protocols/a2m-pbft-e.md` or `a2m-pbft-ea.md`, for `cargo xtask paper`.
macro_rules! rule {
    ($label:literal) => {};
}

/// How many proofs of one replica are checked for a frame, and as many more each time that it is asked again: a correct one
/// answers where the frame was executed, and where it was ordered once more because of the question. Somebody else might
/// prove things without end.
const CHECKS: u32 = 2;

/// How far what a replica says of a frame goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Backing<'a> {
    /// Its place is final.
    Final,
    /// Its place may yet change.
    Tentative,
    /// Its place in the replica's history is proven, by the components that count there.
    Proven(&'a Place, &'a [Renewed]),
}

/// A replica's word on a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    /// What it says came of it.
    vote: Digest,
    /// The view in which the batch prepared, where its place was not final.
    tentative: Option<View>,
}

/// What f+1 replicas agree on, or a quorum that had it tentatively in one view.
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
    /// What was told before it was made.
    after: Told,
    pub(crate) sent_at: Time,
    /// When the first replica answered.
    pub(crate) first_at: Option<Time>,
    pub(crate) resend_at: Time,
    pub(crate) pause: u64,
    /// Those whose answers are enough.
    pub(crate) asked: Vec<ReplicaId>,
    /// The view that it was sent in, as far as was known.
    pub(crate) view: View,
    /// Those that were told that no answer is wanted, or nothing at all.
    pub(crate) unasked: Vec<ReplicaId>,
    /// When they are asked all the same.
    pub(crate) rest_at: Option<Time>,
    /// Whether it was sent to the primary alone.
    pub(crate) alone: bool,
    /// Whether they were.
    pub(crate) asked_the_rest: bool,
    /// Those who had answered it by then.
    pub(crate) spoke_before: Vec<ReplicaId>,
    /// Whether it was sent again because nothing came of it.
    pub(crate) was_resent: bool,
    /// Whether it was sent more than once, to anybody.
    pub(crate) sent_again: bool,
    /// Agreed on by f+1 distinct replicas; then the frame was executed, once, with this outcome.
    pub(crate) agreed: Option<Agreed>,
    /// The results that belong to what was agreed.
    pub(crate) results: Option<Vec<Bytes>>,
    words: Ballot<Word>,
    /// Where the replicas say that it stands, where that is proven.
    placed: Placed,
    /// How many more proofs of each replica are checked.
    checks: Vec<u32>,
    bodies: Vec<Option<Body>>,
    /// Who gave another number of results than there are operations, whatever else it said.
    miscounted: Vec<bool>,
    refusals: Ballot<RefusalReason>,
    /// Whether a full reply was asked for at once because the designated replica failed to give
    /// it; a liar gets one such haste per frame out of us.
    hastened: bool,
    /// Whether one of those that agree was asked for the results.
    one_was_asked: bool,
}

impl Flight {
    pub(crate) fn new(
        group: &Group,
        frame: Arc<Frame>,
        shares: Vec<Share>,
        now: Time,
        pause: u64,
        after: Told,
    ) -> Self {
        Self {
            frame,
            wanted: shares.len(),
            shares,
            after,
            sent_at: now,
            first_at: None,
            resend_at: now.after(pause),
            pause,
            asked: Vec::new(),
            view: View::default(),
            unasked: Vec::new(),
            rest_at: None,
            alone: false,
            asked_the_rest: false,
            spoke_before: Vec::new(),
            was_resent: false,
            sent_again: false,
            agreed: None,
            results: None,
            words: Ballot::new(group.n()),
            placed: Placed::default(),
            checks: vec![CHECKS; group.n()],
            bodies: vec![None; group.n()],
            miscounted: vec![false; group.n()],
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
        backing: Backing<'_>,
        budget: &mut Budget,
    ) {
        let group = &config.group;
        if self.results.is_some() {
            return;
        }
        let (digest, body) = match reply.body {
            // A correct reply has one result per operation.
            ReplyBody::Full(results) if results.len() != self.frame.operations().len() => {
                self.miscounted[usize::from(from.0)] = true;
                return;
            }
            ReplyBody::Full(results) => (Reply::results_digest(&results), Some(results)),
            ReplyBody::Digest(digest) => (digest, None),
        };
        reply.body = ReplyBody::Digest(digest);
        let said = reply.vote();
        let (vote, tentative) = match (&config.history, backing) {
            (None, Backing::Final) => (said, None),
            (None, Backing::Tentative) => (said, Some(reply.view)),
            (Some(_), Backing::Proven(..)) if !self.follows_what_was_told(&reply) => return,
            (Some(proven), Backing::Proven(place, renewed)) => {
                let vote = self.may_check(from).then(|| {
                    proven.history.vote(from, (&self.frame, &mut self.placed), &said, place, renewed)
                });
                match vote.flatten() {
                    Some(vote) => (vote, None),
                    // Results that belong to what was agreed need no proof.
                    None => return self.settle_results(said, body),
                }
            }
            // Of a group of the other kind.
            _ => return,
        };
        if self.words.word(from).is_none_or(|word| word.vote != vote) {
            self.drop_body(from, budget);
        }
        self.words.cast(from, Word { vote, tentative });
        if self.agreed.is_none() && self.proves(config, vote) {
            self.agreed = Some(Agreed { vote, said, events_up_to: reply.events_up_to, seq: reply.seq });
            self.results = self.take_body_of(group, vote);
            self.drop_bodies(group, budget);
        }
        match (&self.agreed, body) {
            (None, Some(results)) => self.keep_body(from, results, budget),
            (_, body) => self.settle_results(said, body),
        }
    }

    /// Takes results, if what is agreed says that they are the right ones.
    fn settle_results(&mut self, said: Digest, body: Option<Vec<Bytes>>) {
        if body.is_some() && self.agreed.as_ref().is_some_and(|agreed| agreed.said == said) {
            self.results = body;
        }
    }

    /// Whether one more proof of this replica is checked. What is passed over a correct one says again when it is asked next.
    fn may_check(&mut self, from: ReplicaId) -> bool {
        rule!("A2MPBFTE-H4");
        rule!("A2MPBFTEA-H4");
        let left = &mut self.checks[usize::from(from.0)];
        let may = *left > 0;
        *left = left.saturating_sub(1);
        may
    }

    /// A replica is asked once more, and answers once more.
    pub(crate) fn asks_again(&mut self, replica: ReplicaId) {
        let left = &mut self.checks[usize::from(replica.0)];
        *left = left.saturating_add(CHECKS);
    }

    /// Whether a reply is of a place behind the events that were delivered before the frame was made: nobody had it then, so
    /// a history in which it stands before their batch is not the one that they are of.
    fn follows_what_was_told(&self, reply: &Reply) -> bool {
        rule!("A2MPBFTE-E5");
        rule!("A2MPBFTEA-E5");
        reply.seq > self.after.batch && reply.events_up_to >= self.after.index
    }

    /// Counts what the replicas said of what was agreed. What was not final may be other than that though its sender is
    /// correct.
    pub(crate) fn settle(&self, group: &Group, standings: &mut Standings) {
        let Some(agreed) = &self.agreed else { return };
        standings.settle(self.frame.number(), agreed.said);
        for replica in group.all() {
            match self.words.word(replica) {
                _ if self.miscounted[usize::from(replica.0)] => standings.judge(replica, false),
                Some(word) if word.vote == agreed.vote => standings.judge(replica, true),
                Some(word) if word.tentative.is_none() => standings.judge(replica, false),
                _ => {}
            }
        }
    }

    /// Whether the words are enough for this outcome. A final one is worth a tentative one of any view: if its
    /// sender is correct, it is the outcome; if not, the correct ones among the quorum still prepared it in one view.
    /// Tentative ones of different views prove nothing: each may have been undone before the next was said.
    fn proves(&self, config: &Config, vote: Digest) -> bool {
        let group = &config.group;
        let same = || self.words.all().filter(|word| word.vote == vote);
        let finals = same().filter(|word| word.tentative.is_none()).count();
        let of_view = |view: View| same().filter(|word| word.tentative == Some(view)).count();
        finals >= config.believed()
            || same().filter_map(|word| word.tentative).any(|view| finals + of_view(view) >= group.quorum())
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
        let failed = self.lacks_results() && (owes || self.words.word(designated).is_some());
        failed && !std::mem::replace(&mut self.hastened, true)
    }

    /// Whether it is agreed what the results are, and they are missing.
    pub(crate) fn lacks_results(&self) -> bool {
        self.agreed.is_some() && self.results.is_none()
    }

    /// Whether a replica has said nothing of this frame.
    pub(crate) fn is_silent(&self, replica: ReplicaId) -> bool {
        self.words.word(replica).is_none()
    }

    /// Whether a replica has refused it.
    pub(crate) fn has_refused(&self, replica: ReplicaId) -> bool {
        self.refusals.word(replica).is_some()
    }

    /// Whether a replica said what was agreed.
    pub(crate) fn has_agreed(&self, replica: ReplicaId) -> bool {
        let agreed = self.agreed.as_ref().map(|agreed| agreed.vote);
        self.words.word(replica).is_some_and(|word| Some(word.vote) == agreed)
    }

    /// Whether the primary had shown it to others by the time that those were asked that had not been: somebody had said
    /// what came of it.
    pub(crate) fn was_shown(&self) -> bool {
        self.spoke_before.iter().any(|one| self.has_agreed(*one))
    }

    /// When something is to be done about it.
    pub(crate) fn due_at(&self) -> Time {
        self.rest_at.map_or(self.resend_at, |at| at.min(self.resend_at))
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
        let agrees = |one: ReplicaId| self.words.word(one).is_some_and(|word| word.vote == agreed.vote);
        let mut agreeing = turns.filter(|one| *one != designated && agrees(*one));
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
            self.words.word(*replica).is_some_and(|word| word.vote == vote)
                && self.bodies[usize::from(replica.0)].is_some()
        })?;
        // Copied handles only; drop_bodies gives the bytes back.
        self.bodies[usize::from(holder.0)].as_ref().map(|body| body.results.clone())
    }
}
