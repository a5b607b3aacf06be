//! The server on the store that ships, over a disk that crashes between any two of its calls and amid any of
//! them: whoever asks over the socket never gets two digests for a value, nor an older state.

use crate::disk::{Crash, Disk, TestDirectory};
use crate::served::Served;
use crate::support::{IDENTITY, Scratch, attest, mac, resume, step};
use std::collections::BTreeMap;
use std::path::Path;
use troth_trusted::{Digest, Resumed, TrustedCore};
use troth_trusted_host::store::{DiskStore, Opened, Policy, StoreError};
use troth_trusted_host::{Answer, TrustedComponent};

/// So few slots that a handful of moves needs several files.
const FEW: u32 = 4;
/// Bytes of a write under way that are done: none, into one copy of a record, into the other, all.
const CUTS: [usize; 4] = [0, 300, 2500, 4096];

/// What a client was ever given, over all lives of the component.
#[derive(Clone, Default)]
struct Given {
    certified: BTreeMap<u128, Digest>,
    lives: u8,
}

fn open(disk: &Disk) -> Result<Opened<TestDirectory>, StoreError> {
    DiskStore::open_in(disk.directory(), IDENTITY, Policy::Always, FEW)
}

impl Given {
    fn highest(&self) -> u128 {
        self.certified.last_key_value().map_or(0, |(value, _)| *value)
    }

    fn take(&mut self, value: u128, digest: Digest, context: &str) {
        let known = *self.certified.entry(value).or_insert(digest);
        assert_eq!(known, digest, "value {value} was certified for two digests; {context}");
    }

    /// A life of the process: starts it, holds what it resumed against what was given before, and moves its
    /// counter so many times, as far as the disk goes.
    fn live(&mut self, opened: Opened<TestDirectory>, socket: &Path, moves: u128, context: &str) {
        self.lives += 1;
        let core = match opened.last {
            None => TrustedCore::start(IDENTITY, mac(), opened.store),
            Some(state) => TrustedCore::restart(IDENTITY, mac(), opened.store, state).expect("its own state"),
        };
        let served = Served::new(socket.to_path_buf(), core);
        let mut client = served.connect();
        let stands = match client.call(&[resume(0)]).remove(0) {
            Answer::Resumed(last) => match *last {
                Resumed::Unmoved => 0,
                Resumed::One { certificate, digest } => {
                    self.take(certificate.new.0, digest, context);
                    certificate.new.0
                }
                other => panic!("{other:?}; {context}"),
            },
            other => panic!("{other:?}; {context}"),
        };
        assert!(stands >= self.highest(), "an older state was resumed; {context}");
        for value in stands..stands + moves {
            let digest = [self.lives; 32];
            match client.call(&[attest(step(0, value, value + 1), digest)]).remove(0) {
                Answer::Attested(certificate) => self.take(certificate.new.0, digest, context),
                Answer::Refused(_) => break,
                other => panic!("{other:?}; {context}"),
            }
        }
    }
}

#[test]
fn a_crash_at_any_call_to_the_disk_shows_nothing_twice_on_the_socket() {
    let scratch = Scratch::new();
    let socket = scratch.path("socket");
    let life = |disk: &Disk, given: &mut Given| {
        if let Ok(opened) = open(disk) {
            given.live(opened, &socket, 9, "the first life");
        }
    };
    let whole = Disk::new();
    let mut given = Given::default();
    life(&whole, &mut given);
    assert_eq!(given.highest(), 9);
    let calls = whole.calls();
    let mut resumed = 0;
    for call in 1..=calls {
        for cut in CUTS {
            let disk = Disk::new();
            let mut given = Given::default();
            disk.crash_at(call, cut);
            life(&disk, &mut given);
            assert!(disk.crashed());
            for crash in [Crash::Killed, Crash::LostAll, Crash::LostNothing, Crash::LostSome(call)] {
                let context = format!("crash at call {call} of {calls}, cut at {cut}, {crash:?}");
                let (disk, mut given) = (disk.after(crash), given.clone());
                for moves in [5, 4] {
                    let opened = open(&disk).unwrap_or_else(|why| panic!("{context}: {why}"));
                    resumed += u32::from(opened.last.is_some());
                    given.live(opened, &socket, moves, &context);
                }
                assert!(given.highest() >= 9, "{context}");
            }
        }
    }
    assert!(resumed > 500, "{resumed} restarts are too few to show anything");
}
