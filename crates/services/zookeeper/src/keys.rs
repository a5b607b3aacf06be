//! Where everything stands in the state.
//!
//! | key | value |
//! | --- | --- |
//! | `n` parent 0 name | a node; so a node's children follow each other, in the order of their names |
//! | `d` path | the data of a node, where they are large |
//! | `s` session | a session |
//! | `t` time session | nothing: the session ends then, if nobody touches it |
//! | `e` session path | nothing: the ephemeral node of the session |
//! | `w` path 0 session | what the session watches there, as bits |
//! | `o` session path | nothing: the session watches something there |
//! | `x` session | nothing: it is over, and has ephemeral nodes left |
//! | `l` | when what is due goes on, where it was too much for one batch |
//! | `g` time path | nothing: whether this container or node with a time to live goes is looked at then |
//! | `a` client | how many sessions a gateway has |
//! | `c` | what is counted and kept once ([`Counters`](crate::counters::Counters)) |
//!
//! Times and sessions are big-endian, so that they stand in their order.

use crate::path::{ROOT, split};
use troth_types::ClientId;

pub(crate) const COUNTERS: &[u8] = b"c";
pub(crate) const GOES_ON: &[u8] = b"l";
pub(crate) const LEAVING: u8 = b'x';
pub(crate) const ENDS: u8 = b't';
pub(crate) const GOES: u8 = b'g';
const NODE: u8 = b'n';
const DATA: u8 = b'd';
const SESSION: u8 = b's';
const EPHEMERAL: u8 = b'e';
const WATCH: u8 = b'w';
const WATCHES_OF: u8 = b'o';
const ATTACHED: u8 = b'a';

/// The parent as it stands before a child's name: nothing for the root.
fn stem(parent: &str) -> &str {
    if parent == ROOT { "" } else { parent }
}

pub(crate) fn node(path: &str) -> Vec<u8> {
    let (parent, name) = split(path);
    [&[NODE], stem(parent).as_bytes(), &[0], name.as_bytes()].concat()
}

/// What the keys of a node's children begin with. The root's own key is that alone, for its name is empty.
pub(crate) fn children(path: &str) -> Vec<u8> {
    [&[NODE], stem(path).as_bytes(), &[0]].concat()
}

/// What the keys of its further descendants begin with.
pub(crate) fn below_children(path: &str) -> Vec<u8> {
    [&[NODE], stem(path).as_bytes(), b"/"].concat()
}

pub(crate) fn data(path: &str) -> Vec<u8> {
    [&[DATA], path.as_bytes()].concat()
}

pub(crate) fn session(id: i64) -> [u8; 9] {
    numbered(SESSION, id.cast_unsigned())
}

pub(crate) fn leaving(id: i64) -> [u8; 9] {
    numbered(LEAVING, id.cast_unsigned())
}

pub(crate) fn attached(client: ClientId) -> [u8; 9] {
    numbered(ATTACHED, client.0)
}

fn numbered(kind: u8, number: u64) -> [u8; 9] {
    let mut key = [kind; 9];
    key[1..].copy_from_slice(&number.to_be_bytes());
    key
}

pub(crate) fn ends(at: u64, session: i64) -> [u8; 17] {
    let mut key = [ENDS; 17];
    key[1..9].copy_from_slice(&at.to_be_bytes());
    key[9..].copy_from_slice(&session.to_be_bytes());
    key
}

pub(crate) fn ephemeral(session: i64, path: &str) -> Vec<u8> {
    [&numbered(EPHEMERAL, session.cast_unsigned())[..], path.as_bytes()].concat()
}

pub(crate) fn watches_of(session: i64, path: &str) -> Vec<u8> {
    [&numbered(WATCHES_OF, session.cast_unsigned())[..], path.as_bytes()].concat()
}

/// What the keys of a path's watches begin with.
pub(crate) fn watched(path: &str) -> Vec<u8> {
    [&[WATCH], path.as_bytes(), &[0]].concat()
}

pub(crate) fn watch(path: &str, session: i64) -> Vec<u8> {
    let mut key = watched(path);
    key.extend_from_slice(&session.to_be_bytes());
    key
}

pub(crate) fn goes(at: u64, path: &str) -> Vec<u8> {
    [&[GOES], &at.to_be_bytes()[..], path.as_bytes()].concat()
}

/// Where a key is that of a watch: what those of its path begin with, and whose it is.
pub(crate) fn watch_of(key: &[u8]) -> Option<(&[u8], i64)> {
    let (path, session) = key.split_last_chunk::<8>()?;
    (path.first() == Some(&WATCH)).then(|| (path, i64::from_be_bytes(*session)))
}

/// The time in a key that begins with a letter and a time.
pub(crate) fn time_of(key: &[u8]) -> Option<u64> {
    key.get(1..9).and_then(|time| time.try_into().ok()).map(u64::from_be_bytes)
}

/// The number at the end of a key.
pub(crate) fn last_number(key: &[u8]) -> Option<i64> {
    key.last_chunk::<8>().map(|number| i64::from_be_bytes(*number))
}

/// The path that follows a letter and a number.
pub(crate) fn path_of(key: &[u8]) -> Option<&str> {
    key.get(9..).and_then(|path| std::str::from_utf8(path).ok())
}

/// Whether it is about a gateway, and nobody else.
pub(crate) fn is_of_a_gateway(key: &[u8]) -> bool {
    key.first() == Some(&ATTACHED)
}
