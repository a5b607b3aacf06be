//! The bytes of every file, pinned: a changed fixture is a changed format.

use super::disk::Disk;
use super::support::{fill, open, store_file};
use sha2::{Digest as _, Sha256};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_bytes_of_a_store_are_pinned() {
    let disk = Disk::new();
    fill(&mut open(&disk).expect("an empty disk").store, 1..=5);
    assert_eq!(disk.names(), ["counters-0000000000000007-0000000000000002", "started"]);
    assert_eq!(
        hex(&disk.read("started")),
        "54524f54484d524b000103030303030303030303030303030303000100000000000000070000000000000002\
         aa6224813eb43e0a74ea008767bdd1a90d7f82dd05ee3f6851af5b559560a5d6"
    );
    let file = disk.read(&store_file(&disk));
    assert_eq!(file.len(), 5 * 4096);
    assert_eq!(
        hex(&file[..105]),
        "54524f5448435452000101000000040000000000000002000000000000000403030303030303030303030303\
         03030300010000000000000007b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b071378eb0022f3157ee3dcd5c124a9c\
         f6372811b1b33421d8eec76f845c64498c"
    );
    assert_eq!(
        hex(&file[4096..4096 + 136]),
        "54524f544852454300000000000000020000000000000004b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b074726f74\
         682d73746174652f763103030303030303030303030303030303000100000000000000070000000000000000\
         0000000000000004000000000000000000000000000000030404040404040404040404040404040404040404\
         04040404"
    );
    assert_eq!(file[4096..4096 + 664], file[6144..6144 + 664]);
    assert_eq!(
        hex(&Sha256::digest(&file)),
        "0cff57e0a4e1435ffded22b6e680f44da9f7f7042f74337a183fe92432b6ec4b"
    );
}
