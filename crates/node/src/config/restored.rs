//! Makes the cluster that a backup goes on in: new keys, and for every replica the content as its first state.

use super::make::{Extra, make_with};
use super::{Cluster, Layout, MakeError, Plan, Timing, hex};
use core::fmt::Write as _;
use troth_exec::Snapshot;
use troth_types::Limits;

/// As [`make`](super::make), with a first state and with the bounds and settings of the group that the content is of.
///
/// # Errors
/// See [`MakeError`].
pub fn make_restored(
    layout: &Layout,
    plan: &Plan,
    content: &Snapshot,
    of: &Cluster,
) -> Result<(), MakeError> {
    let mut plan = plan.clone();
    plan.timing = differing(&timing_values(&of.timing), &timing_values(&Timing::of(of.service)));
    plan.zookeeper = of.zookeeper.clone();
    let extra = Extra {
        lines: format!("genesis = \"{}\"\n", hex::encode(&content.digest().0)),
        limits: Some(limits(&of.limits)),
        genesis: Some(content),
    };
    make_with(layout, &plan, &extra)
}

/// The lines of the `[limits]` table that say these.
pub(super) fn limits(limits: &Limits) -> String {
    differing(&limit_values(limits), &limit_values(&Limits::DEFAULT))
}

/// A line for each value that is not the default.
fn differing<const N: usize>(values: &[(&str, u64); N], defaults: &[(&str, u64); N]) -> String {
    let mut lines = String::new();
    for ((name, value), (_, default)) in values.iter().zip(defaults) {
        if value != default {
            writeln!(lines, "{name} = {value}").expect("a string takes all");
        }
    }
    lines
}

fn limit_values(limits: &Limits) -> [(&'static str, u64); 7] {
    // Taken apart, so that a new limit is not forgotten here.
    let Limits {
        client_window,
        frame_operations,
        frame_bytes,
        batch_frames,
        result_bytes,
        outbox_events,
        client_bytes,
    } = *limits;
    [
        ("client_window", client_window),
        ("frame_operations", frame_operations as u64),
        ("frame_bytes", frame_bytes as u64),
        ("batch_frames", batch_frames as u64),
        ("result_bytes", result_bytes as u64),
        ("outbox_events", outbox_events as u64),
        ("client_bytes", client_bytes as u64),
    ]
}

fn timing_values(timing: &Timing) -> [(&'static str, u64); 8] {
    let Timing {
        suspect_after_ms,
        view_timeout_ms,
        status_interval_ms,
        clock_bound_ms,
        checkpoint_interval,
        window,
        pipeline,
        primary_slower_by,
    } = *timing;
    [
        ("suspect_after_ms", suspect_after_ms),
        ("view_timeout_ms", view_timeout_ms),
        ("status_interval_ms", status_interval_ms),
        ("clock_bound_ms", clock_bound_ms),
        ("checkpoint_interval", checkpoint_interval),
        ("window", window),
        ("pipeline", pipeline),
        ("primary_slower_by", primary_slower_by),
    ]
}
