//! Configuration: a public `cluster.toml`, and a secret file per replica and client.
//! docs/reference/configuration.md describes every key.

mod checks;
mod cluster;
mod error;
pub mod hex;
mod layout;
mod make;
mod raw;
mod secret;

pub use cluster::{ClientEntry, Cluster, Durability, ReplicaEntry, Service, Timing, TrustedKind};
pub use error::ConfigError;
pub use layout::Layout;
pub use make::{MakeError, Plan, free_ports, make};
pub use secret::{ClientSecret, ReplicaSecret};
