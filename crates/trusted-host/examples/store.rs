//! What one store costs on this disk, beside a bare write and fdatasync of the same size.
//!
//! `cargo run --release -p troth-trusted-host --example store -- [directory] [stores]`: makes a
//! directory of its own below the given one (default: the present one) and removes it. The kinds take
//! turns of a hundred, so that a disk whose speed changes is the same for all. Then, for files of several
//! sizes, what those stores take that begin a new file.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;
use troth_trusted::{CounterValue, Epoch, Identity, State, Store};
use troth_trusted_host::store::fill;
use troth_trusted_host::store::{DiskStore, Policy, RealDirectory};

/// What a store writes at once, in bytes.
const BLOCK: usize = 4096;
/// Stores of one kind before the next one's turn.
const TURN: usize = 100;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;
/// Makes the numbered thing durable.
type Act = Box<dyn FnMut(u64) -> Outcome<()>>;

/// One way of making something durable, with what each time took.
struct Kind {
    name: &'static str,
    act: Act,
    microseconds: Vec<f64>,
}

fn file(path: PathBuf) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).open(path)
}

/// Writes a block at a place, then syncs.
fn bare(file: File, offset: impl Fn(u64) -> u64 + 'static) -> Act {
    Box::new(move |count| {
        file.write_all_at(&[count as u8 | 1; BLOCK], offset(count))?;
        Ok(file.sync_data()?)
    })
}

fn store(directory: &Path, policy: Policy, slots: u32) -> Outcome<Act> {
    let identity = Identity { group: [1; 16], replica: 0, epoch: Epoch(1) };
    let opened = DiskStore::open_in(RealDirectory::make(directory)?, identity, policy, slots)?;
    let (mut store, mut state) = (opened.store, State::new(identity));
    Ok(Box::new(move |count| {
        state.counters[0].value = CounterValue(u128::from(count) + 1);
        store.store(&state).map_err(|_| "the store failed".into())
    }))
}

fn kinds(scratch: &Path, stores: u64) -> Outcome<Vec<Kind>> {
    let length = stores * BLOCK as u64;
    let written = file(scratch.join("written"))?;
    fill(&written, length)?;
    written.sync_all()?;
    let sparse = file(scratch.join("sparse"))?;
    sparse.set_len(length)?;
    sparse.sync_all()?;
    let growing = file(scratch.join("growing"))?;
    let same = file(scratch.join("same"))?;
    fill(&same, BLOCK as u64)?;
    same.sync_all()?;
    let next = |count: u64| count * BLOCK as u64;
    let list: Vec<(&'static str, Act)> = vec![
        ("bare write + fdatasync, one block again and again", bare(same, |_| 0)),
        ("bare write + fdatasync, file filled with zeros", bare(written, next)),
        ("bare write + fdatasync, file of holes", bare(sparse, next)),
        ("bare write + fdatasync, file that grows", bare(growing, next)),
        ("store, always, 4,095 slots (16 MiB)", store(&scratch.join("a"), Policy::Always, 4095)?),
        ("store, always, 1,023 slots (4 MiB)", store(&scratch.join("b"), Policy::Always, 1023)?),
        ("store, always, 255 slots (1 MiB)", store(&scratch.join("c"), Policy::Always, 255)?),
        ("store, interval, 1,023 slots", store(&scratch.join("d"), Policy::Interval, 1023)?),
    ];
    Ok(list.into_iter().map(|(name, act)| Kind { name, act, microseconds: Vec::new() }).collect())
}

fn measure(kinds: &mut [Kind], stores: u64) -> Outcome<()> {
    for turn in 0..stores / TURN as u64 {
        for kind in kinds.iter_mut() {
            for count in turn * TURN as u64..(turn + 1) * TURN as u64 {
                #[expect(clippy::disallowed_methods, reason = "this program measures time")]
                let start = Instant::now();
                (kind.act)(count)?;
                kind.microseconds.push(start.elapsed().as_secs_f64() * 1e6);
            }
        }
    }
    Ok(())
}

/// New files to measure of each size.
const FILES: u64 = 20;

/// What a store takes that finds its file full and begins the next one.
fn measure_new_files(scratch: &Path) -> Outcome<Vec<(u32, Vec<f64>)>> {
    let mut sizes: Vec<(u32, Vec<f64>)> = [255, 1023, 4095].map(|slots| (slots, Vec::new())).into();
    let mut stores = Vec::new();
    for (slots, _) in &sizes {
        // Without a sync at each store, to come to the end of the file soon; a new file is synced anyhow.
        stores.push(store(&scratch.join(format!("files-{slots}")), Policy::Interval, *slots)?);
    }
    for file in 0..FILES {
        for ((slots, microseconds), store) in sizes.iter_mut().zip(&mut stores) {
            let slots = u64::from(*slots);
            // The first file has one record from the start, as each later one has.
            let full = file * slots..(file + 1) * slots - 1;
            for count in full.clone() {
                store(count)?;
            }
            #[expect(clippy::disallowed_methods, reason = "this program measures time")]
            let start = Instant::now();
            store(full.end)?;
            microseconds.push(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    Ok(sizes)
}

fn print(kinds: &mut [Kind]) {
    println!("{:<52}{:>9}{:>9}{:>9}{:>9}", "microseconds", "mean", "p50", "p99", "most");
    for kind in kinds {
        let samples = &mut kind.microseconds;
        samples.sort_by(f64::total_cmp);
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        let at = |share: f64| samples[((samples.len() - 1) as f64 * share) as usize];
        println!("{:<52}{mean:>9.1}{:>9.1}{:>9.1}{:>9.1}", kind.name, at(0.5), at(0.99), at(1.0));
    }
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let below = arguments.next().unwrap_or_else(|| ".".to_owned());
    let stores: u64 = arguments.next().map_or(Ok(5000), |text| text.parse())?;
    if stores < TURN as u64 {
        return Err(format!("at least {TURN} stores make a measurement").into());
    }
    let scratch = Path::new(&below).join(format!("store-example-{}", std::process::id()));
    fs::create_dir(&scratch)?;
    let mut kinds = kinds(&scratch, stores)?;
    let measured = measure(&mut kinds, stores).and_then(|()| measure_new_files(&scratch));
    fs::remove_dir_all(&scratch)?;
    let new_files = measured?;
    print(&mut kinds);
    for (slots, mut microseconds) in new_files {
        microseconds.sort_by(f64::total_cmp);
        let half = microseconds[microseconds.len() / 2];
        println!(
            "a new file of {slots} slots: p50 {half:.0}, most {:.0}; shared by its stores {:.1} each",
            microseconds[microseconds.len() - 1],
            half / f64::from(slots)
        );
    }
    Ok(())
}
