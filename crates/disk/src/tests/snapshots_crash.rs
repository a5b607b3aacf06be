//! A crash at every call of the snapshot store: the newest complete snapshot is there, whole, or the one
//! that was being written; and the one that the log stands on never goes.

use super::ME;
use super::snapshots::{Node, about, load, nodes};
use crate::{FaultyDisk, MemoryDisk, Nodes, SnapshotError, Snapshots, Tear};
use std::collections::BTreeMap;

type Disk = FaultyDisk<MemoryDisk>;

#[derive(Default)]
struct Model {
    /// The content of each snapshot that was ever begun.
    contents: BTreeMap<u64, Vec<Node>>,
    /// The newest that is complete.
    complete: u64,
    /// What the log stands on.
    retained: u64,
}

fn write(
    snapshots: &mut Snapshots<Disk>,
    model: &mut Model,
    seq: u64,
    full: bool,
) -> Result<(), SnapshotError> {
    let own = nodes(seq, 3 + seq % 3);
    let newest = snapshots.newest().map_or(0, |newest| newest.seq);
    let before = if full { Vec::new() } else { model.contents[&newest].clone() };
    model.contents.insert(seq, [before, own.clone()].concat());
    snapshots.write(about(seq), if full { Nodes::Full } else { Nodes::Since(newest) }, own)?;
    model.complete = seq;
    Ok(())
}

fn script(disk: &Disk, model: &mut Model) -> Result<(), SnapshotError> {
    let (mut snapshots, _) = Snapshots::open(disk.clone(), ME)?;
    for seq in 1..8 {
        write(&mut snapshots, model, seq, seq % 3 == 1)?;
        if seq % 2 == 0 {
            // The log is told first, so the store may already have forgotten what is older.
            model.retained = seq;
            snapshots.retain(seq)?;
        }
    }
    Ok(())
}

fn crashed_at(call: u64) -> (Disk, MemoryDisk, Model) {
    let below = MemoryDisk::default();
    let disk = FaultyDisk::new(below.clone()).unwrap();
    disk.crash_at(call);
    let mut model = Model::default();
    if let Err(why) = script(&disk, &mut model) {
        assert!(disk.is_dead(), "only the crash stops it: {why}");
    }
    (disk, below, model)
}

fn judge(below: &MemoryDisk, model: &Model, context: &str) {
    let (mut snapshots, held) =
        Snapshots::open(below.clone(), ME).unwrap_or_else(|why| panic!("{context}: {why}"));
    assert!(held.damaged.is_empty(), "{context}: {:?}", held.damaged);
    let newest = held.newest.map_or(0, |newest| newest.seq);
    assert!(newest == model.complete || newest == model.complete + 1, "{context}: {newest}");
    for seq in (model.retained..=model.complete).chain([newest]).filter(|seq| *seq > 0) {
        let found = load(&snapshots, seq).unwrap_or_else(|why| panic!("{context}: {seq}: {why}"));
        assert_eq!(found, model.contents[&seq], "{context}: {seq}");
    }
    snapshots.write(about(100), Nodes::Full, nodes(100, 2)).unwrap();
    snapshots.retain(100).unwrap();
    let (snapshots, held) = Snapshots::open(below.clone(), ME).unwrap();
    assert_eq!((held.newest, held.damaged.len()), (Some(about(100)), 0), "{context}");
    assert_eq!(load(&snapshots, 100).unwrap(), nodes(100, 2), "{context}");
}

fn calls() -> u64 {
    let (disk, _, model) = crashed_at(u64::MAX);
    assert_eq!(model.complete, 7);
    disk.calls()
}

#[test]
fn every_crash_with_every_prefix_of_the_unsynced_bytes() {
    for call in 1..=calls() {
        let unsynced = crashed_at(call).0.unsynced();
        for left in 0..=unsynced {
            let (disk, below, model) = crashed_at(call);
            disk.kill(Tear::Prefix(left)).unwrap();
            judge(&below, &model, &format!("call {call}, {left} of {unsynced} bytes"));
        }
    }
}

#[test]
fn every_crash_with_random_parts_of_the_unsynced_writes() {
    for call in 1..=calls() {
        for seed in call * 1_000..call * 1_000 + 60 {
            let (disk, below, model) = crashed_at(call);
            disk.kill(Tear::Random(seed)).unwrap();
            judge(&below, &model, &format!("call {call}, seed {seed}"));
        }
    }
}

#[test]
fn what_opening_returns_is_durable_though_the_process_before_had_not_synced_it() {
    for call in 1..=calls() {
        let (disk, below, model) = crashed_at(call);
        disk.restart();
        let (snapshots, held) = Snapshots::open(disk.clone(), ME).unwrap();
        drop(snapshots);
        disk.kill(Tear::Nothing).unwrap();
        let (_, again) = Snapshots::open(below.copy(), ME).unwrap();
        assert_eq!(again.newest, held.newest, "call {call}");
        judge(&below, &model, &format!("call {call}"));
    }
}
