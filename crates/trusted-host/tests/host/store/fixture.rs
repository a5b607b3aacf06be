//! The bytes of every file, pinned: a changed fixture is a changed format.

use super::disk::{Crash, Disk};
use super::support::{FEW, fill, open, open_as, state, store_file, value};
use crate::support::IDENTITY;
use sha2::{Digest as _, Sha256};
use troth_trusted::{Kept, Store};
use troth_trusted_host::store::{How, Policy, StoreError};

const BLOCK: usize = 4096;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_bytes_of_a_store_are_pinned() {
    let disk = Disk::new();
    let mut store = open(&disk).expect("an empty disk").store;
    fill(&mut store, 1..=5);
    assert_eq!(store.store_beside(&state(6), &[0xBB; 300]), Ok(Kept::Both));
    assert_eq!(disk.names(), ["counters-0000000000000007-0000000000000002", "started"]);
    assert_eq!(
        hex(&disk.read("started")),
        "54524f54484d524b000103030303030303030303030303030303000100000000000000070000000000000002\
         aa6224813eb43e0a74ea008767bdd1a90d7f82dd05ee3f6851af5b559560a5d6"
    );
    let file = disk.read(&store_file(&disk));
    assert_eq!(file.len(), 5 * BLOCK);
    assert_eq!(
        hex(&file[..105]),
        "54524f5448435452000201000000040000000000000002000000000000000403030303030303030303030303\
         03030300010000000000000007b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0cfbfc2d8f5a64f6816365c4eacffbb\
         ed9194e0a3eec1859c8d7adf827226f736"
    );
    assert_eq!(
        hex(&file[BLOCK..BLOCK + 136]),
        "54524f544852454300000000000000020000000000000004b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b074726f74\
         682d73746174652f763103030303030303030303030303030303000100000000000000070000000000000000\
         0000000000000004000000000000000000000000000000030404040404040404040404040404040404040404\
         04040404"
    );
    // Kind and length of the blob: a move without, and one with 300 bytes.
    assert_eq!(hex(&file[BLOCK + 632..BLOCK + 635]), "020000");
    assert_eq!(hex(&file[3 * BLOCK + 632..3 * BLOCK + 635]), "03012c");
    assert_eq!(file[3 * BLOCK + 635..3 * BLOCK + 935], [0xBB; 300]);
    for slot in 1..4 {
        let (first, second) = file[slot * BLOCK..(slot + 1) * BLOCK].split_at(BLOCK / 2);
        assert_eq!(first, second);
    }
    assert_eq!(
        hex(&Sha256::digest(&file)),
        "a921b3081a8b5c839ab777f76c85948d4136ea1a34b4f94471259e8280422658"
    );
    drop(store);
    drop(open(&disk).expect("whole"));
    let file = disk.read(&store_file(&disk));
    assert_eq!(hex(&file[4 * BLOCK + 632..4 * BLOCK + 635]), "010000", "the record of a start");
}

/// Puts `part` where it stands in version 1, and its checksum behind it.
fn checked(out: &mut [u8], parts: &[&[u8]]) {
    let content = parts.concat();
    out[..content.len()].copy_from_slice(&content);
    out[content.len()..content.len() + 32].copy_from_slice(&Sha256::digest(&content));
}

/// A store file of version 1 as the releases before wrote it: generation 2, of which the records from index
/// 4 on hold these values.
fn version_1(values: std::ops::RangeInclusive<u128>, policy: u8) -> Vec<u8> {
    let identity = [&[3; 16][..], &1u16.to_be_bytes(), &7u64.to_be_bytes()].concat();
    let (generation, first, boot) = (2u64.to_be_bytes(), 4u64.to_be_bytes(), [0xB0; 16]);
    let mut file = vec![0; (FEW as usize + 1) * BLOCK];
    checked(
        &mut file,
        &[b"TROTHCTR\0\x01", &[policy], &FEW.to_be_bytes(), &generation, &first, &identity, &boot],
    );
    for ((index, value), block) in (4u64..).zip(values).zip(file.chunks_mut(BLOCK).skip(1)) {
        let state = state(value).to_bytes();
        for copy in block.chunks_mut(BLOCK / 2) {
            checked(copy, &[b"TROTHREC", &generation, &index.to_be_bytes(), &boot, &state]);
        }
    }
    file
}

const NAME: &str = "counters-0000000000000007-0000000000000002";

/// A disk with such a file, and the marker that goes with it.
fn disk_of_version_1(file: &[u8]) -> Disk {
    let disk = Disk::new();
    let mut marker = [0; 76];
    let identity = [&[3; 16][..], &1u16.to_be_bytes(), &7u64.to_be_bytes()].concat();
    checked(&mut marker, &[b"TROTHMRK\0\x01", &identity, &2u64.to_be_bytes()]);
    disk.plant("started", &marker);
    disk.plant(NAME, file);
    disk
}

#[test]
fn a_file_of_version_1_is_read_as_its_release_wrote_it_and_goes_on_in_one_of_version_2() {
    let file = version_1(4..=5, 1);
    // The fixture of version 1, as it was pinned while that was the newest.
    assert_eq!(
        hex(&Sha256::digest(&file)),
        "0cff57e0a4e1435ffded22b6e680f44da9f7f7042f74337a183fe92432b6ec4b"
    );
    for policy in [Policy::Always, Policy::Interval] {
        let disk = disk_of_version_1(&file);
        let mut opened = open_as(&disk, IDENTITY, policy).expect("version 1 is known");
        assert_eq!((value(&opened), opened.how, opened.same_boot), (Some(5), How::Resumed, true));
        assert_eq!((opened.store.generation(), opened.store.blobs()), (3, &[][..]));
        assert_eq!(disk.read(&store_file(&disk))[8..10], [0, 2]);
        fill(&mut opened.store, 6..=9);
        drop(opened);
        assert_eq!(value(&open(&disk).expect("whole")), Some(9));
    }
    let full = disk_of_version_1(&version_1(4..=7, 1));
    assert_eq!(value(&open(&full).expect("version 1 is known")), Some(7));
}

#[test]
fn a_crash_amid_the_change_to_version_2_loses_nothing() {
    for call in 1.. {
        let disk = disk_of_version_1(&version_1(4..=5, 1));
        disk.crash_at(call, 1000);
        drop(open(&disk));
        if !disk.crashed() {
            assert!(call > 10, "{call} calls are too few for a new file");
            return;
        }
        for crash in [Crash::Killed, Crash::LostAll, Crash::LostNothing, Crash::LostSome(call)] {
            let opened = open(&disk.after(crash)).expect("nothing was lost");
            assert_eq!(value(&opened), Some(5), "call {call}, {crash:?}");
        }
    }
}

#[test]
fn an_interrupted_write_of_version_1_is_known_as_one_and_damage_as_damage() {
    let (before, whole) = (version_1(4..=5, 1), version_1(4..=6, 1));
    for cut in 0..=BLOCK {
        let mut file = before.clone();
        file[3 * BLOCK..3 * BLOCK + cut].copy_from_slice(&whole[3 * BLOCK..3 * BLOCK + cut]);
        let disk = disk_of_version_1(&file);
        let opened = open(&disk).expect("one interrupted write is no damage");
        assert_eq!(opened.how == How::Torn, (1..2048 + 664).contains(&cut), "cut at {cut}");
        assert_eq!(value(&opened), Some(if cut < 664 { 5 } else { 6 }), "cut at {cut}");
        drop(opened);
        assert_eq!(open(&disk).expect("what was torn is gone").how, How::Resumed, "cut at {cut}");
    }
    for at in 0..whole.len() {
        let mut file = whole.clone();
        file[at] ^= 0x21;
        match open(&disk_of_version_1(&file)) {
            Ok(opened) => assert!(value(&opened) == Some(6), "byte {at}"),
            Err(error) => assert!(
                error.ends_the_epoch() || matches!(error, StoreError::Version { .. }),
                "byte {at}: {error}"
            ),
        }
    }
}
