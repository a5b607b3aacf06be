//! One suite of rules that every home of attested logs passes. It is to
//! [`TrustedLogs`] what [`conformance`](super::conformance) is to counters.

mod attestations;
mod contents;
mod durability;
mod probe;

use super::Outcome;
use crate::logs::{AttestationVerifier, TrustedLogs};
use probe::Probe;
use std::fmt;
use troth_trusted::{Epoch, Identity, MacVerifier};

/// How many entries each log of a home has room for that the suite examines.
pub const ROOM: usize = 8;

/// Makes the components that the suite examines.
pub trait LogHome {
    /// The identity that the suite's verifier has in its configuration for these components.
    fn identity(&self) -> Identity;

    /// A component of that group and replica, with its key, empty logs with [`ROOM`] each and an empty store,
    /// in the given epoch.
    fn fresh(&mut self, epoch: Epoch) -> Box<dyn TrustedLogs>;

    /// Starts the component of the last [`LogHome::fresh`] again from its store; `None` if this home keeps
    /// nothing. The suite has dropped the component before.
    fn restart(&mut self) -> Option<Box<dyn TrustedLogs>>;

    /// Makes the store of the last [`LogHome::fresh`] fail from now on; `false` if this home has no way to do
    /// so.
    fn break_store(&mut self) -> bool;

    /// What checks, for the client with this X25519 private key, the MACs that these components make for it.
    fn shared_with(&self, secret: &[u8; 32]) -> MacVerifier;
}

/// A rule of the suite, with the rules of `docs/protocols/a2m.md` that it looks at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LogRule {
    /// A fresh component is who it should be, all its logs are empty, and there are sixteen.
    FreshStart,
    /// The operations of a call are answered each and in order, as the logs were then (C1, A4).
    CallOrder,
    /// A slot that was filled or skipped is never filled again; a refusal says where the log ends (L1, L3).
    AppendOnly,
    /// Each kind of slot is attested as what it is, with the digests of the chain (L2, L6).
    Contents,
    /// A truncation forgets what is below, keeps all else, and goes only forward (L5).
    Truncation,
    /// A full log refuses and forgets nothing (L4).
    FullLog,
    /// A call of which one operation cannot be done, or of too many, changes nothing (C2, C3).
    AllOrNothing,
    /// One END attestation answers all nonces under its root, and no others (A3).
    ManyNonces,
    /// A lookup for one client convinces this client, and nobody else (A5).
    ForOneClient,
    /// A component started again from its store says the same of every slot (S3).
    SameAfterRestart,
    /// However often a component is started again, it goes on from exactly its last call (S3).
    SameAfterEveryRestart,
    /// After its store failed a component attests nothing more (S1).
    HaltedAfterFailingStore,
    /// Attestations of another epoch are void, also with the epoch rewritten (A1, S3).
    EpochBinding,
    /// An attestation answers one question to one component, and only unaltered (A1 to A3).
    TamperedAttestation,
}

/// All rules, in the order in which they are examined.
pub const LOG_RULES: [LogRule; 14] = [
    LogRule::FreshStart,
    LogRule::CallOrder,
    LogRule::AppendOnly,
    LogRule::Contents,
    LogRule::Truncation,
    LogRule::FullLog,
    LogRule::AllOrNothing,
    LogRule::ManyNonces,
    LogRule::ForOneClient,
    LogRule::SameAfterRestart,
    LogRule::SameAfterEveryRestart,
    LogRule::HaltedAfterFailingStore,
    LogRule::EpochBinding,
    LogRule::TamperedAttestation,
];

impl fmt::Display for LogRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A home broke a rule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{rule}: {detail}")]
pub struct LogViolation {
    /// The rule.
    pub rule: LogRule,
    /// What was seen.
    pub detail: String,
}

/// What an examination could say of a home that broke no rule.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LogReport {
    /// The rules that held.
    pub held: Vec<LogRule>,
    /// The rules that could not be examined, as the home keeps nothing or cannot fail on demand.
    pub not_applicable: Vec<LogRule>,
}

/// Examines a home. `verifier` must know the identity [`LogHome::identity`] and its key.
///
/// # Errors
/// The first [`LogViolation`] found.
pub fn log_conformance(
    home: &mut dyn LogHome,
    verifier: &dyn AttestationVerifier,
) -> Result<LogReport, LogViolation> {
    let mut report = LogReport::default();
    for rule in LOG_RULES {
        let mut probe = Probe::new(home, verifier);
        let outcome = match rule {
            LogRule::FreshStart => contents::fresh_start(&mut probe),
            LogRule::CallOrder => contents::call_order(&mut probe),
            LogRule::AppendOnly => contents::append_only(&mut probe),
            LogRule::Contents => contents::contents(&mut probe),
            LogRule::Truncation => contents::truncation(&mut probe),
            LogRule::FullLog => contents::full_log(&mut probe),
            LogRule::AllOrNothing => contents::all_or_nothing(&mut probe),
            LogRule::ManyNonces => attestations::many_nonces(&mut probe),
            LogRule::ForOneClient => attestations::for_one_client(&mut probe),
            LogRule::SameAfterRestart => durability::same_after_restart(&mut probe),
            LogRule::SameAfterEveryRestart => durability::same_after_every_restart(&mut probe),
            LogRule::HaltedAfterFailingStore => durability::halted_after_failing_store(&mut probe),
            LogRule::EpochBinding => attestations::epoch_binding(&mut probe),
            LogRule::TamperedAttestation => attestations::tampered_attestation(&mut probe),
        };
        match outcome.map_err(|detail| LogViolation { rule, detail })? {
            Outcome::Held => report.held.push(rule),
            Outcome::NotApplicable => report.not_applicable.push(rule),
        }
    }
    Ok(report)
}
