//! Disks: what kind, how much room, and how long a sync takes.

use super::Finding;
use rustix::fs::{statfs, statvfs};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use troth_node::config::{Cluster, Durability, Layout};
use troth_types::ReplicaId;

/// Syncs that are measured.
const SYNCS: usize = 40;
/// Bytes of each.
const BLOCK: usize = 4096;
/// A sync that takes longer makes every request slow.
const SLOW: Duration = Duration::from_millis(20);
/// No disk writes anything in less.
const TOO_FAST: Duration = Duration::from_micros(15);
/// Below this a replica soon waits for space.
const LITTLE: u64 = 1 << 30;
/// Below this it cannot make its first files.
const NONE: u64 = 64 << 20;

pub(super) fn look(layout: &Layout, cluster: &Cluster, here: &[ReplicaId]) -> Vec<Finding> {
    if cluster.durability == Durability::Memory && !cluster.protocol.has_components() {
        return vec![Finding::warn(
            "disk",
            "nothing is ever synced (durability \"memory\"): once a replica's machine has started anew it must not vote again",
            "for anything but measurements, a cluster with durability \"always\"",
        )];
    }
    if cluster.durability == Durability::Memory {
        return vec![Finding::warn(
            "disk",
            format!(
                "nothing is ever synced (durability \"memory\"): a replica whose trusted component has ended comes back {}, \
                 and where more than f have ended so, the group is lost with what it held",
                if cluster.protocol.readmits() {
                    "only by `troth admin readmit`"
                } else {
                    "as its protocol lets it, or not at all"
                },
            ),
            "for anything but measurements, a cluster with durability \"always\"",
        )];
    }
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    for replica in here {
        let kept = layout.component(*replica, cluster.trusted_home);
        for place in std::iter::once(layout.replica(*replica)).chain(kept) {
            // Each file system once.
            let Ok(device) = std::fs::metadata(&place).map(|data| data.dev()) else { continue };
            if seen.insert(device) {
                findings.extend(look_at(&place));
            }
        }
    }
    findings
}

fn look_at(place: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    match statfs(place) {
        Ok(found) => findings.push(kind(place, found.f_type as u64)),
        Err(why) => findings.push(unknown(place, &why.into())),
    }
    match statvfs(place) {
        Ok(found) => findings.push(room(place, found.f_bavail.saturating_mul(found.f_frsize))),
        Err(why) => findings.push(unknown(place, &why.into())),
    }
    match measure(place) {
        Ok(times) => findings.push(speed(place, &times)),
        Err(why) if why.kind() == io::ErrorKind::PermissionDenied => findings.push(Finding::warn(
            "fdatasync",
            format!("not measured: this user may not write to {}", place.display()),
            "run `troth doctor` as the replica's user or as root",
        )),
        Err(why) => findings.push(Finding::fail(
            "fdatasync",
            format!("cannot write to {}: {why}", place.display()),
            "look at the disk and the system's log",
        )),
    }
    findings
}

fn unknown(place: &Path, why: &io::Error) -> Finding {
    Finding::warn(
        "disk",
        format!("cannot look at the file system of {}: {why}", place.display()),
        "look at it",
    )
}

/// What a kind of file system, by its number in the kernel, keeps of its promises.
pub(crate) fn kind(place: &Path, number: u64) -> Finding {
    const SUBJECT: &str = "file system";
    let place = place.display();
    match number {
        0xef53 => Finding::ok(SUBJECT, format!("{place} is on ext4")),
        0x5846_5342 => Finding::ok(SUBJECT, format!("{place} is on xfs")),
        0x9123_683e => Finding::ok(SUBJECT, format!("{place} is on btrfs")),
        0xf2f5_2010 => Finding::ok(SUBJECT, format!("{place} is on f2fs")),
        0x2fc1_2fc1 => Finding::ok(SUBJECT, format!("{place} is on zfs")),
        0x0102_1994 | 0x8584_58f6 => Finding::fail(
            SUBJECT,
            format!(
                "{place} is in memory (tmpfs): it is gone with the machine, and the replica must not vote after that"
            ),
            "put the directory on a disk",
        ),
        0x794c_7630 => Finding::warn(
            SUBJECT,
            format!(
                "{place} is on an overlay, most likely a container's own layer: it is gone with the container"
            ),
            "mount a volume there that outlives the container",
        ),
        0x6969 | 0xff53_4d42 | 0xfe53_4d42 | 0x517b | 0x0102_1997 | 0x6573_5546 => Finding::warn(
            SUBJECT,
            format!(
                "{place} is on a file system of another machine or program (NFS, SMB, 9p, FUSE): whether it keeps what it acknowledged is that one's word"
            ),
            "a disk of this machine",
        ),
        other => Finding::warn(
            SUBJECT,
            format!("{place} is on a file system that is not known here ({other:#x})"),
            "ext4 or xfs, or make sure that it keeps what an acknowledged fdatasync wrote",
        ),
    }
}

pub(crate) fn room(place: &Path, bytes: u64) -> Finding {
    const SUBJECT: &str = "space";
    let said = format!("{} MiB free for {}", bytes >> 20, place.display());
    let mend = "make space: a replica without it waits, and the group goes on without it";
    match bytes {
        0..NONE => Finding::fail(SUBJECT, said, mend),
        NONE..LITTLE => Finding::warn(SUBJECT, said, mend),
        _ => Finding::ok(SUBJECT, said),
    }
}

/// Times of syncs as a replica's log does them: over blocks that were written before.
fn measure(place: &Path) -> io::Result<Vec<Duration>> {
    let probe = Probe(place.join(format!("doctor-{}.probe", std::process::id())));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&probe.0)?;
    file.write_all_at(&vec![0; BLOCK * SYNCS], 0)?;
    file.sync_all()?;
    (0..SYNCS)
        .map(|number| {
            let block = [u8::try_from(number % 251).unwrap_or(0) + 1; BLOCK];
            let began = Instant::now();
            file.write_all_at(&block, (number * BLOCK) as u64)?;
            file.sync_data()?;
            Ok(began.elapsed())
        })
        .collect()
}

/// Removed whatever happens.
struct Probe(PathBuf);

impl Drop for Probe {
    fn drop(&mut self) {
        // Where it was never made there is nothing to remove.
        let _ = std::fs::remove_file(&self.0);
    }
}

pub(crate) fn speed(place: &Path, times: &[Duration]) -> Finding {
    const SUBJECT: &str = "fdatasync";
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let (Some(median), Some(slowest)) = (sorted.get(sorted.len() / 2), sorted.last()) else {
        return Finding::warn(SUBJECT, "not measured", "run it again");
    };
    let millis = |time: &Duration| time.as_secs_f64() * 1000.0;
    let said = format!(
        "{:.2} ms at the median and {:.2} ms at the slowest of {} in {}",
        millis(median),
        millis(slowest),
        times.len(),
        place.display()
    );
    if *median >= SLOW {
        let mend = "a disk with a shorter way to stable storage (NVMe, or a controller with a battery): every request waits for syncs";
        Finding::warn(SUBJECT, said, mend)
    } else if *median < TOO_FAST {
        let said = format!("{said}: no disk is that fast, so something acknowledges what it has not kept");
        Finding::warn(
            SUBJECT,
            said,
            "see that write caches without a battery are off, and that no virtual disk ignores flushes",
        )
    } else {
        Finding::ok(SUBJECT, said)
    }
}
