//! What the rest of Troth asks of attested logs (A2M), and the simplest place where they can live.
//!
//! It stands beside [`TrustedComponent`](crate::TrustedComponent): a home that offers counters need not offer
//! logs. The rules are in `docs/protocols/a2m.md`.

use crate::verifier::GroupVerifier;
use troth_trusted::a2m::{
    A2m, Answer, Attestation, Content, Entry, LOGS, LogId, LogRefusal, LogStore, Nonce, Operation, Slot,
};
use troth_trusted::{Identity, MacVerifier, RunProof};

/// Where a log of this home keeps its entries.
pub type LogRoom = Box<[Entry]>;

/// Room for so many entries in each log; 80 bytes an entry. A log needs one for each append or advance until
/// a truncation forgets it.
pub fn log_room(entries: [usize; LOGS]) -> [LogRoom; LOGS] {
    entries.map(|entries| vec![Entry::UNUSED; entries].into_boxed_slice())
}

/// The attested logs of a trusted component, wherever it lives.
pub trait TrustedLogs: Send {
    /// Who the component is.
    fn identity(&self) -> Identity;

    /// Carries out the operations in order, on one log or several, and answers each in the same order, each as
    /// the logs were at its place. Every change is durable before this returns. A caller that lost the answer
    /// repeats the call: one that was done is refused, since its appends and advances are behind the end of
    /// their logs, and lookups show what became of it. A home behind a connection does so itself.
    ///
    /// # Errors
    /// [`LogRefusal`]; nothing has changed. A home that can no longer reach its component says
    /// [`LogRefusal::Halted`].
    fn call(&mut self, operations: &[Operation]) -> Result<Vec<Answer>, LogRefusal>;

    /// Carries out the operations for a caller that does nothing else meanwhile. `None` where there is no answer
    /// soon: the call may be done or not, and the caller asks the same by [`TrustedLogs::call`], which does it, or is
    /// the last call repeated.
    fn call_soon(&mut self, operations: &[Operation]) -> Option<Result<Vec<Answer>, LogRefusal>> {
        Some(self.call(operations))
    }
}

/// Attested logs in the replica's process: no isolation at all, so whoever takes over the replica takes over
/// the logs too. For tests, simulation and as the baseline of measurements.
#[derive(Clone, Debug)]
pub struct InProcessLogs<S>(A2m<LogRoom, S>);

impl<S: LogStore<LogRoom>> InProcessLogs<S> {
    /// The home around this component.
    pub fn new(component: A2m<LogRoom, S>) -> Self {
        Self(component)
    }
}

impl<S: LogStore<LogRoom> + Send> TrustedLogs for InProcessLogs<S> {
    fn identity(&self) -> Identity {
        self.0.logs().identity()
    }

    fn call(&mut self, operations: &[Operation]) -> Result<Vec<Answer>, LogRefusal> {
        let mut answers = Vec::with_capacity(operations.len());
        self.0.call(operations, |answer| answers.push(answer))?;
        Ok(answers)
    }
}

/// Checks attestations of the components of one group, whose identities and keys come from configuration. It
/// keeps no state, so any thread may use it.
pub trait AttestationVerifier: Send + Sync {
    /// What the log of the component of `replica` says of the slot, if the attestation answers just this
    /// question ([`Attestation::verify_lookup`]).
    fn lookup(
        &self,
        replica: u16,
        attestation: &Attestation,
        log: LogId,
        slot: Slot,
        nonce: &Nonce,
    ) -> Option<Content>;

    /// The same for a client, of an attestation by MAC: the key is the one that it shares with the component.
    fn lookup_for(
        &self,
        key: &MacVerifier,
        replica: u16,
        attestation: &Attestation,
        log: LogId,
        slot: Slot,
        nonce: &Nonce,
    ) -> Option<Content>;

    /// The last slot of the log of the component of `replica` and what it holds, if the attestation answers
    /// just this question ([`Attestation::verify_end`]).
    fn end(
        &self,
        replica: u16,
        attestation: &Attestation,
        log: LogId,
        nonce: &Nonce,
        among: &RunProof,
    ) -> Option<(Slot, Content)>;
}

impl AttestationVerifier for GroupVerifier {
    fn lookup(
        &self,
        replica: u16,
        attestation: &Attestation,
        log: LogId,
        slot: Slot,
        nonce: &Nonce,
    ) -> Option<Content> {
        let (identity, key) = self.member(replica, attestation.epoch)?;
        attestation.verify_lookup(key, identity, log, slot, nonce)
    }

    fn lookup_for(
        &self,
        key: &MacVerifier,
        replica: u16,
        attestation: &Attestation,
        log: LogId,
        slot: Slot,
        nonce: &Nonce,
    ) -> Option<Content> {
        let (identity, _) = self.member(replica, attestation.epoch)?;
        attestation.verify_lookup(key, identity, log, slot, nonce)
    }

    fn end(
        &self,
        replica: u16,
        attestation: &Attestation,
        log: LogId,
        nonce: &Nonce,
        among: &RunProof,
    ) -> Option<(Slot, Content)> {
        let (identity, key) = self.member(replica, attestation.epoch)?;
        attestation.verify_end(key, identity, log, nonce, among)
    }
}
