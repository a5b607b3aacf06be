//! Clocks: whether this machine's is kept right, and how far the replicas' are from it.

use super::Finding;
use crate::ask;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use troth_node::Snapshot;
use troth_node::config::Cluster;

/// What systemd's own time service leaves when it has the time.
const SYNCHRONISED: &str = "/run/systemd/timesync/synchronized";
/// How long `timedatectl` may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Whether something keeps this machine's clock.
pub(super) fn own() -> Vec<Finding> {
    let said = if std::path::Path::new(SYNCHRONISED).exists() { Some(true) } else { ask_timedatectl() };
    vec![judge_own(said)]
}

pub(crate) fn judge_own(synchronised: Option<bool>) -> Finding {
    const SUBJECT: &str = "clock";
    match synchronised {
        Some(true) => Finding::ok(SUBJECT, "kept by a time service"),
        Some(false) => Finding::warn(
            SUBJECT,
            "no time service keeps it: a clock that is off costs this replica its votes in time, and as primary the group's patience",
            "run chrony or systemd-timesyncd (timedatectl set-ntp true)",
        ),
        None => Finding::warn(
            SUBJECT,
            "whether a time service keeps it cannot be told here",
            "make sure that chrony or systemd-timesyncd runs, on the host where this is a container",
        ),
    }
}

fn ask_timedatectl() -> Option<bool> {
    let mut child = Command::new("timedatectl")
        .args(["show", "--property=NTPSynchronized", "--value"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let give_up = Instant::now() + PATIENCE;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > give_up {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // It says one word, which fits the pipe.
    let output = child.wait_with_output().ok()?;
    match String::from_utf8_lossy(&output.stdout).trim() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// A replica's clock beside ours; microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beside {
    /// How far it is ahead of ours.
    pub(crate) ahead: i64,
    /// By how much that may be wrong: half of the time that asking took.
    pub(crate) give_or_take: u64,
}

/// Asks a replica where it is and what time it is there.
pub(super) fn ask_one(address: &str) -> (Result<Snapshot, String>, Option<Beside>) {
    let before = wall();
    let answer = ask::one(address);
    let after = wall();
    let beside = answer.as_ref().ok().filter(|snapshot| snapshot.wall_us > 0).map(|snapshot| {
        let half = after.saturating_sub(before) / 2;
        let middle = before + half;
        let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        Beside { ahead: signed(snapshot.wall_us).saturating_sub(signed(middle)), give_or_take: half }
    });
    (answer, beside)
}

fn wall() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// What the clocks of the replicas that answered mean.
pub(crate) fn judge(cluster: &Cluster, clocks: &[(u16, Beside)]) -> Vec<Finding> {
    const SUBJECT: &str = "clocks";
    if clocks.is_empty() {
        return Vec::new();
    }
    let bound = cluster.timing.clock_bound_ms.saturating_mul(1000);
    let mut findings = Vec::new();
    for (replica, clock) in clocks {
        // What is certain, whatever the network did.
        let off = clock.ahead.unsigned_abs().saturating_sub(clock.give_or_take);
        let side = if clock.ahead < 0 { "behind" } else { "ahead of" };
        let said = format!(
            "replica {replica}'s is {} ms {side} this machine's, give or take {} ms",
            clock.ahead.unsigned_abs() / 1000,
            clock.give_or_take / 1000
        );
        let mend = "see which of the two is wrong and have a time service keep it";
        if off > bound {
            let said = format!("{said}, and replicas bear {} ms (clock_bound_ms)", bound / 1000);
            findings.push(Finding::fail(SUBJECT, said, mend));
        } else if off > bound / 4 {
            findings.push(Finding::warn(SUBJECT, said, mend));
        }
    }
    if findings.is_empty() {
        let furthest = clocks.iter().map(|(_, clock)| clock.ahead.unsigned_abs()).max().unwrap_or(0);
        let whose = if clocks.len() == 1 {
            "1 replica's is".to_owned()
        } else {
            format!("{} replicas' are", clocks.len())
        };
        let said = format!("{whose} within {} ms of this machine's", furthest / 1000 + 1);
        findings.push(Finding::ok(SUBJECT, said));
    }
    findings
}
