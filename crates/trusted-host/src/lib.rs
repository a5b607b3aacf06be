//! The places a trusted core can live, behind one interface.
//!
//! The rest of Troth talks to a [`TrustedComponent`] in batches and checks what others' components
//! certified with a [`CertificateVerifier`]. Where the component lives — in this process, in a
//! hardened one, in a TPM, a virtual machine or a hardware core — is behind the trait, and every such
//! home passes the same [`conformance`] suite.

#![forbid(unsafe_code)]

mod component;
pub mod conformance;
mod in_process;
pub mod store;
mod verifier;

pub use component::{Answer, Call, TrustedComponent};
pub use in_process::InProcess;
pub use verifier::{CertificateVerifier, GroupVerifier, MemberKey, Statement, TwiceConfigured};
