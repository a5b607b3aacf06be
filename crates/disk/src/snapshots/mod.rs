//! Snapshots of the replicated state, as the nodes of a Merkle tree: each holds what the one before does
//! not have, and now and then one holds everything, so that what was dropped leaves the disk.
//!
//! Nodes go into packs, which no snapshot names before they are durable; a manifest names the packs of
//! one snapshot and comes into force by getting its name. Nothing here is on the path of a request: the whole store
//! belongs on a thread of its own.

mod format;
mod load;

pub use format::{About, MAX_NODE};

use crate::disk::create_anew;
use crate::{Disk, DiskError, DiskFile, Identity, SnapshotError};
use bytes::Bytes;
use format::{
    MAX_MANIFEST, MAX_PACKS, Manifest, Pack, encode_pack_header, manifest_name, number, pack_name, put_node,
};
use std::collections::{BTreeMap, BTreeSet};

/// Nodes are written in pieces of at least so many bytes.
const PIECE: usize = 1 << 20;
/// Bytes of a pack that wait to be synced. A pack of gigabytes that is synced at its end has the disk write all of it
/// at once, and a sync of the log that comes meanwhile waits behind it.
const UNSYNCED: u64 = 8 << 20;

/// What the nodes of a new snapshot are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// All of the tree's.
    Full,
    /// Those that the snapshot of this number, the newest, does not have.
    Since(u64),
}

/// What a directory holds when it is opened.
#[derive(Debug)]
pub struct Held {
    /// The newest whole snapshot.
    pub newest: Option<About>,
    /// Manifests that are there and not whole, or name packs that are not. A crash leaves none: they were damaged
    /// after they had been durable.
    pub damaged: Vec<SnapshotError>,
}

/// The snapshots of a directory.
pub struct Snapshots<D: Disk> {
    disk: D,
    identity: Identity,
    manifests: BTreeMap<u64, Manifest>,
    next_pack: u64,
    /// What is on the disk may not be what is known here, so nothing may be removed from it.
    failed: bool,
}

impl<D: Disk> Snapshots<D> {
    /// Finds the snapshots of a directory. Whether a manifest is whole and its packs have their lengths is
    /// looked at here; the nodes themselves only when they are read. Packs that no manifest names are removed, unless there
    /// is damage that somebody may want to look into.
    pub fn open(disk: D, identity: Identity) -> Result<(Self, Held), SnapshotError> {
        // What an earlier process did to names may not be durable, and what follows relies on it.
        disk.sync_directory()?;
        let names = disk.list()?;
        let mut manifests = BTreeMap::new();
        let mut damaged = Vec::new();
        for seq in names.iter().filter_map(|name| number(name, "snapshot-")) {
            match read_manifest(&disk, identity, seq) {
                Ok(manifest) => drop(manifests.insert(seq, manifest)),
                Err(why @ SnapshotError::Damaged { .. }) => damaged.push(why),
                Err(why) => return Err(why),
            }
        }
        let last_pack = names.iter().filter_map(|name| number(name, "pack-")).max();
        let next_pack = last_pack.map_or(Some(1), |last| last.checked_add(1)).ok_or_else(|| {
            let file = pack_name(u64::MAX);
            SnapshotError::Damaged { file, offset: 0, what: "no pack can have this number" }
        })?;
        let newest = manifests.values().next_back().map(|manifest| manifest.about.clone());
        let this = Self { disk, identity, manifests, next_pack, failed: false };
        for name in names
            .iter()
            .filter(|name| name.strip_suffix(".new").is_some_and(|name| number(name, "snapshot-").is_some()))
        {
            match this.disk.remove(name) {
                // It counts for nothing, and goes when one of its number is written.
                Err(why) if !why.is_full() => return Err(why.into()),
                _ => {}
            }
        }
        if damaged.is_empty() {
            this.remove_packs_or_wait()?;
        }
        Ok((this, Held { newest, damaged }))
    }

    /// What the newest snapshot is of.
    #[must_use]
    pub fn newest(&self) -> Option<&About> {
        self.manifests.values().next_back().map(|manifest| &manifest.about)
    }

    /// What the snapshots are of, the newest first.
    pub fn all(&self) -> impl Iterator<Item = About> {
        let all: Vec<About> = self.manifests.values().rev().map(|manifest| manifest.about.clone()).collect();
        all.into_iter()
    }

    /// Takes a snapshot whose nodes turned out to be damaged out of the way, durably: it counts no more, one of
    /// its number may be written again, and its manifest stays under another name for whoever looks into it.
    ///
    /// # Errors
    /// [`SnapshotError::Unknown`] where there is none; otherwise as the disk reports.
    pub fn set_aside(&mut self, seq: u64) -> Result<(), SnapshotError> {
        if !self.manifests.contains_key(&seq) {
            return Err(SnapshotError::Unknown(seq));
        }
        self.guard(|this| {
            this.disk.rename(&manifest_name(seq), &(manifest_name(seq) + ".damaged"))?;
            this.manifests.remove(&seq);
            this.disk.sync_directory().map_err(SnapshotError::Disk)
        })
    }

    /// Whether the next snapshot should be a full one: there is none, or the newest one's packs hold more
    /// than twice what its full one held. Past 65,536 packs no other is taken.
    #[must_use]
    pub fn wants_full(&self) -> bool {
        let Some(newest) = self.manifests.values().next_back() else { return true };
        let all: u64 = newest.packs.iter().map(|pack| pack.length).fold(0, u64::saturating_add);
        all > newest.packs[0].length.saturating_mul(2) || newest.packs.len() >= MAX_PACKS
    }

    /// Writes a snapshot, which is durable and in force when this returns; before, and after an error, the one
    /// before it is. Its number must be above all others.
    ///
    /// Older snapshots stay until [`Snapshots::retain`] names one that is newer, because the log may stand on them.
    pub fn write(
        &mut self,
        about: About,
        nodes: Nodes,
        all: impl IntoIterator<Item = ([u8; 32], Bytes)>,
    ) -> Result<(), SnapshotError> {
        let newest = self.newest().map(|newest| newest.seq);
        let follows = newest.is_none_or(|newest| newest < about.seq);
        let mut packs = match nodes {
            Nodes::Full if follows => Vec::new(),
            Nodes::Since(seq)
                if follows && newest == Some(seq) && self.manifests[&seq].packs.len() < MAX_PACKS =>
            {
                self.manifests[&seq].packs.clone()
            }
            _ => return Err(SnapshotError::Order { seq: about.seq, newest }),
        };
        if about.extra.len() > MAX_NODE {
            return Err(SnapshotError::TooLarge(about.extra.len()));
        }
        self.guard(|this| {
            let pack = this.next_pack;
            // A number is never used twice, so that what is left of a failed attempt is in nobody's way.
            this.next_pack += 1;
            let (new, name) = (new_name(about.seq), manifest_name(about.seq));
            let attempt = this.write_pack(pack, all).and_then(|length| {
                packs.push(Pack { number: pack, length });
                let manifest = Manifest { about, packs };
                this.write_manifest(&manifest)?;
                this.disk.rename(&new, &name)?;
                Ok(manifest)
            });
            let manifest = match attempt {
                Ok(manifest) => manifest,
                Err(why) => {
                    // Of both as much as can be: to take one back may need space.
                    let (pack, new) = (this.take_back(&pack_name(pack)), this.take_back(&new));
                    pack.and(new)?;
                    return Err(why);
                }
            };
            // It may be in force from here on, whatever this says: there is no way back, not even for space.
            this.disk.sync_directory().map_err(SnapshotError::Disk)?;
            this.manifests.insert(manifest.about.seq, manifest);
            this.remove_packs_or_wait()
        })
    }

    /// Says that the log stands, durably, on this snapshot: all older ones are removed.
    pub fn retain(&mut self, seq: u64) -> Result<(), SnapshotError> {
        if !self.manifests.contains_key(&seq) {
            return Err(SnapshotError::Unknown(seq));
        }
        self.guard(|this| {
            while let Some(old) = this.manifests.keys().next().copied().filter(|old| *old < seq) {
                this.disk.remove(&manifest_name(old))?;
                this.manifests.remove(&old);
            }
            // A manifest that came back after a crash would name packs that are gone.
            this.disk.sync_directory().map_err(SnapshotError::Disk)?;
            this.remove_packs_or_wait()
        })
    }

    /// Runs a step, and takes no other where it fails such that the disk may hold what is not known here.
    fn guard(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<(), SnapshotError>,
    ) -> Result<(), SnapshotError> {
        if self.failed {
            return Err(SnapshotError::Failed);
        }
        let result = step(self);
        self.failed = matches!(result, Err(SnapshotError::Disk(_)));
        result
    }

    /// All nodes of a snapshot, in the order in which they were written, also those that it has no more; a node may
    /// come twice. Whether bytes fit their digest is for the caller to check.
    pub fn load(
        &self,
        seq: u64,
    ) -> Result<impl Iterator<Item = Result<([u8; 32], Bytes), SnapshotError>> + use<D>, SnapshotError> {
        let mut packs = self.packs_of(seq)?;
        packs.reverse();
        Ok(load::Load::new(self.disk.clone(), self.identity, packs))
    }

    /// The same nodes, those of the newest pack first. In this order every node comes behind the one that names it, so a
    /// reader knows of each whether the snapshot still has it.
    pub fn load_newest_first(
        &self,
        seq: u64,
    ) -> Result<impl Iterator<Item = Result<([u8; 32], Bytes), SnapshotError>> + use<D>, SnapshotError> {
        Ok(load::Load::new(self.disk.clone(), self.identity, self.packs_of(seq)?))
    }

    fn packs_of(&self, seq: u64) -> Result<Vec<Pack>, SnapshotError> {
        let manifest = self.manifests.get(&seq).ok_or(SnapshotError::Unknown(seq))?;
        Ok(manifest.packs.clone())
    }

    fn write_pack(
        &self,
        pack: u64,
        all: impl IntoIterator<Item = ([u8; 32], Bytes)>,
    ) -> Result<u64, SnapshotError> {
        let mut file = self.disk.create(&pack_name(pack))?;
        let mut piece = encode_pack_header(self.identity, pack);
        let (mut written, mut synced) = (0, 0);
        for (index, (digest, bytes)) in all.into_iter().enumerate() {
            if bytes.len() > MAX_NODE {
                return Err(SnapshotError::TooLarge(bytes.len()));
            }
            put_node(&mut piece, pack, index as u64, &digest, &bytes);
            if piece.len() >= PIECE {
                file.write_at(written, &piece)?;
                written += piece.len() as u64;
                piece.clear();
                if written - synced >= UNSYNCED {
                    file.sync_data()?;
                    file.is_not_read_soon(synced, written);
                    synced = written;
                }
            }
        }
        file.write_at(written, &piece)?;
        file.sync_all()?;
        let length = written + piece.len() as u64;
        file.is_not_read_soon(synced, length);
        Ok(length)
    }

    /// Writes a manifest under a name that does not count yet. Its packs' names are durable first.
    fn write_manifest(&self, manifest: &Manifest) -> Result<(), SnapshotError> {
        let new = new_name(manifest.about.seq);
        let mut file = create_anew(&self.disk, &new)?;
        file.write_at(0, &manifest.encode(self.identity))?;
        file.sync_all()?;
        Ok(self.disk.sync_directory()?)
    }

    /// Removes what is left of a failed attempt, if anything is.
    fn take_back(&self, name: &str) -> Result<(), SnapshotError> {
        match self.disk.remove(name) {
            Err(DiskError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(()),
            done => Ok(done?),
        }
    }

    /// Removes every pack that no manifest names. Where there is no space to remove one (there are such file systems) it is
    /// left for the next time: what was asked for is done, and to say that there was no space for it would be wrong.
    fn remove_packs_or_wait(&self) -> Result<(), SnapshotError> {
        match self.remove_packs() {
            Err(SnapshotError::Full(_)) => Ok(()),
            done => done,
        }
    }

    fn remove_packs(&self) -> Result<(), SnapshotError> {
        let named: BTreeSet<u64> = self
            .manifests
            .values()
            .flat_map(|manifest| manifest.packs.iter().map(|pack| pack.number))
            .collect();
        for name in self.disk.list()? {
            if number(&name, "pack-").is_some_and(|pack| !named.contains(&pack)) {
                self.disk.remove(&name)?;
            }
        }
        Ok(())
    }
}

fn new_name(seq: u64) -> String {
    manifest_name(seq) + ".new"
}

/// Reads a manifest and looks at the lengths of its packs.
fn read_manifest<D: Disk>(disk: &D, identity: Identity, seq: u64) -> Result<Manifest, SnapshotError> {
    let name = manifest_name(seq);
    let damaged = |what| SnapshotError::Damaged { file: name.clone(), offset: 0, what };
    let file = disk.open(&name)?;
    let len = file.len()?;
    if len > MAX_MANIFEST {
        return Err(damaged("it is longer than a manifest can be"));
    }
    let mut bytes = vec![0; len as usize];
    let read = file.read_at(0, &mut bytes)?;
    let manifest = Manifest::decode(&name, &bytes[..read], identity, seq)?;
    for pack in &manifest.packs {
        let length = match disk.open(&pack_name(pack.number)) {
            Ok(file) => file.len()?,
            Err(DiskError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Err(damaged("a pack that it names is missing"));
            }
            Err(why) => return Err(why.into()),
        };
        if length != pack.length {
            return Err(damaged("a pack that it names has another length"));
        }
    }
    Ok(manifest)
}
