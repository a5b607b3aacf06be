//! The contract between a protocol and its host (docs/adr/0001).
//!
//! [`Agreement`] orders frames, [`Execution`] runs them, [`Replica`] joins the two into a [`Machine`],
//! and [`Host`] drives any machine: it puts durability, certification and sending into the only order
//! that is safe. All of it is pure; sockets, clocks and disks belong to whoever carries out a
//! [`Command`].
#![forbid(unsafe_code)]

mod agreement;
mod answers;
mod cx;
mod delivery;
mod effect;
mod execution;
mod held;
mod host;
mod log;
mod machine;
mod meter;
mod note;
mod proof;
mod proven_reads;
mod reads;
mod repeated_events;
mod repetitions;
mod replica;
mod room;
mod rule;
mod transfer;
mod unasked;

pub use agreement::{Agreement, Reached, Start, Status, Voucher};
pub use cx::Cx;
pub use effect::{Effect, Ticket, To};
pub use execution::{Done, Execution, Installing, Lookup, Ordered, Outcome, VerifiedFrame};
pub use held::{HELD_NAMES, HELD_REPLIES};
pub use host::{Command, Halt, Host, Resume};
pub use log::{LogRecord, RecoveryError, Unsettled, settle_slots};
pub use machine::{Env, Input, Machine, MachineStart, Output, PeerMessage, Repeated, Request};
pub use meter::Meter;
pub use note::Note;
pub use proof::{BatchRun, Proven, ReplyProof};
pub use replica::{Replica, ReplicaTimer};
pub use room::HELD_READS;
pub use rule::marks;
pub use unasked::UNASKED;
