//! The component: check, make durable, apply, attest.

use super::attestation::{Attestation, Claim, Request, statement};
use super::log::Storage;
use super::logs::Logs;
use super::operation::{LogRefusal, Operation};
use super::peers::Peers;
use super::{LOGS, MOST_OPERATIONS, Nonce, Slot, rule};
use crate::certificate::Proof;
use crate::engine::NotOurState;
use crate::key::Certifier;
use crate::state::{StoreFailed, VolatileStore};
use crate::value::Identity;

/// Where a component keeps its logs.
pub trait LogStore<E: Storage> {
    /// Makes durable that these operations were done to `before`, all or none, then returns; only
    /// afterwards does anything change or leave the component. A store keeps the operations in a journal and
    /// now and then, before them, the whole state ([`Logs::write`]); [`Logs::replay`] puts both together
    /// again. Operations that change nothing may be left out.
    ///
    /// # Errors
    /// [`StoreFailed::NoSpace`], after which the component goes on as if it had not been asked;
    /// [`StoreFailed::Unknown`], after which it halts for good.
    fn store(&mut self, before: &Logs<E>, operations: &[Operation]) -> Result<(), StoreFailed>;
}

/// A restart is amnesia, and the component must come back under a new epoch.
impl<E: Storage> LogStore<E> for VolatileStore {
    fn store(&mut self, _before: &Logs<E>, _operations: &[Operation]) -> Result<(), StoreFailed> {
        Ok(())
    }
}

/// The answer to one operation of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::large_enum_variant, reason = "this crate does not allocate, and few are made")]
pub enum Answer {
    /// The log changed, durably, and no lookup was asked for.
    Done,
    /// What was looked up; where the operation changed the log, durably, the slot that it filled.
    Attested(Attestation),
}

/// One attested append-only memory: its logs, its key and the place where it keeps the logs.
#[derive(Clone, Debug)]
pub struct A2m<E: Storage, S> {
    logs: Logs<E>,
    certifier: Certifier,
    peers: Peers,
    store: S,
    halted: bool,
}

impl<E: Storage, S: LogStore<E>> A2m<E, S> {
    /// A component at the start of an epoch, with empty logs. Never start the same epoch twice.
    pub fn start(identity: Identity, certifier: Certifier, store: S, storage: [E; LOGS]) -> Self {
        Self { logs: Logs::new(identity, storage), certifier, peers: Peers::NONE, store, halted: false }
    }

    /// A component that goes on from exactly the last logs that it stored.
    ///
    /// # Errors
    /// [`NotOurState`] if they belong to another group, replica or epoch.
    pub fn restart(
        identity: Identity,
        certifier: Certifier,
        store: S,
        logs: Logs<E>,
    ) -> Result<Self, NotOurState> {
        rule!("A2M-S3");
        if logs.identity() != identity {
            return Err(NotOurState);
        }
        Ok(Self { logs, certifier, peers: Peers::NONE, store, halted: false })
    }

    /// Its logs, as they are now. What is read here is no evidence.
    pub fn logs(&self) -> &Logs<E> {
        &self.logs
    }

    /// Ends this component and gives back its store.
    pub fn into_store(self) -> S {
        self.store
    }

    /// Carries out the operations in order, on one log or several, and answers each in the same order; or
    /// refuses them all before any has changed anything. Every change is durable before the first answer.
    ///
    /// # Errors
    /// [`LogRefusal`]; nothing has changed, and nothing was answered.
    pub fn call(
        &mut self,
        operations: &[Operation],
        mut answer: impl FnMut(Answer),
    ) -> Result<(), LogRefusal> {
        if self.halted {
            return Err(LogRefusal::Halted);
        }
        rule!("A2M-C3");
        if operations.len() > MOST_OPERATIONS {
            return Err(LogRefusal::TooMany);
        }
        self.logs.check(operations)?;
        if operations.iter().any(Operation::changes) {
            rule!("A2M-S1");
            // Should the store unwind, what is durable is unknown.
            self.halted = true;
            match self.store.store(&self.logs, operations) {
                Ok(()) => {}
                Err(StoreFailed::NoSpace) => {
                    self.halted = false;
                    return Err(LogRefusal::NoSpace);
                }
                Err(StoreFailed::Unknown) => return Err(LogRefusal::Halted),
            }
        }
        // The caller's code runs in between: should it unwind, nothing goes on from logs that are half changed.
        self.halted = true;
        let Self { logs, certifier, peers, .. } = self;
        let identity = logs.identity();
        // What is stated last: a slot is often shown to one after the other.
        let mut last = None::<(Claim, _)>;
        for operation in operations {
            let log = logs.apply(operation);
            let Some((request, slot, nonce)) = asked(operation, log.high()) else {
                answer(Answer::Done);
                continue;
            };
            let claim = Claim { request, log: operation.log(), slot, nonce, content: log.content(slot) };
            let known = last.filter(|(of, _)| *of == claim);
            let (_, statement) = *last.insert(known.unwrap_or_else(|| (claim, statement(&identity, &claim))));
            let proof = match operation {
                Operation::LookupFor { peer, .. } => {
                    rule!("A2M-A5");
                    Proof::Mac(peers.key(certifier, peer).tag(&statement))
                }
                _ => certifier.prove(&statement),
            };
            answer(Answer::Attested(Attestation { epoch: identity.epoch, claim, proof }));
        }
        self.halted = false;
        Ok(())
    }

    /// Carries out one operation and answers it.
    ///
    /// # Errors
    /// [`LogRefusal`]; nothing has changed.
    pub fn one(&mut self, operation: Operation) -> Result<Answer, LogRefusal> {
        let mut given = Answer::Done;
        self.call(&[operation], |answer| given = answer)?;
        Ok(given)
    }
}

/// What an operation asks to be attested once it is done, if anything.
fn asked(operation: &Operation, high: Slot) -> Option<(Request, Slot, Nonce)> {
    rule!("A2M-A4");
    match *operation {
        Operation::Append { slot, nonce, .. } | Operation::Advance { slot, nonce, .. } => {
            Some((Request::Lookup, slot, nonce?))
        }
        Operation::Truncate { .. } => None,
        Operation::Lookup { slot, nonce, .. } | Operation::LookupFor { slot, nonce, .. } => {
            Some((Request::Lookup, slot, nonce))
        }
        Operation::End { nonce, .. } => Some((Request::End, high, nonce)),
    }
}
