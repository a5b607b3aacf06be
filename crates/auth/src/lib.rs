//! Keys, signatures, certificate checks and [`Verified`] values: the only place where bytes from
//! outside become something a protocol step may act on.
#![forbid(unsafe_code)]

mod attestation;
mod batch;
mod frames;
mod history;
mod keys;
mod known_keys;
#[cfg(feature = "model")]
mod model;
mod pairs;
mod scheme;
mod seal;
mod verified;

pub use attestation::{Looked, decode_attestation, encode_attestation};
pub use frames::{FrameError, FrameVerifier};
pub use history::{
    ComponentPairs, EndedAt, HISTORY_LOG, History, HistoryEntry, Placed, entry_value, history_claim,
};
pub use keys::Directory;
#[cfg(feature = "model")]
pub use model::{ModelPairs, ModelScheme, ModelSigner};
pub use pairs::{Authenticators, PairKey, PairKeys};
pub use scheme::{Check, Ed25519, Ed25519Signer, PublicKey, SignatureScheme, Signer};
pub use seal::{
    Authentic, Claim, Evidence, MessageError, MessageVerifier, Seal, Signed, Ui, decode_certificate,
    encode_certificate, epochs_in,
};
pub use verified::Verified;

#[cfg(test)]
mod tests;
