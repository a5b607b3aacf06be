//! Whether a replica may go on from what it kept. A stored boot id tells a process that was
//! killed from a machine that was lost: what was written and not synced survives the one and not the other.
//!
//! | `durability` | replica killed | its component killed | machine lost |
//! | --- | --- | --- | --- |
//! | `always` | resumes | resumes | resumes |
//! | `interval` | resumes | resumes | must be readmitted |
//! | `memory` | resumes, where its component lived on | must be readmitted | must be readmitted |
//!
//! A replica without a component has nothing in its process that it could not read again: killed, it resumes in every
//! durability. That its log is not an older one nothing proves; who sets it back makes it one of the f faulty ones.

use crate::config::{Durability, Protocol, hex};
use crate::durable::DurableError;
use crate::run_error::RunError;
use std::io;
use thiserror::Error;
use troth_core::RecoveryError;
use troth_disk::{Disk, DiskError, DiskFile, Log, sync_everything};
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
            RunError::Contradiction(_) => true,
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
         anew since, so it must not vote under its old keys\n  mend: {way_back}; the group bears f such replicas",
        way_back = .1.way_back()
    )]
    MachineLost(&'static str, Protocol),
    /// Nobody knows how the directory was kept.
    #[error(
        "the file `{0}` beside this replica's log is not what was written there, so nobody knows whether the log is \
         the whole of what it did, and it must not vote under its old keys\n  mend: {way_back}; the group bears f such replicas",
        way_back = .1.way_back()
    )]
    Unreadable(&'static str, Protocol),
    /// Another protocol's replica kept it.
    #[error(
        "what lies beside this replica's keys was kept by a replica of protocol = \"{}\", and cluster.toml says \"{}\": what the \
         one promised, the other does not know\n  mend: put the cluster.toml back with which it ran, or give this replica the \
         directory that `troth init` made for it", .found.name(), .wanted.name()
    )]
    OtherProtocol {
        /// Whose it is.
        found: Protocol,
        /// What the configuration says.
        wanted: Protocol,
    },
}

/// How a directory is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    protocol: Protocol,
    /// The name of the durability; how often it syncs makes no difference.
    durability: &'static str,
    boot: BootId,
}

/// Takes a directory over for this run: refuses one whose contents need not be the last, makes durable what
/// an earlier run left to the system where this one promises more, and writes down how it is kept from now
/// on, durably. To be called before anything else is done in it.
///
/// A directory without that file was written by a version that synced everything and knew MinBFT alone, or is new.
pub(crate) fn take_over<D: Disk>(
    disk: &D,
    protocol: Protocol,
    durability: Durability,
    boot: BootId,
) -> Result<(), DurableError> {
    let now = Kept { protocol, durability: durability.name(), boot };
    let always = Durability::Always.name();
    if let Some(before) = read(disk, protocol)? {
        if before.protocol != protocol {
            return Err(Unproven::OtherProtocol { found: before.protocol, wanted: protocol }.into());
        }
        if before.durability != always && before.boot != boot {
            return Err(Unproven::MachineLost(before.durability, protocol).into());
        }
        // For one that syncs everything it makes no difference when the machine began: a full disk must not keep it from starting.
        if before == now || before.durability == always && now.durability == always {
            return Ok(());
        }
        if before.durability != always && before.durability != now.durability {
            sync_everything(disk)?;
        }
    } else if protocol != Protocol::MinBft && Log::is_there(disk)? {
        return Err(Unproven::OtherProtocol { found: Protocol::MinBft, wanted: protocol }.into());
    }
    Ok(write(disk, &now)?)
}

fn read<D: Disk>(disk: &D, wanted: Protocol) -> Result<Option<Kept>, DurableError> {
    let file = match disk.open(FILE) {
        Ok(file) => file,
        Err(DiskError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(why.into()),
    };
    let mut bytes = [0; MOST];
    let read = file.read_at(0, &mut bytes)?;
    let kept = std::str::from_utf8(&bytes[..read]).ok().and_then(parse);
    kept.map(Some).ok_or(DurableError::Unproven(Unproven::Unreadable(FILE, wanted)))
}

fn parse(text: &str) -> Option<Kept> {
    let mut lines = text.lines();
    let (head, durability, boot) = (lines.next()?, lines.next()?, lines.next()?);
    let known = Durability::NAMES.into_iter().find(|name| *name == durability)?;
    // MinBFT's line is left out, so that an earlier release reads what it would have written.
    let protocol = match lines.next() {
        None => Protocol::MinBft,
        Some(name) => {
            let others = Protocol::ALL.into_iter().filter(|other| *other != Protocol::MinBft);
            others.into_iter().find(|other| other.name() == name)?
        }
    };
    let whole = head == HEAD && lines.next().is_none() && text.ends_with('\n');
    whole.then_some(Kept { protocol, durability: known, boot: BootId(hex::decode(boot)?) })
}

fn text(kept: &Kept) -> String {
    let protocol = match kept.protocol {
        Protocol::MinBft => String::new(),
        other => format!("{}\n", other.name()),
    };
    format!("{HEAD}\n{}\n{}\n{protocol}", kept.durability, hex::encode(&kept.boot.0))
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
