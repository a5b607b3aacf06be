//! The context of one step: what it may know beyond its own state, and where its effects go.

use crate::{Agreement, Effect, Note, Ordered, ReplyProof, Ticket, To, VerifiedFrame};
use std::sync::Arc;
use troth_trusted::a2m::{Attestation, LogId, Operation, Slot};
use troth_trusted::{CounterId, CounterValue};
use troth_types::{Digest, Group, ReplicaId, Seq, Time, View};

/// The context of one step.
pub struct Cx<'a, A: Agreement> {
    now: Time,
    wall: Time,
    me: ReplicaId,
    group: &'a Group,
    effects: &'a mut Vec<Effect<A>>,
}

impl<'a, A: Agreement> Cx<'a, A> {
    /// A context whose effects go to `effects`.
    pub fn new(
        now: Time,
        wall: Time,
        me: ReplicaId,
        group: &'a Group,
        effects: &'a mut Vec<Effect<A>>,
    ) -> Self {
        Self { now, wall, me, group, effects }
    }

    /// The local clock: never goes back, starts anywhere.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The machine's idea of the time of day; may be wrong.
    #[must_use]
    pub fn wall(&self) -> Time {
        self.wall
    }

    /// This replica.
    #[must_use]
    pub fn me(&self) -> ReplicaId {
        self.me
    }

    /// The group.
    #[must_use]
    pub fn group(&self) -> &'a Group {
        self.group
    }

    /// Asks for what a part of the protocol asked for.
    pub fn ask(&mut self, effect: Effect<A>) {
        self.effects.push(effect);
    }

    /// Sends a message that needs no certificate.
    pub fn send(&mut self, to: To, message: A::Message) {
        self.effects.push(Effect::Send { to, message });
    }

    /// Sends a message that needs no certificate to every replica, this one included.
    pub fn broadcast(&mut self, message: A::Message) {
        self.effects.push(Effect::Broadcast(message));
    }

    /// Has a body certified and sent; order of certificates is order of calls.
    pub fn certify(
        &mut self,
        counter: CounterId,
        previous: CounterValue,
        new: CounterValue,
        body: A::Body,
        to: To,
    ) {
        self.effects.push(Effect::Certify { counter, previous, new, body, to });
    }

    /// Has a slot of a log filled with a body's digest, and the body sent; order of attestations is order of calls.
    pub fn certify_in_log(&mut self, log: LogId, slot: Slot, body: A::Body, to: To) {
        self.effects.push(Effect::CertifyInLog { log, slot, body, to });
    }

    /// Has something done with the component's logs.
    pub fn trusted(&mut self, ticket: Ticket, operations: Vec<Operation>) {
        self.effects.push(Effect::Trusted { ticket, operations });
    }

    /// Has a nonce drawn.
    pub fn draw(&mut self, ticket: Ticket) {
        self.effects.push(Effect::Draw(ticket));
    }

    /// Signs a body with the host's key and sends it.
    pub fn sign(&mut self, body: A::Body, to: To) {
        self.effects.push(Effect::Sign { body, to });
    }

    /// Signs a body with the host's key and sends it to every replica, this one included.
    pub fn broadcast_signed(&mut self, body: A::Body) {
        self.effects.push(Effect::BroadcastSigned(body));
    }

    /// Sets or moves a timer.
    pub fn set_timer(&mut self, timer: A::Timer, at: Time) {
        self.effects.push(Effect::SetTimer { timer, at });
    }

    /// Forgets a timer.
    pub fn cancel_timer(&mut self, timer: A::Timer) {
        self.effects.push(Effect::CancelTimer(timer));
    }

    /// Makes a record durable before anything later leaves.
    pub fn persist(&mut self, record: A::Record) {
        self.effects.push(Effect::Persist(record));
    }

    /// Puts a record into the log with whatever is made durable next.
    pub fn remember(&mut self, record: A::Record) {
        self.effects.push(Effect::Remember(record));
    }

    /// Asks for the bodies of frames.
    pub fn fetch_frames(&mut self, to: To, digests: Vec<Digest>) {
        self.effects.push(Effect::FetchFrames { to, digests });
    }

    /// Shows frames to others.
    pub fn show_frames(&mut self, to: To, frames: Vec<VerifiedFrame>) {
        self.effects.push(Effect::ShowFrames { to, frames });
    }

    /// Executes a batch.
    pub fn deliver(&mut self, ordered: Ordered) {
        self.effects.push(Effect::Deliver(ordered));
    }

    /// Executes a batch whose place may yet change.
    pub fn deliver_tentatively(&mut self, ordered: Ordered, view: View) {
        self.effects.push(Effect::DeliverTentatively { ordered, view });
    }

    /// Makes what was executed tentatively up to a batch final.
    pub fn commit(&mut self, through: Seq) {
        self.effects.push(Effect::Commit { through });
    }

    /// Undoes what was executed tentatively above a batch.
    pub fn roll_back(&mut self, to: Seq) {
        self.effects.push(Effect::Rollback { to });
    }

    /// Lets the replies of a batch go.
    pub fn release(&mut self, seq: Seq, proof: Arc<ReplyProof>) {
        self.effects.push(Effect::Release { seq, proof });
    }

    /// Lets the answers to reads go that wait for the end of the history.
    pub fn end_attested(&mut self, end: Attestation) {
        self.effects.push(Effect::EndAttested(end));
    }

    /// Takes a checkpoint of the state reached so far.
    pub fn checkpoint(&mut self) {
        self.effects.push(Effect::Checkpoint);
    }

    /// Declares a checkpoint stable.
    pub fn stable(&mut self, seq: Seq, digest: Digest) {
        self.effects.push(Effect::Stable { seq, digest });
        self.note(Note::Stable { seq, digest });
    }

    /// Lets the log begin at an own checkpoint that a stable one covers.
    pub fn compact(&mut self, seq: Seq) {
        self.effects.push(Effect::Compact(seq));
    }

    /// Has the state brought to a stable checkpoint.
    pub fn fetch_state(&mut self, seq: Seq, digest: Digest, sources: Vec<ReplicaId>) {
        self.effects.push(Effect::FetchState { seq, digest, sources });
        self.note(Note::TransferStarted { seq });
    }

    /// Has a wrong state thrown away and brought to a stable checkpoint.
    pub fn repair_state(&mut self, seq: Seq, digest: Digest, sources: Vec<ReplicaId>) {
        self.effects.push(Effect::RepairState { seq, digest, sources });
        self.note(Note::TransferStarted { seq });
    }

    /// Tells the observers.
    pub fn note(&mut self, note: Note) {
        self.effects.push(Effect::Note(note));
    }

    /// Stops this replica.
    pub fn halt(&mut self, reason: &'static str) {
        self.effects.push(Effect::Halt(reason));
    }

    /// Drops an input.
    pub fn ignore(&mut self, from: ReplicaId, reason: &'static str) {
        self.note(Note::Ignored { from, reason });
    }

    /// Judges a replica locally.
    pub fn suspect(&mut self, replica: ReplicaId, reason: &'static str) {
        self.note(Note::Suspected { replica, reason });
    }

    /// Condemns a replica by proof.
    pub fn accuse(&mut self, replica: ReplicaId, rule: &'static str) {
        self.note(Note::Accused { replica, rule });
    }
}
