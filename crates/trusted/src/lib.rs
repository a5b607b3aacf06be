//! The trusted core: one attesting counter, with USIG and CASH as thin faces, and attested logs.
//!
//! A replica that may be compromised asks this component for certificates. A certificate says:
//! counter `c` of component `(group, replica, epoch)` moved from `previous` to `new`, and the move
//! belongs to the 32-byte `digest`. The component never says this of one value with two digests, so
//! nobody can tell two stories under one number (paper 002 §2; paper 004 §2.2).
//!
//! | module | subject |
//! | --- | --- |
//! | [`value`] | counters, their values, epochs and identities |
//! | [`certificate`] | what is certified, and its fixed-length encoding |
//! | [`key`] | HMAC-SHA-256 and Ed25519: making and checking proofs |
//! | [`state`] | what must survive a crash, and where it is kept |
//! | [`engine`] | compare-and-set, repeat, resume, several counters at once |
//! | [`run`] | one certificate over a run of consecutive values |
//! | [`usig`], [`cash`] | the interfaces of papers 002 and 004 |
//! | [`a2m`] | attested append-only logs (paper 000) |
//! | [`agreement`] | the keys by which logs are attested to single clients (paper 000 §3.3) |
//!
//! What must be right for certificates to mean anything — `value`, `certificate`, `key`, `state` and
//! `engine` — is under 580 lines of code, counted by a test; `run` and the two faces are 240 more, and
//! `a2m` with `agreement`, which shares keys and identities with the counters and nothing else, is 730.
//!
//! The crate has no allocation, no input or output, no clock and no randomness, so the very same
//! code runs inside a process, a virtual machine or beside a hardware model. Callers hash their
//! messages with a domain of their own (group, protocol, message type, sender) before they come here.

#![no_std]
#![forbid(unsafe_code)]

pub mod a2m;
pub mod agreement;
pub mod cash;
pub mod certificate;
pub mod engine;
pub mod key;
pub mod run;
pub mod state;
pub mod usig;
pub mod value;

pub use certificate::{Certificate, MultiCertificate, Proof};
pub use engine::{NotOurState, Refusal, Resumed, TrustedCore};
pub use key::{Certifier, MacKey, MacVerifier, SignatureVerifier, SigningKey, Verifier};
pub use run::RunProof;
pub use state::{CounterState, Kept, State, Store, StoreFailed, VolatileStore};
pub use value::{COUNTERS, CounterId, CounterValue, Digest, Epoch, Identity, Move, Moves};
