//! Files with blobs that were cut or changed: refused, or the very last state with all its blobs.

use super::disk::{Crash, Disk};
use super::support::{Opening, open, state, store_file, value};
use troth_trusted::{Kept, Store};
use troth_trusted_host::store::{How, MOST_BLOB, StoreError};

const BLOCK: usize = 4096;
/// Bytes of a record without a blob.
const RECORD: usize = 667;
/// Where its kind and the length of its blob stand.
const KIND: usize = 632;

/// A disk on which the value 2 was stored with this blob, after 1 without one.
fn with_blob(blob: &[u8]) -> Disk {
    let disk = Disk::new();
    let mut store = open(&disk).expect("an empty disk").store;
    store.store(&state(1)).expect("the disk is sound");
    assert_eq!(store.store_beside(&state(2), blob), Ok(Kept::Both));
    disk.after(Crash::Killed)
}

/// Opens a copy of the disk on which the store file has this content.
fn with(disk: &Disk, bytes: &[u8]) -> Opening {
    let disk = disk.copied();
    disk.plant(&store_file(&disk), bytes);
    open(&disk)
}

/// A blob without zeros, and one with many.
fn blobs() -> [Vec<u8>; 4] {
    let some_zeros = |length: usize| (0..length).map(|at| (at % 3) as u8).collect();
    [vec![0x5A; 400], some_zeros(400), vec![0xA7; MOST_BLOB], some_zeros(MOST_BLOB)]
}

/// What may be found after damage: refused, or nothing is missing.
fn harmless(opened: Opening, blob: &[u8], context: &str) -> bool {
    match opened {
        Ok(opened) => {
            let found = (value(&opened), opened.store.blobs().to_vec());
            assert_eq!(found, (Some(2), vec![blob.to_vec()]), "{context}");
            true
        }
        Err(error) => {
            assert!(
                error.ends_the_epoch() || matches!(error, StoreError::Version { .. }),
                "{context}: {error}"
            );
            false
        }
    }
}

#[test]
fn a_file_with_blobs_cut_at_any_length_is_refused() {
    for blob in blobs() {
        let disk = with_blob(&blob);
        let whole = disk.read(&store_file(&disk));
        for length in 0..whole.len() {
            let error = with(&disk, &whole[..length]).expect_err("a cut file");
            assert!(error.ends_the_epoch(), "cut to {length}: {error}");
        }
    }
}

#[test]
fn a_changed_byte_of_a_file_with_blobs_is_refused_or_nothing_is_missing() {
    for blob in blobs() {
        let disk = with_blob(&blob);
        let mut bytes = disk.read(&store_file(&disk));
        let mut refused = 0;
        for at in 0..bytes.len() {
            let before = bytes[at];
            for changed in [0, before ^ 1, !before] {
                bytes[at] = changed;
                refused += u32::from(!harmless(with(&disk, &bytes), &blob, &format!("{at}: {changed}")));
            }
            bytes[at] = before;
        }
        assert!(refused > 6000, "only {refused} changes were refused");
    }
}

#[test]
fn a_damaged_place_never_takes_a_blob_away_nor_its_move() {
    for blob in blobs() {
        let disk = with_blob(&blob);
        let whole = disk.read(&store_file(&disk));
        let record = 3 * BLOCK;
        for length in [1, 2, 3, 8, 33, 64, 65, 512, 664, 1024, 1380, 1984] {
            for start in (record..=record + BLOCK - length).step_by(31).chain(record + 2000..record + 2048) {
                for kind in 0..5u8 {
                    let mut bytes = whole.clone();
                    let end = (start + length).min(record + BLOCK);
                    for (at, byte) in bytes[start..end].iter_mut().enumerate() {
                        *byte = match kind {
                            0 => 0,
                            1 => 0xFF,
                            2 => 0x5A,
                            // Some bytes set where there were zeros, others made zero.
                            3 => {
                                if *byte == 0 {
                                    0x11
                                } else {
                                    0
                                }
                            }
                            _ => (at as u8).wrapping_mul(37),
                        };
                    }
                    harmless(with(&disk, &bytes), &blob, &format!("{length} bytes at {start}, kind {kind}"));
                }
            }
        }
    }
}

#[test]
fn kind_and_length_of_a_torn_record_are_held_against_what_is_left_of_it() {
    let blob = vec![0x5A; 400];
    let disk = with_blob(&blob);
    let whole = disk.read(&store_file(&disk));
    let slot = 3 * BLOCK;
    // Both copies torn before their checksums, of a write that may have been the last.
    let mut torn = whole.clone();
    for copy in [slot, slot + BLOCK / 2] {
        torn[copy + RECORD + 300..copy + BLOCK / 2].fill(0);
    }
    let opened = with(&disk, &torn).expect("an interrupted write");
    assert_eq!((value(&opened), opened.how, opened.store.blobs().len()), (Some(1), How::Torn, 0));
    drop(opened);
    // No kind, another kind, a length that no blob has, bytes beyond the longest that the length allows.
    for (at, byte) in [(KIND, 4), (KIND, 1), (KIND, 2), (KIND + 1, 6), (KIND + 1, 0xFF)] {
        let mut bytes = torn.clone();
        bytes[slot + at] = byte;
        bytes[slot + BLOCK / 2 + at] = byte;
        let error = with(&disk, &bytes).expect_err("no record of ours");
        assert!(matches!(error, StoreError::Damaged { .. }), "byte {at} made {byte}: {error}");
    }
    for beyond in [RECORD + 400, BLOCK / 2 - 1] {
        let mut bytes = torn.clone();
        bytes[slot + beyond] = 7;
        let error = with(&disk, &bytes).expect_err("bytes beside the record");
        assert!(matches!(error, StoreError::Damaged { .. }), "byte {beyond}: {error}");
    }
    // With its length missing it may be of any.
    let mut bytes = torn.clone();
    for copy in [slot, slot + BLOCK / 2] {
        bytes[copy + KIND + 1..copy + KIND + 3].fill(0);
    }
    bytes[slot + BLOCK / 2 - 1] = 7;
    assert_eq!(with(&disk, &bytes).expect("an interrupted write").how, How::Torn);
}
