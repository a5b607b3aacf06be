//! Watches and the events they cause.

use super::support::{Store, bytes};
use crate::watches::{MAX_LONG_LENGTHS, MAX_WATCHERS, SHORT_PREFIX};
use crate::{Answer, Change, Kv, Operation, Watch};
use bytes::Bytes;
use troth_exec::Application;

fn key(text: &'static str) -> Operation {
    Operation::Watch(Watch::Key(bytes(text)))
}

fn prefix(text: &'static str) -> Operation {
    Operation::Watch(Watch::Prefix(bytes(text)))
}

fn change(key: &'static str, deleted: bool, version: u64) -> Change {
    Change { key: bytes(key), deleted, version }
}

#[test]
fn a_watched_key_reports_writes_and_deletions() {
    let mut store = Store::new();
    assert_eq!(store.run(5, &key("a")), Answer::Watching);
    store.put("a", "1");
    store.put("b", "1");
    store.put("ab", "1");
    store.delete("a");
    store.delete("a");
    let swap = Operation::CompareAndSwap { key: bytes("a"), expected: None, value: Some(bytes("2")) };
    store.run(5, &swap);
    store.run(5, &swap);
    assert_eq!(
        store.changes(),
        [(5, change("a", false, 1)), (5, change("a", true, 4)), (5, change("a", false, 5))],
        "once for each change, and for nothing that changed nothing"
    );
}

#[test]
fn a_watched_prefix_reports_every_key_below() {
    let mut store = Store::new();
    store.run(5, &prefix("a/"));
    store.run(6, &prefix(""));
    store.run(5, &prefix("a/b"));
    store.run(5, &key("a/b"));
    store.put("a/b", "1");
    store.put("a", "1");
    assert_eq!(
        store.changes(),
        [(5, change("a/b", false, 1)), (6, change("a/b", false, 1)), (6, change("a", false, 2))],
        "a client hears of a change once, however many of its watches match"
    );
}

#[test]
fn unwatching_ends_the_events() {
    let mut store = Store::new();
    let empty = store.map.tree_now().digest();
    for operation in [key("a"), prefix("a"), key("a")] {
        assert_eq!(store.run(5, &operation), Answer::Watching);
    }
    store.run(6, &key("a"));
    let unwatch_key = Operation::Unwatch(Watch::Key(bytes("a")));
    let unwatch_prefix = Operation::Unwatch(Watch::Prefix(bytes("a")));
    assert_eq!(store.run(5, &unwatch_key), Answer::Unwatched);
    assert_eq!(store.run(5, &unwatch_key), Answer::NotFound);
    store.put("a", "1");
    assert_eq!(store.changes().len(), 2, "the prefix, and the other client");
    assert_eq!(store.run(5, &unwatch_prefix), Answer::Unwatched);
    assert_eq!(store.run(6, &unwatch_prefix), Answer::NotFound);
    assert_eq!(store.run(6, &unwatch_key), Answer::Unwatched);
    store.put("a", "2");
    assert!(store.changes().is_empty());

    let mut other = Store::new();
    other.put("a", "1");
    other.put("a", "2");
    assert_eq!(store.map.tree_now().digest(), other.map.tree_now().digest(), "nothing is left of them");
    assert_ne!(empty, other.map.tree_now().digest());
}

#[test]
fn watches_are_bounded_per_client_and_per_pattern() {
    let mut store = Store::new();
    store.kv = Kv { watches_per_client: 2 };
    assert_eq!(store.run(5, &key("a")), Answer::Watching);
    assert_eq!(store.run(5, &key("b")), Answer::Watching);
    assert_eq!(store.run(5, &key("c")), Answer::TooManyWatches);
    assert_eq!(store.run(5, &key("a")), Answer::Watching, "it has this one");
    store.run(5, &Operation::Unwatch(Watch::Key(bytes("b"))));
    assert_eq!(store.run(5, &prefix("c")), Answer::Watching);
    for client in 0..MAX_WATCHERS as u64 {
        assert_eq!(store.run(100 + client, &key("crowded")), Answer::Watching);
    }
    assert_eq!(store.run(1, &key("crowded")), Answer::TooManyWatches);
}

#[test]
fn prefixes_of_any_length_are_watched_but_long_ones_of_few_lengths() {
    let mut store = Store::new();
    let text = |letter: &str, length: usize| Bytes::from(letter.repeat(length));
    let of = |length: usize| Operation::Watch(Watch::Prefix(text("p", length)));
    let other = |length: usize| Operation::Watch(Watch::Prefix(text("q", length)));
    for length in 0..=SHORT_PREFIX + MAX_LONG_LENGTHS {
        assert_eq!(store.run(5, &of(length)), Answer::Watching, "{length}");
    }
    let next = SHORT_PREFIX + MAX_LONG_LENGTHS + 1;
    assert_eq!(store.run(5, &of(next)), Answer::TooManyWatches);
    assert_eq!(store.run(6, &of(next)), Answer::TooManyWatches, "whoever asks");
    // Others of these lengths may be, and one of a new length when the last of an old one is gone.
    assert_eq!(store.run(6, &other(next - 1)), Answer::Watching);
    assert_eq!(store.run(6, &other(7)), Answer::Watching);
    store.run(5, &Operation::Unwatch(Watch::Prefix(text("p", next - 1))));
    assert_eq!(store.run(5, &of(next)), Answer::TooManyWatches);
    store.run(6, &Operation::Unwatch(Watch::Prefix(text("q", next - 1))));
    assert_eq!(store.run(5, &of(next)), Answer::Watching);
    store.run(1, &Operation::Put { key: text("p", next), value: bytes("1") });
    assert_eq!(store.changes().len(), 1, "its client hears of it once");
}

#[test]
fn watching_an_empty_key_is_not_watching_everything() {
    let mut store = Store::new();
    store.run(5, &Operation::Watch(Watch::Key(Bytes::new())));
    store.put("a", "1");
    assert!(store.changes().is_empty());
    store.put("", "1");
    assert_eq!(store.changes(), [(5, change("", false, 2))]);
}

#[test]
fn watches_do_not_outlive_their_clients_and_keys_do() {
    let mut store = Store::new();
    let mut kept_of = |operation: &Operation| {
        let keys = |store: &Store| {
            let mut keys = std::collections::BTreeSet::new();
            store.map.tree_now().for_each(|key, _| {
                keys.insert(key.to_vec());
            });
            keys
        };
        let before = keys(&store);
        store.run(3, operation);
        // The store's map has the application's keys behind one byte.
        let added: Vec<_> = keys(&store).difference(&before).cloned().collect();
        added.iter().map(|key| store.kv.outlives_clients(&key[1..])).collect::<Vec<_>>()
    };
    let put = kept_of(&Operation::Put { key: bytes("a"), value: bytes("1") });
    assert_eq!(put, [true, true], "the key and the count of writes");
    let watched = kept_of(&Operation::Watch(Watch::Prefix(bytes("a"))));
    assert_eq!(watched, [false, false, false], "the pattern, its client's count, the lengths");
    assert_eq!(kept_of(&Operation::Watch(Watch::Key(bytes("k")))), [false]);
}
