//! A snapshot in the text format of OpenMetrics, which Prometheus reads.

use crate::snapshot::Snapshot;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// The media type of [`text`].
pub(crate) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The snapshot as metrics, made anew for each scrape: the loop itself only adds to integers.
pub(crate) fn text(snapshot: &Snapshot) -> String {
    let mut registry = Registry::with_prefix("troth");
    let flag = |set: bool| i64::from(set);
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let gauges = [
        ("view", "The view", number(snapshot.view)),
        ("primary", "The view's primary", i64::from(snapshot.primary)),
        ("active", "Whether the replica works in the view", flag(snapshot.active)),
        ("votes", "Whether the replica's votes count", flag(snapshot.votes)),
        ("epoch", "The epoch of the trusted component", number(snapshot.epoch)),
        ("configuration", "Changes that led to the group's configuration", number(snapshot.configuration)),
        ("executed_batch", "The last executed batch", number(snapshot.executed)),
        ("stable_checkpoint", "The last stable checkpoint", number(snapshot.stable)),
        (
            "diverged",
            "Whether its own state differs from the stable one and is being repaired",
            flag(snapshot.diverged.is_some()),
        ),
        ("disk_full", "Whether it waits for space on its disk", flag(snapshot.disk_full)),
        ("pending_requests", "Requests that wait for their execution", number(snapshot.pending)),
        ("accused_replicas", "Replicas that provably broke a rule", number(snapshot.accused.len() as u64)),
        ("connected_peers", "Replicas connected", number(snapshot.peers.len() as u64)),
        (
            "oldest_version_spoken",
            "The oldest version of the messages spoken with a connected replica; 0 without one",
            i64::from(snapshot.versions.values().min().copied().unwrap_or(0)),
        ),
        ("connected_clients", "Clients connected", number(snapshot.clients)),
        (
            "memory_bound_bytes",
            "Bytes that the process may have resident beside the service's state",
            number(snapshot.memory_bound),
        ),
        (
            "longest_turn_microseconds",
            "The longest turn of the loop in the last ten seconds or more",
            number(snapshot.longest_turn_us),
        ),
        (
            "primary_wait_microseconds",
            "How long requests lately waited for the primary to propose them; 0 where the replica cannot tell",
            number(snapshot.primary_wait_us.unwrap_or(0)),
        ),
        (
            "agreement_microseconds",
            "How long the others lately took to agree on what was proposed; 0 where the replica cannot tell",
            number(snapshot.agreement_us.unwrap_or(0)),
        ),
        ("uptime_milliseconds", "Time since the process started", number(snapshot.uptime_ms)),
    ];
    for (name, help, value) in gauges {
        registry.register(name, help, ConstGauge::new(value));
    }
    registry.register(
        "suspicions",
        "How often a primary was suspected",
        ConstCounter::new(snapshot.suspicions),
    );
    for (name, help, value) in snapshot.counters.named() {
        registry.register(name, help, ConstCounter::new(value));
    }
    let mut text = String::new();
    encode(&mut text, &registry).expect("writing to a string does not fail");
    text
}
