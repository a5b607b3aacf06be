//! A2M-PBFT-E (Chun, Maniatis, Shenker, Kubiatowicz: Attested Append-Only Memory, SOSP 2007, §4.2): PBFT with n = 3f+1
//! replicas, each of which attests the history that it executed. With at most f faulty replicas it is live and safe as PBFT;
//! with up to 2f clients still see one history, though nothing may make progress.
//!
//! The specification is `docs/protocols/a2m-pbft-e.md`. Ordering is `troth-pbft`, unchanged; this crate stands around it:
//! [`mod@replies`] what is appended and what a client is shown (§4.2.1), [`mod@checkpoint`] checkpoints and state transfer
//! (§4.2.2), [`mod@restart`] the start from the log, [`mod@ordering`] what passes between PBFT and the rest,
//! [`mod@renewal`] components that take the place of others, [`mod@literal`] what the simulator puts back of the paper.
#![forbid(unsafe_code)]

mod again;
mod agreement;
mod checkpoint;
mod literal;
mod ordering;
mod renewal;
mod replies;
mod restart;
mod state;

pub use literal::Flaw;
pub use renewal::is_replaced;
pub use state::A2mPbftE;
pub use troth_blocks::DIVERGED;
pub use troth_blocks::MOST_VALUES;
pub use troth_pbft::{Body, Message, Record, Timer};

#[cfg(test)]
mod tests;
