//! The store.

use crate::message::{Answer, Change, Entry, Operation, Watch};
use crate::watches::{self, Watched};
use bytes::Bytes;
use troth_exec::{Application, FrameOperations, OpContext, State, StateView};
use troth_types::{ClientId, Reader, Wire};

/// The most bytes of a key or a prefix.
pub const MAX_KEY: usize = 1 << 10;
/// The most bytes of a value: with its key it fits a frame and a result of the default limits.
pub const MAX_VALUE: usize = 512 << 10;
/// The most entries of one scan.
pub const MAX_SCAN_ENTRIES: usize = 1000;
/// A scan stops at the entry that passes this many bytes; with one entry more it fits a result of
/// the default limits.
pub const MAX_SCAN_BYTES: usize = 256 << 10;

/// First byte of the keys that hold the store's entries.
const ENTRY: u8 = b'k';
/// Bytes as which each entry of a range counts in what a frame may make, at least.
const ENTRY_WEIGHT: usize = 256;
/// Where the count of writes stands.
const WRITES: &[u8] = b"n";

/// The key-value service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kv {
    /// Watches that one client may have.
    pub watches_per_client: u64,
}

impl Default for Kv {
    fn default() -> Self {
        Self { watches_per_client: 1024 }
    }
}

/// A key's entry: `version: u64 ‖ value`.
fn entry_of(stored: &Bytes) -> (u64, Bytes) {
    let mut reader = Reader::new(stored);
    let version = Wire::decode(&mut reader).expect("entries are written by this module");
    (version, stored.slice(8..))
}

fn inner(key: &[u8]) -> Vec<u8> {
    [&[ENTRY], key].concat()
}

fn get(state: &StateView<'_>, key: &Bytes) -> Answer {
    match state.get(&inner(key)) {
        Some(stored) => {
            let (version, value) = entry_of(&stored);
            Answer::Value { version, value }
        }
        None => Answer::NotFound,
    }
}

fn scan(state: &StateView<'_>, start: &Bytes, end: Option<&Bytes>, limit: u32) -> Answer {
    let limit = MAX_SCAN_ENTRIES.min(limit as usize);
    let mut entries: Vec<Entry> = Vec::new();
    let mut bytes = 0;
    let in_range = |key: &[u8]| key[0] == ENTRY && end.is_none_or(|end| key[1..] < end[..]);
    for (key, stored) in state.scan(&inner(start)).take_while(|(key, _)| in_range(key)) {
        let key = Bytes::copy_from_slice(&key[1..]);
        if entries.len() >= limit || bytes >= MAX_SCAN_BYTES {
            return Answer::Entries { entries, next: Some(key) };
        }
        let (version, value) = entry_of(&stored);
        bytes += key.len() + value.len() + 16;
        entries.push(Entry { key, version, value });
    }
    Answer::Entries { entries, next: None }
}

/// What all operations of a frame share of the state, each read once, and written once behind the last of them.
#[derive(Default)]
struct Shared {
    /// The count of writes, once one of them was a write.
    writes: Option<u64>,
    /// What is watched at all, since an operation last changed it.
    watched: Option<Watched>,
}

impl Shared {
    fn next_version(&mut self, state: &mut State<'_>) -> u64 {
        let stored = |state: &mut State<'_>| state.get(WRITES).map_or(0, |bytes| entry_of(&bytes).0);
        let writes = self.writes.unwrap_or_else(|| stored(state)) + 1;
        self.writes = Some(writes);
        writes
    }

    fn watched(&mut self, state: &mut State<'_>) -> &Watched {
        self.watched.get_or_insert_with(|| Watched::of(state))
    }

    /// The frame has ended.
    fn keep(self, state: &mut State<'_>) {
        if let Some(writes) = self.writes {
            state.insert(WRITES, writes.to_wire());
        }
    }
}

fn version_of(state: &mut State<'_>, key: &Bytes) -> Option<u64> {
    state.get(&inner(key)).map(|stored| entry_of(&stored).0)
}

fn notify(
    state: &mut State<'_>,
    shared: &mut Shared,
    cx: &mut OpContext<'_>,
    key: &Bytes,
    deleted: bool,
    version: u64,
) {
    let watched = shared.watched(state);
    let watchers = watches::watchers(state, key, watched);
    if watchers.is_empty() {
        return;
    }
    let payload = Change { key: key.clone(), deleted, version }.to_wire();
    for client in watchers {
        cx.emit(client, payload.clone());
    }
}

fn put(
    state: &mut State<'_>,
    shared: &mut Shared,
    cx: &mut OpContext<'_>,
    key: &Bytes,
    value: &Bytes,
) -> Answer {
    let version = shared.next_version(state);
    let mut stored = Vec::with_capacity(8 + value.len());
    version.encode(&mut stored);
    stored.extend_from_slice(value);
    state.insert(&inner(key), Bytes::from(stored));
    notify(state, shared, cx, key, false, version);
    Answer::Written { version }
}

fn delete(state: &mut State<'_>, shared: &mut Shared, cx: &mut OpContext<'_>, key: &Bytes) -> Answer {
    if version_of(state, key).is_none() {
        return Answer::NotFound;
    }
    let version = shared.next_version(state);
    state.remove(&inner(key));
    notify(state, shared, cx, key, true, version);
    Answer::Deleted { version }
}

/// What is wrong with an operation's sizes, if anything.
fn oversized(operation: &Operation) -> Option<Answer> {
    let none = None;
    let (key, value) = match operation {
        Operation::Get { key } | Operation::Delete { key } => (key, none),
        Operation::Put { key, value } => (key, Some(value)),
        Operation::CompareAndSwap { key, value, .. } => (key, value.as_ref()),
        Operation::Scan { start, .. } => (start, none),
        Operation::Watch(Watch::Key(key) | Watch::Prefix(key))
        | Operation::Unwatch(Watch::Key(key) | Watch::Prefix(key)) => (key, none),
    };
    if key.len() > MAX_KEY {
        return Some(Answer::KeyTooLong);
    }
    value.is_some_and(|value| value.len() > MAX_VALUE).then_some(Answer::ValueTooLarge)
}

fn parse(operation: &Bytes) -> Result<Operation, Answer> {
    let operation = Operation::from_wire(operation).map_err(|_| Answer::Malformed)?;
    match oversized(&operation) {
        Some(answer) => Err(answer),
        None => Ok(operation),
    }
}

impl Kv {
    fn run(
        &self,
        state: &mut State<'_>,
        shared: &mut Shared,
        cx: &mut OpContext<'_>,
        operation: &Operation,
    ) -> Answer {
        match operation {
            Operation::Get { key } => get(&state.view(), key),
            Operation::Scan { start, end, limit } => scan(&state.view(), start, end.as_ref(), *limit),
            Operation::Put { key, value } => put(state, shared, cx, key, value),
            Operation::Delete { key } => delete(state, shared, cx, key),
            Operation::CompareAndSwap { key, expected, value } => {
                let current = version_of(state, key);
                match value {
                    _ if current != *expected => Answer::Mismatch { current },
                    Some(value) => put(state, shared, cx, key, value),
                    None => delete(state, shared, cx, key),
                }
            }
            Operation::Watch(watch) => {
                shared.watched = None;
                if watches::add(state, cx.client, watch, self.watches_per_client) {
                    Answer::Watching
                } else {
                    Answer::TooManyWatches
                }
            }
            Operation::Unwatch(watch) => {
                shared.watched = None;
                if watches::remove(state, cx.client, watch) { Answer::Unwatched } else { Answer::NotFound }
            }
        }
    }
}

impl Application for Kv {
    const SCANS: bool = true;

    fn execute(&self, state: &mut State<'_>, cx: &mut OpContext<'_>, operation: &Bytes) -> Bytes {
        match parse(operation) {
            Ok(operation) => {
                let mut shared = Shared::default();
                let answer = self.run(state, &mut shared, cx, &operation);
                shared.keep(state);
                answer.to_wire()
            }
            Err(answer) => answer.to_wire(),
        }
    }

    /// A range of small entries takes much longer than its bytes tell.
    fn execute_frame(&self, state: &mut State<'_>, operations: &mut FrameOperations<'_>) {
        let mut shared = Shared::default();
        while let Some((mut cx, operation)) = operations.next() {
            let answer = match parse(&operation) {
                Ok(operation) => self.run(state, &mut shared, &mut cx, &operation),
                Err(answer) => answer,
            };
            let looked_at = match &answer {
                Answer::Entries { entries, .. } => entries.len(),
                _ => 0,
            };
            operations.answer_weighing(answer.to_wire(), looked_at * ENTRY_WEIGHT);
        }
        shared.keep(state);
    }

    fn query(&self, state: &StateView<'_>, _client: ClientId, operation: &Bytes) -> Bytes {
        let answer = match parse(operation) {
            Ok(Operation::Get { key }) => get(state, &key),
            Ok(Operation::Scan { start, end, limit }) => scan(state, &start, end.as_ref(), limit),
            Ok(_) => Answer::ReadOnly,
            Err(answer) => answer,
        };
        answer.to_wire()
    }

    fn only_reads(&self, operation: &Bytes) -> bool {
        matches!(parse(operation), Ok(Operation::Get { .. } | Operation::Scan { .. }))
    }

    /// Keys and the count of writes, which keeps versions from being used twice; watches are their clients'.
    fn outlives_clients(&self, key: &[u8]) -> bool {
        key.first() == Some(&ENTRY) || key == WRITES
    }

    fn too_large(&self) -> Bytes {
        Answer::ResultTooLarge.to_wire()
    }
}
