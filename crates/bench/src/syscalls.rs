//! System calls of any kind and instructions, counted by `perf` where it is installed and may, and where the machine
//! counts. Nothing else counts system calls: what the kernel tells of a process in `/proc` leaves out the calls on sockets.
//!
//! To count slows down what is counted, so it is done after what is measured, for a moment in which the load goes on.

use crate::Failure;
use crate::load::Controls;
use crate::marks::family;
use crate::processes::Server;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// For how long they are counted.
pub(crate) const SECONDS: Duration = Duration::from_millis(500);

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// System calls.
    Calls,
    /// Instructions, in the kernel too.
    Instructions,
}

impl Event {
    /// As `perf` names it.
    fn name(self) -> &'static str {
        match self {
            Self::Calls => "raw_syscalls:sys_enter",
            Self::Instructions => "instructions",
        }
    }
}

/// Whether they can be counted here.
pub(crate) fn available(event: Event) -> bool {
    static AVAILABLE: [OnceLock<bool>; 2] = [const { OnceLock::new() }; 2];
    *AVAILABLE[event as usize].get_or_init(|| perf(event, &[], "0.01").is_some())
}

/// Per operation of all servers together and their trusted processes, while the load goes on; none where they cannot be
/// counted.
pub(crate) async fn per_operation(
    event: Event,
    servers: &[Server],
    controls: &Controls,
) -> Result<Option<f64>, Failure> {
    if !available(event) {
        return Ok(None);
    }
    let mut pids: Vec<String> = Vec::new();
    for server in servers {
        pids.extend(family(server.pid())?.iter().map(u32::to_string));
    }
    let (began, done) = (Instant::now(), controls.progress.get().done);
    let of = ["--pid".to_owned(), pids.join(",")];
    let seconds = SECONDS.as_secs_f64();
    let counted = tokio::task::spawn_blocking(move || perf(event, &of, &seconds.to_string())).await?;
    // perf takes a while to begin and to end, so rates are compared and not counts.
    let rate = (controls.progress.get().done - done) as f64 / began.elapsed().as_secs_f64();
    Ok(counted.map(|counted| counted as f64 / seconds / rate))
}

/// The count of these for so many seconds, or of the program that waits for so long.
fn perf(event: Event, of: &[String], seconds: &str) -> Option<u64> {
    let output = Command::new("perf")
        .args(["stat", "--field-separator", ",", "--event", event.name()])
        .args(of)
        .args(["--", "sleep", seconds])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    counted(event, &String::from_utf8_lossy(&output.stderr))
}

/// The count in what `perf stat` prints, field by field. What the machine does not count has words in its place.
pub(crate) fn counted(event: Event, said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains(event.name()))?;
    line.split(',').next()?.parse().ok()
}
