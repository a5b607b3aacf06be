//! With which trusted component a log was kept last, where a replica goes on with its log and another component
//! (`docs/protocols/a2m-pbft-e.md`, "New logs"). It tells a component that is new by the operator's word from one that
//! has forgotten what it did.

use crate::config::{Cluster, Layout};
use crate::durable::DurableError;
use crate::standing::Unproven;
use std::io;
use troth_disk::{Disk, DiskError, DiskFile};
use troth_trusted::Epoch;
use troth_types::ReplicaId;

/// Says of which epoch the component is; it is not there while that is the one that the group began with.
const FILE: &str = "component";
/// The same while it is written.
const NEW: &str = "component.new";
/// The first line: what the file is, and the version of its format.
const HEAD: &str = "troth component 1";
/// More bytes than the file has.
const MOST: usize = 64;

/// The epoch of the component with which the log in this directory was kept last.
///
/// # Errors
/// Where it cannot be read, or is not what was written there.
pub(crate) fn kept_with<D: Disk>(disk: &D, cluster: &Cluster, me: ReplicaId) -> Result<Epoch, DurableError> {
    let file = match disk.open(FILE) {
        Ok(file) => file,
        Err(DiskError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Ok(cluster.replica(me).epoch);
        }
        Err(why) => return Err(why.into()),
    };
    let mut bytes = [0; MOST];
    let read = file.read_at(0, &mut bytes)?;
    let epoch = std::str::from_utf8(&bytes[..read]).ok().and_then(parse);
    epoch.ok_or(DurableError::Unproven(Unproven::Unreadable(FILE, cluster.protocol)))
}

/// Whether the component of this epoch was admitted, or is to be, in the place of another, and its replica has not started
/// with it: it has lost nothing yet. What cannot be read says nothing here: the replica finds it when it starts.
#[must_use]
pub fn awaits_its_component(layout: &Layout, cluster: &Cluster, me: ReplicaId, epoch: Epoch) -> bool {
    if !cluster.protocol.renews_components() {
        return false;
    }
    let before = match std::fs::read_to_string(layout.data(me).join(FILE)) {
        Ok(text) => parse(&text),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Some(cluster.replica(me).epoch),
        Err(_) => None,
    };
    before.is_some_and(|before| before < epoch)
}

/// Writes it down, durably. To be called before anything is asked of the component that its logs keep.
pub(crate) fn keep_with<D: Disk>(disk: &D, epoch: Epoch) -> Result<(), DiskError> {
    // What an earlier start left half done.
    if disk.list()?.iter().any(|name| name == NEW) {
        disk.remove(NEW)?;
    }
    let mut file = disk.create(NEW)?;
    file.write_at(0, text(epoch).as_bytes())?;
    file.sync_all()?;
    disk.rename(NEW, FILE)?;
    disk.sync_directory()
}

fn text(epoch: Epoch) -> String {
    format!("{HEAD}\n{}\n", epoch.0)
}

/// What is read of a text, as it would be written.
#[cfg(feature = "fuzz")]
pub(crate) fn written_again(read: &str) -> Option<String> {
    parse(read).map(text)
}

fn parse(text: &str) -> Option<Epoch> {
    let mut lines = text.lines();
    let (head, epoch) = (lines.next()?, lines.next()?);
    let whole = head == HEAD && lines.next().is_none() && text.ends_with('\n');
    whole.then(|| epoch.parse().ok().map(Epoch)).flatten()
}
