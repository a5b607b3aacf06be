//! The targets. What each of them covers is in `targets.toml`.

mod a2m_pbft_ea;
mod client;
mod config;
mod disk_log;
mod disk_snapshots;
mod execute;
mod gateway_shell;
mod link;
mod log_recovery;
pub(crate) mod machines;
mod minbft;
mod node_files;
mod pbft;
mod state_transfer;
mod trusted_log_store;
mod trusted_logs;
mod trusted_server;
mod trusted_store;
mod trusted_wire;
mod wire_a2m_pbft_ea;
mod wire_minbft;
mod wire_pbft;
mod wire_service;
mod wire_types;
mod zookeeper;
mod zookeeper_client;
mod zookeeper_gateway;

use crate::{Decoder, Target};
pub use machines::Machine;

/// All of them.
pub const TARGETS: &[Target] = &[
    wire_types::TARGET,
    wire_minbft::TARGET,
    wire_pbft::TARGET,
    wire_a2m_pbft_ea::TARGET,
    wire_service::TARGET,
    zookeeper::WIRE,
    trusted_wire::TARGET,
    trusted_server::TARGET,
    trusted_store::TARGET,
    trusted_log_store::TARGET,
    trusted_logs::TARGET,
    disk_log::TARGET,
    disk_snapshots::TARGET,
    config::TARGET,
    node_files::TARGET,
    link::TARGET,
    client::TARGET,
    execute::TARGET,
    zookeeper::TARGET,
    zookeeper_client::TARGET,
    zookeeper_gateway::TARGET,
    gateway_shell::TARGET,
    state_transfer::TARGET,
    minbft::MACHINE.drives,
    pbft::PBFT.drives,
    pbft::A2M_PBFT_E.drives,
    a2m_pbft_ea::MACHINE.drives,
    minbft::MACHINE.recovers,
    pbft::PBFT.recovers,
    pbft::A2M_PBFT_E.recovers,
    a2m_pbft_ea::MACHINE.recovers,
];

/// The agreement machines, each with its two targets.
pub const MACHINES: &[Machine] = &[minbft::MACHINE, pbft::PBFT, pbft::A2M_PBFT_E, a2m_pbft_ea::MACHINE];

/// The targets whose inputs are for one of several decoders of the canonical codec.
pub(crate) const GROUPS: &[(&str, &[Decoder])] = &[
    (wire_types::TARGET.name, wire_types::GROUP),
    (wire_minbft::TARGET.name, wire_minbft::GROUP),
    (wire_pbft::TARGET.name, wire_pbft::GROUP),
    (wire_a2m_pbft_ea::TARGET.name, wire_a2m_pbft_ea::GROUP),
    (wire_service::TARGET.name, wire_service::GROUP),
    (zookeeper::WIRE.name, zookeeper::GROUP),
];
