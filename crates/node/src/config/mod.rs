//! Configuration: a public `cluster.toml`, and a secret file per replica, client
//! and, where it lives in a process of its own, trusted component.
//! docs/reference/configuration.md describes every key.

mod authentication;
mod checks;
mod cluster;
mod durability;
mod error;
pub mod hex;
mod home;
mod known;
mod layout;
mod make;
mod names;
mod parameters;
mod protocol;
mod raw;
mod renew;
mod restored;
mod secret;
mod zookeeper;

pub use authentication::Auth;
pub use cluster::{ClientEntry, Cluster, ReplicaEntry, Service, Timing, TrustedKind};
pub use durability::Durability;
pub use error::ConfigError;
pub use home::TrustedHome;
pub use known::Known;
pub use layout::Layout;
pub use make::{MakeError, Plan, free_ports, make};
pub use names::UnknownName;
pub use protocol::Protocol;
pub use renew::ReplicaKeys;
pub use restored::make_restored;
pub use secret::{ClientSecret, ReplicaSecret, TrustedSecret, seen_by_others};
pub use troth_zookeeper::ZooKeeper;
