//! Snapshots come back whole, grow by what is new, are written anew when too much is old, and are found
//! out where they were damaged.

use super::ME;
use crate::{
    About, Disk, FaultyDisk, Identity, MAX_NODE, MemoryDisk, Nodes, RealDisk, SnapshotError, Snapshots, Tear,
};
use bytes::Bytes;

pub(super) type Node = ([u8; 32], Bytes);

pub(super) fn about(seq: u64) -> About {
    About { seq, time: seq * 10, root: [seq as u8; 32], extra: Bytes::from(format!("extra {seq}")) }
}

/// So many nodes that name their snapshot.
pub(super) fn nodes(seq: u64, count: u64) -> Vec<Node> {
    let node = |number: u64| {
        let mut digest = [seq as u8; 32];
        digest[..8].copy_from_slice(&number.to_le_bytes());
        (digest, Bytes::from(format!("node {number} of {seq} ").repeat(number as usize % 4)))
    };
    (0..count).map(node).collect()
}

pub(super) fn load<D: Disk>(snapshots: &Snapshots<D>, seq: u64) -> Result<Vec<Node>, SnapshotError> {
    snapshots.load(seq)?.collect()
}

fn open(disk: &MemoryDisk) -> (Snapshots<MemoryDisk>, crate::Held) {
    Snapshots::open(disk.clone(), ME).unwrap()
}

fn count(disk: &impl Disk, prefix: &str) -> usize {
    disk.list().unwrap().iter().filter(|name| name.starts_with(prefix)).count()
}

fn round_trip<D: Disk>(disk: &D) {
    let (mut snapshots, held) = Snapshots::open(disk.clone(), ME).unwrap();
    assert_eq!((held.newest, held.damaged.len()), (None, 0));
    assert!(snapshots.wants_full());
    snapshots.write(about(5), Nodes::Full, nodes(5, 20)).unwrap();
    snapshots.write(about(9), Nodes::Since(5), nodes(9, 3)).unwrap();
    let (snapshots, held) = Snapshots::open(disk.clone(), ME).unwrap();
    assert_eq!((held.newest, held.damaged.len()), (Some(about(9)), 0));
    assert_eq!(snapshots.newest(), Some(&about(9)));
    assert_eq!(load(&snapshots, 5).unwrap(), nodes(5, 20));
    assert_eq!(load(&snapshots, 9).unwrap(), [nodes(5, 20), nodes(9, 3)].concat());
    assert!(matches!(load(&snapshots, 6), Err(SnapshotError::Unknown(6))));
}

#[test]
fn snapshots_come_back() {
    round_trip(&MemoryDisk::default());
    let directory = tempfile::tempdir().unwrap();
    round_trip(&RealDisk::open(directory.path()).unwrap());
}

#[test]
fn large_snapshots_come_back() {
    let disk = MemoryDisk::default();
    let (mut snapshots, _) = open(&disk);
    let mut all = nodes(1, 100_000);
    all.push(([9; 32], Bytes::from(vec![9; 5 << 20])));
    all.push(([8; 32], Bytes::new()));
    snapshots.write(about(1), Nodes::Full, all.iter().cloned()).unwrap();
    assert_eq!(load(&open(&disk).0, 1).unwrap(), all);
}

#[test]
fn a_full_one_is_due_when_the_packs_hold_more_than_twice_the_last_and_old_ones_go() {
    let disk = MemoryDisk::default();
    let (mut snapshots, _) = open(&disk);
    let mut seq = 1;
    snapshots.write(about(1), Nodes::Full, nodes(1, 40)).unwrap();
    while !snapshots.wants_full() {
        snapshots.write(about(seq + 1), Nodes::Since(seq), nodes(seq + 1, 10)).unwrap();
        seq += 1;
        assert!(seq < 20, "it is never due");
    }
    assert!(seq > 3, "it was due at once");
    snapshots.write(about(50), Nodes::Full, nodes(50, 30)).unwrap();
    assert!(!snapshots.wants_full());
    assert_eq!(count(&disk, "snapshot-"), seq as usize + 1, "the log may stand on any of them");
    snapshots.retain(seq).unwrap();
    assert_eq!(count(&disk, "snapshot-"), 2);
    assert_eq!(load(&snapshots, seq).unwrap().len(), 40 + (seq as usize - 1) * 10);
    snapshots.retain(50).unwrap();
    assert_eq!((count(&disk, "snapshot-"), count(&disk, "pack-")), (1, 1));
    assert_eq!(load(&open(&disk).0, 50).unwrap(), nodes(50, 30));
}

#[test]
fn a_snapshot_in_the_wrong_order_is_refused() {
    let (mut snapshots, _) = open(&MemoryDisk::default());
    let refused = |result| assert!(matches!(result, Err(SnapshotError::Order { .. })), "{result:?}");
    refused(snapshots.write(about(2), Nodes::Since(1), nodes(2, 1)));
    snapshots.write(about(2), Nodes::Full, nodes(2, 1)).unwrap();
    refused(snapshots.write(about(2), Nodes::Full, nodes(2, 1)));
    refused(snapshots.write(about(1), Nodes::Full, nodes(1, 1)));
    refused(snapshots.write(about(4), Nodes::Since(3), nodes(4, 1)));
    refused(snapshots.write(about(2), Nodes::Since(2), nodes(2, 1)));
    assert!(matches!(snapshots.retain(7), Err(SnapshotError::Unknown(7))));
    let large = Bytes::from(vec![0; MAX_NODE + 1]);
    let result = snapshots.write(about(3), Nodes::Since(2), [([0; 32], large)]);
    assert!(matches!(result, Err(SnapshotError::TooLarge(_))));
    snapshots.write(about(3), Nodes::Since(2), nodes(3, 1)).unwrap();
}

#[test]
fn the_snapshots_of_another_are_refused() {
    let disk = MemoryDisk::default();
    open(&disk).0.write(about(1), Nodes::Full, nodes(1, 1)).unwrap();
    let other = Identity { replica: 9, ..ME };
    assert!(matches!(Snapshots::open(disk, other), Err(SnapshotError::Identity { .. })));
}

#[test]
fn a_full_disk_leaves_nothing_behind_and_the_snapshot_comes_later() {
    for late in [false, true] {
        for space in (0..2_000).step_by(23) {
            let below = MemoryDisk::default();
            let disk = FaultyDisk::new(below.clone()).unwrap();
            let (mut snapshots, _) = Snapshots::open(disk.clone(), ME).unwrap();
            snapshots.write(about(1), Nodes::Full, nodes(1, 20)).unwrap();
            let used = disk.used();
            disk.set_capacity(Some(used + space), late);
            let context = format!("late {late}, space {space}");
            match snapshots.write(about(2), Nodes::Since(1), nodes(2, 20)) {
                Ok(()) => assert!(space > 1_000, "{context}"),
                Err(why) => {
                    assert!(why.is_full(), "{context}: {why}");
                    assert_eq!(disk.used(), used, "{context}");
                    disk.set_capacity(None, late);
                    snapshots.write(about(2), Nodes::Since(1), nodes(2, 20)).unwrap();
                }
            }
            disk.kill(Tear::Nothing).unwrap();
            let (snapshots, held) = open(&below);
            assert_eq!((held.newest, held.damaged.len()), (Some(about(2)), 0), "{context}");
            assert_eq!(load(&snapshots, 2).unwrap(), [nodes(1, 20), nodes(2, 20)].concat(), "{context}");
        }
    }
}

#[test]
fn old_packs_that_cannot_be_removed_on_a_full_disk_go_later() {
    let disk = FaultyDisk::new(MemoryDisk::default()).unwrap();
    let (mut snapshots, _) = Snapshots::open(disk.clone(), ME).unwrap();
    snapshots.write(about(1), Nodes::Full, nodes(1, 20)).unwrap();
    // What a failed attempt left.
    drop(disk.create("pack-0000000000000077").unwrap());
    disk.set_removable(false);
    snapshots.write(about(2), Nodes::Full, nodes(2, 20)).unwrap();
    assert_eq!((load(&snapshots, 2).unwrap(), count(&disk, "pack-")), (nodes(2, 20), 3));
    snapshots.write(about(3), Nodes::Since(2), nodes(3, 20)).unwrap();
    // Snapshots that do not count any more are told of: their names are still there.
    assert!(snapshots.retain(3).unwrap_err().is_full());
    disk.set_removable(true);
    snapshots.retain(3).unwrap();
    assert_eq!(count(&disk, "pack-"), 2);
    assert_eq!(load(&snapshots, 3).unwrap(), [nodes(2, 20), nodes(3, 20)].concat());
}

#[test]
fn a_changed_byte_is_found_out_wherever_it_is() {
    let disk = MemoryDisk::default();
    let (mut snapshots, _) = open(&disk);
    snapshots.write(about(1), Nodes::Full, nodes(1, 5)).unwrap();
    snapshots.write(about(2), Nodes::Since(1), nodes(2, 5)).unwrap();
    for name in disk.list().unwrap() {
        let bytes = disk.contents(&name).unwrap();
        for at in 0..bytes.len() {
            let copy = disk.copy();
            let mut changed = bytes.clone();
            changed[at] ^= 0x04;
            copy.put(&name, changed);
            let found = match Snapshots::open(copy.clone(), ME) {
                Err(SnapshotError::Version { .. } | SnapshotError::Identity { .. }) => true,
                Err(why) => panic!("{name} byte {at}: {why}"),
                Ok((snapshots, held)) => {
                    assert_eq!(count(&copy, "pack-"), 2, "nothing is removed where there is damage");
                    !held.damaged.is_empty() || load(&snapshots, 2).is_err()
                }
            };
            assert!(found, "{name} byte {at}");
        }
        for len in 0..bytes.len() {
            let copy = disk.copy();
            copy.put(&name, bytes[..len].to_vec());
            let (_, held) = open(&copy);
            assert!(!held.damaged.is_empty(), "{name} cut to {len}");
        }
    }
    disk.remove("pack-0000000000000002").unwrap();
    let (snapshots, held) = open(&disk);
    assert_eq!((held.newest, held.damaged.len()), (Some(about(1)), 1), "the one before is found");
    assert_eq!(load(&snapshots, 1).unwrap(), nodes(1, 5));
}

#[test]
fn the_format_is_the_one_of_the_fixture() {
    let disk = MemoryDisk::default();
    let (mut snapshots, _) = open(&disk);
    snapshots.write(about(3), Nodes::Full, nodes(3, 3)).unwrap();
    snapshots.write(about(4), Nodes::Since(3), nodes(4, 1)).unwrap();
    let names = ["pack-0000000000000001", "snapshot-0000000000000004"];
    let hex = |bytes: Vec<u8>| {
        let lines: Vec<String> =
            bytes.chunks(32).map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect()).collect();
        lines.join("\n")
    };
    let shown: Vec<String> =
        names.iter().map(|name| format!("{name}\n{}\n", hex(disk.contents(name).unwrap()))).collect();
    let shown = shown.join("\n");
    assert_eq!(shown, include_str!("fixtures/snapshot-v1.txt"));
}
