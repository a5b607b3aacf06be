//! Measures the Merkle map at one million keys of 16 bytes with values of 100 bytes:
//! `cargo run --release -p troth-exec --example merkle [-- --json]`.
//!
//! The targets are the time of a write, the pause of a seal, and memory (resident set) against the
//! raw data; a missed target makes the exit code 1. Merging and hashing, which happen between
//! writes in slices, are measured beside them: they bound the sustained rate, and their longest
//! slice bounds the pause.
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use bytes::Bytes;
use std::collections::VecDeque;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use troth_exec::{MerkleMap, Tree};

/// The one that `troth` runs with.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const KEYS: u64 = 1_000_000;
const VALUE_BYTES: usize = 100;
const RAW_BYTES: u64 = KEYS * (16 + VALUE_BYTES as u64);
const WRITES: u64 = 1_000_000;
const READS: u64 = 1_000_000;
/// Writes between two seals: a checkpoint interval of 128 batches of some 80 writes each.
const INTERVAL: u64 = 10_000;
/// Budget of one slice of merging and hashing.
const SLICE: usize = 100;
/// Checkpoints alive at once, as a replica keeps them until a later one is stable.
const KEPT: usize = 2;

const MAX_WRITE_NANOS: f64 = 500.0;
const MAX_SEAL: Duration = Duration::from_millis(1);
const MAX_MEMORY_RATIO: f64 = 3.0;

/// A fixed sequence of well-mixed numbers (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

fn key(index: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(b"key/key/");
    key[8..].copy_from_slice(&index.to_be_bytes());
    key
}

fn value(number: u64) -> Bytes {
    let mut value = [0; VALUE_BYTES];
    value[..8].copy_from_slice(&number.to_le_bytes());
    Bytes::copy_from_slice(&value)
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Option<u64> = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0) * 4096
}

/// Nanoseconds this thread has been on a processor: on a busy machine, apart from what others took.
fn processor_nanos() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
}

#[derive(Default)]
struct Background {
    time: Duration,
    longest: Duration,
    slices: u64,
}

impl Background {
    /// One slice; the tree of a seal that it completed.
    fn slice(&mut self, map: &mut MerkleMap) -> Option<Tree> {
        let start = Instant::now();
        let mut budget = SLICE;
        let done = map.poll(&mut budget);
        let took = start.elapsed();
        self.time += took;
        self.longest = self.longest.max(took);
        self.slices += 1;
        done.map(|(_, tree)| tree)
    }
}

fn load(map: &mut MerkleMap) {
    let mut numbers = Numbers(1);
    let mut background = Background::default();
    for index in 0..KEYS {
        map.insert(&key(index), value(numbers.next()));
        if index % INTERVAL == INTERVAL - 1 {
            map.seal();
            while map.pending() > 0 {
                background.slice(map);
            }
        }
    }
}

struct Measured {
    write_nanos: f64,
    write_processor_nanos: f64,
    read_nanos: f64,
    longest_seal: Duration,
    background: Background,
    memory: u64,
}

fn measure(map: &mut MerkleMap) -> Measured {
    let mut numbers = Numbers(2);
    let mut kept: VecDeque<Tree> = VecDeque::new();
    let mut background = Background::default();
    let (mut writing, mut longest_seal, mut memory) = (Duration::ZERO, Duration::ZERO, resident_bytes());
    let mut processor = 0;
    for _ in 0..WRITES / INTERVAL {
        let (start, processor_start) = (Instant::now(), processor_nanos());
        for _ in 0..INTERVAL {
            map.insert(&key(numbers.next() % KEYS), value(numbers.next()));
        }
        writing += start.elapsed();
        processor += processor_nanos() - processor_start;
        let start = Instant::now();
        map.seal();
        longest_seal = longest_seal.max(start.elapsed());
        while map.pending() > 0 {
            kept.extend(background.slice(map));
        }
        memory = memory.max(resident_bytes());
        while kept.len() > KEPT {
            kept.pop_front();
        }
    }
    let start = Instant::now();
    let mut found = 0;
    for _ in 0..READS {
        found += u64::from(map.get(&key(numbers.next() % KEYS)).is_some());
    }
    let reading = start.elapsed();
    assert_eq!(found, READS, "every key was loaded");
    Measured {
        write_nanos: writing.as_nanos() as f64 / WRITES as f64,
        write_processor_nanos: processor as f64 / WRITES as f64,
        read_nanos: reading.as_nanos() as f64 / READS as f64,
        longest_seal,
        background,
        memory,
    }
}

fn main() -> ExitCode {
    let mut map = MerkleMap::new();
    load(&mut map);
    let loaded = resident_bytes();
    let measured = measure(&mut map);
    let Measured { write_nanos, write_processor_nanos, read_nanos, longest_seal, background, memory } =
        measured;
    let ratio = memory as f64 / RAW_BYTES as f64;
    let background_nanos = background.time.as_nanos() as f64 / WRITES as f64;
    let write_good = write_nanos <= MAX_WRITE_NANOS;
    let seal_good = longest_seal <= MAX_SEAL;
    let memory_good = ratio <= MAX_MEMORY_RATIO;
    let verdict = |good: bool| if good { "pass" } else { "FAIL" };
    println!("{KEYS} keys of 16 bytes, values of {VALUE_BYTES} bytes, a seal every {INTERVAL} writes");
    println!(
        "write             {write_nanos:8.0} ns    at most {MAX_WRITE_NANOS} ns    {}",
        verdict(write_good)
    );
    println!("  on a processor  {write_processor_nanos:8.0} ns    the rest was waiting for one");
    println!(
        "longest seal      {:8.3} ms    at most {} ms      {}",
        longest_seal.as_secs_f64() * 1e3,
        MAX_SEAL.as_millis(),
        verdict(seal_good)
    );
    println!(
        "memory / raw      {ratio:8.2}       at most {MAX_MEMORY_RATIO}         {}",
        verdict(memory_good)
    );
    println!("raw data          {RAW_BYTES:>11} bytes; resident after loading {loaded}, at most {memory}");
    println!("read              {read_nanos:8.0} ns");
    println!("merge and hash    {background_nanos:8.0} ns for each write, beside the write itself");
    println!(
        "longest slice     {:8.3} ms    of {} slices with a budget of {SLICE}",
        background.longest.as_secs_f64() * 1e3,
        background.slices
    );
    let good = write_good && seal_good && memory_good;
    if std::env::args().any(|argument| argument == "--json") {
        println!(
            "{{\"benchmark\":\"merkle\",\"keys\":{KEYS},\"value_bytes\":{VALUE_BYTES},\
             \"write_ns\":{write_nanos:.1},\"write_processor_ns\":{write_processor_nanos:.1},\"read_ns\":{read_nanos:.1},\
             \"merge_and_hash_ns_per_write\":{background_nanos:.1},\
             \"longest_seal_ns\":{},\"longest_slice_ns\":{},\"raw_bytes\":{RAW_BYTES},\
             \"resident_bytes\":{memory},\"memory_ratio\":{ratio:.3},\"pass\":{good}}}",
            longest_seal.as_nanos(),
            background.longest.as_nanos(),
        );
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
