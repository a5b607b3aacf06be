//! The state as operations read and change it: what one operation changes is there as a whole or not at all.

use crate::keys;
use bytes::Bytes;
use core::ops::Bound;
use std::collections::{BTreeMap, BTreeSet};
use troth_exec::{State, StateView};
use troth_types::Wire;

#[cfg(test)]
thread_local! {
    /// How often somebody looked through the watches of a path.
    pub(crate) static SCANS: core::cell::Cell<usize> = const { core::cell::Cell::new(0) };
}

/// What is read.
pub(crate) trait Look {
    /// The value under a key.
    fn look(&mut self, key: &[u8]) -> Option<Bytes>;

    /// The same, decoded.
    fn entry<T: Wire>(&mut self, key: &[u8]) -> Option<T> {
        let bytes = self.look(key)?;
        Some(T::from_wire(&bytes).expect("entries are written by this service"))
    }
}

impl Look for &StateView<'_> {
    fn look(&mut self, key: &[u8]) -> Option<Bytes> {
        self.get(key)
    }
}

/// The changes of an operation, over the state before it.
pub(crate) struct Changes<'a, 's> {
    state: &'a mut State<'s>,
    pending: BTreeMap<Vec<u8>, Option<Bytes>>,
    /// Who watches the paths that were asked for, by what the keys begin with: as it is with what was changed. A transaction
    /// that changes a path again and again must not read again each time what it took away the first time.
    watchers: BTreeMap<Vec<u8>, BTreeSet<i64>>,
}

impl<'a, 's> Changes<'a, 's> {
    pub(crate) fn over(state: &'a mut State<'s>) -> Self {
        Self { state, pending: BTreeMap::new(), watchers: BTreeMap::new() }
    }

    pub(crate) fn put(&mut self, key: &[u8], value: impl Into<Bytes>) {
        if let Some((known, session)) = self.known_watchers(key) {
            known.insert(session);
        }
        self.pending.insert(key.to_vec(), Some(value.into()));
    }

    pub(crate) fn put_entry<T: Wire>(&mut self, key: &[u8], value: &T) {
        let bytes = value.to_wire();
        // What is written and cannot be read stops every replica, for good.
        debug_assert!(T::from_wire(&bytes).is_ok(), "an entry that does not decode");
        self.put(key, bytes);
    }

    pub(crate) fn remove(&mut self, key: &[u8]) {
        if let Some((known, session)) = self.known_watchers(key) {
            known.remove(&session);
        }
        self.pending.insert(key.to_vec(), None);
    }

    /// Where a key is that of a watch on a path that was asked for: who is known to watch that, and whose it is.
    fn known_watchers(&mut self, key: &[u8]) -> Option<(&mut BTreeSet<i64>, i64)> {
        let (path, session) = keys::watch_of(key)?;
        self.watchers.get_mut(path).map(|known| (known, session))
    }

    /// The sessions that watch a path, in order.
    pub(crate) fn watchers(&mut self, path: &str) -> Vec<i64> {
        let key = keys::watched(path);
        if !self.watchers.contains_key(&key) {
            #[cfg(test)]
            SCANS.set(SCANS.get() + 1);
            let found = self.beginning(&key).iter().filter_map(|rest| keys::last_number(rest)).collect();
            self.watchers.insert(key.clone(), found);
        }
        self.watchers[&key].iter().copied().collect()
    }

    /// The state without what was changed since the last [`Changes::apply`].
    pub(crate) fn state(&self) -> StateView<'_> {
        self.state.view()
    }

    /// Keys that begin like this, without the beginning, in order: as they are with what was changed.
    pub(crate) fn beginning(&self, prefix: &[u8]) -> Vec<Vec<u8>> {
        let before = beginning(&self.state.view(), prefix).map(<[u8]>::to_vec);
        let mut changed = self
            .pending
            .range::<[u8], _>((Bound::Included(prefix), Bound::Unbounded))
            .map_while(|(key, value)| key.strip_prefix(prefix).map(|rest| (rest, value.is_some())))
            .peekable();
        if changed.peek().is_none() {
            return before.collect();
        }
        let mut all: BTreeSet<Vec<u8>> = before.collect();
        for (rest, is_there) in changed {
            if is_there {
                all.insert(rest.to_vec());
            } else {
                all.remove(rest);
            }
        }
        all.into_iter().collect()
    }

    /// The operation happens. If this is not called, nothing did.
    pub(crate) fn apply(&mut self) {
        self.watchers.clear();
        for (key, value) in std::mem::take(&mut self.pending) {
            match value {
                Some(value) => self.state.insert(&key, value),
                None => self.state.remove(&key),
            }
        }
    }

    /// What was changed since the last [`Changes::apply`] did not happen.
    pub(crate) fn forget(&mut self) {
        self.watchers.clear();
        self.pending.clear();
    }
}

impl Look for Changes<'_, '_> {
    fn look(&mut self, key: &[u8]) -> Option<Bytes> {
        match self.pending.get(key) {
            Some(value) => value.clone(),
            None => self.state.get(key),
        }
    }
}

/// The rest of the keys that begin like this, in order.
pub(crate) fn beginning<'a>(view: &StateView<'a>, prefix: &[u8]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let keys = view.keys(prefix);
    let prefix = prefix.to_vec();
    keys.map_while(move |key| key.strip_prefix(&prefix[..]))
}
