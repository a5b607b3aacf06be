//! Whether a trusted component's counters are gone. To its store an emptied directory looks like an epoch
//! that never started, so a file outside of it says which one did.

use crate::failure::{Failure, MUST_NOT_START};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use troth_trusted::Epoch;

/// More than an epoch's digits.
const MOST: u64 = 64;

/// Refuses an epoch that has started and whose counters are gone. To be called before the store is opened,
/// which would make new ones.
pub(crate) fn check(started: &Path, counters: &Path, epoch: Epoch) -> Result<(), Failure> {
    let failed = |path: &Path, why| Failure::system(&format!("cannot read {}", path.display()), &why);
    let Some(reached) = read(started).map_err(|why| failed(started, why))? else { return Ok(()) };
    let empty = std::fs::read_dir(counters).map_err(|why| failed(counters, why))?.next().is_none();
    if !empty || reached < epoch {
        return Ok(());
    }
    Err(Failure::new(
        MUST_NOT_START,
        format!(
            "epoch {} of this component has started before ({}), and {} holds no counters: with new ones it could \
             certify a second story\n  mend: mount what belongs there; if that is lost, leave the replica stopped",
            reached.0,
            started.display(),
            counters.display()
        ),
    ))
}

/// Writes down that an epoch has started, durably. To be called before anything is certified in it.
pub(crate) fn mark(started: &Path, epoch: Epoch) -> Result<(), Failure> {
    let write = || {
        if read(started)? == Some(epoch) {
            return Ok(());
        }
        let new = started.with_extension("new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        writeln!(file, "{}", epoch.0)?;
        file.sync_all()?;
        std::fs::rename(&new, started)?;
        started.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
    };
    write().map_err(|why| Failure::system(&format!("cannot write {}", started.display()), &why))
}

/// The epoch that has started. What is no number is an error: whoever wrote it knew more than this program.
pub(crate) fn read(started: &Path) -> io::Result<Option<Epoch>> {
    let file = match File::open(started) {
        Ok(file) => file,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(why),
    };
    let mut text = String::new();
    file.take(MOST).read_to_string(&mut text)?;
    let epoch = text
        .trim_end()
        .parse()
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it holds no epoch"))?;
    Ok(Some(Epoch(epoch)))
}
