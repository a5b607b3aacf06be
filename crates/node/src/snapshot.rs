//! What a replica says of itself when asked.

use crate::config::{Protocol, hex};
use crate::counters::Counters;
use crate::engine::Engine;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Instant;
use troth_core::{Agreement, Execution};
use troth_types::Group;

/// A replica's state for people and tools; the JSON of `/status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// The replica's number.
    pub replica: u16,
    /// The group's name in hexadecimal digits.
    pub group: String,
    /// The protocol's name.
    pub protocol: String,
    /// The process.
    pub pid: u32,
    /// Milliseconds since the process started.
    pub uptime_ms: u64,
    /// The view.
    pub view: u64,
    /// The view's primary.
    pub primary: u16,
    /// Whether the replica works in the view; otherwise it waits for a new primary.
    pub active: bool,
    /// The last executed batch.
    pub executed: u64,
    /// The last stable checkpoint.
    pub stable: u64,
    /// The stable checkpoint that its own state was found to differ from; until it is repaired, clients have no
    /// answer from it.
    #[serde(default)]
    pub diverged: Option<u64>,
    /// Whether its disk has no space, so that it waits for some.
    #[serde(default)]
    pub disk_full: bool,
    /// Requests that wait for their execution.
    pub pending: u64,
    /// How often it suspected a primary.
    pub suspicions: u64,
    /// Whether its votes count. A replica whose component was replaced must be admitted first, and then
    /// wait until everything that its former component may have promised is behind a stable checkpoint.
    #[serde(default = "yes")]
    pub votes: bool,
    /// What it waits for before it votes.
    #[serde(default)]
    pub waits_for: Option<String>,
    /// The epoch of its trusted component; 0 where it has none.
    #[serde(default)]
    pub epoch: u64,
    /// How many changes led to the configuration that it knows.
    #[serde(default)]
    pub configuration: u64,
    /// Replicas that provably broke a rule.
    pub accused: Vec<u16>,
    /// Clients that signed two frames under one number and are not removed, at most 64.
    #[serde(default)]
    pub accused_clients: Vec<u64>,
    /// Replicas that it is connected to.
    pub peers: Vec<u16>,
    /// The version of the messages that is spoken with each of them, by replica.
    pub versions: BTreeMap<u16, u16>,
    /// Its machine's time of day, in microseconds since the Unix epoch.
    pub wall_us: u64,
    /// Clients that are connected to it.
    pub clients: u64,
    /// Bytes that its process may have resident, beside the service's state; 0 where it does not say.
    pub memory_bound: u64,
    /// Microseconds of the longest turn of its loop in the last ten seconds or more, without what it waited for the
    /// trusted component.
    pub longest_turn_us: u64,
    /// Microseconds that requests lately waited, typically, for the primary to propose them; not from the primary.
    pub primary_wait_us: Option<u64>,
    /// Microseconds that the others lately took to agree on what was proposed.
    pub agreement_us: Option<u64>,
    /// What it counted.
    pub counters: Counters,
}

/// A replica that says nothing of it is of a version in which all vote.
fn yes() -> bool {
    true
}

/// What the replica says of itself, but for its bound on memory.
pub(crate) fn look<A: Agreement, X: Execution>(
    engine: &Engine<A, X>,
    group: &Group,
    epoch: u64,
    started: Instant,
) -> Snapshot {
    let status = engine.host.machine().status();
    let configuration = engine.host.machine().execution().configuration();
    let admitted = configuration.member(engine.me).is_none_or(|me| me.admission().epoch == epoch);
    Snapshot {
        replica: engine.me.0,
        group: hex::encode(&group.id().0),
        protocol: A::NAME.to_owned(),
        pid: std::process::id(),
        uptime_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        view: status.view.0,
        primary: status.primary.0,
        active: status.active,
        executed: status.executed.0,
        stable: status.stable.0,
        diverged: engine.diverged.map(|seq| seq.0),
        disk_full: engine.disk_full,
        pending: status.pending as u64,
        suspicions: status.suspicions,
        votes: status.votes,
        waits_for: match (status.votes, admitted) {
            (true, _) => None,
            (false, false) => Some("admission".to_owned()),
            (false, true) if !admits(A::NAME) => Some("what its history lacks".to_owned()),
            (false, true) => Some("a checkpoint".to_owned()),
        },
        epoch,
        configuration: configuration.number,
        accused: status.accused.iter().map(|replica| replica.0).collect(),
        accused_clients: engine
            .accused_clients
            .iter()
            .filter(|client| !configuration.is_removed(**client))
            .map(|client| client.0)
            .collect(),
        peers: engine.links.replicas_up(),
        versions: engine.links.versions(),
        wall_us: engine.clock.env().wall.0,
        clients: engine.links.clients_up() as u64,
        memory_bound: 0,
        longest_turn_us: engine.longest_turn.micros(),
        primary_wait_us: status.primary_wait,
        agreement_us: status.agreement,
        counters: engine.counters.clone(),
    }
}

/// Whether a replica of this protocol may be waiting for the checkpoint behind its admission.
fn admits(protocol: &str) -> bool {
    let protocol: Option<Protocol> = protocol.parse().ok();
    protocol.is_some_and(|protocol| protocol.readmits() || protocol.renews_components())
}
