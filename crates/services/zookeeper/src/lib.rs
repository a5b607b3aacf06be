//! A coordination service with the data model of ZooKeeper 3.9: znodes, versions, transactions, access control lists,
//! sessions, watches and quotas, as a deterministic state machine.
//!
//! A *gateway* is the server that ZooKeeper's clients connect to, and a client of the replicas. It passes on what they say as
//! [`Operation::Request`]s, in ZooKeeper's own records, and keeps nothing that its end could lose: sessions, ephemeral nodes
//! and watches are state of the service.
#![forbid(unsafe_code)]

pub mod acl;
mod application;
mod changes;
mod code;
mod counters;
pub mod events;
#[cfg(feature = "fuzz")]
pub mod fuzzing;
mod goes;
pub mod jute;
mod keys;
mod message;
mod node;
pub mod opcode;
mod path;
mod proof;
mod quota;
mod reads;
mod request;
mod service;
mod sessions;
mod store;
mod tree;
mod watches;

pub use changes::{Change, changes, may_change, path_of, without_secret};
pub use code::Code;
pub use message::{
    Answer, Asked, Attachment, MAX_BODY, MAX_READS, MAX_SHOWN, MAX_TOUCHED, Notice, Operation, Replied, Said,
    Tally,
};
pub use path::{MAX_PATH, MAX_STEPS};
pub use proof::{Carrier, Password, is_proved, key_of, prove};
pub use request::{looks_at_one, may_be_long, only_reads};
pub use service::ZooKeeper;
pub use sessions::{MAX_GOES, MAX_WHO, MAX_WHO_BYTES};
pub use tree::MAX_LOOKED;
pub use watches::{Kind, MAX_WATCHED_BYTES, MAX_WATCHES};

#[cfg(test)]
mod tests;
