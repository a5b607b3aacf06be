//! The simulated world: network, storage, adversaries, checkers.
//!
//! | module | subject |
//! | --- | --- |
//! | [`options`] | what a seed's world is like: the swarm |
//! | [`world`] | hosts, clients and network on one heap of events |
//! | [`storage`], [`component`], [`logs`], [`printed`] | disks that lose what was not synced; trusted components |
//! | [`adversary`] | twins, proxies, amnesia, and the machinery for written strategies |
//! | [`checks`] | what must hold, one file and one property each |
//! | [`service`], [`zookeeper`] | what the group replicates; the coordination service's sequential model and its clients |
//! | [`protocol`] | what a protocol brings; [`minbft`], [`pbft`], [`a2m_pbft_e`], [`a2m_pbft_ea`] |
//! | [`cli`], [`report`], [`shrink`] | many seeds, their figures, and smaller failures |
#![forbid(unsafe_code)]

pub mod a2m_pbft_e;
pub mod a2m_pbft_ea;
pub mod adversary;
pub mod checks;
pub mod cli;
pub mod component;
mod faulty;
pub mod logs;
pub mod minbft;
pub mod options;
pub mod pbft;
pub mod printed;
pub mod protocol;
pub mod report;
mod rng;
pub mod service;
pub mod shrink;
pub mod storage;
pub mod watched;
pub mod world;
pub mod zookeeper;

pub use options::{FaultClass, Faulty, FaultyKind, Options, Overrides, Shape};
pub use protocol::{Body, Message, OwnHistory, Protocol};
pub use rng::Rng;
pub use service::ServiceKind;
pub use world::{Outcome, World};

#[cfg(test)]
mod tests;
