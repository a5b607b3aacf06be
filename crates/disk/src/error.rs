//! What can go wrong on a disk, and what to do about it.

use crate::MAX_RECORD;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why an operation on a directory or file failed.
#[derive(Debug, Error)]
pub enum DiskError {
    /// No space or no quota is left. What was durable still is.
    #[error("no space is left to {what} {file}\n  mend: free space on this disk; it goes on by itself")]
    Full {
        /// The operation, as a verb.
        what: &'static str,
        /// The file it was on.
        file: String,
    },
    /// Another process has the directory.
    #[error(
        "{0} is in use by another process\n  mend: stop the other replica that runs on this directory, \
         or give this one a directory of its own"
    )]
    Locked(PathBuf),
    /// A name that is no plain file name.
    #[error(
        "'{0}' is no plain file name\n  mend: use letters, digits, '-' and '.' only, with no '.' in front"
    )]
    Name(String),
    /// The operating system's word.
    #[error("cannot {what} {file}: {source}\n  mend: see to the disk, its permissions and its mount")]
    Io {
        /// The operation, as a verb.
        what: &'static str,
        /// The file it was on.
        file: String,
        /// Why.
        source: io::Error,
    },
}

impl DiskError {
    /// Sorts an error of the operating system.
    pub(crate) fn new(what: &'static str, file: &str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::Full { what, file: file.to_string() }
            }
            _ => Self::Io { what, file: file.to_string(), source },
        }
    }

    /// Whether more space would have helped.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full { .. })
    }
}

/// Why a log cannot be opened or go on.
#[derive(Debug, Error)]
pub enum LogError {
    /// The disk is full. Nothing that was durable is lost, everything appended is kept in memory, and
    /// the call may be repeated at any time.
    #[error("the log cannot grow: {0}")]
    Full(#[source] DiskError),
    /// The disk failed. This log takes no further call: what of the last writes is on the disk is not
    /// known until it is opened anew.
    #[error("the log failed: {0}")]
    Disk(#[source] DiskError),
    /// The log failed before.
    #[error("the log failed earlier and takes nothing more\n  mend: start again; what was durable is kept")]
    Failed,
    /// A record is over the limit.
    #[error("a record of {0} bytes is over the limit of {MAX_RECORD}")]
    TooLarge(usize),
    /// Bytes that were durable are not what was written.
    #[error(
        "the log is damaged: {file} at byte {offset}: {what}\n  mend: leave the replica \
         stopped, and put no copy in the log's place"
    )]
    Damaged {
        /// The file.
        file: String,
        /// Where in it, in bytes.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// A segment between others is not there.
    #[error(
        "the log is damaged: {0} is missing\n  mend: mount what belongs there; if it is lost leave the replica \
         stopped, and put no copy in its place"
    )]
    Missing(String),
    /// The log belongs to another replica or another group.
    #[error("{file} belongs to {found}, this is {wanted}\n  mend: start this replica on its own directory")]
    Identity {
        /// The file.
        file: String,
        /// Whose it says it is.
        found: crate::Identity,
        /// Who opened it.
        wanted: crate::Identity,
    },
    /// Another version wrote the log.
    #[error(
        "{file} has log format {found}, this build reads {known}\n  mend: start the version of troth that wrote it"
    )]
    Version {
        /// The file.
        file: String,
        /// Its version.
        found: u16,
        /// The version of this build.
        known: u16,
    },
}

impl LogError {
    /// Whether the call may be repeated once there is space.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full(_))
    }
}

impl From<DiskError> for LogError {
    fn from(why: DiskError) -> Self {
        if why.is_full() { Self::Full(why) } else { Self::Disk(why) }
    }
}

/// Why a snapshot cannot be written, found or read.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// The disk is full. What was there before is untouched, and nothing is left of the attempt.
    #[error("no snapshot can be written: {0}")]
    Full(#[source] DiskError),
    /// The disk failed. The snapshots that were there before still count.
    #[error("the snapshots' disk failed: {0}")]
    Disk(#[source] DiskError),
    /// The disk failed before.
    #[error(
        "the snapshots' disk failed earlier\n  mend: start again; the snapshots that were there still count"
    )]
    Failed,
    /// A node or the caller's bytes are over the limit.
    #[error("{0} bytes of a snapshot are over the limit of {limit}", limit = crate::MAX_NODE)]
    TooLarge(usize),
    /// The snapshot would be older than one that is there, or relative to one that is not the newest.
    #[error("snapshot {seq} cannot follow the newest one, {newest:?}")]
    Order {
        /// Its number.
        seq: u64,
        /// The newest there is.
        newest: Option<u64>,
    },
    /// There is no snapshot of that number.
    #[error("there is no snapshot {0}")]
    Unknown(u64),
    /// Bytes that were durable are not what was written.
    #[error(
        "a snapshot is damaged: {file} at byte {offset}: {what}\n  mend: leave the replica stopped, and put no \
         copy in the snapshot's place"
    )]
    Damaged {
        /// The file.
        file: String,
        /// Where in it, in bytes.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// The snapshot belongs to another replica or another group.
    #[error("{file} belongs to {found}, this is {wanted}\n  mend: start this replica on its own directory")]
    Identity {
        /// The file.
        file: String,
        /// Whose it says it is.
        found: crate::Identity,
        /// Who opened it.
        wanted: crate::Identity,
    },
    /// Another version wrote the snapshot.
    #[error(
        "{file} has snapshot format {found}, this build reads {known}\n  mend: start the version of troth that \
         wrote it"
    )]
    Version {
        /// The file.
        file: String,
        /// Its version.
        found: u16,
        /// The version of this build.
        known: u16,
    },
}

impl SnapshotError {
    /// Whether the call may be repeated once there is space.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full(_))
    }
}

impl From<DiskError> for SnapshotError {
    fn from(why: DiskError) -> Self {
        if why.is_full() { Self::Full(why) } else { Self::Disk(why) }
    }
}
