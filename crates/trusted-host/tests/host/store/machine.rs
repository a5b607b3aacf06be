//! The store on a real disk of this machine.

use super::support::{fill, state};
use crate::support::IDENTITY;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use troth_trusted::Store;
use troth_trusted_host::store::directory::Directory;
use troth_trusted_host::store::{DiskStore, How, Policy, RealDirectory, SLOTS, StoreError};

/// A directory of one test, removed with the value.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("troth-store-{}-{count}", std::process::id()));
        drop(RealDirectory::make(&path).expect("room for a test directory"));
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn files(scratch: &Scratch) -> Vec<PathBuf> {
    let entries = fs::read_dir(scratch.path()).expect("its own directory");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

#[test]
fn a_store_is_resumed_from_the_disk_and_its_file_never_grows() {
    let scratch = Scratch::new();
    let open = || DiskStore::open(scratch.path(), IDENTITY, Policy::Always).expect("a sound disk");
    let mut opened = open();
    assert_eq!(opened.how, How::Fresh);
    let [file, _marker] = files(&scratch).try_into().expect("two files");
    let before = fs::metadata(&file).expect("the store file");
    assert_eq!(before.len(), (u64::from(SLOTS) + 1) * 4096);
    assert!(before.blocks() * 512 >= before.len(), "zeros are written, not left as holes");
    fill(&mut opened.store, 1..=20);
    let after = fs::metadata(&file).expect("the store file");
    assert_eq!((after.len(), after.blocks()), (before.len(), before.blocks()));
    drop(opened);
    let opened = open();
    assert_eq!((opened.last, opened.how, opened.same_boot), (Some(state(20)), How::Resumed, true));
}

#[test]
fn generations_follow_each_other_on_the_disk() {
    let scratch = Scratch::new();
    let directory = || RealDirectory::new(scratch.path()).expect("a directory");
    let mut opened = DiskStore::open_in(directory(), IDENTITY, Policy::Always, 3).expect("a sound disk");
    fill(&mut opened.store, 1..=30);
    assert_eq!(opened.store.generation(), 11);
    assert_eq!(files(&scratch).len(), 2);
    drop(opened);
    let opened = DiskStore::open_in(directory(), IDENTITY, Policy::Always, 3).expect("a sound disk");
    assert_eq!(opened.last, Some(state(30)));
}

#[test]
fn a_directory_is_locked_for_one_store() {
    let scratch = Scratch::new();
    let first = DiskStore::open(scratch.path(), IDENTITY, Policy::Always).expect("a sound disk");
    let second = DiskStore::open(scratch.path(), IDENTITY, Policy::Always);
    assert!(matches!(second, Err(StoreError::Locked)));
    drop(first);
    assert!(DiskStore::open(scratch.path(), IDENTITY, Policy::Always).is_ok());
}

#[test]
fn an_absent_directory_is_not_made_by_opening() {
    let scratch = Scratch::new();
    let absent = scratch.path().join("absent");
    let error = DiskStore::open(&absent, IDENTITY, Policy::Always).expect_err("it is not there");
    assert!(matches!(error, StoreError::NoDirectory { .. }) && !error.ends_the_epoch(), "{error}");
    assert!(!absent.exists());
}

#[test]
fn only_the_owner_can_read_directory_and_files() {
    let scratch = Scratch::new();
    drop(DiskStore::open(scratch.path(), IDENTITY, Policy::Always).expect("a sound disk"));
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o077;
    assert_eq!(mode(scratch.path()), 0);
    for file in files(&scratch) {
        assert_eq!(mode(&file), 0, "{}", file.display());
    }
}

#[test]
fn the_boot_id_is_the_kernels() {
    let scratch = Scratch::new();
    let directory = RealDirectory::new(scratch.path()).expect("a directory");
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("the kernel's boot id");
    let hex: String =
        directory.boot().expect("a boot id").0.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, text.trim().replace('-', ""));
}

#[test]
fn a_store_that_cannot_write_its_next_file_fails_and_keeps_what_it_has() {
    let scratch = Scratch::new();
    let directory = || RealDirectory::new(scratch.path()).expect("a directory");
    let mut opened = DiskStore::open_in(directory(), IDENTITY, Policy::Always, 4).expect("a sound disk");
    fill(&mut opened.store, 1..=3);
    // Something stands where the next file is to be made.
    let in_the_way = scratch.path().join("counters.new");
    fs::create_dir(&in_the_way).expect("a directory");
    assert!(opened.store.store(&state(4)).is_err());
    drop(opened);
    let error = DiskStore::open_in(directory(), IDENTITY, Policy::Always, 4).expect_err("it is still there");
    assert!(matches!(error, StoreError::Io { .. }) && !error.ends_the_epoch(), "{error}");
    fs::remove_dir(&in_the_way).expect("a directory");
    let opened = DiskStore::open_in(directory(), IDENTITY, Policy::Always, 4).expect("mended");
    assert_eq!(opened.last, Some(state(3)));
}
