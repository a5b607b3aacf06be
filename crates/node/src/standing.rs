//! Whether a replica may go on from what it kept (design.md §9). A stored boot id tells a process that was
//! killed from a machine that was lost: what was written and not synced survives the one and not the other.
//!
//! | `durability` | replica killed | its component killed | machine lost |
//! | --- | --- | --- | --- |
//! | `always` | resumes | resumes | resumes |
//! | `interval` | resumes | resumes | must be readmitted |
//! | `memory` | resumes, where its component lived on | must be readmitted | must be readmitted |

use crate::config::{Durability, hex};
use crate::durable::DurableError;
use crate::runtime::RunError;
use std::io;
use thiserror::Error;
use troth_core::RecoveryError;
use troth_disk::{Disk, DiskError, DiskFile, sync_everything};
use troth_trusted_host::store::directory::BootId;

/// Says how a directory is being kept, and since which boot of the machine.
const FILE: &str = "kept";
/// The same while it is written.
const NEW: &str = "kept.new";
/// The first line: what the file is, and the version of its format.
const HEAD: &str = "troth kept 1";
/// More bytes than the file has.
const MOST: usize = 256;

/// What a replica may do with what it kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It never ran: it begins.
    Fresh,
    /// What it kept is provably the last that it did: it goes on.
    Resumes,
    /// It cannot prove its last state, or has lost it: it must not vote before it is readmitted with a new
    /// epoch of its component.
    MustBeReadmitted {
        /// Why, for its operator.
        why: String,
    },
}

impl Standing {
    /// What this end of a replica says of its standing; nothing where it says only that something is to be
    /// mended first, after which the same replica may start.
    #[must_use]
    pub fn of(ended: &RunError) -> Option<Self> {
        let over = match ended {
            RunError::Marker(why) => why.is_over(),
            RunError::Durable(why) => why.must_not_vote(),
            RunError::Start(why) => matches!(why, RecoveryError::BodyMissing(..)),
            _ => false,
        };
        over.then(|| Self::MustBeReadmitted { why: ended.to_string() })
    }
}

/// Why what a directory holds need not be the last that was written to it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unproven {
    /// The machine lost what was not synced.
    #[error(
        "what this replica did last may be lost: it kept its log with durability = \"{0}\", and the machine has started \
         anew since, so it must not vote under its old keys\n  mend: have it readmitted under a new epoch; until then \
         leave it stopped, the group bears f such replicas"
    )]
    MachineLost(&'static str),
    /// Nobody knows how the directory was kept.
    #[error(
        "the file `{FILE}` beside this replica's log is not what was written there, so nobody knows whether the log is \
         the whole of what it did, and it must not vote under its old keys\n  mend: have it readmitted under a new epoch; \
         until then leave it stopped, the group bears f such replicas"
    )]
    Unreadable,
}

/// How a directory is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The name of the durability; how often it syncs makes no difference.
    durability: &'static str,
    boot: BootId,
}

/// Takes a directory over for this run: refuses one whose contents need not be the last, makes durable what
/// an earlier run left to the system where this one promises more, and writes down how it is kept from now
/// on, durably. To be called before anything else is done in it.
///
/// A directory without that file was written by a version that synced everything, or is new.
pub(crate) fn take_over<D: Disk>(disk: &D, durability: Durability, boot: BootId) -> Result<(), DurableError> {
    let now = Kept { durability: durability.name(), boot };
    let always = Durability::Always.name();
    if let Some(before) = read(disk)? {
        if before.durability != always && before.boot != boot {
            return Err(Unproven::MachineLost(before.durability).into());
        }
        if before == now {
            return Ok(());
        }
        if before.durability != always && before.durability != now.durability {
            sync_everything(disk)?;
        }
    }
    Ok(write(disk, &now)?)
}

fn read<D: Disk>(disk: &D) -> Result<Option<Kept>, DurableError> {
    let file = match disk.open(FILE) {
        Ok(file) => file,
        Err(DiskError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(why.into()),
    };
    let mut bytes = [0; MOST];
    let read = file.read_at(0, &mut bytes)?;
    let kept = std::str::from_utf8(&bytes[..read]).ok().and_then(parse);
    kept.map(Some).ok_or(DurableError::Unproven(Unproven::Unreadable))
}

fn parse(text: &str) -> Option<Kept> {
    let mut lines = text.lines();
    let (head, durability, boot) = (lines.next()?, lines.next()?, lines.next()?);
    let known = Durability::NAMES.into_iter().find(|name| *name == durability)?;
    let whole = head == HEAD && lines.next().is_none() && text.ends_with('\n');
    whole.then_some(Kept { durability: known, boot: BootId(hex::decode(boot)?) })
}

fn text(kept: &Kept) -> String {
    format!("{HEAD}\n{}\n{}\n", kept.durability, hex::encode(&kept.boot.0))
}

/// What is read of a text, as it would be written.
#[cfg(feature = "fuzz")]
pub(crate) fn written_again(read: &str) -> Option<String> {
    parse(read).as_ref().map(text)
}

fn write<D: Disk>(disk: &D, kept: &Kept) -> Result<(), DiskError> {
    // What an earlier start left half done.
    if disk.list()?.iter().any(|name| name == NEW) {
        disk.remove(NEW)?;
    }
    let text = text(kept);
    let mut file = disk.create(NEW)?;
    file.write_at(0, text.as_bytes())?;
    file.sync_all()?;
    disk.rename(NEW, FILE)?;
    disk.sync_directory()
}
