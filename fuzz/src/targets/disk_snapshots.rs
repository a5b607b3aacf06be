//! Opening snapshots and reading their nodes: from any bytes, from manifests and packs whose checksums are right,
//! and from snapshots that were written and then damaged, of which nothing false may come back.

use crate::bytes::{Steps, damage};
use crate::{Bound, Target};
use bytes::Bytes;
use troth_disk::{About, Disk, Identity, MemoryDisk, Nodes, Snapshots};

pub(super) const TARGET: Target = Target {
    name: "disk-snapshots",
    run,
    seeds,
    bound: Bound { fixed: 4 << 20, per_byte: 64 },
    longest: 4096,
};

/// A snapshot's number and its nodes.
type Read = (u64, Vec<([u8; 32], Bytes)>);

const ME: Identity = Identity { group: [7; 32], replica: 2 };

fn run(input: &[u8]) {
    let mut steps = Steps::new(input);
    match steps.byte() % 3 {
        0 => anything(&mut steps),
        1 => sealed(&mut steps),
        _ => damaged(&mut steps),
    }
}

/// Opens them and reads all nodes of each, as far as they can be read.
fn read(disk: &MemoryDisk, seqs: &[u64]) -> Vec<Read> {
    let Ok((snapshots, _)) = Snapshots::open(disk.clone(), ME) else { return Vec::new() };
    let mut whole = Vec::new();
    for seq in seqs {
        let Ok(nodes) = snapshots.load(*seq) else { continue };
        // A manifest may name a pack more than once, so there is no end to rely on but this.
        let nodes: Vec<_> = nodes.take(1_000).collect();
        let _ = snapshots.wants_full();
        if let Ok(nodes) = nodes.into_iter().collect() {
            whole.push((*seq, nodes));
        }
    }
    whole
}

fn manifest(seq: u64) -> String {
    format!("snapshot-{seq:016x}")
}

fn pack(number: u64) -> String {
    format!("pack-{number:016x}")
}

fn anything(steps: &mut Steps<'_>) {
    let disk = MemoryDisk::default();
    let length = usize::from(steps.short());
    disk.put(&manifest(1), steps.take(length).to_vec());
    disk.put(&pack(1), steps.rest().to_vec());
    read(&disk, &[1]);
}

fn front(magic: &[u8; 8]) -> Vec<u8> {
    [magic, &1_u16.to_le_bytes()[..], &ME.group, &ME.replica.to_le_bytes()].concat()
}

fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

fn sealed(steps: &mut Steps<'_>) {
    let disk = MemoryDisk::default();
    for number in 0..u64::from(steps.byte() % 3) {
        let mut bytes = front(b"TROTHPAK");
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes = seal(bytes);
        let length = usize::from(steps.byte());
        bytes.extend_from_slice(steps.take(length));
        disk.put(&pack(number), bytes);
    }
    let mut bytes = front(b"TROTHSNP");
    for number in [1, 10] {
        bytes.extend_from_slice(&u64::to_le_bytes(number));
    }
    bytes.extend_from_slice(&[3; 32]);
    // The number of packs, the packs, and what follows them, as the input has it.
    bytes.extend_from_slice(steps.rest());
    disk.put(&manifest(1), seal(bytes));
    read(&disk, &[1]);
}

fn damaged(steps: &mut Steps<'_>) {
    let disk = MemoryDisk::default();
    let (mut snapshots, _) = Snapshots::open(disk.clone(), ME).expect("an empty directory");
    let mut written: Vec<Read> = Vec::new();
    for seq in 1..=1 + u64::from(steps.byte() % 3) {
        let node = |steps: &mut Steps<'_>| ([steps.byte(); 32], Bytes::copy_from_slice(steps.chunk()));
        let new: Vec<_> = (0..steps.byte() % 4).map(|_| node(steps)).collect();
        let about = About { seq, time: seq, root: [1; 32], extra: Bytes::copy_from_slice(steps.chunk()) };
        let (nodes, mut all) = match written.last() {
            Some((before, all)) if steps.one_in(2) => (Nodes::Since(*before), all.clone()),
            _ => (Nodes::Full, Vec::new()),
        };
        all.extend(new.clone());
        snapshots.write(about, nodes, new).expect("it has room");
        written.push((seq, all));
    }
    drop(snapshots);
    let names = disk.list().expect("in memory");
    for _ in 0..1 + steps.byte() % 3 {
        let name = steps.one_of(&names).expect("there is a snapshot");
        let mut bytes = disk.contents(name).unwrap_or_default();
        damage(steps, &mut bytes);
        disk.put(name, bytes);
    }
    let seqs: Vec<u64> = written.iter().map(|(seq, _)| *seq).collect();
    for (seq, nodes) in read(&disk, &seqs) {
        let true_nodes = written.iter().find(|(at, _)| *at == seq).map(|(_, all)| all);
        assert_eq!(Some(&nodes), true_nodes, "a snapshot came back that was not written");
    }
}

fn seeds() -> Vec<Vec<u8>> {
    vec![
        vec![0, 4, 0, b'T', b'R', b'O', b'T'],
        [&[1, 1, 4, 9, 9, 9, 9, 1, 0, 0, 0][..], &[0; 8], &[58, 0, 0, 0, 0, 0, 0, 0], &[0; 4]].concat(),
        [
            &[2, 1, 2, 9, 3][..],
            b"one",
            &[8, 3],
            b"two",
            &[2],
            b"ex",
            &[1, 7, 4],
            b"more",
            &[0, 0, 0, 0, 60, 0, 1],
        ]
        .concat(),
    ]
}
