//! Nodes that go by themselves: containers that are empty again, and nodes whose time to live is over.
//!
//! For each of them at most one moment is noted at which it is looked at; what happened to it meanwhile puts that off.

use crate::keys;
use crate::node::{Node, Stay};
use crate::store::beginning;
use crate::tree::{Transaction, find};
use bytes::Bytes;
use troth_exec::StateView;

/// Microseconds for which a container that has lost its last child stays: as often as ZooKeeper looks for such.
const EMPTY_FOR: u64 = 60_000_000;

/// The time at which a node may go as it is now.
fn may_go_at(node: &Node, now: u64) -> Option<u64> {
    if node.children > 0 {
        return None;
    }
    match node.stay {
        Stay::Container if node.creations > 0 => Some(now.saturating_add(EMPTY_FOR)),
        Stay::Ttl(millis) => {
            let millis = node.modified.saturating_add(millis).cast_unsigned();
            // Later than now, or no clock would ever come to it: what is due at the agreed time itself was due before.
            Some(millis.saturating_mul(1000).max(now.saturating_add(1)))
        }
        _ => None,
    }
}

/// A node is new, or it or its children changed: notes when to look at it, unless that is noted.
pub(crate) fn after_change(transaction: &mut Transaction<'_, '_, '_>, path: &str, node: &mut Node) {
    if node.due == 0
        && let Some(at) = may_go_at(node, transaction.now)
    {
        node.due = at;
        transaction.changes.put(&keys::goes(at, path), Bytes::new());
    }
}

/// A node is gone, and nobody has to look at it.
pub(crate) fn removed(transaction: &mut Transaction<'_, '_, '_>, path: &str, node: &Node) {
    if node.due != 0 {
        transaction.changes.remove(&keys::goes(node.due, path));
    }
}

/// When the next node is to be looked at.
pub(crate) fn next(view: &StateView<'_>) -> Option<u64> {
    beginning(view, &[keys::GOES])
        .next()
        .and_then(|rest| rest.first_chunk::<8>().map(|at| u64::from_be_bytes(*at)))
}

/// The note of a node that is due.
pub(crate) fn due(view: &StateView<'_>, now: u64) -> Option<Vec<u8>> {
    let rest = beginning(view, &[keys::GOES]).next()?;
    let key = [&[keys::GOES], rest].concat();
    keys::time_of(&key).filter(|at| *at <= now).map(|_| key)
}

/// Looks at a node whose note is due.
pub(crate) fn look(transaction: &mut Transaction<'_, '_, '_>, key: &[u8]) {
    let Some((at, path)) = keys::time_of(key).zip(keys::path_of(key)) else { return };
    transaction.changes.remove(key);
    let Ok(mut node) = find(transaction.changes, path) else { return };
    if node.due != at {
        return;
    }
    node.due = 0;
    // A container that had children meanwhile waits anew; the others know when they changed.
    let waits = match node.stay {
        Stay::Ttl(_) => may_go_at(&node, 0).is_none_or(|at| at > transaction.now),
        _ => node.children > 0,
    };
    if !waits {
        return transaction.remove(path, &node).unwrap_or_else(|_| unreachable!("it has no children"));
    }
    after_change(transaction, path, &mut node);
    transaction.keep(path, &node);
}
