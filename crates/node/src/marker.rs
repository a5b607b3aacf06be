//! The mark that a replica ran. In `memory` durability it must never run again under its identity,
//! because its trusted component is gone with its process; in any other, never without the counters that it
//! left (SECURITY.md).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a replica must not start.
#[derive(Debug, Error)]
pub enum MarkerError {
    /// It ran before.
    #[error(
        "this replica ran before ({0} exists) and its trusted component was lost with its process: if it came \
         back it could tell a second story under numbers that it has used\n  mend: as it is it stays stopped; \
         docs/operating/refuses-to-start.md says what brings it back, and that the group is over where more than f are gone"
    )]
    RanBefore(PathBuf),
    /// The mark could not be written.
    #[error("cannot write {0}: {1}\n  mend: make the replica's directory writable for its user")]
    File(PathBuf, io::Error),
}

impl MarkerError {
    /// Whether the replica has lost what it did, so that it must not vote.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self, Self::RanBefore(_))
    }
}

/// Leaves the mark, durably; refuses where it is already there, and makes that durable too: who left it may have been
/// killed before it was.
///
/// # Errors
/// See [`MarkerError`].
pub fn leave_mark(path: &Path) -> Result<(), MarkerError> {
    let failed = |why| MarkerError::File(path.to_path_buf(), why);
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => writeln!(
            file,
            "This replica has run: SECURITY.md says what that forbids. Do not remove this file."
        )
        .and_then(|()| sync(&file, path))
        .map_err(failed),
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {
            File::open(path).and_then(|file| sync(&file, path)).map_err(failed)?;
            Err(MarkerError::RanBefore(path.to_path_buf()))
        }
        Err(why) => Err(failed(why)),
    }
}

/// Makes a file and its name durable.
fn sync(file: &File, path: &Path) -> io::Result<()> {
    file.sync_all()?;
    path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}
