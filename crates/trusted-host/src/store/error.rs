//! Why a store cannot be opened or written, and how to go on.

use super::Policy;
use std::io;
use std::path::PathBuf;
use troth_trusted::Epoch;

/// Why a store was not opened, or failed.
///
/// Either the machine has to be mended and the same epoch goes on, or the last state is not proven and
/// the epoch is over: [`StoreError::ends_the_epoch`] tells which.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The directory could not be used.
    #[error(
        "the store's directory {path} cannot be opened: {source}; mend: mount or restore it; make an empty \
         one only for an epoch that never started"
    )]
    NoDirectory {
        /// The directory.
        path: PathBuf,
        /// What the machine said.
        source: io::Error,
    },
    /// Another process holds the store.
    #[error(
        "the store is open in another process; mend: stop that one first, two components of one identity \
         must never run"
    )]
    Locked,
    /// An operation of the machine failed. After a failed write the store writes nothing more.
    #[error(
        "the store failed to {doing} {file}: {source}; mend: give the disk space and health, then start \
         again, what was certified is kept"
    )]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The file in question.
        file: String,
        /// What the machine said.
        source: io::Error,
    },
    /// There is no room for the next file. The store is as it was, and goes on once there is some.
    #[error(
        "the store finds no space to make {file}: {source}; mend: give its disk space, nothing is lost and \
         nothing is certified meanwhile"
    )]
    NoSpace {
        /// The file in question.
        file: String,
        /// What the machine said.
        source: io::Error,
    },
    /// The store failed before.
    #[error("the store failed earlier and writes nothing more; mend: start the component again")]
    Halted,
    /// The number of slots asked for is not supported.
    #[error("a store file of {slots} slots is not supported; mend: ask for 2 to {most}")]
    Slots {
        /// What was asked for.
        slots: u32,
        /// The most there may be.
        most: u32,
    },
    /// So much room for logs is not supported.
    #[error("room for more than {most} entries of logs is not supported; mend: ask for less")]
    Entries {
        /// The most there may be in all logs together.
        most: usize,
    },
    /// A log holds more than it was given room for.
    #[error("log {log} holds more entries than it has room for; mend: give it as much room as before")]
    Room {
        /// The log.
        log: u16,
    },
    /// The file was written by another version.
    #[error(
        "{file} has format version {found}, this program reads up to {known}; mend: start the program that wrote it"
    )]
    Version {
        /// The file.
        file: String,
        /// The version it names.
        found: u16,
        /// The newest version that this program reads.
        known: u16,
    },
    /// The directory is another replica's.
    #[error(
        "the directory belongs to another group or replica; mend: configure this replica's own directory"
    )]
    OtherReplica,
    /// The directory has gone on to a later epoch.
    #[error(
        "epoch {} is over: this directory has started epoch {}; mend: configure the epoch that the group \
         has admitted last", asked.0, reached.0
    )]
    EpochOver {
        /// The epoch asked for.
        asked: Epoch,
        /// The epoch reached.
        reached: Epoch,
    },
    /// A file is shorter or longer than it was made.
    #[error(
        "{file} has {found} bytes instead of {expected}, so its end may be lost; mend: leave the replica \
         stopped, and put no copy in its place"
    )]
    Length {
        /// The file.
        file: String,
        /// Its length in bytes.
        found: u64,
        /// The length that it was made with, in bytes.
        expected: u64,
    },
    /// A file holds what no crash of this program leaves.
    #[error(
        "{file} is damaged at byte {offset}: {what}; mend: leave the replica stopped, and put no copy in its place"
    )]
    Damaged {
        /// The file.
        file: String,
        /// Where the damage begins, to the slot, in bytes.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// A file that must be there is gone.
    #[error(
        "{file} is missing, though the rest of the directory shows that it was there; mend: mount what belongs \
         there, else leave the replica stopped, and put no copy in its place"
    )]
    Missing {
        /// The file.
        file: String,
    },
    /// The files of the directory tell different stories.
    #[error(
        "the store's files contradict each other: {what}; mend: mount what belongs there, \
             else leave the replica stopped, and put no copy in its place"
    )]
    Contradiction {
        /// The contradiction.
        what: &'static str,
    },
    /// The store was not written durably, and what it was to survive has happened.
    #[error(
        "the store was written under '{policy}' and {event} since, so its newest record need not be the last; \
         mend: leave the replica stopped"
    )]
    Unproven {
        /// The policy that it was written under.
        policy: Policy,
        /// What happened that the policy does not cover.
        event: &'static str,
    },
}

impl StoreError {
    /// Whether the last state is not proven, so that this epoch can never go on and the replica needs
    /// a new one by readmission. Otherwise the same epoch goes on once the cause is mended.
    pub fn ends_the_epoch(&self) -> bool {
        match self {
            Self::EpochOver { .. }
            | Self::Length { .. }
            | Self::Damaged { .. }
            | Self::Missing { .. }
            | Self::Contradiction { .. }
            | Self::Unproven { .. } => true,
            Self::NoDirectory { .. }
            | Self::Locked
            | Self::Io { .. }
            | Self::NoSpace { .. }
            | Self::Halted
            | Self::Slots { .. }
            | Self::Entries { .. }
            | Self::Room { .. }
            | Self::Version { .. }
            | Self::OtherReplica => false,
        }
    }

    /// An operation of the machine failed.
    pub(super) fn io(doing: &'static str, file: &str) -> impl FnOnce(io::Error) -> Self {
        let file = file.to_owned();
        move |source| Self::Io { doing, file, source }
    }
}
