//! One suite of rules that every home of a trusted component passes.
//!
//! The rules look at a component from outside only, as the rest of Troth and as an attacker on the
//! same machine does. What a home must offer beyond the component itself, so that restarts and failing
//! stores can be played, is the [`Home`] trait.

mod certificates;
mod counters;
mod durability;
pub mod logs;
mod probe;

use crate::component::TrustedComponent;
use crate::verifier::CertificateVerifier;
use probe::Probe;
use std::fmt;
use troth_trusted::{Epoch, Identity};

/// Makes the components that the suite examines.
pub trait Home {
    /// The identity that the suite's verifier has in its configuration for these components.
    fn identity(&self) -> Identity;

    /// A component of that group and replica, with its key and an empty store, in the given epoch.
    fn fresh(&mut self, epoch: Epoch) -> Box<dyn TrustedComponent>;

    /// Starts the component of the last [`Home::fresh`] again from its store; `None` if this home
    /// keeps nothing. The suite has dropped the component before.
    fn restart(&mut self) -> Option<Box<dyn TrustedComponent>>;

    /// Makes the store of the last [`Home::fresh`] fail from now on; `false` if this home has no way
    /// to do so.
    fn break_store(&mut self) -> bool;
}

/// A rule of the suite.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rule {
    /// A fresh component is who it should be, all its counters stand at zero, and there are eight.
    FreshStart,
    /// No value of a counter is certified for two digests, alone or together with other counters.
    Uniqueness,
    /// A counter moves only from where it stands, and only upwards; a refusal says where it stands.
    CompareAndSet,
    /// The last call repeated returns the same certificate and moves nothing.
    IdempotentRepeat,
    /// Several counters move all or none.
    MultiAtomicity,
    /// A refused call changes nothing.
    RefusalChangesNothing,
    /// The calls of a batch are answered each and in order, and a refused one does not stop the rest.
    BatchOrder,
    /// A component started again from its store knows its counters and last certificates.
    ResumeAfterRestart,
    /// However often a component is started again, it goes on from exactly its last move.
    ResumeAfterEveryRestart,
    /// The blobs that a component keeps are those beside the moves since the last one without, whatever is
    /// refused or repeated, and after a restart as before it.
    BlobBesideMove,
    /// After its store failed a component certifies nothing more.
    HaltedAfterFailingStore,
    /// Certificates of another epoch are void, also with the epoch rewritten.
    EpochBinding,
    /// A proof is good for one kind of statement, one replica and one counter.
    DomainSeparation,
    /// A certificate with one field or bit changed is rejected.
    TamperedCertificate,
}

/// All rules, in the order in which they are examined.
pub const RULES: [Rule; 14] = [
    Rule::FreshStart,
    Rule::Uniqueness,
    Rule::CompareAndSet,
    Rule::IdempotentRepeat,
    Rule::MultiAtomicity,
    Rule::RefusalChangesNothing,
    Rule::BatchOrder,
    Rule::ResumeAfterRestart,
    Rule::ResumeAfterEveryRestart,
    Rule::BlobBesideMove,
    Rule::HaltedAfterFailingStore,
    Rule::EpochBinding,
    Rule::DomainSeparation,
    Rule::TamperedCertificate,
];

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A home broke a rule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{rule}: {detail}")]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// What was seen.
    pub detail: String,
}

/// What an examination could say of a home that broke no rule.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The rules that held.
    pub held: Vec<Rule>,
    /// The rules that could not be examined, as the home keeps nothing, no blobs, or cannot fail on demand.
    pub not_applicable: Vec<Rule>,
}

/// Whether a rule could be examined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Held,
    NotApplicable,
}

/// Examines a home. `verifier` must know the identity [`Home::identity`] and its key.
///
/// # Errors
/// The first [`Violation`] found.
pub fn conformance(home: &mut dyn Home, verifier: &dyn CertificateVerifier) -> Result<Report, Violation> {
    let mut report = Report::default();
    for rule in RULES {
        let mut probe = Probe::new(home, verifier);
        let outcome = match rule {
            Rule::FreshStart => counters::fresh_start(&mut probe),
            Rule::Uniqueness => counters::uniqueness(&mut probe),
            Rule::CompareAndSet => counters::compare_and_set(&mut probe),
            Rule::IdempotentRepeat => counters::idempotent_repeat(&mut probe),
            Rule::MultiAtomicity => counters::multi_atomicity(&mut probe),
            Rule::RefusalChangesNothing => counters::refusal_changes_nothing(&mut probe),
            Rule::BatchOrder => counters::batch_order(&mut probe),
            Rule::ResumeAfterRestart => durability::resume_after_restart(&mut probe),
            Rule::ResumeAfterEveryRestart => durability::resume_after_every_restart(&mut probe),
            Rule::BlobBesideMove => durability::blob_beside_move(&mut probe),
            Rule::HaltedAfterFailingStore => durability::halted_after_failing_store(&mut probe),
            Rule::EpochBinding => certificates::epoch_binding(&mut probe),
            Rule::DomainSeparation => certificates::domain_separation(&mut probe),
            Rule::TamperedCertificate => certificates::tampered_certificate(&mut probe),
        };
        match outcome.map_err(|detail| Violation { rule, detail })? {
            Outcome::Held => report.held.push(rule),
            Outcome::NotApplicable => report.not_applicable.push(rule),
        }
    }
    Ok(report)
}
