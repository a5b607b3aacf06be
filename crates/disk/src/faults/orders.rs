//! What a process of a test build is told to do to its own disk and clock, in a file that it reads at each
//! call of its disk. SIGKILL alone loses nothing that was written: what loses unsynced bytes must hold them,
//! so the process has to be asked to die.
//!
//! A file, and not a socket or a signal: the sandbox of the trusted process has neither to offer, and one
//! that was opened before it can be read for ever.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// How a process is to die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Death {
    /// At which sync from when this is read, counted from 1: instead of it.
    pub at_sync: u64,
    /// Which part is left of what was not synced, as [`Tear::Random`](crate::Tear::Random) says.
    pub seed: u64,
}

/// What a process is told. The default is what an ordinary process does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// To die.
    pub death: Option<Death>,
    /// To have no more space than this many bytes for all files of its disk together. Writes find no space
    /// beyond it even where they lengthen no file, as on a file system that writes elsewhere what it
    /// overwrites: else a log that has made room would not notice for minutes.
    pub capacity: Option<u64>,
    /// To take the time of day for so many milliseconds later.
    pub clock_ahead_ms: i64,
}

/// The bytes of an orders file.
const LENGTH: usize = 96;

impl Orders {
    fn encode(&self) -> [u8; LENGTH] {
        let number = |number: Option<u64>| number.map_or("-".to_string(), |number| number.to_string());
        let text = format!(
            "{} {} {} {}",
            number(self.death.map(|death| death.at_sync)),
            number(self.death.map(|death| death.seed)),
            number(self.capacity),
            self.clock_ahead_ms
        );
        let text = format!("{text} {:08x}", crc32c::crc32c(text.as_bytes()));
        let mut bytes = [b' '; LENGTH];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        bytes
    }

    /// Nothing where the bytes are not the whole of what somebody wrote.
    fn decode(bytes: &[u8; LENGTH]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?.trim_end();
        let (text, sum) = text.rsplit_once(' ')?;
        if u32::from_str_radix(sum, 16) != Ok(crc32c::crc32c(text.as_bytes())) {
            return None;
        }
        let mut words = text.split(' ');
        let mut number = || match words.next()? {
            "-" => Some(None),
            number => number.parse::<u64>().ok().map(Some),
        };
        let (at_sync, seed, capacity) = (number()?, number()?, number()?);
        let death = at_sync.zip(seed).map(|(at_sync, seed)| Death { at_sync, seed });
        Some(Self { death, capacity, clock_ahead_ms: words.next()?.parse().ok()? })
    }

    /// Writes the file, or writes it anew: one call, so that whoever reads it finds the old or the new.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let file = File::options().write(true).create(true).truncate(false).open(path)?;
        file.write_all_at(&self.encode(), 0)
    }
}

/// A file of orders, open for reading.
#[derive(Debug)]
pub struct OrdersFile {
    file: File,
    last: Orders,
}

impl OrdersFile {
    /// Opens a file that is there.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, last: Orders::default() })
    }

    /// The same file, for another reader.
    pub fn again(&self) -> io::Result<Self> {
        Ok(Self { file: self.file.try_clone()?, last: self.last })
    }

    /// What it says now; where it is just being written, what it said before.
    pub fn read(&mut self) -> Orders {
        let mut bytes = [0; LENGTH];
        if self.file.read_exact_at(&mut bytes, 0).is_ok() {
            self.last = Orders::decode(&bytes).unwrap_or(self.last);
        }
        self.last
    }
}
