//! A full disk under a replica: it waits, holds little while it does, and goes on by itself when there is space.

use super::engine::files;
use crate::assembly::engine;
use crate::beside::{Desk, Done};
use crate::clock::Clock;
use crate::component::Here;
use crate::disk_journal::DiskJournal;
use crate::durable::{Footing, Opened};
use crate::engine::Blocked;
use crate::engine::Engine;
use crate::inbox::{Inbox, Party};
use crate::journal::Journal;
use crate::snapshots::Keeper;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use troth_auth::{Ed25519Signer, Signer};
use troth_disk::{
    Disk, DiskError, DiskFile, FaultyDisk, Identity, Log, LogOptions, MemoryDisk, MemoryFile, Tear,
};
use troth_exec::{MerkleMap, Snapshot};
use troth_kv::Null;
use troth_trusted::{TrustedCore, VolatileStore};
use troth_trusted_host::InProcess;
use troth_types::{ClientId, FrameDraft, ReplicaId, Seq, Time, ToReplica, Wire, Wish};

const OWNER: Identity = Identity { group: [4; 32], replica: 0 };

fn journal<D: Disk + Sync>(disk: D) -> (DiskJournal<D>, Desk, usize) {
    let (log, held) = Log::open(disk.clone(), OWNER, LogOptions::new(1)).expect("whole");
    let keeper = Keeper::open(disk, OWNER, held.base).expect("whole");
    let desk = Desk::default();
    let journal = DiskJournal::start(log, Seq(0), 0, keeper, desk.clone(), None).expect("threads start");
    (journal, desk, held.records.len())
}

fn next(desk: &Desk) -> Done {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let woken = async {
            loop {
                match desk.take() {
                    Some(done) => return done,
                    None => desk.woken().await,
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(60), woken).await.expect("the threads answer")
    })
}

/// A disk that has no space for snapshots.
#[derive(Clone, Default)]
struct Crowded {
    disk: MemoryDisk,
    crowded: Arc<AtomicBool>,
}

struct CrowdedFile {
    file: MemoryFile,
    crowded: Option<Arc<AtomicBool>>,
}

impl Disk for Crowded {
    type File = CrowdedFile;
    fn list(&self) -> Result<Vec<String>, DiskError> {
        self.disk.list()
    }
    fn create(&self, name: &str) -> Result<CrowdedFile, DiskError> {
        let crowded = name.starts_with("pack-").then(|| Arc::clone(&self.crowded));
        Ok(CrowdedFile { file: self.disk.create(name)?, crowded })
    }
    fn open(&self, name: &str) -> Result<CrowdedFile, DiskError> {
        Ok(CrowdedFile { file: self.disk.open(name)?, crowded: None })
    }
    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.disk.rename(from, to)
    }
    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.disk.remove(name)
    }
    fn sync_directory(&self) -> Result<(), DiskError> {
        self.disk.sync_directory()
    }
}

impl DiskFile for CrowdedFile {
    fn len(&self) -> Result<u64, DiskError> {
        self.file.len()
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        self.file.read_at(offset, buffer)
    }
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        if self.crowded.as_ref().is_some_and(|crowded| crowded.load(Ordering::Relaxed)) {
            return Err(DiskError::Full { what: "write", file: "pack".to_string() });
        }
        self.file.write_at(offset, bytes)
    }
    fn reserve(&mut self, from: u64, to: u64) -> Result<(), DiskError> {
        self.file.reserve(from, to)
    }
    fn set_len(&mut self, len: u64) -> Result<(), DiskError> {
        self.file.set_len(len)
    }
    fn sync_data(&mut self) -> Result<(), DiskError> {
        Ok(())
    }
    fn sync_all(&mut self) -> Result<(), DiskError> {
        Ok(())
    }
}

fn state(seq: u64) -> Snapshot {
    let mut map = MerkleMap::new();
    map.insert(b"seq", Bytes::copy_from_slice(&seq.to_be_bytes()));
    Snapshot::of(Seq(seq), Time(seq), map.tree_now())
}

/// Bytes of the files of a disk whose names begin so.
fn bytes(disk: &MemoryDisk, prefix: &str) -> usize {
    let names = disk.list().expect("its files").into_iter().filter(|name| name.starts_with(prefix));
    names.map(|name| disk.contents(&name).expect("it is listed").len()).sum()
}

/// Of a large state under much load each takes long, and the log has to begin anew all the same.
#[test]
fn however_much_comes_while_a_snapshot_is_written_the_log_begins_with_it() {
    const EACH: usize = 8 << 20;
    const RECORDS: usize = 20;
    let disk = Crowded::default();
    let (mut home, desk, _) = journal(disk.clone());
    let append = |home: &mut DiskJournal<Crowded>, record: Bytes| {
        home.append(record);
        home.sync();
        assert!(matches!(next(&desk), Done::Synced));
    };
    for seq in [64, 128, 192] {
        disk.crowded.store(true, Ordering::Relaxed);
        home.new_segment(state(seq), false);
        for _ in 0..RECORDS {
            append(&mut home, Bytes::from(vec![seq as u8; EACH]));
            assert!(!home.wants_segment(), "one is still being written");
        }
        disk.crowded.store(false, Ordering::Relaxed);
        assert!(matches!(next(&desk), Done::Snapshot(Seq(done)) if done == seq));
        home.snapshot_done(Seq(seq));
        assert!(home.wants_segment(), "much has come");
        // What is written from now on stands behind it.
        append(&mut home, Bytes::from_static(b"next"));
    }
    // What it was asked for is done when it is gone.
    drop(home);
    let disk = disk.disk;
    let most = (RECORDS + 1) * EACH + (64 << 20);
    assert!(bytes(&disk, "log-") <= most, "{} bytes of log", bytes(&disk, "log-"));
    let snapshots = disk.list().expect("its files").into_iter().filter(|name| name.starts_with("snapshot-"));
    assert_eq!(snapshots.collect::<Vec<_>>(), ["snapshot-00000000000000c0"]);
    let (log, held) = Log::open(disk, OWNER, LogOptions::new(1)).expect("whole");
    drop(log);
    assert_eq!((held.base, held.records.len()), (Some(192), RECORDS + 1));
    assert!(held.records[..RECORDS].iter().all(|record| record.len() == EACH && record[0] == 192));
    assert_eq!(held.records[RECORDS], b"next"[..]);
}

#[test]
fn a_replica_on_a_full_disk_waits_and_goes_on_when_there_is_space() {
    let (cluster, secret, client) = files("full-disk");
    let below = MemoryDisk::default();
    let disk = FaultyDisk::new(below.clone()).expect("empty");
    let (log, desk, _) = journal(disk.clone());
    disk.set_capacity(Some(disk.used()), false);
    let identity = cluster.identity(ReplicaId(0), cluster.replica(ReplicaId(0)).epoch);
    let key = secret.trusted.clone().expect("in process");
    let component = InProcess::new(TrustedCore::start(identity, key, VolatileStore));
    let opened = Opened {
        component: Some(Box::new(Here::new(component, None))),
        journal: Box::new(log),
        desk: desk.clone(),
        found: None,
    };
    let executor = crate::assembly::executor(&cluster, Null::new(8));
    let footing = Footing::Durable(Box::new(opened));
    let mut replica: Engine<troth_minbft::MinBft, _> =
        engine(&cluster, secret, executor, Clock::new(), footing).expect("it starts");
    replica.commands().expect("nothing is refused");
    let draft = FrameDraft {
        group: cluster.group.id(),
        client: ClientId(1),
        number: 1,
        events_seen: 0,
        operations: vec![Bytes::from_static(b"x")],
    };
    let signature = Ed25519Signer::from_seed(client.seed).sign(&draft.signing_digest());
    let request = ToReplica::Request { frame: Arc::new(draft.sign(signature)), wish: Wish::Usual };
    let inbox = Inbox::new();
    inbox.push(&inbox.lane(Party::Client(ClientId(1))), request.to_wire());

    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    while !replica.disk_full {
        replica.turn(&inbox).expect("a full disk ends nothing");
        if !replica.disk_full {
            runtime.block_on(desk.woken());
        }
    }
    assert_eq!(replica.blocked, Some(Blocked::Sync));
    for _ in 0..3 {
        replica.turn(&inbox).expect("it waits");
    }
    assert_eq!((replica.counters.attestations, replica.counters.peer_dropped), (0, 0), "nothing leaves");

    disk.set_capacity(None, false);
    while replica.counters.peer_dropped < 2 {
        replica.turn(&inbox).expect("it goes on");
        if replica.blocked.is_some() {
            runtime.block_on(desk.woken());
        }
    }
    assert!(!replica.disk_full);
    // What it certified is on the disk, whatever happens now.
    disk.kill(Tear::Nothing).expect("a loss of power");
    drop(replica);
    assert!(journal(below).2 > 0);
}
