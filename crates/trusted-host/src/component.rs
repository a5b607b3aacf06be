//! What the rest of Troth asks of a trusted component.

use troth_trusted::{
    Certificate, CounterId, CounterValue, Digest, Identity, Moves, MultiCertificate, Refusal, Resumed,
};

/// One question to a trusted component.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Call {
    /// Move one counter from exactly `previous` to `new` for `digest`; answered by
    /// [`Answer::Attested`].
    Attest {
        /// The counter to move.
        counter: CounterId,
        /// Where the caller believes that it stands.
        previous: CounterValue,
        /// Where it shall stand.
        new: CounterValue,
        /// The digest of a message, or the root of a run of messages.
        digest: Digest,
    },
    /// Move several counters, all or none, for `digest`; answered by [`Answer::AttestedMulti`].
    AttestMulti {
        /// The moves.
        moves: Box<Moves>,
        /// The digest of a message.
        digest: Digest,
    },
    /// The last certificate of a counter; answered by [`Answer::Resumed`].
    Resume {
        /// The counter asked about.
        counter: CounterId,
    },
    /// Where a counter stands; answered by [`Answer::Value`].
    Read {
        /// The counter asked about.
        counter: CounterId,
    },
}

/// The answer to one [`Call`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The counter moved, durably.
    Attested(Certificate),
    /// All counters moved, durably.
    AttestedMulti(Box<MultiCertificate>),
    /// The last certificate of a counter.
    Resumed(Box<Resumed>),
    /// Where a counter stands.
    Value(CounterValue),
    /// The component did not do it, and nothing changed. A home that can no longer reach its
    /// component answers [`Refusal::Halted`].
    Refused(Refusal),
}

impl Answer {
    /// The certificate, if this answers an [`Call::Attest`] that was done.
    pub fn attested(&self) -> Option<&Certificate> {
        match self {
            Self::Attested(certificate) => Some(certificate),
            _ => None,
        }
    }
}

/// A trusted component, wherever it lives.
///
/// A caller that wants every crash to be repairable by [`Call::Resume`] moves a counter, or any
/// counter of a set that moved together, only once per batch, and has the body of what it certifies
/// durable before. It covers many messages by one move with a run ([`troth_trusted::run`]).
pub trait TrustedComponent: Send {
    /// Who the component is.
    fn identity(&self) -> Identity;

    /// Carries out the calls in order and answers each, in the same order. Every move is durable
    /// before this returns. One refused call does not stop the following ones.
    fn call(&mut self, calls: &[Call]) -> Vec<Answer>;

    /// Carries out a [`Call::Attest`] or [`Call::AttestMulti`] for a caller that does nothing else meanwhile.
    /// `None` where there is no answer soon: the move may be made or not, and the caller asks the same by
    /// [`TrustedComponent::call`], which makes it, or is the last call repeated.
    fn call_soon(&mut self, call: &Call) -> Option<Answer> {
        self.call(core::slice::from_ref(call)).pop()
    }

    /// Carries out a [`Call::Attest`] or [`Call::AttestMulti`], and keeps `blob` beside the record of
    /// the move: after a crash both are there or neither, at the price of one sync. What the blob says
    /// is the caller's affair and no part of what is certified.
    ///
    /// `None` where the component keeps no blob of that length now, or never does, or does not say soon
    /// whether it has. The caller then makes durable by itself what this blob and those before it hold, and
    /// asks the same by [`TrustedComponent::call`]: that makes the move, or is the last call repeated.
    fn attest_beside(&mut self, call: &Call, blob: &[u8]) -> Option<Answer> {
        let _ = (call, blob);
        None
    }

    /// The blobs of all moves since the last one without a blob, oldest first. A move without one says
    /// that its caller needs those before it no more.
    fn blobs(&mut self) -> Vec<Vec<u8>> {
        Vec::new()
    }
}
