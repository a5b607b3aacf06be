//! Snapshots on a replica's disk: one file each, complete from the moment it has its name.
//!
//! ```text
//! snapshot-<sequence number>:  magic 8 | version u16 | group 32 | replica u16 | digest 32 | the encoded snapshot
//! ```
//!
//! The digest is that of the checkpoint, so it vouches for every byte of the content.

use bytes::Bytes;
use thiserror::Error;
use troth_disk::{Disk, DiskError, DiskFile, Identity};
use troth_exec::Snapshot;
use troth_types::Seq;

const MAGIC: &[u8; 8] = b"TROTHSNP";
const VERSION: u16 = 1;
const HEADER: usize = 8 + 2 + 32 + 2 + 32;
/// Written at a time, so that the log's writes have their turn.
const SLICE: usize = 1 << 20;

/// Why the snapshot that a log stands on cannot be used.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// The disk.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// It is not what was written.
    #[error(
        "{0} is missing, damaged or another replica's, and the log stands on it\n  mend: restore the directory from a backup; \
         without it this replica must stay stopped: the group bears f such replicas"
    )]
    Unusable(String),
}

fn name(seq: Seq) -> String {
    format!("snapshot-{:016x}", seq.0)
}

/// The number in a snapshot's name.
fn number(name: &str) -> Option<Seq> {
    let digits = name.strip_prefix("snapshot-")?.strip_suffix(".new").or(name.strip_prefix("snapshot-"))?;
    (digits.len() == 16).then(|| u64::from_str_radix(digits, 16).ok().map(Seq)).flatten()
}

fn header(owner: Identity, snapshot_digest: &[u8; 32]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&owner.group);
    out.extend_from_slice(&owner.replica.to_le_bytes());
    out.extend_from_slice(snapshot_digest);
    out
}

/// Writes a snapshot; it is durable when this returns.
pub(crate) fn write(disk: &impl Disk, owner: Identity, snapshot: &Snapshot) -> Result<(), DiskError> {
    let (name, new) = (name(snapshot.seq()), format!("{}.new", name(snapshot.seq())));
    if disk.list()?.contains(&new) {
        disk.remove(&new)?;
    }
    let fill = || {
        let mut file = disk.create(&new)?;
        let content = snapshot.encode();
        file.write_at(0, &header(owner, &snapshot.digest().0))?;
        let mut at = HEADER as u64;
        for slice in content.chunks(SLICE) {
            file.write_at(at, slice)?;
            file.sync_data()?;
            at += slice.len() as u64;
        }
        file.sync_all()
    };
    if let Err(why) = fill() {
        if why.is_full() {
            disk.remove(&new)?;
        }
        return Err(why);
    }
    disk.rename(&new, &name)?;
    disk.sync_directory()
}

/// The snapshot that a log stands on.
pub(crate) fn load(disk: &impl Disk, owner: Identity, base: u64) -> Result<Snapshot, SnapshotError> {
    let name = name(Seq(base));
    let unusable = || SnapshotError::Unusable(name.clone());
    if !disk.list()?.contains(&name) {
        return Err(unusable());
    }
    let file = disk.open(&name)?;
    let length = usize::try_from(file.len()?).map_err(|_| unusable())?;
    let mut bytes = vec![0; length];
    let read = file.read_at(0, &mut bytes)?;
    if read < HEADER || read != length {
        return Err(unusable());
    }
    let bytes = Bytes::from(bytes);
    let snapshot = Snapshot::decode(&bytes.slice(HEADER..)).ok_or_else(unusable)?;
    let whole = snapshot.seq() == Seq(base) && bytes[..HEADER] == header(owner, &snapshot.digest().0)[..];
    if whole { Ok(snapshot) } else { Err(unusable()) }
}

/// Removes every snapshot but this one, finished or not; later ones stay.
pub(crate) fn retain(disk: &impl Disk, base: Seq) -> Result<(), DiskError> {
    for name in disk.list()? {
        if number(&name).is_some_and(|seq| seq < base) {
            disk.remove(&name)?;
        }
    }
    Ok(())
}
