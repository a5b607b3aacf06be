//! A log that is written beside everything else, by a thread of its own. Nobody waits for it: what does not find room in its
//! line, or cannot be written, is lost, and the next line that can be written says how many were.

use super::counts::Count;
use crate::{Log, Place};
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use rustix::fs::OFlags;
use rustix::process::geteuid;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use tokio::sync::oneshot;

/// Lines that wait to be written.
const LINES: usize = 16 << 10;
/// Their bytes.
const BYTES: usize = 16 << 20;
/// The share of both that lines may fill that go first where there is no room: one in so many parts.
const IDLE: usize = 2;
/// How long the last lines may take when the gateway ends.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is counted of a log.
#[derive(Debug, Default)]
pub(crate) struct LogCounts {
    /// Lines that were written.
    pub(crate) written: Count,
    /// Lines that were not.
    pub(crate) lost: Count,
    /// Bytes that wait, and lines.
    waiting: AtomicUsize,
    waiting_lines: AtomicUsize,
}

impl LogCounts {
    /// A line waits no longer.
    fn done(&self, bytes: usize) {
        self.waiting.fetch_sub(bytes, Ordering::Relaxed);
        self.waiting_lines.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Where lines are handed in.
#[derive(Debug)]
pub(crate) struct Writer {
    lines: SyncSender<String>,
    counts: Arc<LogCounts>,
    ended: oneshot::Receiver<()>,
}

impl Writer {
    /// Opens the log, and starts who writes it.
    pub(crate) fn start(log: &Log) -> io::Result<Self> {
        let sink: Box<dyn Sink> = match &log.place {
            Place::Stdout => Box::new(Stream(io::stdout())),
            Place::File(path) => Box::new(Files::open(path, log.file_bytes, log.files)?),
        };
        Self::to(sink)
    }

    pub(crate) fn to(sink: Box<dyn Sink>) -> io::Result<Self> {
        let (lines, received) = sync_channel(LINES);
        let (end, ended) = oneshot::channel();
        let counts = Arc::new(LogCounts::default());
        let own = Arc::clone(&counts);
        let work = move || {
            write_all(&received, sink, &own);
            // Nobody may wait for it.
            let _ = end.send(());
        };
        std::thread::Builder::new().name("log".to_owned()).spawn(work)?;
        Ok(Self { lines, counts, ended })
    }

    /// Hands in a line, if there is room for it.
    pub(crate) fn write(&self, line: String) {
        self.write_within(line, 1);
    }

    /// The same with a line that leaves room for others.
    pub(crate) fn write_if_idle(&self, line: String) {
        rule!("ZKG-W5");
        self.write_within(line, IDLE);
    }

    fn write_within(&self, line: String, share: usize) {
        let bytes = line.len();
        rule!("ZKG-W4");
        let waiting = self.counts.waiting.fetch_add(bytes, Ordering::Relaxed);
        let lines = self.counts.waiting_lines.fetch_add(1, Ordering::Relaxed);
        let fits = waiting + bytes <= BYTES / share && lines < LINES / share;
        if !fits || self.lines.try_send(line).is_err() {
            self.counts.done(bytes);
            self.counts.lost.add(1);
        }
    }

    /// Counts lines that nobody handed in.
    pub(crate) fn lose(&self, lines: u64) {
        self.counts.lost.add(lines);
    }

    pub(crate) fn counts(&self) -> Arc<LogCounts> {
        Arc::clone(&self.counts)
    }

    /// Lets what waits be written; not for long. What waits then is counted as lost.
    pub(crate) async fn end(self) {
        drop(self.lines);
        if tokio::time::timeout(PATIENCE, self.ended).await.is_err() {
            let left = self.counts.waiting_lines.load(Ordering::Relaxed);
            self.counts.lost.add(left as u64);
        }
    }
}

fn write_all(lines: &Receiver<String>, mut sink: Box<dyn Sink>, counts: &LogCounts) {
    let mut told = 0;
    while let Ok(line) = lines.recv() {
        let lost = counts.lost.get();
        if lost > told && sink.write_line(&format!("{{\"lost_lines\":{}}}", lost - told)).is_ok() {
            told = lost;
        }
        // Behind lines that are missing nothing stands before it is said that they are.
        let written = lost == told && sink.write_line(&line).is_ok();
        if written {
            counts.written.add(1)
        } else {
            counts.lost.add(1)
        }
        counts.done(line.len());
    }
    let lost = counts.lost.get();
    if lost > told {
        // That it cannot be said is counted already.
        let _ = sink.write_line(&format!("{{\"lost_lines\":{}}}", lost - told));
    }
}

/// What takes lines.
pub(crate) trait Sink: Send {
    /// Writes a line with its end; what fails has left no part of it, as far as that can be had.
    fn write_line(&mut self, line: &str) -> io::Result<()>;
}

/// A stream. What stands in it cannot be taken back.
#[derive(Debug)]
struct Stream<W>(W);

impl<W: Write + Send> Sink for Stream<W> {
    fn write_line(&mut self, line: &str) -> io::Result<()> {
        self.0.write_all(format!("{line}\n").as_bytes())?;
        self.0.flush()
    }
}

/// A file, and those that were put aside.
#[derive(Debug)]
pub(crate) struct Files {
    path: PathBuf,
    file: File,
    bytes: u64,
    most_bytes: u64,
    files: u32,
    /// Whether the file may end in a part of a line.
    torn: bool,
}

impl Files {
    pub(crate) fn open(path: &Path, most_bytes: u64, files: u32) -> io::Result<Self> {
        let file = begin(path)?;
        let bytes = file.metadata()?.len();
        // The process before may have ended within a line.
        let own = Self { path: path.to_owned(), file, bytes, most_bytes, files, torn: bytes > 0 };
        // Or while it put a file aside.
        let apart = own.aside(0);
        if files > 1 && std::fs::symlink_metadata(&apart).is_ok_and(|meta| meta.is_file()) {
            own.shift(&apart)?;
        }
        Ok(own)
    }

    fn aside(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    }

    /// Puts the file aside, and begins another.
    fn rotate(&mut self) -> io::Result<()> {
        if self.files <= 1 {
            self.file.set_len(0)?;
        } else {
            // First of all the file itself: where that may not be, no older one moves on either, and none is lost.
            let apart = self.aside(0);
            if moved(&self.path, &apart)?
                && let Err(why) = self.shift(&apart)
            {
                // Where it cannot go back it is written on under its other name.
                let _ = std::fs::rename(&apart, &self.path);
                return Err(why);
            }
            self.file = begin(&self.path)?;
        }
        (self.bytes, self.torn) = (0, false);
        Ok(())
    }

    /// Gives each file that was put aside the next number, up to one that is free, and this one the first.
    fn shift(&self, newest: &Path) -> io::Result<()> {
        let is_free = |number: &u32| std::fs::symlink_metadata(self.aside(*number)).is_err();
        let last = (1..self.files - 1).find(is_free).unwrap_or(self.files - 1);
        for number in (1..last).rev() {
            moved(&self.aside(number), &self.aside(number + 1))?;
        }
        moved(newest, &self.aside(1)).map(drop)
    }
}

/// Gives a file another name, if it is there.
fn moved(from: &Path, to: &Path) -> io::Result<bool> {
    match std::fs::rename(from, to) {
        Ok(()) => Ok(true),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(why) => Err(why),
    }
}

/// Opens a file of our own that nobody else may read or write, and makes it where there is none. Another one is refused: lines
/// that only an operator may read would go where somebody else wants them.
fn begin(path: &Path) -> io::Result<File> {
    // A pipe that nobody reads would have this wait.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let meta = file.metadata()?;
    rule!("ZKG-W6");
    let wrong = if !meta.is_file() {
        "it is no regular file"
    } else if meta.uid() != geteuid().as_raw() {
        "it is another user's"
    } else if meta.mode() & 0o077 != 0 {
        "others than its user may read or write it (chmod 600)"
    } else {
        return Ok(file);
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, wrong))
}

impl Sink for Files {
    fn write_line(&mut self, line: &str) -> io::Result<()> {
        let begins = if self.torn { "\n" } else { "" };
        let text = format!("{begins}{line}\n");
        if self.bytes > 0 && self.bytes + text.len() as u64 > self.most_bytes {
            self.rotate()?;
            return self.write_line(line);
        }
        if let Err(why) = self.file.write_all(text.as_bytes()) {
            // A part of the line may have found space: it goes, or a line of its own ends it.
            self.torn = self.file.set_len(self.bytes).is_err() || self.torn;
            return Err(why);
        }
        self.bytes += text.len() as u64;
        self.torn = false;
        Ok(())
    }
}
