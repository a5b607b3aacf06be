//! The places a trusted core can live, behind one interface.
//!
//! The rest of Troth talks to a [`TrustedComponent`] in batches and checks what others' components
//! certified with a [`CertificateVerifier`]. Where the component lives — in this process, in a
//! hardened one, in a TPM, a virtual machine or a hardware core — is behind the trait, and every such
//! home passes the same [`conformance`] suite. Attested logs ([`TrustedLogs`]) stand beside it in the same way,
//! with a suite of their own ([`conformance::logs`]).

#![forbid(unsafe_code)]

/// Marks the place that implements a rule of `docs/protocols/a2m.md`, for `cargo xtask paper`.
macro_rules! rule {
    ($label:literal) => {};
}

mod component;
pub mod conformance;
mod in_process;
mod logs;
pub mod repetition;
pub mod store;
mod verifier;

pub use component::{Answer, Call, TrustedComponent};
pub use in_process::InProcess;
pub use logs::{AttestationVerifier, InProcessLogs, LogRoom, TrustedLogs, log_room};
pub use verifier::{CertificateVerifier, GroupVerifier, MemberKey, Statement, TwiceConfigured};
