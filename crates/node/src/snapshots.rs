//! Snapshots on a replica's disk, each written as what the one before does not have.

use bytes::Bytes;
use troth_disk::{About, Disk, Identity, Nodes, SnapshotError, Snapshots};
use troth_exec::{Gathering, PartError, Snapshot};
use troth_types::{Digest, Seq, Time};

/// What a thread beside the loop does with snapshots.
pub(crate) trait Keep {
    /// Writes a snapshot; it is durable when this returns. One that is there already is not written again.
    fn write(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError>;
    /// The log stands on this one: earlier ones go.
    fn retain(&mut self, base: Seq) -> Result<(), SnapshotError>;
}

/// The snapshots of a replica.
pub(crate) struct Keeper<D: Disk> {
    store: Snapshots<D>,
    /// The newest one that is on the disk, which the next is compared with.
    newest: Option<Snapshot>,
}

impl<D: Disk> Keeper<D> {
    /// Opens a replica's snapshots, and loads the newest from which the log goes on, or none where the log
    /// reaches back to the beginning. The newest may be ahead of the one that the log stands on: a crash came
    /// between the two. Where such a one is damaged, an earlier one serves as well, and it is set aside.
    ///
    /// # Errors
    /// [`SnapshotError`], also where the log stands on a snapshot and there is none that is whole; then
    /// everything is left as it is.
    pub(crate) fn open(disk: D, owner: Identity, base: Option<u64>) -> Result<Self, SnapshotError> {
        let (mut store, held) = Snapshots::open(disk, owner)?;
        for why in &held.damaged {
            tracing::error!(%why, "a snapshot is damaged");
        }
        let mut damage = held.damaged.into_iter().next();
        let mut aside = Vec::new();
        let mut newest = None;
        for about in store.all().filter(|about| base.is_none_or(|base| about.seq >= base)) {
            match loaded(&store, &about) {
                Ok(snapshot) => {
                    newest = Some(snapshot);
                    break;
                }
                Err(why @ SnapshotError::Damaged { .. }) => {
                    tracing::error!(%why, seq = about.seq, "a snapshot is damaged");
                    damage.get_or_insert(why);
                    aside.push(about.seq);
                }
                Err(why) => return Err(why),
            }
        }
        if let (None, Some(base)) = (&newest, base) {
            return Err(damage.unwrap_or(SnapshotError::Unknown(base)));
        }
        for seq in aside {
            tracing::warn!(seq, "goes on from an earlier state and the log since");
            store.set_aside(seq)?;
        }
        Ok(Self { store, newest })
    }

    /// The newest snapshot: what to start from.
    pub(crate) fn newest(&self) -> Option<&Snapshot> {
        self.newest.as_ref()
    }
}

impl<D: Disk> Keep for Keeper<D> {
    fn write(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        if self.newest.as_ref() == Some(snapshot) {
            return Ok(());
        }
        if self.store.wants_full() {
            // Nothing is compared with it, and while everything is written, which takes long, it would hold in memory
            // what all writes since have replaced.
            self.newest = None;
        }
        let older = self.newest.as_ref();
        let nodes = older.map_or(Nodes::Full, |older| Nodes::Since(older.seq().0));
        let about = About {
            seq: snapshot.seq().0,
            time: snapshot.time().0,
            root: snapshot.root().0,
            extra: Bytes::new(),
        };
        let parts = snapshot.parts_beyond(older).map(|(digest, bytes)| (digest.0, bytes));
        self.store.write(about, nodes, parts)?;
        self.newest = Some(snapshot.clone());
        Ok(())
    }

    fn retain(&mut self, base: Seq) -> Result<(), SnapshotError> {
        self.store.retain(base.0)
    }
}

/// Reads a snapshot; each of its parts is checked against the digest that names it.
fn loaded<D: Disk>(store: &Snapshots<D>, about: &About) -> Result<Snapshot, SnapshotError> {
    let damaged = |why: PartError| {
        tracing::error!(%why, seq = about.seq, "a snapshot is not whole");
        SnapshotError::Damaged {
            file: format!("snapshot-{:016x}", about.seq),
            offset: 0,
            what: "one of its parts is missing or is not what its digest names",
        }
    };
    let mut gathering = Gathering::new(Seq(about.seq), Time(about.time), Digest(about.root));
    loop {
        let mut went_on = false;
        for part in store.load_newest_first(about.seq)? {
            let (digest, bytes) = part?;
            went_on |= gathering.offer(Digest(digest), &bytes).map_err(damaged)?;
        }
        // One round does for what this release writes.
        if gathering.lacks().is_none() || !went_on {
            return gathering.finish().map_err(damaged);
        }
    }
}
