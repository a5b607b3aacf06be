//! USIG, the Unique Sequential Identifier Generator (paper 002 §2).
//!
//! One counter that each certificate moves by exactly one. The unique identifier (UI) is a
//! [`Certificate`] whose `new` is `previous + 1`.

use crate::certificate::Certificate;
use crate::engine::{Refusal, TrustedCore};
use crate::key::Verifier;
use crate::state::Store;
use crate::value::{CounterId, CounterValue, Digest, Identity};

/// The counter that USIG uses.
pub const COUNTER: CounterId = CounterId(0);

/// `createUI(m)`: the next identifier, bound to `digest` (paper 002 §2). After a lost answer ask
/// [`TrustedCore::resume`], since asking here again would take another number.
///
/// # Errors
/// [`Refusal`], and [`Refusal::NotAhead`] once every value is spent.
pub fn create_ui<S: Store>(core: &mut TrustedCore<S>, digest: &Digest) -> Result<Certificate, Refusal> {
    create_next(core, COUNTER, digest)
}

/// `verifyUI(PK, UI, m)`: whether `ui` is an identifier of the component for `digest`
/// (paper 002 §2). It remembers nothing; whether the identifier is the next one is the caller's
/// question (paper 002 §4.1).
pub fn verify_ui(verifier: &impl Verifier, identity: &Identity, ui: &Certificate, digest: &Digest) -> bool {
    ui.counter == COUNTER && ui.previous.next() == Some(ui.new) && verifier.verify(identity, ui, digest)
}

/// Certifies the next value of a counter.
pub(crate) fn create_next<S: Store>(
    core: &mut TrustedCore<S>,
    counter: CounterId,
    digest: &Digest,
) -> Result<Certificate, Refusal> {
    let current = core.read(counter)?;
    let new = successor(counter, current)?;
    core.attest(counter, current, new, digest)
}

/// The value after `current`, or the refusal that there is none.
pub(crate) fn successor(counter: CounterId, current: CounterValue) -> Result<CounterValue, Refusal> {
    current.next().ok_or(Refusal::NotAhead { counter, current })
}
