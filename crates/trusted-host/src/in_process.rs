//! The component as a library in the replica's own process.

use crate::component::{Answer, Call, TrustedComponent};
use troth_trusted::{Identity, Refusal, Store, TrustedCore};

/// A trusted core in the replica's process: no isolation at all, so whoever takes over the replica
/// takes over the component too. For tests, simulation and as the baseline of measurements.
///
/// A clone is a second component with the same identity and key: exactly what the protocols assume
/// nobody can make. Only the simulator's negative control needs it.
#[derive(Clone, Debug)]
pub struct InProcess<S>(TrustedCore<S>);

impl<S: Store> InProcess<S> {
    /// The component around this core.
    pub fn new(core: TrustedCore<S>) -> Self {
        Self(core)
    }

    fn answer(&mut self, call: &Call) -> Result<Answer, Refusal> {
        let core = &mut self.0;
        Ok(match call {
            Call::Attest { counter, previous, new, digest } => {
                Answer::Attested(core.attest(*counter, *previous, *new, digest)?)
            }
            Call::AttestMulti { moves, digest } => {
                Answer::AttestedMulti(Box::new(core.attest_multi(moves, digest)?))
            }
            Call::Resume { counter } => Answer::Resumed(Box::new(core.resume(*counter)?)),
            Call::Read { counter } => Answer::Value(core.read(*counter)?),
        })
    }
}

impl<S: Store + Send> TrustedComponent for InProcess<S> {
    fn identity(&self) -> Identity {
        self.0.identity()
    }

    fn call(&mut self, calls: &[Call]) -> Vec<Answer> {
        calls.iter().map(|call| self.answer(call).unwrap_or_else(Answer::Refused)).collect()
    }
}
