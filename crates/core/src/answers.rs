//! What a replica answers its clients to new requests and to repeated ones.

use crate::held::Held;
use crate::replica::Outputs;
use crate::{
    Agreement, Done, Env, Execution, Lookup, Machine, Ordered, Outcome, Output, Proven, Repeated, Replica,
    ReplicaTimer, ReplyProof, Request, VerifiedFrame, rule,
};
use troth_types::{
    AttestedReply, ClientId, Digest, Refusal, RefusalReason, ReplicaId, Reply, ReplyBody, Seq, Time,
    ToClient, Wish,
};

/// Bytes of replies to one batch that are held as they are.
const HELD_AT_ONCE: usize = 1 << 20;
/// Bytes of answers repeated for requests that came together, about.
const REPEATED_ANSWER: usize = 1 << 20;
/// What the place of a frame in its batch costs beside its results, in bytes that take as long to hash: as many as a turn
/// takes of clients' messages have room together.
const PLACE: usize = REPEATED_ANSWER / 512;

impl<A: Agreement, X: Execution> Replica<A, X> {
    /// The reply as this replica sends it: in full from the designated one or when asked; as tentative where the place
    /// of the batch is not final.
    pub(crate) fn reply(&self, reply: Reply, full: bool) -> ToClient {
        let mut reply = self.cut(reply, full);
        let Some(batch) = self.undecided.iter().find(|batch| batch.seq == reply.seq) else {
            return ToClient::Reply(reply);
        };
        reply.view = batch.view;
        ToClient::Tentative(reply)
    }

    fn cut(&self, mut reply: Reply, full: bool) -> Reply {
        reply.view = self.agreement.view();
        if !full
            && self.group.designated(reply.client, reply.number) != self.me
            && let ReplyBody::Full(results) = &reply.body
        {
            reply.body = ReplyBody::Digest(Reply::results_digest(results));
        }
        reply
    }

    /// Answers what a batch executed, at once or when the proof of its place is there. What it found executed is answered
    /// again under its place, where that of the earlier batch may be gone.
    pub(crate) fn answer(&mut self, ordered: &Ordered, outcome: &mut Outcome, out: &mut Outputs<A, X>) {
        let executed = std::mem::take(&mut outcome.replies);
        if !A::PROVES_REPLIES {
            for reply in executed {
                rule!("MINBFT-N13");
                if !self.unasked.take(reply.client, reply.number) {
                    out.push(Output::Client(self.reply(reply, false)));
                }
            }
            return;
        }
        let mut replies = Vec::with_capacity(outcome.done.len());
        // What was executed now is in the order of the batch; what is not among it was executed before.
        let (mut executed, mut held) = (executed.into_iter().peekable(), 0);
        for Done { client, number, .. } in &outcome.done {
            let new = executed.next_if(|reply| (reply.client, reply.number) == (*client, *number));
            held += new.as_ref().map_or(0, |reply| reply.body.size());
            // Of much no more is held until it is proven than the table keeps of each client.
            if let Some(reply) = new.filter(|_| held <= HELD_AT_ONCE) {
                replies.push(reply);
            } else if let Lookup::Executed(reply) = self.execution.lookup(*client, *number) {
                self.repeated.answered(*client, *number, reply.seq, ordered.seq);
                replies.push(*reply);
            }
        }
        self.held.hold(ordered.seq, replies);
    }

    /// A checkpoint is stable: what is not proven by the next one is not held any longer. Its clients ask again, and it is
    /// ordered anew.
    pub(crate) fn answers_stable(&mut self, stable: Seq) {
        self.repeated.stable(stable);
        let before = std::mem::replace(&mut self.stable, stable);
        self.held.forget_below(before.next());
    }

    /// Lets the replies of a batch go.
    pub(crate) fn release(&mut self, now: Time, seq: Seq, proof: &ReplyProof, out: &mut Outputs<A, X>) {
        // Proofs come in the order of batches: what was passed over gets none.
        let proven = self.held.release(seq);
        // What a wrong state answered does not go; its clients ask again.
        if self.repair.is_some() {
            return;
        }
        let renewed = self.execution.configuration().renewed_at(seq);
        for held in proven {
            let reply = match held {
                Held::Here(reply) => reply,
                Held::InTable(client, number) => match self.execution.lookup(client, number) {
                    Lookup::Executed(reply) => *reply,
                    // Its client has asked for so much since that it is gone.
                    Lookup::ResultGone(_) | Lookup::TooOld | Lookup::New => continue,
                },
            };
            if let Some(place) = proof.place_of(reply.client, reply.number) {
                let unasked = self.unasked.take(reply.client, reply.number);
                let wants_all = self.repeated.wants_all(reply.client, reply.number);
                if unasked && wants_all.is_none() {
                    continue;
                }
                if let Some(seen) = wants_all {
                    self.repeated_events.answer_later(reply.client, seen);
                }
                let (reply, renewed) = (self.cut(reply, wants_all.is_some()), renewed.clone());
                out.push(Output::Client(ToClient::Attested(AttestedReply { reply, place, renewed })));
            }
        }
        if self.repeated_events.has_asked() {
            out.push(Output::SetTimer { timer: ReplicaTimer::Reads, at: now });
        }
    }

    /// Whether a frame was executed and the place of its batch is final. What may be undone is not done: who asks for it
    /// again is answered and waits for it all the same, so that its primary is suspected where it never becomes final.
    pub fn is_done(&self, client: ClientId, number: u64) -> bool {
        match self.execution.executed() == self.execution.committed() {
            true => !self.execution.is_new(client, number),
            false => match self.execution.lookup(client, number) {
                Lookup::New => false,
                Lookup::Executed(reply) => self.is_final(reply.seq),
                Lookup::ResultGone(seq) => self.is_final(seq),
                Lookup::TooOld => true,
            },
        }
    }

    fn is_final(&self, seq: Seq) -> bool {
        seq <= self.execution.committed()
    }

    /// Whether it is this replica's turn to answer a frame that the primary shows.
    pub fn answers_shown(&self, client: ClientId, number: u64) -> bool {
        self.group.turns(client, number).take(self.group.weak()).any(|one| one == self.me)
    }

    /// A replica shows a frame that its client may have sent to the primary alone: whose turn it is answers, and others when
    /// the client asks them.
    fn answer_in_turn(&mut self, frame: &VerifiedFrame) {
        let (client, number) = (frame.client(), frame.number());
        let news = A::PRIMARY_SHOWS && !self.answers_shown(client, number);
        if news && self.execution.is_new(client, number) && self.agreement.frame(&frame.digest()).is_none() {
            self.unasked.is_shown(client, number);
        }
    }

    /// Frames that ask this replica for an answer, where those that others show first need none of it.
    fn asked_directly(&self, new: &[VerifiedFrame]) -> Vec<(ClientId, u64, Digest)> {
        if !A::PRIMARY_SHOWS {
            return Vec::new();
        }
        new.iter().map(|frame| (frame.client(), frame.number(), frame.digest())).collect()
    }

    /// Frames that another replica shows. Where replies are proven it may wait for one that is executed: for a proof that is
    /// gone, or that its client could not get enough of.
    pub(crate) fn on_frames(
        &mut self,
        env: Env,
        from: ReplicaId,
        frames: Vec<VerifiedFrame>,
        out: &mut Outputs<A, X>,
    ) {
        let (mut new, mut again, mut known) = (Vec::new(), Vec::new(), Vec::new());
        for frame in frames {
            self.answer_in_turn(&frame);
            // What is ordered of a removed client does nothing: it may complete a batch, and no more. Neither may what is
            // not signed: whoever shows it may have spoilt the tags of others.
            let removed = self.execution.configuration().is_removed(frame.client());
            let kind = match self.execution.lookup(frame.client(), frame.number()) {
                _ if removed || !frame.is_signed() => &mut known,
                Lookup::New => &mut new,
                // Whoever waits for it waits until it is ordered again, though there is no result to prove any more.
                Lookup::Executed(_) | Lookup::ResultGone(_) if A::PROVES_REPLIES => &mut again,
                Lookup::Executed(reply) if !self.is_final(reply.seq) => &mut new,
                Lookup::ResultGone(seq) if !self.is_final(seq) => &mut new,
                Lookup::Executed(_) | Lookup::ResultGone(_) | Lookup::TooOld => &mut known,
            };
            kind.push(frame);
        }
        if !new.is_empty() {
            self.step(env, out, |agreement, cx| agreement.on_shown(cx, from, new));
        }
        if !again.is_empty() {
            self.step(env, out, |agreement, cx| agreement.on_shown_again(cx, from, again));
        }
        if !known.is_empty() {
            self.step(env, out, |agreement, cx| agreement.on_known_frames(cx, known));
        }
    }

    /// Answers a client again where replies are proven; whether its frame is to be ordered again: because the proof is gone, or
    /// because the client has asked for long enough, so that others may have to be made to answer.
    fn prove_again(
        &mut self,
        now: Time,
        reply: Reply,
        events_seen: u64,
        full: bool,
        out: &mut Outputs<A, X>,
    ) -> bool {
        let (client, number) = (reply.client, reply.number);
        let at = self.repeated.place(client, number).unwrap_or(reply.seq);
        let proven = self.agreement.proven(at);
        // They prove nothing: where the proof is gone they come all the same, for the next one may be gone as soon.
        if full && !matches!(proven, Proven::Coming) {
            self.repeat_events(now, client, events_seen, out);
        }
        let order = match proven {
            Proven::Coming => false,
            Proven::Gone => true,
            Proven::Here(proof) => {
                if let Some(place) = proof.place_of(client, number) {
                    let reply = self.cut(reply, full);
                    let renewed = self.execution.configuration().renewed_at(at);
                    out.push(Output::Client(ToClient::Attested(AttestedReply { reply, place, renewed })));
                }
                self.repeated.is_impatient(client, number, at)
            }
        };
        if full {
            self.repeated.asks_for_all(client, number, events_seen);
        }
        order
    }

    pub(crate) fn on_requests(&mut self, env: Env, requests: Vec<Request>, out: &mut Outputs<A, X>) {
        let (mut new, mut alone, mut again, mut repeated) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for Request { frame, wish } in requests {
            let (client, number) = (frame.client(), frame.number());
            let (full, unasked) = (wish == Wish::Full, wish == Wish::Nothing);
            if self.execution.configuration().is_removed(client) {
                self.unasked.forget(client);
                out.push(refuse(client, number, false, RefusalReason::Removed));
                continue;
            }
            if !unasked {
                self.unasked.take(client, number);
            }
            match self.execution.lookup(client, number) {
                // What it knows of the client may be as wrong as the rest of its state.
                Lookup::Executed(_) | Lookup::ResultGone(_) | Lookup::TooOld if self.repair.is_some() => {}
                Lookup::New => {
                    if unasked {
                        self.unasked.note(client, number);
                    }
                    if wish == Wish::Alone { &mut alone } else { &mut new }.push(frame);
                }
                // It came the other way round, by those that others showed it to, and was answered then if it was.
                Lookup::Executed(reply) if unasked => {
                    if !self.is_final(reply.seq) {
                        new.push(frame);
                    }
                }
                Lookup::Executed(reply) if A::PROVES_REPLIES => {
                    // As below. Where only a digest is sent, its results are hashed for that all the same.
                    if repeated >= REPEATED_ANSWER {
                        continue;
                    }
                    repeated += reply.body.size() + PLACE;
                    if self.prove_again(env.now, *reply, frame.events_seen(), full, out) {
                        again.push(frame);
                    }
                }
                Lookup::Executed(reply) => {
                    let (events_seen, done) = (frame.events_seen(), self.is_final(reply.seq));
                    if !done {
                        new.push(frame);
                    }
                    // The rest is asked for once more by whoever waits for it, and then by itself.
                    if repeated < REPEATED_ANSWER {
                        repeated += reply.body.size();
                        self.answer_again(env.now, *reply, events_seen, full, out);
                    }
                }
                Lookup::ResultGone(seq) => {
                    out.push(refuse(client, number, false, RefusalReason::TooOld));
                    if !self.is_final(seq) {
                        new.push(frame);
                    }
                }
                Lookup::TooOld => out.push(refuse(client, number, false, RefusalReason::TooOld)),
            }
        }
        let asked = self.asked_directly(&new);
        if !alone.is_empty() {
            self.step(env, out, |agreement, cx| agreement.on_requests_alone(cx, alone, new));
        } else if !new.is_empty() {
            self.step(env, out, |agreement, cx| agreement.on_requests(cx, new));
        }
        for (client, number, digest) in asked {
            if self.agreement.frame(&digest).is_none() {
                self.unasked.is_asked(client, number);
            }
        }
        if !again.is_empty() {
            self.step(env, out, |agreement, cx| agreement.on_requests_again(cx, again));
        }
    }

    pub(crate) fn on_repeated(&mut self, now: Time, repeated: Repeated, out: &mut Outputs<A, X>) {
        let Repeated { client, number, events_seen, wish } = repeated;
        let full = wish == Wish::Full;
        if wish != Wish::Nothing {
            self.unasked.take(client, number);
        }
        if self.execution.configuration().is_removed(client) {
            return out.push(refuse(client, number, false, RefusalReason::Removed));
        }
        // As above, of what comes without its frame.
        if self.repair.is_some() {
            return;
        }
        match self.execution.lookup(client, number) {
            Lookup::Executed(_) if wish == Wish::Nothing => {}
            Lookup::Executed(reply) if A::PROVES_REPLIES => {
                // Where that is not enough its frame comes, too.
                self.prove_again(now, *reply, events_seen, full, out);
            }
            Lookup::Executed(reply) => self.answer_again(now, *reply, events_seen, full, out),
            Lookup::ResultGone(_) | Lookup::TooOld => {
                out.push(refuse(client, number, false, RefusalReason::TooOld))
            }
            // Its frame comes with its signature, when it comes again.
            Lookup::New => {}
        }
    }

    /// The reply to what was executed before, with events that the client lacks where it asks for all.
    fn answer_again(
        &mut self,
        now: Time,
        reply: Reply,
        events_seen: u64,
        full: bool,
        out: &mut Outputs<A, X>,
    ) {
        if full {
            self.repeat_events(now, reply.client, events_seen, out);
        }
        out.push(Output::Client(self.reply(reply, full)));
    }
}

pub(crate) fn refuse<M: Machine>(
    client: ClientId,
    number: u64,
    read: bool,
    reason: RefusalReason,
) -> Output<M> {
    Output::Client(ToClient::Refusal(Refusal { client, number, read, reason }))
}
