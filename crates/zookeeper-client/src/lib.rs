//! A client of ZooKeeper's protocol: one session over one connection, many requests under way at once, signs of life by
//! itself. It trusts the server with nothing but its answers: what comes is bounded and parsed once.
//!
//! [`wire`] has the records and is pure; [`Connection`] puts a socket, with TLS or without, around it.
#![forbid(unsafe_code)]

mod connection;
mod tls;
pub mod wire;

pub use connection::{Connection, Event, Lost, Pending, Refusal, Reply};
pub use tls::{Identity, Tls};

#[cfg(test)]
mod tests;
