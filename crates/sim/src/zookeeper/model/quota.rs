//! The model's quotas: nodes below `/zookeeper/quota` that say how much there may be below others, and how much there is.

use super::Model;
use super::access::{is_below, parent};
use bytes::Bytes;
use troth_zookeeper::Code;

const QUOTA: &str = "/zookeeper/quota";
const LIMITS: &str = "zookeeper_limits";
const STATS: &str = "zookeeper_stats";

/// The number that such a node gives under a name; -1 where it gives none.
fn number(data: &[u8], name: &str) -> i64 {
    let text = String::from_utf8_lossy(data).into_owned();
    let mut found = -1;
    for pair in text.split([',', ';']) {
        if let Some(value) = pair.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')) {
            found = value.trim_end_matches('=').parse().unwrap_or(-1);
        }
    }
    found
}

impl Model {
    /// The nearest node, this one or above, that has a quota, the root's aside: its limits, and where its use stands.
    fn quota_of(&self, path: &str) -> Option<(&Bytes, String)> {
        let mut of = path;
        while of != "/" {
            if let Ok(limits) = self.node(&format!("{QUOTA}{of}/{LIMITS}")) {
                return Some((&limits.data, format!("{QUOTA}{of}/{STATS}")));
            }
            of = parent(of);
        }
        None
    }

    /// Whether there may be so much more.
    pub(super) fn has_quota(&self, path: &str, bytes: i64, nodes: i64) -> Result<(), Code> {
        let Some((limits, stats)) = self.quota_of(path).filter(|_| self.settings.enforces_quotas) else {
            return Ok(());
        };
        let Ok(stats) = self.node(&stats) else { return Ok(()) };
        for (hard, used, more) in [("countHardLimit", "count", nodes), ("byteHardLimit", "bytes", bytes)] {
            let limit = number(limits, hard);
            if limit >= 0 && more > 0 && number(&stats.data, used).saturating_add(more) > limit {
                return Err(Code::QuotaExceeded);
            }
        }
        Ok(())
    }

    fn put_use(&mut self, stats: &str, nodes: i64, bytes: i64) {
        if let Ok(node) = self.node_mut(stats) {
            node.data = Bytes::from(format!("count={nodes},bytes={bytes}"));
        }
    }

    /// There is so much more, or less.
    pub(super) fn count_use(&mut self, path: &str, bytes: i64, nodes: i64) {
        let Some((_, stats)) = self.quota_of(path) else { return };
        let Ok(node) = self.node(&stats) else { return };
        let used = |name| number(&node.data, name);
        let (nodes, bytes) = (used("count").saturating_add(nodes), used("bytes").saturating_add(bytes));
        self.put_use(&stats, nodes, bytes);
    }

    /// A node that shows how much of a quota is used begins with what there is.
    pub(super) fn begin_use(&mut self, path: &str) -> Result<(), Code> {
        let Some(of) = path.strip_prefix(QUOTA).and_then(|of| of.strip_suffix(&format!("/{STATS}"))) else {
            return Ok(());
        };
        if of.is_empty() {
            return Ok(());
        }
        if self.effort.began_quota {
            return Err(Code::QuotaExceeded);
        }
        self.effort.began_quota = true;
        self.count("quotas");
        let below: Vec<i64> = self
            .nodes
            .iter()
            .filter(|(other, _)| ***other == *of || is_below(other, of))
            .map(|(_, node)| node.data.len() as i64)
            .collect();
        self.put_use(path, below.len() as i64, below.iter().sum());
        Ok(())
    }
}
