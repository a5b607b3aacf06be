//! Who watches what: replicated state, bounded per client and per watched pattern.
//!
//! A pattern's watchers stand under the pattern, so a write finds its exact watchers with one look, where any key is watched.
//! Prefix watchers are found by looking up the key's own prefixes, only of those lengths that some
//! prefix watch has; the list of these lengths is one small entry.

use crate::message::Watch;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use troth_exec::State;
use troth_types::{ClientId, Malformed, Reader, Wire, put_list};

/// The most clients that may watch one pattern.
pub(crate) const MAX_WATCHERS: usize = 4096;

/// Prefixes up to so many bytes may be watched whatever others watch.
pub(crate) const SHORT_PREFIX: usize = 48;
/// The most lengths of longer prefixes that are watched: each write looks for watchers of each length.
pub(crate) const MAX_LONG_LENGTHS: usize = 16;

const EXACT: u8 = b'x';
const PREFIX: u8 = b'p';
const COUNT: u8 = b'c';
const LENGTHS: &[u8] = b"l";
const DECODE_BOUND: usize = 1 << 16;

#[derive(Default)]
pub(crate) struct Watchers(Vec<ClientId>);

impl Wire for Watchers {
    fn encode(&self, out: &mut Vec<u8>) {
        put_list(out, &self.0);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self(reader.list("a pattern's watchers", DECODE_BOUND)?))
    }
}

/// How many watched prefixes there are of each length in use.
#[derive(Default)]
pub(crate) struct Lengths(BTreeMap<u16, u64>);

impl Wire for Lengths {
    fn encode(&self, out: &mut Vec<u8>) {
        put_list(out, &self.0.iter().map(|(length, count)| (*length, *count)).collect::<Vec<_>>());
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let list: Vec<(u16, u64)> = reader.list("prefix lengths", DECODE_BOUND)?;
        if !list.windows(2).all(|pair| pair[0].0 < pair[1].0) {
            return Err(Malformed::Invalid("prefix lengths stand in order, each once"));
        }
        Ok(Self(list.into_iter().collect()))
    }
}

fn read<T: Wire + Default>(state: &mut State<'_>, key: &[u8]) -> T {
    state.get(key).map_or_else(T::default, |bytes| {
        T::from_wire(&bytes).expect("watch entries are written by this module")
    })
}

fn pattern_key(watch: &Watch) -> Vec<u8> {
    let (kind, pattern) = match watch {
        Watch::Key(key) => (EXACT, key),
        Watch::Prefix(prefix) => (PREFIX, prefix),
    };
    [&[kind], &pattern[..]].concat()
}

fn count_key(client: ClientId) -> [u8; 9] {
    let mut key = [COUNT; 9];
    key[1..].copy_from_slice(&client.0.to_be_bytes());
    key
}

#[derive(Default)]
pub(crate) struct Count(u64);

impl Wire for Count {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self(Wire::decode(reader)?))
    }
}

/// Adds a watch; whether there was room for it.
pub(crate) fn add(state: &mut State<'_>, client: ClientId, watch: &Watch, per_client: u64) -> bool {
    let key = pattern_key(watch);
    let mut watchers: Watchers = read(state, &key);
    let Err(at) = watchers.0.binary_search(&client) else { return true };
    let Count(count) = read(state, &count_key(client));
    if count >= per_client || watchers.0.len() >= MAX_WATCHERS || !has_length(state, watch) {
        return false;
    }
    state.insert(&count_key(client), Count(count + 1).to_wire());
    if watchers.0.is_empty() {
        count_length(state, watch, true);
    }
    watchers.0.insert(at, client);
    state.insert(&key, watchers.to_wire());
    true
}

/// Whether a watch's length is among those that writes look for, or may be.
fn has_length(state: &mut State<'_>, watch: &Watch) -> bool {
    let Watch::Prefix(prefix) = watch else { return true };
    if prefix.len() <= SHORT_PREFIX {
        return true;
    }
    let lengths: Lengths = read(state, LENGTHS);
    let is_long = |length: &&u16| usize::from(**length) > SHORT_PREFIX;
    lengths.0.keys().any(|length| usize::from(*length) == prefix.len())
        || lengths.0.keys().filter(is_long).count() < MAX_LONG_LENGTHS
}

/// Removes a watch; whether it was there.
pub(crate) fn remove(state: &mut State<'_>, client: ClientId, watch: &Watch) -> bool {
    let key = pattern_key(watch);
    let mut watchers: Watchers = read(state, &key);
    let Ok(at) = watchers.0.binary_search(&client) else { return false };
    watchers.0.remove(at);
    if watchers.0.is_empty() {
        state.remove(&key);
        count_length(state, watch, false);
    } else {
        state.insert(&key, watchers.to_wire());
    }
    match read(state, &count_key(client)) {
        Count(0 | 1) => state.remove(&count_key(client)),
        Count(count) => state.insert(&count_key(client), Count(count - 1).to_wire()),
    }
    true
}

fn count_length(state: &mut State<'_>, watch: &Watch, added: bool) {
    let Watch::Prefix(prefix) = watch else { return };
    let length = u16::try_from(prefix.len()).expect("keys are bounded");
    let mut lengths: Lengths = read(state, LENGTHS);
    let count = lengths.0.entry(length).or_default();
    if added {
        *count += 1;
    } else {
        *count -= 1;
        if *count == 0 {
            lengths.0.remove(&length);
        }
    }
    if lengths.0.is_empty() { state.remove(LENGTHS) } else { state.insert(LENGTHS, lengths.to_wire()) }
}

/// What is watched at all: what nobody watches needs no look for its watchers, which are mostly far from anything else that a
/// write looks at.
pub(crate) struct Watched {
    /// Whether any key is.
    keys: bool,
    /// The lengths of prefixes that are.
    lengths: Lengths,
}

impl Watched {
    pub(crate) fn of(state: &mut State<'_>) -> Self {
        let first = state.view().keys(&[EXACT]).next();
        Self { keys: first.is_some_and(|key| key.first() == Some(&EXACT)), lengths: read(state, LENGTHS) }
    }
}

/// The clients that watch a key, each once, in order.
pub(crate) fn watchers(state: &mut State<'_>, key: &Bytes, watched: &Watched) -> BTreeSet<ClientId> {
    let mut clients = BTreeSet::new();
    if watched.keys {
        let found: Watchers = read(state, &pattern_key(&Watch::Key(key.clone())));
        clients.extend(found.0);
    }
    for length in watched.lengths.0.keys().copied().map(usize::from).take_while(|length| *length <= key.len())
    {
        let found: Watchers = read(state, &pattern_key(&Watch::Prefix(key.slice(..length))));
        clients.extend(found.0);
    }
    clients
}
