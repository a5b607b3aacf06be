//! PBFT (Castro, Liskov: Practical Byzantine Fault Tolerance, OSDI '99; its view change without signatures on every
//! message as in ACM TOCS 20(4), 2002): state machine replication with n = 3f+1 replicas and nothing trusted.
//!
//! The specification, rule by rule, with every deviation from the paper and its reason, is
//! `docs/protocols/pbft.md`; the labels there stand at the code as `rule!` marks. The files follow the paper:
//! [`mod@normal`] the three phases (§4.2), [`mod@phases`] whether they are signed (§4, §5.2), [`mod@checkpoint`] garbage collection (§4.3), [`mod@view_change`] and
//! [`mod@new_view`] view changes (§4.4), [`mod@tentative`] tentative execution and reads (§5.1), [`mod@choose`] what a new view starts from, [`mod@retransmission`] status
//! messages (TOCS §5.2), [`mod@recovery`] the start from the log.
#![forbid(unsafe_code)]

mod agreement;
mod authenticators;
mod checkpoint;
pub mod choose;
mod config;
mod distrust;
mod left_out;
mod message;
mod new_view;
mod normal;
mod pace;
mod phases;
mod recovery;
mod retransmission;
mod signed;
mod state;
mod suspicion;
mod tentative;
mod view_change;
mod wire;

pub use checkpoint::proven;
pub use config::{Config, Flaw};
pub use message::{
    AttestedCheckpoint, Body, Checkpoint, Entry, Message, NewView, Phase, PrePrepare, Record, Signed,
    StableProof, Status, ViewChange, Vote,
};
pub use normal::MOST_PRE_PREPARED;
pub use state::{Pbft, Timer};
pub use troth_auth::HistoryEntry;

#[cfg(test)]
mod tests;
