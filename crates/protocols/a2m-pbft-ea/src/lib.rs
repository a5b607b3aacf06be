//! A2M-PBFT-EA (Chun, Maniatis, Shenker, Kubiatowicz: Attested Append-Only Memory, SOSP 2007, §4.3 and appendices A and
//! B): PBFT whose every message is attested by an append-only log, so that n = 2f+1 replicas are enough.
//!
//! The specification, rule by rule, with every deviation from the paper and its reason, is
//! `docs/protocols/a2m-pbft-ea.md`; the labels there stand at the code as `rule!` marks. The files follow the paper:
//! [`place`] the logs and their slots (§4.3.1), [`mod@normal`] the three phases (§4.3.1), [`mod@checkpoint`] garbage
//! collection, [`mod@suspicion`], [`mod@view_change`] and [`mod@new_view`] view changes (appendix A), [`mod@evidence`]
//! what a VIEWCHANGE proves, [`mod@choose`] what a new view starts from, [`mod@pace`] slow
//! and unfair primaries (ADR 3), [`mod@retransmission`] status messages,
//! [`mod@replies`] the history and what clients are shown of it
//! (§4.2.1), [`mod@recovery`] the start from the log.
#![forbid(unsafe_code)]

mod again;
mod agreement;
pub mod attested;
mod checkpoint;
pub mod choose;
mod config;
pub mod evidence;
mod known_views;
mod message;
mod new_view;
mod normal;
mod pace;
pub mod place;
mod recovery;
mod replies;
mod retransmission;
mod state;
mod suspicion;
mod useful;
mod view_change;
mod wire;

pub use checkpoint::proven;
pub use config::{Config, Flaw};
pub use message::{
    Accept, Attested, Body, Checkpoint, Committed, Message, NewView, PrePrepare, Record, StableProof, Status,
    Target, ViewChange, Vote, WantViewChange, Wanted,
};
pub use state::{A2mPbftEa, Timer};
pub use troth_blocks::MOST_VALUES;

#[cfg(test)]
mod tests;
