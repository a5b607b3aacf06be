//! How long a write and its fdatasync take with and without room made beforehand:
//! `cargo run --release -p troth-disk --example room -- [directory] [rounds]`.
//!
//! First on plain files, then the log itself. The ways take turns, sync by sync, so that they meet the same
//! disk. On a busy machine run it with real-time priority (`chrt -f 10`): else it shows the scheduler's tick.

#![allow(clippy::disallowed_methods, reason = "this program measures time")]

use rustix::fs::{FallocateFlags, fallocate};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};
use troth_disk::{Identity, Log, LogOptions, RealDisk};

const STEP: u64 = 1 << 22;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Every write lengthens the file.
    Plain,
    /// Blocks set aside, not written.
    Fallocate,
    /// Zeros written and synced beforehand.
    Zeros,
}

struct Lane {
    way: Way,
    file: File,
    end: u64,
    room: u64,
    syncs: Vec<Duration>,
    steps: Vec<Duration>,
}

impl Lane {
    fn once(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if self.way != Way::Plain && self.end + bytes.len() as u64 > self.room {
            let start = Instant::now();
            match self.way {
                Way::Fallocate => fallocate(&self.file, FallocateFlags::empty(), self.room, STEP)?,
                _ => self.file.write_all_at(&vec![0; STEP as usize], self.room)?,
            }
            self.file.sync_data()?;
            self.room += STEP;
            self.steps.push(start.elapsed());
        }
        let start = Instant::now();
        self.file.write_all_at(bytes, self.end)?;
        self.file.sync_data()?;
        self.syncs.push(start.elapsed());
        self.end += bytes.len() as u64;
        Ok(())
    }
}

fn quantile(times: &mut [Duration], part: f64) -> u128 {
    times.sort();
    times.get((times.len() as f64 * part) as usize).map_or(0, Duration::as_micros)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().unwrap_or_else(|| ".".to_string());
    let rounds = arguments.next().and_then(|rounds| rounds.parse().ok()).unwrap_or(1_000);
    println!(
        "{:>6} {:>10} {:>8} {:>8} {:>8} {:>8} {:>8}  µs",
        "bytes", "way", "p10", "p50", "p90", "mean", "step p50"
    );
    for size in [300, 4_000, 30_000, 250_000] {
        let mut lanes = Vec::new();
        for way in [Way::Plain, Way::Fallocate, Way::Zeros] {
            let path = Path::new(&directory).join(format!("room-{way:?}"));
            let file = OpenOptions::new().create(true).truncate(true).read(true).write(true).open(&path)?;
            std::fs::remove_file(path)?;
            lanes.push(Lane { way, file, end: 0, room: 0, syncs: Vec::new(), steps: Vec::new() });
        }
        let bytes = vec![0xa5; size];
        for _ in 0..rounds {
            lanes.iter_mut().try_for_each(|lane| lane.once(&bytes))?;
        }
        for lane in &mut lanes {
            let mean = lane.syncs.iter().sum::<Duration>().as_micros() / lane.syncs.len() as u128;
            println!(
                "{size:>6} {:>10} {:>8} {:>8} {:>8} {mean:>8} {:>8}",
                format!("{:?}", lane.way),
                quantile(&mut lane.syncs, 0.1),
                quantile(&mut lane.syncs, 0.5),
                quantile(&mut lane.syncs, 0.9),
                quantile(&mut lane.steps, 0.5),
            );
        }
    }
    logs(Path::new(&directory), rounds)
}

/// The log with and without room. Housekeeping is timed apart, because nobody waits for it but the next group.
fn logs(directory: &Path, rounds: usize) -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "\n{:>6} {:>10} {:>8} {:>8} {:>8} {:>8} {:>8}  µs",
        "bytes", "log", "p10", "p50", "p90", "mean", "keeping"
    );
    for size in [300, 4_000, 30_000, 250_000] {
        let mut lanes = Vec::new();
        for (name, step_bytes) in [("no room", 0), ("room", STEP)] {
            let path = directory.join(format!("room-log-{step_bytes}"));
            std::fs::create_dir_all(&path)?;
            let options = LogOptions { step_bytes, ..LogOptions::new(1) };
            let identity = Identity { group: [0; 32], replica: 0 };
            let (log, _) = Log::open(RealDisk::open(&path)?, identity, options)?;
            lanes.push((name, path, log, Vec::new(), Duration::ZERO));
        }
        let bytes = vec![0xa5; size];
        for _ in 0..rounds {
            for (_, _, log, syncs, keeping) in &mut lanes {
                let start = Instant::now();
                log.append(&bytes)?;
                log.sync()?;
                syncs.push(start.elapsed());
                let start = Instant::now();
                log.housekeep()?;
                *keeping += start.elapsed();
            }
        }
        for (name, path, log, mut syncs, keeping) in lanes {
            drop(log);
            std::fs::remove_dir_all(path)?;
            let mean = syncs.iter().sum::<Duration>().as_micros() / rounds as u128;
            println!(
                "{size:>6} {name:>10} {:>8} {:>8} {:>8} {mean:>8} {:>8}",
                quantile(&mut syncs, 0.1),
                quantile(&mut syncs, 0.5),
                quantile(&mut syncs, 0.9),
                keeping.as_micros() / rounds as u128,
            );
        }
    }
    Ok(())
}
