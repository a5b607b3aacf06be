//! CASH, the Counter Assignment Service in Hardware (paper 004 §2.2).
//!
//! Several named counters, each moved by exactly one per certificate. The message certificate is a
//! [`Certificate`]; the counter's name is its [`CounterId`].

use crate::certificate::{Certificate, MultiCertificate};
use crate::engine::{Refusal, TrustedCore};
use crate::key::Verifier;
use crate::state::Store;
use crate::usig::{create_next, successor};
use crate::value::{COUNTERS, CounterId, CounterValue, Digest, Identity, Move, Moves};

/// `createMC_c(m)`: the next certificate of counter `counter`, for `digest` (paper 004 Figure 1,
/// lines 6–10).
///
/// # Errors
/// [`Refusal`].
pub fn create_mc<S: Store>(
    core: &mut TrustedCore<S>,
    counter: CounterId,
    digest: &Digest,
) -> Result<Certificate, Refusal> {
    create_next(core, counter, digest)
}

/// Moves several counters by one each under one certificate. An addition to the paper, for messages
/// that take a number in several sequences at once.
///
/// # Errors
/// [`Refusal`]; [`Refusal::BadMoves`] unless two to eight counters are named in ascending order.
pub fn create_mc_multi<S: Store>(
    core: &mut TrustedCore<S>,
    counters: &[CounterId],
    digest: &Digest,
) -> Result<MultiCertificate, Refusal> {
    let unused = Move { counter: CounterId(0), previous: CounterValue(0), new: CounterValue(0) };
    let mut all = [unused; COUNTERS];
    let moves = all.get_mut(..counters.len()).ok_or(Refusal::BadMoves)?;
    for (slot, &counter) in moves.iter_mut().zip(counters) {
        let previous = core.read(counter)?;
        *slot = Move { counter, previous, new: successor(counter, previous)? };
    }
    let moves = Moves::new(moves).ok_or(Refusal::BadMoves)?;
    core.attest_multi(&moves, digest)
}

/// Verifies a certificate of counter `counter` without side effect (paper 004 §2.2.1, last
/// paragraph).
pub fn verify_mc(
    verifier: &impl Verifier,
    identity: &Identity,
    counter: CounterId,
    mc: &Certificate,
    digest: &Digest,
) -> bool {
    mc.counter == counter && mc.previous.next() == Some(mc.new) && verifier.verify(identity, mc, digest)
}

/// The certificates received from one other component: the bookkeeping of `isNext` (paper 004
/// §2.2.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Received {
    identity: Identity,
    latest: [CounterValue; COUNTERS],
}

impl Received {
    /// Nothing received yet from the component `identity`.
    pub fn new(identity: Identity) -> Self {
        Self { identity, latest: [CounterValue(0); COUNTERS] }
    }

    /// The value up to which certificates of `counter` were received without a gap.
    pub fn latest(&self, counter: CounterId) -> Option<CounterValue> {
        self.latest.get(usize::from(counter.0)).copied()
    }

    /// `checkMC_c(mc, m)`: whether `mc` is valid and the next of its counter; if so it is taken as
    /// received (paper 004 Figure 1, lines 12–17).
    pub fn check_mc(
        &mut self,
        verifier: &impl Verifier,
        counter: CounterId,
        mc: &Certificate,
        digest: &Digest,
    ) -> bool {
        let Some(latest) = self.latest.get_mut(usize::from(counter.0)) else {
            return false;
        };
        let next = mc.previous == *latest && verify_mc(verifier, &self.identity, counter, mc, digest);
        if next {
            *latest = mc.new;
        }
        next
    }
}
