//! A2M, the attested append-only memory (paper 000 §3): logs whose slots are filled once.
//!
//! The component holds [`LOGS`] logs. A log has slots, numbered by 128 bits; a slot is filled with a
//! 32-byte value by an append, which takes the next one, or by an advance, which jumps ahead and gives up
//! every slot between for ever. What a slot holds, that it was skipped, or where the log ends, the component
//! attests, bound to a nonce of whoever asked. So a replica cannot fill a slot twice, show a log without its
//! end, or fill a slot of a view that it has left.
//!
//! | module | subject | paper 000 |
//! | --- | --- | --- |
//! | [`log`] | one log: its marks, its entries, the chain of digests, what a slot holds | §3.1 |
//! | [`operation`] | what can be asked for, and why it is refused | §3.1 |
//! | [`attestation`] | what is attested, the bytes that a proof covers, checking it | §3.1, §3.2 |
//! | [`logs`] | all logs: several operations at once, the stored form | |
//! | [`component`] | check, make durable, apply, attest | §3.1, §6.3 |
//! | [`peers`] | the keys that are shared with single clients | §3.3 |
//!
//! The keys are those of counter certificates; what a proof covers begins with another tag, so neither can
//! stand for the other. The rules and the departures from the paper are in `docs/protocols/a2m.md`.
//!
//! Memory is what the caller gives: a log holds as many entries as its storage, refuses what does not fit
//! and forgets only what it is told to.

pub mod attestation;
pub mod component;
pub mod log;
pub mod logs;
pub mod operation;
pub mod peers;

pub use attestation::{Attestation, Claim, Request};
pub use component::{A2m, Answer, LogStore};
pub use log::{Content, Entry, Log, Storage, chained, jumped};
pub use logs::{Logs, Unreadable};
pub use operation::{LogRefusal, Operation, Unfit};

use crate::value::CounterValue;

/// Marks the place that implements a rule of `docs/protocols/a2m.md`, for `cargo xtask paper`.
macro_rules! rule {
    ($label:literal) => {};
}
use rule;

/// Number of logs of one component, `LogId(0)` to `LogId(15)`.
///
/// A2M-PBFT-EA needs six (paper 000 §4.3.1); the others are spare. A replica whose history was forked does not go on
/// with one of them (paper 000 §4.2.3, "new log ids"), but with another component (`docs/protocols/a2m-pbft-e.md`, N1 to N4).
pub const LOGS: usize = 16;

/// The most operations of one call, so that a home can bound what it takes and what it answers.
pub const MOST_OPERATIONS: usize = 300;

/// The number of one of the [`LOGS`] logs of a component. Which log serves which purpose is configuration,
/// and known to every verifier (paper 000 §3.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LogId(pub u16);

/// The number of a slot. A protocol whose slots are `[view|number]` makes them by [`CounterValue::new`]
/// (paper 000 §4.3.1).
pub type Slot = CounterValue;

/// What whoever asks wants to find in the answer: random where the answer must be fresh.
pub type Nonce = [u8; 32];

/// A client that an attestation by MAC shall convince: its X25519 public key. Whoever holds the private key of these bytes
/// can check it, and make it; so a host gains nothing by naming other bytes than a client's.
pub type Peer = [u8; 32];

/// The nonce of a lookup that need not be fresh, since what it shows never changes: the slot's number
/// (paper 000 §4.2.1, `lookup(q, n, n)`).
pub fn slot_nonce(slot: Slot) -> Nonce {
    let mut nonce = [0; 32];
    nonce[16..].copy_from_slice(&slot.0.to_be_bytes());
    nonce
}
