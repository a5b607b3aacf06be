//! The bytes of the files of logs, pinned: a changed fixture is a changed format.

use super::ledger::{call, open, store_file};
use crate::store::disk::Disk;
use crate::support::{IDENTITY, mac};
use sha2::{Digest as _, Sha256};
use troth_trusted::a2m::A2m;

const BLOCK: usize = 4096;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_bytes_of_a_store_of_logs_are_pinned() {
    let disk = Disk::new();
    let opened = open(&disk).expect("an empty disk");
    let mut component = A2m::restart(IDENTITY, mac(), opened.store, opened.logs).expect("its own");
    for number in 1..=5 {
        component.call(&call(number, 1), |_| ()).expect("the disk is sound");
    }
    assert_eq!(disk.names(), ["logs-0000000000000007-0000000000000002", "started"]);
    let file = disk.read(&store_file(&disk));
    assert_eq!(file.len(), 6 * BLOCK);
    // Magic, version, policy, slots, generation, first index, identity, boot; length of the base.
    assert_eq!(
        hex(&file[..81]),
        "54524f54484c4f470001010000000400000000000000020000000000000004030303030303030303030303030303\
         0300010000000000000007b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b00000000000000369"
    );
    // Magic, generation, index, boot, tag, identity, kind and length of the changes; the first of them.
    assert_eq!(
        hex(&file[3 * BLOCK..3 * BLOCK + 86]),
        "54524f544852454300000000000000020000000000000005b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b074726f74682d\
         61326d2d6a726e6c0303030303030303030303030303030300010000000000000007030086010000"
    );
    assert_eq!(hex(&file[2 * BLOCK + 80..2 * BLOCK + 83]), "020000", "the first record of a file");
    for slot in 2..4 {
        let (first, second) = file[slot * BLOCK..(slot + 1) * BLOCK].split_at(BLOCK / 2);
        assert_eq!(first, second);
    }
    assert_eq!(
        hex(&Sha256::digest(&file)),
        "4b8bfbadb8a5dfefb741444c5f254276db68e06d416879b1f058833eb52efa32"
    );
}
