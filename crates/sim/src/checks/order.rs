//! I2, prefix order: a node executes every number after the one before, except where it takes over a
//! state.

use std::collections::BTreeMap;
use troth_types::Seq;

/// Where each node stands.
#[derive(Debug, Default)]
pub struct PrefixOrder {
    last: BTreeMap<usize, Seq>,
}

impl PrefixOrder {
    /// A correct node executed a number.
    pub fn executed(&mut self, node: usize, seq: Seq) -> Result<(), String> {
        let last = self.last.entry(node).or_default();
        if seq.0 != last.0 + 1 {
            return Err(format!("node {node} executed {seq} after {last}"));
        }
        *last = seq;
        Ok(())
    }

    /// A correct node took over a state: never an older one than its own.
    pub fn installed(&mut self, node: usize, seq: Seq) -> Result<(), String> {
        let last = self.last.entry(node).or_default();
        if seq <= *last {
            return Err(format!("node {node} went from {last} back to a transferred state at {seq}"));
        }
        *last = seq;
        Ok(())
    }

    /// A node starts again and stands here.
    pub fn restored(&mut self, node: usize, seq: Seq) {
        self.last.insert(node, seq);
    }
}
