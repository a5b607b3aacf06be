//! I8, first half: a replica's stable checkpoint never goes back within a life.

use std::collections::BTreeMap;
use troth_types::Seq;

/// Each node's last stable checkpoint.
#[derive(Debug, Default)]
pub struct StableMonotone {
    last: BTreeMap<usize, Seq>,
    /// The highest of all.
    pub highest: Seq,
}

impl StableMonotone {
    /// A correct node declared a checkpoint stable.
    pub fn stable(&mut self, node: usize, seq: Seq) -> Result<(), String> {
        self.highest = self.highest.max(seq);
        let last = self.last.entry(node).or_default();
        if seq < *last {
            return Err(format!("node {node} called {seq} stable after {last}"));
        }
        *last = seq;
        Ok(())
    }

    /// A node starts a new life.
    pub fn restarted(&mut self, node: usize) {
        self.last.remove(&node);
    }
}
