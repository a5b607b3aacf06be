//! What a replica says of itself when asked.

use crate::counters::Counters;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// The epoch of its trusted component.
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
