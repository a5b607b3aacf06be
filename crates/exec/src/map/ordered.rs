//! The ordered index over the keys a service scans.

use std::collections::BTreeSet;
use std::sync::Arc;

/// The keys with one prefix that have a value now. Derived from the map's content, so no part of
/// any digest; a clone shares it until one of the two writes.
#[derive(Clone, Debug)]
pub(crate) struct Ordered {
    prefix: Box<[u8]>,
    keys: Arc<BTreeSet<Box<[u8]>>>,
}

impl Ordered {
    pub(crate) fn new(prefix: &[u8]) -> Self {
        Self { prefix: prefix.into(), keys: Arc::default() }
    }

    pub(crate) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    pub(crate) fn insert(&mut self, key: &[u8]) {
        if key.starts_with(&self.prefix) && !self.keys.contains(key) {
            Arc::make_mut(&mut self.keys).insert(key.into());
        }
    }

    pub(crate) fn remove(&mut self, key: &[u8]) {
        if key.starts_with(&self.prefix) && self.keys.contains(key) {
            Arc::make_mut(&mut self.keys).remove(key);
        }
    }

    pub(crate) fn from<'a>(&'a self, start: &[u8]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        use core::ops::Bound::{Included, Unbounded};
        self.keys.range::<[u8], _>((Included(start), Unbounded)).map(|key| &**key)
    }
}
