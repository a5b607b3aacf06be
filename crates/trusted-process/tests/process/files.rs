//! The hardened process on store files that were cut, on a directory with another copy, and on a full disk.

use crate::child::{COUNTERS, REFUSED, Task};
use crate::place::{Place, TRUSTED, is_root};
use crate::support::{attest, resume, step};
use crate::{Ran, Test};
use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use troth_trusted::{CounterValue, Refusal, Resumed};
use troth_trusted_host::{Answer, TrustedComponent};

pub const TESTS: &[Test] = &[
    ("files::cut_anywhere_they_are_refused_or_resumed", cut_anywhere_they_are_refused_or_resumed),
    ("files::on_a_full_disk_it_refuses_and_goes_on", on_a_full_disk_it_refuses_and_goes_on),
];

/// Slots of a file: so few that nine moves need several.
const FEW: u32 = 4;
/// Every so many lengths of a store file are tried, beside those around its blocks: each starts a process. The
/// suite in process tries all of them.
const STRIDE: usize = 97;
const BLOCK: usize = 4096;

fn task(place: &Place) -> Task {
    Task { disk: true, slots: Some(FEW), ..place.task() }
}

/// Moves counter 0 to a value.
fn moved(place: &Place, value: u128, digest: u8) -> Answer {
    place.connect().call(&[attest(step(0, value - 1, value), [digest; 32])]).remove(0)
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("its directory");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

fn lengths(whole: usize) -> Vec<usize> {
    let around = (0..=whole / BLOCK).flat_map(|block| [block * BLOCK, block * BLOCK + 1, block * BLOCK + 23]);
    let strides = (0..whole).step_by(if whole < BLOCK { 1 } else { STRIDE });
    let mut lengths: Vec<usize> = around.chain(strides).filter(|length| *length < whole).collect();
    lengths.extend([whole - 1, whole + 1, whole + BLOCK]);
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// A process that is started on what is there now: its exit code if it refuses, else where counter 0 stands.
fn start(place: &Place) -> Result<CounterValue, i32> {
    let trusted = place.spawn(&task(place));
    let refused = trusted.says_first(&["ready", "refused: "]).starts_with("refused");
    if refused {
        return Err(trusted.end().code().expect("it ends by itself"));
    }
    match place.connect().call(&[resume(0)]).remove(0) {
        Answer::Resumed(last) => match *last {
            Resumed::One { certificate, .. } => Ok(certificate.new),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn cut_anywhere_they_are_refused_or_resumed() -> Ran {
    let place = Place::new();
    let trusted = place.start(&task(&place));
    for value in 1..=9 {
        assert!(moved(&place, value, 1).attested().is_some());
    }
    trusted.kill();
    let directory = place.state().join(COUNTERS);
    let names = files(&directory);
    assert_eq!(names.len(), 2, "a store file and the marker: {names:?}");
    let mut refused = 0;
    for name in &names {
        let whole = fs::read(name).expect("a file of the store");
        for length in lengths(whole.len()) {
            let mut cut = whole.clone();
            cut.resize(length, 0);
            fs::write(name, cut).expect("room");
            assert_eq!(start(&place), Err(i32::from(REFUSED)), "{} at {length}", name.display());
            refused += 1;
        }
        fs::write(name, whole).expect("room");
    }
    assert!(refused > 250, "only {refused} lengths were tried");
    assert_eq!(start(&place), Ok(CounterValue(9)), "the very last state, where nothing is cut");
    Ran::Through
}

/// A small file system of this test alone, gone with the value.
struct Small(PathBuf);

impl Small {
    fn new(at: &Path, bytes: u32) -> Option<Self> {
        mount(&["-t", "tmpfs", "-o", &format!("size={bytes},mode=700"), "none"], at).then(|| {
            chown(at, Some(TRUSTED), Some(TRUSTED)).expect("its owner");
            Self(at.to_path_buf())
        })
    }

    fn resize(&self, bytes: u32) {
        assert!(mount(&["-o", &format!("remount,size={bytes}")], &self.0), "its size is to be had");
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn mount(options: &[&str], at: &Path) -> bool {
    Command::new("mount").args(options).arg(at).output().is_ok_and(|output| output.status.success())
}

fn on_a_full_disk_it_refuses_and_goes_on() -> Ran {
    crate::needs_root!();
    assert!(is_root());
    let place = Place::new();
    // Room for one file and the marker, and not for the next file beside them.
    let Some(disk) = Small::new(&place.state().join(COUNTERS), 32 << 10) else {
        return Ran::Skipped("this system lets nobody mount a file system");
    };
    let trusted = place.start(&task(&place));
    for value in 1..=3 {
        assert!(moved(&place, value, 1).attested().is_some(), "value {value} has its slot");
    }
    for digest in [1, 2, 1] {
        assert_eq!(moved(&place, 4, digest), Answer::Refused(Refusal::NoSpace));
    }
    assert_eq!(files(&place.state().join(COUNTERS)).len(), 2, "what it tried to make is gone");
    disk.resize(1 << 20);
    assert!(moved(&place, 4, 3).attested().is_some(), "there is space");
    let elsewhere = Refusal::Elsewhere { counter: step(0, 0, 1).counter, current: CounterValue(4) };
    assert_eq!(moved(&place, 4, 1), Answer::Refused(elsewhere), "certified once");
    trusted.kill();
    assert_eq!(start(&place), Ok(CounterValue(4)));
    Ran::Through
}
