//! System calls of any kind, counted by `perf` where it is installed and may. Nothing else counts them: what the kernel
//! tells of a process in `/proc` leaves out the calls on sockets.
//!
//! To count slows every call down, so it is done after what is measured, for a moment in which the load goes on.

use crate::Failure;
use crate::load::Controls;
use crate::marks::family;
use crate::processes::Server;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Instant;

/// Seconds for which they are counted.
const SECONDS: f64 = 0.5;

/// Whether they can be counted here.
pub(crate) fn available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| perf(&[], "0.01").is_some())
}

/// Calls per operation of all servers together and their trusted processes, while the load goes on; none where they
/// cannot be counted.
pub(crate) async fn per_operation(servers: &[Server], controls: &Controls) -> Result<Option<f64>, Failure> {
    if !available() {
        return Ok(None);
    }
    let mut pids: Vec<String> = Vec::new();
    for server in servers {
        pids.extend(family(server.pid())?.iter().map(u32::to_string));
    }
    let (began, done) = (Instant::now(), controls.progress.get().done);
    let of = ["--pid".to_owned(), pids.join(",")];
    let calls = tokio::task::spawn_blocking(move || perf(&of, &SECONDS.to_string())).await?;
    // perf takes a while to begin and to end, so rates are compared and not counts.
    let rate = (controls.progress.get().done - done) as f64 / began.elapsed().as_secs_f64();
    Ok(calls.map(|calls| calls as f64 / SECONDS / rate))
}

/// The calls of these for so many seconds, or of the program that waits for so long.
fn perf(of: &[String], seconds: &str) -> Option<u64> {
    let output = Command::new("perf")
        .args(["stat", "--field-separator", ",", "--event", "raw_syscalls:sys_enter"])
        .args(of)
        .args(["--", "sleep", seconds])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    counted(&String::from_utf8_lossy(&output.stderr))
}

/// The count in what `perf stat` prints, field by field.
pub(crate) fn counted(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("raw_syscalls:sys_enter"))?;
    line.split(',').next()?.parse().ok()
}
