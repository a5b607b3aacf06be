//! Quotas: how many nodes and bytes there may be below a node. They are nodes themselves, below `/zookeeper/quota`.

use crate::node::Node;
use crate::path::{QUOTA, ROOT, upwards};
use crate::store::Look;
use crate::tree::{Transaction, data_of, find};
use crate::{Code, keys, reads};
use bytes::Bytes;

const LIMITS: &str = "/zookeeper_limits";
const STATS: &str = "/zookeeper_stats";
/// The most bytes of data that are read as numbers: four of them with their names have less than half. They are read with
/// each change below the quota, and anybody may write them.
const MAX_NUMBERS: usize = 256;

/// Numbers as they stand in the data of these nodes; -1 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbers {
    count: i64,
    bytes: i64,
    hard_count: i64,
    hard_bytes: i64,
}

impl Numbers {
    fn read(data: &[u8]) -> Self {
        let mut numbers = Self { count: -1, bytes: -1, hard_count: -1, hard_bytes: -1 };
        if data.len() > MAX_NUMBERS {
            return numbers;
        }
        for pair in std::str::from_utf8(data).unwrap_or_default().split([',', ';']) {
            let Some((name, value)) = pair.split_once('=') else { continue };
            let value = value.trim_end_matches('=').parse().unwrap_or(-1);
            match name {
                "count" => numbers.count = value,
                "bytes" => numbers.bytes = value,
                "countHardLimit" => numbers.hard_count = value,
                "byteHardLimit" => numbers.hard_bytes = value,
                _ => {}
            }
        }
        numbers
    }

    fn text(&self) -> Bytes {
        Bytes::from(format!("count={},bytes={}", self.count, self.bytes))
    }
}

/// The path that a node below `/zookeeper/quota` with this ending is about.
fn about<'p>(path: &'p str, ending: &str) -> Option<&'p str> {
    path.strip_prefix(QUOTA)?.strip_suffix(ending).filter(|path| !path.is_empty())
}

/// The nearest node above, or the node itself, that has a quota. One on the root counts for nothing, as for ZooKeeper.
fn nearest(transaction: &mut Transaction<'_, '_, '_>, path: &str) -> Option<String> {
    if transaction.counters.quotas == 0 {
        return None;
    }
    let mut above = upwards(path).filter(|path| *path != ROOT);
    above
        .find(|path| transaction.changes.look(&keys::node(&format!("{QUOTA}{path}{LIMITS}"))).is_some())
        .map(str::to_owned)
}

fn numbers(transaction: &mut Transaction<'_, '_, '_>, path: &str) -> Option<(Node, Numbers)> {
    let node = find(transaction.changes, path).ok()?;
    let numbers = Numbers::read(&data_of(transaction.changes, path, &node).unwrap_or_default());
    Some((node, numbers))
}

/// Whether so much more is allowed, where quotas are enforced.
pub(crate) fn allows(
    transaction: &mut Transaction<'_, '_, '_>,
    path: &str,
    bytes: i64,
    count: i64,
) -> Result<(), Code> {
    if !transaction.enforces || (bytes <= 0 && count <= 0) {
        return Ok(());
    }
    let Some(of) = nearest(transaction, path) else { return Ok(()) };
    let limits = numbers(transaction, &format!("{QUOTA}{of}{LIMITS}"));
    let used = numbers(transaction, &format!("{QUOTA}{of}{STATS}"));
    let (Some((_, limits)), Some((_, used))) = (limits, used) else { return Ok(()) };
    let over = |limit: i64, used: i64, more: i64| limit > -1 && more > 0 && used.saturating_add(more) > limit;
    if over(limits.hard_count, used.count, count) || over(limits.hard_bytes, used.bytes, bytes) {
        return Err(Code::QuotaExceeded);
    }
    Ok(())
}

/// Counts what there is more, or less, now.
pub(crate) fn count(transaction: &mut Transaction<'_, '_, '_>, path: &str, bytes: i64, count: i64) {
    let Some(of) = nearest(transaction, path) else { return };
    let stats = format!("{QUOTA}{of}{STATS}");
    let Some((mut node, mut used)) = numbers(transaction, &stats) else { return };
    used.count = used.count.saturating_add(count);
    used.bytes = used.bytes.saturating_add(bytes);
    node.data = transaction.put_data(&stats, Some(&node.data), Some(used.text()));
    transaction.keep(&stats, &node);
}

/// What each node counts for that is read, too.
const READ: usize = 4;

/// A node was created that may begin a quota. What it uses is counted node by node, so one transaction begins one of them.
pub(crate) fn created(transaction: &mut Transaction<'_, '_, '_>, path: &str) -> Result<(), Code> {
    if about(path, LIMITS).is_some() {
        transaction.counters.quotas += 1;
    } else if let Some(of) = about(path, STATS) {
        if std::mem::replace(&mut transaction.began_quota, true) {
            return Err(Code::QuotaExceeded);
        }
        // They are counted in one step.
        let mut may_be = transaction.counts / READ;
        let below = reads::descendants(&transaction.changes.state(), of, &mut may_be);
        transaction.counts = may_be * READ;
        below?;
        let used = total(transaction, of);
        if let Ok(mut node) = find(transaction.changes, path) {
            node.data = transaction.put_data(path, Some(&node.data), Some(used.text()));
            transaction.keep(path, &node);
        }
    }
    Ok(())
}

/// One was removed that may end it.
pub(crate) fn removed(transaction: &mut Transaction<'_, '_, '_>, path: &str) {
    if about(path, LIMITS).is_some() {
        transaction.counters.quotas = transaction.counters.quotas.saturating_sub(1);
    }
}

/// What there is at a node and below, with what the transaction has changed so far.
fn total(transaction: &mut Transaction<'_, '_, '_>, path: &str) -> Numbers {
    let mut used = Numbers { count: 0, bytes: 0, hard_count: -1, hard_bytes: -1 };
    let mut add = |node: &Node| {
        used.count += 1;
        used.bytes += node.data.length() as i64;
    };
    if let Ok(node) = find(transaction.changes, path) {
        add(&node);
    }
    for prefix in [keys::children(path), keys::below_children(path)] {
        for rest in transaction.changes.beginning(&prefix) {
            let key = [&prefix[..], &rest].concat();
            if let Some(node) = transaction.changes.entry::<Node>(&key) {
                add(&node);
            }
        }
    }
    used
}
