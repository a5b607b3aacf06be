//! Backups: a certified state of a running group, in a directory that can be restored onto fresh machines.
//!
//! | module | subject |
//! | --- | --- |
//! | `serve` | the replica's side: its last stable checkpoint, over a Unix socket in its own directory |
//! | `fetch` | the operator's side: a quorum's certificates, then the state by state transfer, all of it verified |
//! | `file` | a state as one file whose every part is named by its digest; also a new group's first state |
//! | `manifest` | what a backup is of |
//! | `store` | a backup's directory: written whole or not at all, read back with every check |
//!
//! Why a socket in the replica's directory and no network port: what it gives away is everything that the
//! replica holds, and whoever may enter that directory has it anyway. What the replica serves is believed
//! only where a quorum of replicas has certified it, so a faulty one can refuse a backup and cannot forge one.
//! The replica goes on meanwhile: a held checkpoint costs the memory that later states do not share with
//! it, and is walked on a thread of its own.

mod fetch;
pub(crate) mod file;
mod manifest;
pub(crate) mod serve;
mod store;
pub(crate) mod wire;

pub use fetch::{Progress, Source};
pub use manifest::Manifest;
pub use store::{Backup, is_backup, read, try_place, write};

use std::io;
use std::path::PathBuf;
use thiserror::Error;
use troth_types::Seq;

/// Why a backup was not made or cannot be used.
#[derive(Debug, Error)]
pub enum BackupError {
    /// Nobody answers at the replica's socket.
    #[error(
        "cannot ask the replica at {0}: {1}\n  mend: run this on the machine of a replica that runs, as the replica's user or as root"
    )]
    Unreachable(PathBuf, io::Error),
    /// The replica will not.
    #[error(
        "the replica serves no backup now: {0}\n  mend: wait and begin again; where it has no stable checkpoint yet, give the \
         command a client's keys (clients/client-N.toml in --dir): it orders what a checkpoint needs, and writes nothing"
    )]
    Refused(String),
    /// The connection ended or took too long.
    #[error("the replica stopped answering: {0}\n  mend: begin again, or ask another replica")]
    Lost(io::Error),
    /// What the replica says breaks a rule.
    #[error(
        "the replica answers what it must not ({0}): it is faulty, or of another version\n  mend: ask another replica"
    )]
    Foreign(String),
    /// The certificates do not certify.
    #[error(
        "what the replica shows is not certified by a quorum of this group's replicas ({0}): it is faulty, or cluster.toml is another \
         group's, or replicas were readmitted or replaced of which this machine does not know\n  mend: copy configuration.toml here \
         from where `troth admin` was used last, or ask another replica"
    )]
    Uncertified(String),
    /// The directory is there already.
    #[error("{0} exists already\n  mend: name a directory that does not; a backup never overwrites one")]
    Exists(PathBuf),
    /// A file cannot be written or read.
    #[error("cannot {what} {file}: {why}")]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        file: PathBuf,
        /// The operating system's word.
        why: io::Error,
    },
    /// The backup is not what was written.
    #[error(
        "this backup is damaged: {file}: {what}\n  mend: use another copy or an older backup; nothing was restored"
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Nothing is where the backup should be.
    #[error("{0} does not exist\n  mend: name the directory that `troth backup --to` made")]
    Absent(PathBuf),
    /// Not a backup, or one that was never finished.
    #[error(
        "{0} holds no finished backup: there is no backup.json\n  mend: name the directory that `troth backup --to` made; what is \
         left of one that was interrupted ends in .incomplete and is of no use"
    )]
    NoBackup(PathBuf),
    /// Written by a later version.
    #[error(
        "this backup has format {found}, and this version reads {known}\n  mend: use the version that wrote it, or a later one"
    )]
    Version {
        /// The format found.
        found: u64,
        /// The format known.
        known: u64,
    },
    /// Of a build in which the service looked otherwise, or `cluster.toml` is another group's: its group has another name in
    /// this build.
    #[error(
        "{0} is not of this backup's group, as this build names groups: the coordination service had another form in the build that \
         made it, or the file was changed\n  mend: restore it with the build that made it, run that group's gateway, and take the \
         nodes over with `troth import zookeeper`; where that build is this one, use another copy"
    )]
    Form(PathBuf),
    /// There is no stable checkpoint as far as one was asked for.
    #[error(
        "no checkpoint from batch {0} on became stable in time\n  mend: look at `troth status`; a group that orders nothing takes none"
    )]
    NotYet(Seq),
}

/// An error about a file.
fn failed(what: &'static str, file: &std::path::Path) -> impl FnOnce(io::Error) -> BackupError {
    let file = file.to_path_buf();
    move |why| BackupError::File { what, file, why }
}
