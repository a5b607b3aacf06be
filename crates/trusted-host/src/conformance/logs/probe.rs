//! One component under examination, with short ways to ask it and to say what was wrong.

use super::LogHome;
pub(super) use crate::conformance::probe::{ONE, OTHER, Seen, require};
use crate::logs::{AttestationVerifier, TrustedLogs};
use troth_trusted::a2m::{
    Answer, Attestation, Content, LOGS, LogId, LogRefusal, Nonce, Operation, Slot, Unfit,
};
use troth_trusted::{CounterValue, Digest, Epoch, MacVerifier, RunProof};

/// The logs that the suite writes to.
pub(super) const Q: LogId = LogId(0);
/// See [`Q`].
pub(super) const M: LogId = LogId(15);
/// A nonce.
pub(super) const NONCE: Nonce = [0x5a; 32];
/// The digest before the first slot.
pub(super) const START: Digest = [0; 32];

pub(super) struct Probe<'a> {
    home: &'a mut dyn LogHome,
    pub(super) verifier: &'a dyn AttestationVerifier,
    pub(super) replica: u16,
    component: Option<Box<dyn TrustedLogs>>,
}

pub(super) fn slot(number: u128) -> Slot {
    CounterValue(number)
}

/// The append of a slot, answered by its lookup.
pub(super) fn append(log: LogId, number: u128, value: Digest) -> Operation {
    Operation::Append { log, slot: slot(number), value, nonce: Some(NONCE) }
}

/// The advance to a slot, answered by its lookup.
pub(super) fn advance(log: LogId, number: u128, previous: Digest, value: Digest) -> Operation {
    Operation::Advance { log, slot: slot(number), previous, value, nonce: Some(NONCE) }
}

/// The same operation, answered by nothing.
pub(super) fn quiet(mut operation: Operation) -> Operation {
    if let Operation::Append { nonce, .. } | Operation::Advance { nonce, .. } = &mut operation {
        *nonce = None;
    }
    operation
}

pub(super) fn truncate(log: LogId, number: u128) -> Operation {
    Operation::Truncate { log, slot: slot(number) }
}

pub(super) fn lookup(log: LogId, number: u128) -> Operation {
    Operation::Lookup { log, slot: slot(number), nonce: NONCE }
}

pub(super) fn end(log: LogId) -> Operation {
    Operation::End { log, nonce: NONCE }
}

impl<'a> Probe<'a> {
    /// A fresh component in the epoch that the verifier knows.
    pub(super) fn new(home: &'a mut dyn LogHome, verifier: &'a dyn AttestationVerifier) -> Self {
        let identity = home.identity();
        let component = Some(home.fresh(identity.epoch));
        Self { home, verifier, replica: identity.replica, component }
    }

    /// What checks MACs for the client with this private key.
    pub(super) fn shared_with(&self, secret: &[u8; 32]) -> MacVerifier {
        self.home.shared_with(secret)
    }

    /// Goes on with a fresh component in the epoch after the one that the verifier knows.
    pub(super) fn next_epoch(&mut self) {
        self.component = None;
        let epoch = Epoch(self.home.identity().epoch.0 + 1);
        self.component = Some(self.home.fresh(epoch));
    }

    /// Goes on with the component started again from its store; `false` if the home cannot.
    pub(super) fn restart(&mut self) -> bool {
        self.component = None;
        self.component = self.home.restart();
        self.component.is_some()
    }

    /// Breaks the store; `false` if the home cannot.
    pub(super) fn break_store(&mut self) -> bool {
        self.home.break_store()
    }

    /// Whether the component says to be who the home says.
    pub(super) fn names_itself(&self) -> bool {
        self.component.as_ref().is_some_and(|c| c.identity() == self.home.identity())
    }

    /// What the component makes of a call.
    pub(super) fn call(&mut self, operations: &[Operation]) -> Seen<Result<Vec<Answer>, LogRefusal>> {
        let component = self.component.as_mut().ok_or("there is no component to ask")?;
        let answered = component.call(operations);
        if let Ok(answers) = &answered {
            let (asked, given) = (operations.len(), answers.len());
            require(asked == given, format!("{asked} operations got {given} answers"))?;
        }
        Ok(answered)
    }

    /// The attestation of an operation that must succeed, alone in its call.
    pub(super) fn attested(&mut self, operation: Operation) -> Seen<Attestation> {
        match self.call(&[operation])? {
            Ok(answers) => match answers.as_slice() {
                [Answer::Attested(attestation)] => Ok(attestation.clone()),
                other => Err(format!("{operation:?} was answered {other:?}")),
            },
            Err(refusal) => Err(format!("{operation:?} was refused: {refusal:?}")),
        }
    }

    /// Demands that a slot is of this content, alone or as the answer to the operation that filled it.
    pub(super) fn holds(&mut self, operation: Operation, number: u128, content: Content) -> Seen<()> {
        let made = self.attested(operation)?;
        let seen = self.verifier.lookup(self.replica, &made, operation.log(), slot(number), &NONCE);
        require(seen == Some(content), format!("{operation:?} was answered {made:?} and not {content:?}"))
    }

    /// Demands that a log ends in this slot with this content.
    pub(super) fn ends(&mut self, log: LogId, number: u128, content: Content) -> Seen<()> {
        let made = self.attested(end(log))?;
        let seen = self.verifier.end(self.replica, &made, log, &NONCE, &RunProof::SINGLE);
        let expected = (slot(number), content);
        require(seen == Some(expected), format!("{log:?} ends in {made:?} and not in {expected:?}"))
    }

    /// Does operations that must succeed, in one call.
    pub(super) fn done(&mut self, operations: &[Operation]) -> Seen<Vec<Answer>> {
        self.call(operations)?.map_err(|refusal| format!("{operations:?} was refused: {refusal:?}"))
    }

    /// Demands that an operation is refused, and for this reason.
    pub(super) fn refused(&mut self, operation: Operation, why: Unfit) -> Seen<()> {
        let answered = self.call(&[operation])?;
        let expected = Err(LogRefusal::Operation { index: 0, why });
        require(answered == expected, format!("{operation:?} was answered {answered:?} instead of {why:?}"))
    }

    /// What is said of the first slots and of the end of every log, to compare before and after.
    pub(super) fn everything(&mut self) -> Seen<Vec<Answer>> {
        let logs = (0..LOGS as u16).map(LogId);
        let asked: Vec<_> =
            logs.flat_map(|log| (0..16).map(move |n| lookup(log, n)).chain([end(log)])).collect();
        self.done(&asked)
    }
}
