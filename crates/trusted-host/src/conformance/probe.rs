//! One component under examination, with short ways to ask it and to say what was wrong.

use super::Home;
use crate::component::{Answer, Call, TrustedComponent};
use crate::verifier::CertificateVerifier;
use troth_trusted::{
    COUNTERS, Certificate, CounterId, CounterValue, Digest, Epoch, Move, Moves, MultiCertificate, Refusal,
    Resumed,
};

/// What a rule returns: `Err` says what was seen.
pub(super) type Seen<T> = Result<T, String>;

/// Two digests that differ, for messages that differ.
pub(super) const ONE: Digest = [1; 32];
/// See [`ONE`].
pub(super) const OTHER: Digest = [2; 32];

pub(super) struct Probe<'a> {
    home: &'a mut dyn Home,
    pub(super) verifier: &'a dyn CertificateVerifier,
    pub(super) replica: u16,
    component: Option<Box<dyn TrustedComponent>>,
}

/// `Err(detail)` unless `condition`.
pub(super) fn require(condition: bool, detail: impl Into<String>) -> Seen<()> {
    if condition { Ok(()) } else { Err(detail.into()) }
}

/// A move of counter `counter` between plain values.
pub(super) fn step(counter: u16, previous: u128, new: u128) -> Move {
    Move { counter: CounterId(counter), previous: CounterValue(previous), new: CounterValue(new) }
}

/// The question for one move.
pub(super) fn attest(m: Move, digest: Digest) -> Call {
    Call::Attest { counter: m.counter, previous: m.previous, new: m.new, digest }
}

/// The question for several moves, which must be well formed.
pub(super) fn attest_multi(moves: &[Move], digest: Digest) -> Call {
    let moves = Moves::new(moves).expect("the suite names well-formed moves");
    Call::AttestMulti { moves: Box::new(moves), digest }
}

impl<'a> Probe<'a> {
    /// A fresh component in the epoch that the verifier knows.
    pub(super) fn new(home: &'a mut dyn Home, verifier: &'a dyn CertificateVerifier) -> Self {
        let identity = home.identity();
        let component = Some(home.fresh(identity.epoch));
        Self { home, verifier, replica: identity.replica, component }
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

    pub(super) fn batch(&mut self, calls: &[Call]) -> Seen<Vec<Answer>> {
        let component = self.component.as_mut().ok_or("there is no component to ask")?;
        let answers = component.call(calls);
        require(
            answers.len() == calls.len(),
            format!("{} calls got {} answers", calls.len(), answers.len()),
        )?;
        Ok(answers)
    }

    pub(super) fn ask(&mut self, call: Call) -> Seen<Answer> {
        self.batch(&[call])?.pop().ok_or_else(|| "a call got no answer".to_owned())
    }

    /// The certificate of a move that must succeed, verified.
    pub(super) fn attested(&mut self, m: Move, digest: Digest) -> Seen<Certificate> {
        match self.ask(attest(m, digest))? {
            Answer::Attested(c) if c.moved() != m => Err(format!("{c:?} answers {m:?}")),
            Answer::Attested(c) if !self.verifier.verify(self.replica, &c, &digest) => {
                Err(format!("a genuine certificate was rejected: {c:?}"))
            }
            Answer::Attested(c) => Ok(c),
            other => Err(format!("{m:?} was answered {other:?}")),
        }
    }

    /// The certificate of moves that must succeed, verified.
    pub(super) fn attested_multi(&mut self, moves: &[Move], digest: Digest) -> Seen<MultiCertificate> {
        match self.ask(attest_multi(moves, digest))? {
            Answer::AttestedMulti(c) if c.moves.as_slice() != moves => {
                Err(format!("{c:?} answers {moves:?}"))
            }
            Answer::AttestedMulti(c) if !self.verifier.verify_multi(self.replica, &c, &digest) => {
                Err(format!("a genuine certificate was rejected: {c:?}"))
            }
            Answer::AttestedMulti(c) => Ok(*c),
            other => Err(format!("{moves:?} was answered {other:?}")),
        }
    }

    /// The answer to a move with a blob; `None` where the component keeps no such blob now.
    pub(super) fn beside(&mut self, call: &Call, blob: &[u8]) -> Seen<Option<Answer>> {
        let component = self.component.as_mut().ok_or("there is no component to ask")?;
        Ok(component.attest_beside(call, blob))
    }

    /// The certificate of a move with a blob, verified; `None` where the component keeps no such blob now.
    pub(super) fn attested_beside(
        &mut self,
        m: Move,
        digest: Digest,
        blob: &[u8],
    ) -> Seen<Option<Certificate>> {
        match self.beside(&attest(m, digest), blob)? {
            None => Ok(None),
            Some(Answer::Attested(c))
                if c.moved() == m && self.verifier.verify(self.replica, &c, &digest) =>
            {
                Ok(Some(c))
            }
            Some(other) => Err(format!("{m:?} with a blob was answered {other:?}")),
        }
    }

    /// The blobs that the component keeps.
    pub(super) fn blobs(&mut self) -> Seen<Vec<Vec<u8>>> {
        Ok(self.component.as_mut().ok_or("there is no component to ask")?.blobs())
    }

    /// Demands that a call is refused, and for this reason.
    pub(super) fn refused(&mut self, call: Call, reason: Refusal) -> Seen<()> {
        let answer = self.ask(call.clone())?;
        require(
            answer == Answer::Refused(reason),
            format!("{call:?} was answered {answer:?} instead of {reason:?}"),
        )
    }

    /// Where a counter stands.
    pub(super) fn value(&mut self, counter: u16) -> Seen<u128> {
        match self.ask(Call::Read { counter: CounterId(counter) })? {
            Answer::Value(value) => Ok(value.0),
            other => Err(format!("reading counter {counter} was answered {other:?}")),
        }
    }

    /// The last certificate of a counter.
    pub(super) fn resumed(&mut self, counter: u16) -> Seen<Resumed> {
        match self.ask(Call::Resume { counter: CounterId(counter) })? {
            Answer::Resumed(last) => Ok(*last),
            other => Err(format!("resuming counter {counter} was answered {other:?}")),
        }
    }

    /// Everything that can be asked of all counters, to compare before and after.
    pub(super) fn everything(&mut self) -> Seen<Vec<Answer>> {
        let ids = (0..COUNTERS as u16).map(CounterId);
        let calls: Vec<Call> =
            ids.flat_map(|counter| [Call::Read { counter }, Call::Resume { counter }]).collect();
        self.batch(&calls)
    }
}
