//! What it costs to make a run's bodies durable before the counter that certifies them, in three ways:
//!
//! * in series: the bodies are written to the log and synced, then the counter is stored (as built);
//! * overlapped: the same on two threads, where the bodies of a run are synced while the counter of the run
//!   before is stored;
//! * beside the record: the component writes the bodies next to its record, one write and one sync.
//!
//! `cargo run --release -p troth-trusted-host --example bodies -- [directory] [runs]`: makes a directory of its
//! own below the given one (default: the present one) and removes it. The ways take turns of a hundred runs.
//! "alone" is one run after the other; "many" has the next run ready at once, so that what can overlap does.
//! docs/adr/0002-one-sync-or-two.md says what follows.

#![expect(clippy::disallowed_methods, reason = "this program measures time, and one way needs a thread")]

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Instant;
use troth_trusted::{CounterValue, Epoch, Identity, State, Store};
use troth_trusted_host::store::fill;
use troth_trusted_host::store::{DiskStore, Policy, RealDirectory, SLOTS};

/// What disks write as one, in bytes.
const BLOCK: u64 = 4096;
/// Runs of one way before the next one's turn.
const TURN: u64 = 100;
/// Lengths of bodies in bytes: one small PREPARE, a few of them, the batch of a busy primary.
const BODIES: [u64; 3] = [400, 4_000, 64_000];

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A file filled with zeros that is written from its beginning again and again, as a log in its segments.
struct Ring {
    file: File,
    length: u64,
    at: u64,
}

impl Ring {
    fn new(path: PathBuf, length: u64) -> Outcome<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        fill(&file, length)?;
        file.sync_all()?;
        Ok(Self { file, length, at: 0 })
    }

    /// Appends so many bytes, on whole blocks where asked, and syncs.
    fn put(&mut self, bytes: u64, align: u64) -> Outcome<()> {
        if self.at + bytes > self.length {
            self.at = 0;
        }
        self.file.write_all_at(&vec![1; bytes as usize], self.at)?;
        self.at += bytes.next_multiple_of(align);
        Ok(self.file.sync_data()?)
    }
}

struct Counter {
    store: DiskStore,
    state: State,
}

impl Counter {
    fn new(directory: &Path) -> Outcome<Self> {
        let identity = Identity { group: [1; 16], replica: 0, epoch: Epoch(1) };
        let opened = DiskStore::open_in(RealDirectory::make(directory)?, identity, Policy::Always, SLOTS)?;
        Ok(Self { store: opened.store, state: State::new(identity) })
    }

    fn step(&mut self) -> Outcome<()> {
        self.state.counters[0].value = CounterValue(self.state.counters[0].value.0 + 1);
        self.store.store(&self.state).map_err(|_| "the store failed".into())
    }
}

/// A counter on a thread of its own: told of a run whose bodies are durable, it says when it is stored.
fn beside(mut counter: Counter) -> (SyncSender<()>, Receiver<Outcome<()>>) {
    let (durable, runs) = sync_channel(1);
    let (tell, stored) = sync_channel(1);
    thread::spawn(move || {
        for () in runs {
            if tell.send(counter.step()).is_err() {
                return;
            }
        }
    });
    (durable, stored)
}

/// Microseconds of each run alone, and of a run on average where many wait.
#[derive(Default)]
struct Took {
    alone: Vec<f64>,
    many: Vec<f64>,
}

fn micros(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

fn measure(scratch: &Path, body: u64, runs: u64) -> Outcome<[(&'static str, Took); 3]> {
    let room = 16 << 20;
    let mut log = Ring::new(scratch.join(format!("log-{body}")), room)?;
    let mut other_log = Ring::new(scratch.join(format!("other-log-{body}")), room)?;
    let mut records = Ring::new(scratch.join(format!("records-{body}")), room)?;
    let mut counter = Counter::new(&scratch.join(format!("counter-{body}")))?;
    let (durable, stored) = beside(Counter::new(&scratch.join(format!("other-counter-{body}")))?);
    let mut took = [Took::default(), Took::default(), Took::default()];
    for _ in 0..runs / TURN {
        let begun = Instant::now();
        for _ in 0..TURN {
            let before = Instant::now();
            log.put(body, 1)?;
            counter.step()?;
            took[0].alone.push(micros(before));
        }
        // With both on one thread nothing overlaps, however much waits.
        took[0].many.push(micros(begun) / TURN as f64);

        for _ in 0..TURN {
            let before = Instant::now();
            other_log.put(body, 1)?;
            durable.send(())?;
            stored.recv()??;
            took[1].alone.push(micros(before));
        }
        let begun = Instant::now();
        other_log.put(body, 1)?;
        for _ in 1..TURN {
            durable.send(())?;
            other_log.put(body, 1)?;
            stored.recv()??;
        }
        durable.send(())?;
        stored.recv()??;
        took[1].many.push(micros(begun) / TURN as f64);

        let begun = Instant::now();
        for _ in 0..TURN {
            let before = Instant::now();
            // The record has its block; what does not fit beside it takes blocks after it.
            records.put((body + 2048).max(BLOCK), BLOCK)?;
            took[2].alone.push(micros(before));
        }
        took[2].many.push(micros(begun) / TURN as f64);
    }
    let [series, overlapped, beside] = took;
    Ok([("in series", series), ("overlapped", overlapped), ("beside the record", beside)])
}

fn at(samples: &mut [f64], share: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[((samples.len() - 1) as f64 * share) as usize]
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let below = arguments.next().unwrap_or_else(|| ".".to_owned());
    let runs: u64 = arguments.next().map_or(Ok(2000), |text| text.parse())?;
    if runs < TURN {
        return Err(format!("at least {TURN} runs make a measurement").into());
    }
    let scratch = Path::new(&below).join(format!("bodies-example-{}", std::process::id()));
    fs::create_dir(&scratch)?;
    let measured: Outcome<Vec<_>> =
        BODIES.into_iter().map(|body| Ok((body, measure(&scratch, body, runs)?))).collect();
    fs::remove_dir_all(&scratch)?;
    println!("{:<28}{:>12}{:>12}{:>12}", "microseconds a run", "alone p50", "alone p99", "many p50");
    for (body, ways) in measured? {
        println!("bodies of {body} bytes");
        for (name, mut took) in ways {
            let (half, most) = (at(&mut took.alone, 0.5), at(&mut took.alone, 0.99));
            println!("  {name:<26}{half:>12.0}{most:>12.0}{:>12.0}", at(&mut took.many, 0.5));
        }
    }
    Ok(())
}
