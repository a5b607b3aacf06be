//! Clients. [`ClientCore`] is the client as a pure machine: it signs frames, counts replies of
//! distinct replicas, retransmits, orders events before the replies that reveal them, and knows
//! no clock and no socket. The simulator and the async front run the same one.
#![forbid(unsafe_code)]

mod alone;
mod asked;
mod ballot;
mod budget;
mod config;
mod core;
mod error;
mod flight;
#[cfg(feature = "front")]
pub mod front;
mod inbox;
mod links;
mod nonces;
mod output;
mod pace;
mod proof;
mod queue;
mod read;
mod receive;
mod standing;
mod timers;

pub use config::{Acceptance, Bounds, Config, Proven, Timing, believed};
pub use core::ClientCore;
pub use error::{ClientError, SubmitError};
pub use output::{Output, Ticket};
pub use standing::{Course, Standing, Way};

#[cfg(test)]
mod tests;
