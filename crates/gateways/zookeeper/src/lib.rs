//! The gateway of the coordination service: the server that unmodified ZooKeeper clients connect to, and a client of a Troth
//! group. It stands on its clients' own machine and keeps nothing that its end could lose: sessions, ephemeral nodes and
//! watches are state of the group, and a client that loses its gateway finds them again through another one.
//!
//! [`Machine`] decides everything and is pure; [`Gateway`] puts sockets, the clock and a [`troth_client::front::Client`] around
//! it. The rules that it keeps have labels (`ZKG-…`) on `docs/protocols/zkg.md`.
//!
//! ```no_run
//! # async fn run(client: troth_client::front::Client) -> Result<(), troth_zookeeper_gateway::StartError> {
//! use troth_zookeeper_gateway::{Gateway, Settings};
//! let settings = Settings { listen: vec!["127.0.0.1:2181".parse().unwrap()], ..Settings::default() };
//! let mut gateway = Gateway::start(settings, client).await?;
//! println!("serving on {:?}", gateway.addresses());
//! gateway.ended().await; // the client of the group was closed; or:
//! gateway.stop().await;
//! # Ok(()) }
//! ```
#![forbid(unsafe_code)]

/// Marks the place that implements a rule of `docs/protocols/zkg.md`, for `cargo xtask paper`. Tests count who passes.
macro_rules! rule {
    ($label:literal) => {
        #[cfg(test)]
        $crate::tests::marks::pass($label);
    };
}

#[cfg(feature = "fuzz")]
pub mod fuzzing;
mod machine;
mod metrics;
mod settings;
mod shell;

pub use machine::{
    CallId, ConnectionId, FOUR_LETTER_WORDS, Frame, Frames, Machine, Output, Peer, Record, TooLong, is_word,
};
pub use settings::{Consistency, Log, Place, Settings, TlsClients, TlsFiles};
pub use shell::{Gateway, Group, StartError};

#[cfg(test)]
mod tests;
