//! How often things happen for one operation, in all servers together and their trusted processes.

use crate::Failure;
use crate::load::Controls;
use crate::marks::{Mark, family};
use crate::processes::Server;
use std::process::{Command, Stdio};
use std::time::Instant;
use troth_node::Counters;

/// Seconds for which system calls are counted: to count slows every call down.
const SECONDS: f64 = 1.0;

/// System calls by name, as the kernel's trace points have them.
const CALLS: [&str; 7] = ["sendto", "recvfrom", "epoll_wait", "ppoll", "pwrite64", "write", "futex"];

/// Per operation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Events {
    /// Microseconds of processor time.
    pub(crate) processor: f64,
    pub(crate) frames_checked: f64,
    pub(crate) certificates_checked: f64,
    /// Signatures checked in one batch, about.
    pub(crate) checked_together: f64,
    pub(crate) trusted_calls: f64,
    /// Log syncs.
    pub(crate) syncs: f64,
    /// Writes of connections, and reads that brought something.
    pub(crate) writes: f64,
    pub(crate) reads: f64,
    /// Bytes written to connections.
    pub(crate) bytes: f64,
    /// Batches ordered, and what one holds.
    pub(crate) batches: f64,
    pub(crate) batch_frames: f64,
    pub(crate) frame_operations: f64,
    /// Requests for memory.
    pub(crate) allocations: f64,
    /// System calls: all, and those of [`CALLS`].
    pub(crate) calls: f64,
    pub(crate) named: [f64; CALLS.len()],
    /// Times that a process went to sleep by itself.
    pub(crate) sleeps: f64,
}

impl Events {
    /// What happened between two marks. Certificates are signed where components are `apart`, and checked with the frames.
    pub(crate) fn between(before: &Mark, after: &Mark, apart: bool) -> Self {
        let operations = (after.progress.done - before.progress.done) as f64;
        let sum = |count: fn(&Counters) -> u64| {
            let all = |mark: &Mark| mark.snapshots.iter().map(|server| count(&server.counters)).sum::<u64>();
            (all(after) - all(before)) as f64
        };
        let frames = (after.progress.frames - before.progress.frames) as f64;
        let batches = (after.snapshots[0].executed - before.snapshots[0].executed) as f64;
        let certificates = if apart { sum(|counters| counters.messages_verified) } else { 0.0 };
        let checks = sum(|counters| counters.frames_verified) + certificates;
        Self {
            processor: (after.servers_cpu.saturating_sub(before.servers_cpu)) as f64 / operations,
            frames_checked: sum(|counters| counters.frames_verified) / operations,
            certificates_checked: sum(|counters| counters.messages_verified) / operations,
            checked_together: checks / sum(|counters| counters.turns).max(1.0),
            trusted_calls: sum(|counters| counters.attestations) / operations,
            syncs: sum(|counters| counters.syncs) / operations,
            writes: sum(|counters| counters.writes) / operations,
            reads: sum(|counters| counters.reads) / operations,
            bytes: sum(|counters| counters.bytes_out) / operations,
            batches: batches / operations,
            batch_frames: frames / batches,
            frame_operations: operations / frames.max(1.0),
            allocations: (after.allocations.saturating_sub(before.allocations)) as f64 / operations,
            ..Self::default()
        }
    }

    /// Counts system calls and sleeps while the load goes on.
    pub(crate) async fn count(&mut self, servers: &[Server], controls: &Controls) -> Result<(), Failure> {
        let mut pids = Vec::new();
        for server in servers {
            pids.extend(family(server.pid())?);
        }
        let (began, done, slept) = (Instant::now(), controls.progress.get().done, sleeps(&pids)?);
        let of = pids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let said = tokio::task::spawn_blocking(move || perf(&of)).await??;
        let operations = (controls.progress.get().done - done) as f64;
        self.sleeps = (sleeps(&pids)? - slept) as f64 / operations;
        // perf takes a while to begin and to end, so rates are compared and not counts.
        let rate = operations / began.elapsed().as_secs_f64();
        let counted = |event: &str| {
            count_of(&said, event).map(|count| count as f64 / SECONDS / rate).ok_or_else(|| {
                Failure::from(format!("perf does not count {event}; is this root, with tracefs?\n{said}"))
            })
        };
        self.calls = counted("raw_syscalls:sys_enter")?;
        for (place, name) in self.named.iter_mut().zip(CALLS) {
            *place = counted(&format!("syscalls:sys_enter_{name}"))?;
        }
        Ok(())
    }

    /// How often a system call of [`CALLS`] was made.
    pub(crate) fn of(&self, name: &str) -> f64 {
        CALLS.iter().position(|call| *call == name).map_or(0.0, |at| self.named[at])
    }
}

/// What `perf stat` says of these processes.
fn perf(pids: &str) -> Result<String, std::io::Error> {
    let mut command = Command::new("perf");
    command.args(["stat", "--field-separator", ",", "--event", "raw_syscalls:sys_enter"]);
    for call in CALLS {
        command.args(["--event", &format!("syscalls:sys_enter_{call}")]);
    }
    command.args(["--pid", pids, "--", "sleep", &SECONDS.to_string()]).stdin(Stdio::null());
    Ok(String::from_utf8_lossy(&command.output()?.stderr).into_owned())
}

/// The count of an event in what `perf stat` prints, field by field.
pub(crate) fn count_of(said: &str, event: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.split(',').any(|field| field == event))?;
    line.split(',').next()?.parse().ok()
}

/// How often all threads of these processes have gone to sleep by themselves.
fn sleeps(pids: &[u32]) -> Result<u64, Failure> {
    let mut all = 0;
    for pid in pids {
        for thread in std::fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
            // One that has ended meanwhile does not sleep.
            let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            all += line.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or(0);
        }
    }
    Ok(all)
}
