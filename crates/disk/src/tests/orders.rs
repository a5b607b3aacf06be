//! What a file of orders does to a disk: no space, and the end of the process in the middle of a sync.

use super::{open, record, records};
use crate::{Death, Disk, DiskFile, FaultyDisk, MemoryDisk, Orders, OrdersFile, RealDisk};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// The directory of the process that dies.
const DYING_IN: &str = "TROTH_DISK_DYING_IN";

fn orders(path: &Path, orders: Orders) -> OrdersFile {
    orders.write(path).unwrap();
    OrdersFile::open(path).unwrap()
}

#[test]
fn orders_are_read_as_they_were_written_and_a_torn_file_changes_nothing() {
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("orders");
    let all = Orders {
        death: Some(Death { at_sync: u64::MAX, seed: u64::MAX }),
        capacity: Some(u64::MAX),
        clock_ahead_ms: i64::MIN,
    };
    let mut file = orders(&path, all);
    assert_eq!(file.read(), all);
    for some in [Orders { capacity: Some(0), ..Orders::default() }, Orders::default(), all] {
        some.write(&path).unwrap();
        assert_eq!(file.read(), some);
        assert_eq!(file.again().unwrap().read(), some);
    }
    let whole = std::fs::read(&path).unwrap();
    for place in 0..whole.trim_ascii_end().len() {
        let mut torn = whole.clone();
        torn[place] ^= 1;
        std::fs::write(&path, &torn).unwrap();
        assert_eq!(file.read(), all, "byte {place}");
    }
    std::fs::write(&path, b"").unwrap();
    assert_eq!(file.read(), all);
}

#[test]
fn a_disk_that_is_told_so_has_no_space_even_where_room_was_made() {
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("orders");
    let below = MemoryDisk::default();
    let disk = FaultyDisk::new(below).unwrap();
    disk.obey(orders(&path, Orders::default()));
    let mut file = disk.create("file").unwrap();
    file.reserve(0, 4096).unwrap();
    file.write_at(0, b"there is room").unwrap();
    Orders { capacity: Some(0), ..Orders::default() }.write(&path).unwrap();
    assert!(file.write_at(0, b"and no space").unwrap_err().is_full());
    Orders::default().write(&path).unwrap();
    file.write_at(0, b"and space again").unwrap();
}

/// Only where another test starts it in a process of its own.
#[test]
fn dies() {
    let Some(scratch) = std::env::var_os(DYING_IN) else { return };
    let scratch = Path::new(&scratch);
    let disk = FaultyDisk::new(RealDisk::open(&scratch.join("log")).unwrap()).unwrap();
    let (mut log, _) = open(&disk).unwrap();
    (0..3).for_each(|number| log.append(&record(number)).unwrap());
    log.sync().unwrap();
    disk.obey(OrdersFile::open(&scratch.join("orders")).unwrap());
    for number in 3..100 {
        log.append(&record(number)).unwrap();
        log.sync().unwrap();
    }
    unreachable!("it died");
}

#[test]
fn a_process_that_is_told_to_die_keeps_what_it_synced_and_a_part_of_the_rest() {
    let mut kept = Vec::new();
    for seed in 0..24 {
        let scratch = TempDir::new().unwrap();
        std::fs::create_dir(scratch.path().join("log")).unwrap();
        let death = Some(Death { at_sync: 4, seed });
        Orders { death, ..Orders::default() }.write(&scratch.path().join("orders")).unwrap();
        let ended = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tests::orders::dies", "--nocapture"])
            .env(DYING_IN, scratch.path())
            .output()
            .unwrap();
        const SIGABRT: i32 = 6;
        assert_eq!(ended.status.signal(), Some(SIGABRT), "{ended:?}");
        let (_, held) = open(&RealDisk::open(&scratch.path().join("log")).unwrap()).unwrap();
        assert!(held.records.len() >= 6, "seed {seed}: {} records", held.records.len());
        assert_eq!(held.records, records(0..held.records.len() as u64), "seed {seed}");
        kept.push(held.records.len());
    }
    assert!(kept.contains(&6) && kept.iter().any(|count| *count > 6), "both happen: {kept:?}");
}
