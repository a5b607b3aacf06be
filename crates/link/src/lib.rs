//! Authenticated, encrypted connections over TCP.
//!
//! **Handshake.** `Noise_IK_25519_ChaChaPoly_BLAKE2s`, WireGuard's choice of primitives, from the
//! `snow` library. IK because the initiator knows from its configuration whom it calls: one round
//! trip, and the initiator's identity is hidden from bystanders. The prologue binds the wire
//! version and the group, so nobody of another group gets through. In the first message the
//! initiator says who it is; the responder looks up the key which that peer must have. IK alone
//! lets a replayed first message reach the end of the responder's handshake, so the responder
//! waits for the initiator's first record, which only the holder of the fresh keys can make,
//! before it believes the connection (Noise specification, §7.7 and §14).
//!
//! **Bytes.** `version (1) ‖ length (2, little-endian) ‖ Noise message` for each of the two
//! handshake messages, then records: `length (2) ‖ ciphertext` of at most 65535 bytes with a
//! counter as nonce in each direction. The plaintexts of all records form one stream of messages,
//! each behind a `u32` length: small messages share a record, large ones span several. A record that
//! is not full ends where a message ends, and none is empty (but for the initiator's first, which
//! belongs to the handshake); others are refused. So every record that is opened is full or brings a
//! message, and what messages cost is charged to who sent them.
//!
//! **Speed.** [`LinkWriter::queue`] collects messages and [`LinkWriter::flush`] hands all of them to
//! the kernel in one write; [`LinkReader`] takes what the kernel has in one read and yields
//! messages as slices of it. Both directions are bounded.
#![forbid(unsafe_code)]

mod counters;
mod error;
mod handshake;
mod identity;
mod reader;
mod versions;
mod writer;

pub use counters::Counters;
pub use error::LinkError;
pub use handshake::{Settings, accept, accept_when, connect, initiate};
pub use identity::{FRAME_TAGS, Identity, LinkKey, PeerId, generate_secret};
pub use reader::LinkReader;
pub use versions::Versions;
pub use writer::LinkWriter;

/// The version of the handshake and of the frames around messages. What the messages mean has versions of its
/// own: see [`Versions`].
pub const WIRE_VERSION: u8 = 1;

/// The most ciphertext of one record: a Noise message (Noise specification, §3).
const RECORD: usize = 65_535;
/// The bytes of a record's authentication tag.
const TAG: usize = 16;
/// The bytes of a record's length.
const RECORD_HEADER: usize = 2;
/// The bytes of a message's length.
const MESSAGE_HEADER: usize = 4;

#[cfg(test)]
mod tests;
