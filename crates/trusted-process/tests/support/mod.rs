//! What the tests of this crate share: identities and keys, a store in a file, directories, generators.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use troth_trusted::agreement::PeerKey;
use troth_trusted::{
    Certifier, CounterId, CounterValue, Digest, Epoch, Identity, MacKey, MacVerifier, Move, Moves,
    SigningKey, State, Store, StoreFailed, TrustedCore,
};
use troth_trusted_host::{Call, GroupVerifier};

pub const IDENTITY: Identity = Identity { group: [3; 16], replica: 1, epoch: Epoch(7) };

pub fn mac() -> Certifier {
    Certifier::Mac(MacKey::new(&[5; 32]))
}

pub fn signature() -> Certifier {
    Certifier::Signature(SigningKey::new(&[6; 32]))
}

/// A verifier that knows three replicas of the group, replica 1 with the certifier's key.
pub fn verifier(certifier: &Certifier) -> GroupVerifier {
    let members = (0..3).map(|replica| {
        let identity = Identity { replica, ..IDENTITY };
        let key = match certifier {
            Certifier::Mac(key) => key.verifier().into(),
            Certifier::Signature(key) if replica == IDENTITY.replica => key.verifier().into(),
            Certifier::Signature(_) => SigningKey::new(&[replica as u8; 32]).verifier().into(),
        };
        (identity, key)
    });
    GroupVerifier::new(members).expect("three different replicas")
}

/// What checks, for the client with this X25519 private key, the MACs that the certifier's component makes for it.
pub fn pair(certifier: &Certifier, secret: &[u8; 32]) -> MacVerifier {
    let client = PeerKey::new(secret);
    match certifier {
        Certifier::Mac(key) => key.verifier().shared_with(&client.public()),
        Certifier::Signature(key) => {
            key.verifier().shared_with(&client).expect("a component's key is a point")
        }
    }
}

pub fn step(counter: u16, previous: u128, new: u128) -> Move {
    Move { counter: CounterId(counter), previous: CounterValue(previous), new: CounterValue(new) }
}

pub fn attest(m: Move, digest: Digest) -> Call {
    Call::Attest { counter: m.counter, previous: m.previous, new: m.new, digest }
}

pub fn attest_multi(moves: &[Move], digest: Digest) -> Call {
    Call::AttestMulti { moves: Box::new(Moves::new(moves).expect("well-formed moves")), digest }
}

pub fn read(counter: u16) -> Call {
    Call::Read { counter: CounterId(counter) }
}

pub fn resume(counter: u16) -> Call {
    Call::Resume { counter: CounterId(counter) }
}

/// A directory of one test, removed at its end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("troth-tp-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).expect("a directory for the test");
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Where within a store a test wants to step in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    BeforeWrite,
    HalfWritten,
    Written,
    Synced,
}

pub const POINTS: [Point; 4] = [Point::BeforeWrite, Point::HalfWritten, Point::Written, Point::Synced];

/// Called at every point of every store, with the number of the store from 1 and the state.
pub type Hook = Box<dyn FnMut(usize, Point, &State) + Send>;

/// Whole records one after the other; the last one counts. Fails once a file named `broken` lies beside.
pub struct FileStore {
    file: File,
    broken: PathBuf,
    stores: usize,
    hook: Hook,
}

impl FileStore {
    /// The store in a directory with the last state it holds. What a killed process left of a record
    /// that it was writing is cut off.
    pub fn open(directory: &Path, hook: Hook) -> (Self, Option<State>) {
        let path = directory.join("store");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .expect("store");
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).expect("a readable store");
        let whole = bytes.len() / State::LEN * State::LEN;
        file.set_len(whole as u64).expect("room");
        file.sync_all().expect("a disk");
        file.seek(SeekFrom::Start(whole as u64)).expect("a file");
        let last = bytes[..whole].as_chunks::<{ State::LEN }>().0.last();
        let last = last.map(|record| State::from_bytes(record).expect("an intact record"));
        (Self { file, broken: directory.join("broken"), stores: 0, hook }, last)
    }
}

impl Store for FileStore {
    fn store(&mut self, state: &State) -> Result<(), StoreFailed> {
        if self.broken.exists() {
            return Err(StoreFailed::Unknown);
        }
        self.stores += 1;
        let record = state.to_bytes();
        let (half, rest) = record.split_at(State::LEN / 2);
        (self.hook)(self.stores, Point::BeforeWrite, state);
        self.file.write_all(half).map_err(|_| StoreFailed::Unknown)?;
        (self.hook)(self.stores, Point::HalfWritten, state);
        self.file.write_all(rest).map_err(|_| StoreFailed::Unknown)?;
        (self.hook)(self.stores, Point::Written, state);
        self.file.sync_data().map_err(|_| StoreFailed::Unknown)?;
        (self.hook)(self.stores, Point::Synced, state);
        Ok(())
    }
}

/// A component that starts or goes on from the store in a directory.
pub fn core_in(
    directory: &Path,
    identity: Identity,
    certifier: Certifier,
    hook: Hook,
) -> TrustedCore<FileStore> {
    let (store, last) = FileStore::open(directory, hook);
    match last {
        None => TrustedCore::start(identity, certifier, store),
        Some(state) => TrustedCore::restart(identity, certifier, store, state).expect("its own state"),
    }
}

pub fn no_hook() -> Hook {
    Box::new(|_, _, _| {})
}
