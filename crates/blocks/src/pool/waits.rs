//! How long pending requests have waited, and which have waited longest.

use super::{Account, RequestPool};
use troth_types::{Digest, Time};

/// The oldest pending requests: place in the order of arrival and digest.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Waiting {
    /// Not executed.
    pub new: Vec<(u64, Digest)>,
    /// Executed, and to be ordered again.
    pub again: Vec<(u64, Digest)>,
}

impl Waiting {
    /// The digests of all, new ones first.
    pub fn digests(&self) -> impl Iterator<Item = &Digest> {
        self.new.iter().chain(&self.again).map(|(_, digest)| digest)
    }
}

/// For so many looks a client has a say by what it waited before, while the primary shows what it sends: a minute.
pub(super) const REMEMBERED: u16 = 240;

/// Pending requests looked at to tell how long they have waited: enough for a typical one.
const SAMPLED: usize = 1024;

impl RequestPool {
    /// How long requests waited to be proposed since the last look, in microseconds: the mean of each client, and
    /// of these the middle one, so that no minority of the clients has a say; with it how many clients they were.
    /// Those that wait still count with their age, but for those that `proposed` knows. A client of which the primary itself
    /// showed everything since counts with what was last measured, so that few others do not become the middle. `None` where nothing waited.
    pub fn typical_wait(&mut self, now: Time, proposed: impl Fn(&Digest) -> bool) -> Option<(u64, usize)> {
        let step = self.order.len().div_ceil(SAMPLED).max(1);
        for key in self.order.values().step_by(step) {
            let entry = &self.entries[key];
            if !entry.again && !entry.by_primary && !proposed(&entry.digest) {
                let account = self.accounts.get_mut(&key.0).expect("as above");
                account.waited = account.waited.saturating_add(now.0.saturating_sub(entry.at.0));
                account.waits += 1;
            }
        }
        let mean = |account: &mut Account| {
            let measured = account.waited.checked_div(account.waits);
            account.last = measured.map(|mean| (mean, REMEMBERED)).or(account.last);
            measured.or(account.last.filter(|_| account.shown > 0).map(|(mean, _)| mean))
        };
        let mut means: Vec<u64> = self.accounts.values_mut().filter_map(mean).collect();
        self.forget_waits();
        let middle = means.len().checked_sub(1)? / 2;
        Some((*means.select_nth_unstable(middle).1, means.len()))
    }

    /// Begins to measure anew.
    pub fn forget_waits(&mut self) {
        self.accounts.retain(|_, account| {
            (account.waited, account.waits, account.shown) = (0, 0, 0);
            account.last = account.last.and_then(|(mean, looks)| Some((mean, looks.checked_sub(1)?)));
            account.bytes > 0 || account.last.is_some()
        });
    }

    /// When the request came that came last of those proposed and executed.
    #[must_use]
    pub fn newest_proposed(&self) -> Time {
        self.newest_proposed
    }

    /// The oldest pending request that is signed: its place in the order of arrival, and its digest.
    #[must_use]
    pub fn oldest(&self) -> Option<(u64, Digest)> {
        let (order, key) = self.order.first_key_value()?;
        Some((*order, self.entries[key].digest))
    }

    /// The same of those that are not executed.
    #[must_use]
    pub fn oldest_new(&self) -> Option<(u64, Digest)> {
        let (order, key) = self.order.iter().find(|(order, _)| !self.again.contains(order))?;
        Some((*order, self.entries[key].digest))
    }

    /// The pending signed requests that have waited since `until` or longer, each with its place in the order of arrival: the
    /// oldest `most` that are not executed, and the oldest `most` of those that are ordered again, of each kind at most
    /// `most_bytes` together, or one. However many there are of one kind, they keep none of the other out of sight.
    #[must_use]
    pub fn waiting_since(&self, until: Time, most: usize, most_bytes: usize) -> Waiting {
        let entry = |order: &u64| Some((*order, &self.entries[self.order.get(order)?]));
        let oldest = |orders: &mut dyn Iterator<Item = &u64>| {
            let mut bytes = 0;
            let old = orders.filter_map(entry).take_while(|(_, entry)| {
                let first = bytes == 0;
                bytes += entry.bytes.max(1);
                entry.at <= until && (first || bytes <= most_bytes)
            });
            old.take(most).map(|(order, entry)| (order, entry.digest)).collect()
        };
        Waiting {
            new: oldest(&mut self.order.keys().filter(|order| !self.again.contains(order))),
            again: oldest(&mut self.again.iter()),
        }
    }

    /// When the oldest pending signed request came.
    #[must_use]
    pub fn oldest_came(&self) -> Option<Time> {
        let (_, key) = self.order.first_key_value()?;
        Some(self.entries[key].at)
    }
}
