//! Tests of this crate. Randomised ones print their seed where they fail.

mod by_the_clock;
mod crash;
mod damage;
mod format;
mod full;
mod log;
mod orders;
mod real;
mod snapshots;
mod snapshots_crash;
mod syncer;

use crate::{Disk, Identity, Log, LogError, LogOptions, Recovered};
use bytes::Bytes;

const ME: Identity = Identity { group: [7; 32], replica: 2 };

/// Segments and steps so small that a few records reach every case.
const SMALL: LogOptions = LogOptions { segment_bytes: 400, step_bytes: 4096, salt: 0x5eed };

fn open<D: Disk>(disk: &D) -> Result<(Log<D>, Recovered), LogError> {
    Log::open(disk.clone(), ME, SMALL)
}

/// A record that names itself, of a length that varies with its number.
fn record(number: u64) -> Bytes {
    let mut bytes = format!("record {number} ").into_bytes();
    bytes.resize(bytes.len() + (number as usize * 7) % 40, number as u8);
    Bytes::from(bytes)
}

fn records(numbers: impl IntoIterator<Item = u64>) -> Vec<Bytes> {
    numbers.into_iter().map(record).collect()
}
