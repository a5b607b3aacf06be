//! Snapshots on a replica's disk, each written as what the one before does not have.

use bytes::Bytes;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use troth_disk::{About, Disk, Identity, Nodes, SnapshotError, Snapshots};
use troth_exec::{Gathering, PartError, Snapshot, StoreId};
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
    /// The newest one that is on the disk, and what its parts are marked with there.
    newest: Option<Newest>,
    /// The same, until somebody starts from it.
    start: Option<Snapshot>,
}

#[derive(Clone, Copy)]
struct Newest {
    seq: Seq,
    digest: Digest,
    parts: StoreId,
}

impl Newest {
    /// Of a snapshot that the disk has.
    fn of(snapshot: &Snapshot, parts: StoreId) -> Self {
        snapshot.put_in(parts);
        Self { seq: snapshot.seq(), digest: snapshot.digest(), parts }
    }
}

/// One that nobody else in this process has.
fn fresh() -> StoreId {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let last = LAST.fetch_add(1, Ordering::Relaxed);
    StoreId(NonZeroU32::new(last.wrapping_add(1)).expect("fewer than 2^32 full snapshots in one process"))
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
        Ok(Self { store, newest: newest.as_ref().map(|newest| Newest::of(newest, fresh())), start: newest })
    }

    /// The newest snapshot when it was opened: what to start from. It is given once, since it would hold in memory
    /// what is replaced later.
    pub(crate) fn take_start(&mut self) -> Option<Snapshot> {
        self.start.take()
    }
}

impl<D: Disk> Keep for Keeper<D> {
    fn write(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let same = |newest: &Newest| (newest.seq, newest.digest) == (snapshot.seq(), snapshot.digest());
        if self.newest.as_ref().is_some_and(same) {
            return Ok(());
        }
        // Packs of earlier ones go with them, so a full one has everything.
        let older = self.newest.filter(|_| !self.store.wants_full());
        let (nodes, parts) = match older {
            Some(older) => (Nodes::Since(older.seq.0), older.parts),
            None => (Nodes::Full, fresh()),
        };
        let about = About {
            seq: snapshot.seq().0,
            time: snapshot.time().0,
            root: snapshot.root().0,
            extra: Bytes::new(),
        };
        let lacking = snapshot.parts_not_in(parts).map(|(digest, bytes)| (digest.0, bytes));
        self.store.write(about, nodes, lacking)?;
        // Only now: what a failed attempt wrote is taken back.
        self.newest = Some(Newest::of(snapshot, parts));
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
