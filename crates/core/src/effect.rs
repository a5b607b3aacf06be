//! What a protocol step asks for, as plain data in the order it asked.

use crate::{Agreement, Note, Ordered, ReplyProof, VerifiedFrame};
use std::sync::Arc;
use troth_trusted::a2m::{Attestation, LogId, Operation, Slot};
use troth_trusted::{CounterId, CounterValue};
use troth_types::{Digest, ReplicaId, Seq, Time, View};

/// Whom a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// Every other replica.
    Others,
    /// One replica.
    One(ReplicaId),
}

/// Names what was asked of the trusted component, so that its answer is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// One thing a step asks for. Matched without catch-alls, so that a new effect is a compile error
/// wherever it must be handled. Variants come with the protocol that first uses them (ADR 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<A: Agreement> {
    /// Send a message that needs no certificate.
    Send {
        /// Whom it is for.
        to: To,
        /// The message.
        message: A::Message,
    },
    /// Send a message that needs no certificate to every replica, this one included: its own copy comes back once all
    /// that was persisted before is durable, and counts from then on like anybody else's.
    Broadcast(A::Message),
    /// Have the trusted component certify a body with this move of a counter, then send it. The body
    /// is durable before, and the message comes back as this replica's own input.
    Certify {
        /// The counter.
        counter: CounterId,
        /// Its value so far.
        previous: CounterValue,
        /// Its value for this message.
        new: CounterValue,
        /// What is certified.
        body: A::Body,
        /// Whom it is for.
        to: To,
    },
    /// Have the trusted component fill this slot of a log with a body's digest, and attest it; then send the body. The body
    /// is durable before, and the message comes back as this replica's own input.
    CertifyInLog {
        /// The log.
        log: LogId,
        /// The slot, above every one that was asked for before.
        slot: Slot,
        /// What is certified.
        body: A::Body,
        /// Whom it is for.
        to: To,
    },
    /// Have the trusted component do this with its logs, all of it or nothing, in the order of requests; the answers come by
    /// [`Agreement::on_trusted`]. What was persisted before is durable before.
    Trusted {
        /// Names the answers.
        ticket: Ticket,
        /// At most [`MOST_OPERATIONS`](troth_trusted::a2m::MOST_OPERATIONS).
        operations: Vec<Operation>,
    },
    /// Draw a nonce that nobody can foresee; it comes by [`Agreement::on_drawn`].
    Draw(Ticket),
    /// Sign a body with the host's key and send it; it comes back as this replica's own input.
    Sign {
        /// What is signed.
        body: A::Body,
        /// Whom it is for.
        to: To,
    },
    /// Sign a body with the host's key and send it to every replica; this one's own copy comes back as its input once
    /// what it rests on is durable.
    BroadcastSigned(A::Body),
    /// Set (or move) a timer.
    SetTimer {
        /// Which.
        timer: A::Timer,
        /// When it is due, on the local clock.
        at: Time,
    },
    /// Forget a timer.
    CancelTimer(A::Timer),
    /// Make a record durable before anything later leaves.
    Persist(A::Record),
    /// Put a record into the log with whatever is made durable next; nothing waits for it.
    Remember(A::Record),
    /// Ask others for the bodies of frames.
    FetchFrames {
        /// Whom to ask.
        to: To,
        /// Their digests.
        digests: Vec<Digest>,
    },
    /// Show frames to others.
    ShowFrames {
        /// Whom to show.
        to: To,
        /// The frames.
        frames: Vec<VerifiedFrame>,
    },
    /// Execute a batch whose place is final.
    Deliver(Ordered),
    /// Execute a batch whose place may yet change: its replies say so, and its events wait.
    DeliverTentatively {
        /// The batch.
        ordered: Ordered,
        /// The view that gave it its place.
        view: View,
    },
    /// The places of the batches executed up to this one are final.
    Commit {
        /// The last of them.
        through: Seq,
    },
    /// Undo what was executed tentatively above this batch.
    Rollback {
        /// The last batch that stays.
        to: Seq,
    },
    /// Let the replies of a delivered batch go, with what proves its place. Only where the agreement holds them back.
    Release {
        /// The batch.
        seq: Seq,
        /// The proof.
        proof: Arc<ReplyProof>,
    },
    /// The end of the history is attested as [`Agreement::attest_end`] asked for it: let the answers to reads go that wait for
    /// it.
    EndAttested(Attestation),
    /// Take a checkpoint of the state reached so far.
    Checkpoint,
    /// The checkpoint is stable: what is below may go.
    Stable {
        /// Its sequence number.
        seq: Seq,
        /// Its digest.
        digest: Digest,
    },
    /// A later checkpoint is stable, so the log may begin at this one, which this replica took itself.
    Compact(Seq),
    /// Bring the state to a stable checkpoint from others.
    FetchState {
        /// Its sequence number.
        seq: Seq,
        /// Its digest.
        digest: Digest,
        /// Who should have it.
        sources: Vec<ReplicaId>,
    },
    /// Throw the state away, for it is wrong, and bring it to a stable checkpoint from others. Until that is in
    /// force nothing is executed and no client is answered.
    RepairState {
        /// The checkpoint's sequence number; not above what is executed, or it would merely be behind.
        seq: Seq,
        /// Its digest.
        digest: Digest,
        /// Who should have it.
        sources: Vec<ReplicaId>,
    },
    /// Tell the observers.
    Note(Note),
    /// Stop: what this replica knows of itself contradicts its trusted component.
    Halt(&'static str),
}
