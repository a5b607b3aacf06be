//! MinBFT (Veronese, Correia, Bessani, Lung, Verissimo: Efficient Byzantine Fault Tolerance, §4): state
//! machine replication with n = 2f+1 replicas, each with a trusted counter.
//!
//! The specification, rule by rule, with every deviation from the paper and its reason, is
//! `docs/protocols/minbft.md`; the labels there stand at the code as `rule!` marks. The files follow
//! the paper: [`mod@normal`] the normal case, [`mod@checkpoint`] garbage collection, `suspicion` and
//! `view_change` the view change, `choose` what a new view starts from, `evidence` what a VIEW-CHANGE
//! proves; `retransmission` keeps the assumption that messages between correct replicas arrive.
#![forbid(unsafe_code)]

mod agreement;
mod candidates;
mod certified;
mod checkpoint;
pub mod choose;
mod config;
mod epochs;
pub mod evidence;
mod fetching;
mod known_views;
mod message;
mod new_view;
mod normal;
mod pace;
mod peer;
pub mod place;
mod recovery;
mod retransmission;
mod shown_again;
mod state;
mod suspicion;
mod view_change;
mod wire;

pub use config::{Config, Flaw, KEPT_FRAMES};
pub use message::{
    AcceptNewView, Body, Certified, Checkpoint, Commit, LogEntry, Message, NewView, Prepare, Record,
    RequestViewChange, SignedRequest, StableProof, Status, ViewChange,
};
pub use state::{COUNTER, MinBft, Timer};

#[cfg(test)]
mod tests;
