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

    fn attest_beside(&mut self, call: &Call, blob: &[u8]) -> Option<Answer> {
        let core = &mut self.0;
        let kept = match call {
            Call::Attest { counter, previous, new, digest } => core
                .attest_beside(*counter, *previous, *new, digest, blob)
                .map(|made| made.map(Answer::Attested)),
            Call::AttestMulti { moves, digest } => core
                .attest_multi_beside(moves, digest, blob)
                .map(|made| made.map(|made| Answer::AttestedMulti(Box::new(made)))),
            // Nothing moves, so there is nothing that a blob could stand beside.
            Call::Resume { .. } | Call::Read { .. } => Ok(None),
        };
        kept.unwrap_or_else(|refusal| Some(Answer::Refused(refusal)))
    }

    fn blobs(&mut self) -> Vec<Vec<u8>> {
        self.0.blobs().map(<[u8]>::to_vec).collect()
    }
}
