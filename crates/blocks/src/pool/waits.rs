//! How long pending requests have waited, and which have waited longest.

use super::{Account, Entry, RequestPool};
use crate::Shown;
use std::collections::{BTreeMap, BTreeSet};
use troth_types::{ClientId, Digest, Time};

/// The oldest pending requests: place in the order of arrival, digest and client.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Waiting {
    /// Not executed.
    pub new: Vec<(u64, Digest, ClientId)>,
    /// Executed, and to be ordered again.
    pub again: Vec<(u64, Digest, ClientId)>,
}

impl Waiting {
    /// The digests of all, new ones first.
    pub fn digests(&self) -> impl Iterator<Item = &Digest> {
        self.new.iter().chain(&self.again).map(|(_, digest, _)| digest)
    }
}

/// What a look at the pool found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stock {
    /// How long requests typically waited, in microseconds.
    pub waited: u64,
    /// How many clients had a say in that.
    pub clients: usize,
    /// How many requests must wait where only the primary sees them.
    pub unseen: usize,
    /// Whether half of the clients or more were measured since a look found the primary slow, or that is long ago.
    pub anew: bool,
}

/// For so many looks a client has a say by what it waited before, while the primary shows what it sends: a minute.
pub(super) const REMEMBERED: u16 = 240;

/// So many looks after a slow one that say nothing before half of the clients were measured anew: two seconds by default.
const SPENT: u8 = 8;

/// Pending requests looked at to tell how long they have waited: enough for a typical one.
const SAMPLED: usize = 1024;
/// Pending requests looked at to tell which are shown.
const LOOKED_AT: usize = 4096;

impl RequestPool {
    /// How long requests waited to be proposed since the last look, in microseconds: the mean of each client, and
    /// of these the middle one, so that no minority of the clients has a say; with it how many clients they were.
    /// Those that wait still count with their age, but for those that `proposed` knows. A client of which the primary itself
    /// showed everything since counts with what was last measured, so that few others do not become the middle. `None` where nothing waited.
    pub fn typical_wait(&mut self, now: Time, proposed: impl Fn(&Digest) -> bool) -> Option<(u64, usize)> {
        self.stock(now, now, proposed).map(|stock| (stock.waited, stock.clients))
    }

    /// The same, and how many requests must wait at the primary alone, by what was executed `since` the last look of which
    /// only the primary showed that it was sent.
    pub fn stock(&mut self, since: Time, now: Time, proposed: impl Fn(&Digest) -> bool) -> Option<Stock> {
        let step = self.order.len().div_ceil(SAMPLED).max(1);
        for key in self.order.values().step_by(step) {
            let entry = &self.entries[key];
            if let Some(wait) = self.wait(entry, now).filter(|_| !proposed(&entry.digest)) {
                let account = self.accounts.get_mut(&key.0).expect("as above");
                account.waited = account.waited.saturating_add(wait);
                account.waits += 1;
            }
        }
        self.spent_for = self.spent_for.saturating_sub(1);
        let (ends, mut known, mut spent) = (self.spent_for == 0, 0, 0);
        let mean = |account: &mut Account| {
            let measured = account.waited.checked_div(account.waits);
            if let Some(mean) = measured {
                (account.last, account.spent) = (Some((mean, REMEMBERED)), false);
            }
            account.spent &= !ends;
            known += usize::from(account.last.is_some());
            spent += usize::from(account.last.is_some() && account.spent);
            let remembered = |(mean, _)| if account.spent { 0 } else { mean };
            measured.or(account.last.filter(|_| account.shown > 0).map(remembered))
        };
        let mut means: Vec<u64> = self.accounts.values_mut().filter_map(mean).collect();
        let middle = means.len().saturating_sub(1) / 2;
        let waited = (!means.is_empty()).then(|| *means.select_nth_unstable(middle).1);
        let unseen = self.unseen(waited.unwrap_or_default(), now.0.saturating_sub(since.0));
        self.forget_waits();
        Some(Stock { waited: waited?, clients: means.len(), unseen, anew: 2 * spent <= known })
    }

    /// A look at `until` found the primary slow. What was there counts again only where it waits for longer than `longest` in
    /// all, and no look says anything before half of the clients were measured anew, for [`SPENT`] looks at most: until then
    /// the others count as who did not wait.
    pub fn found_slow(&mut self, until: Time, longest: u64) {
        self.counted = (until, longest);
        self.spent_for = SPENT;
        self.accounts.values_mut().for_each(|account| account.spent = true);
    }

    /// The last look did not find the primary slow: all that waits counts.
    pub fn found_fair(&mut self) {
        self.counted = (Time(0), 0);
    }

    /// How long a request waited until then for what the primary is judged by, if at all.
    pub(super) fn wait(&self, entry: &Entry, until: Time) -> Option<u64> {
        let wait = until.0.saturating_sub(entry.at.0);
        let (counted, longest) = self.counted;
        let counts = !entry.again && !entry.by_primary && (entry.at >= counted || wait > longest);
        counts.then_some(wait)
    }

    /// How many requests wait at the primary where each waits for so long and what it showed was executed within that time
    /// (Little's law). A client counts for no more than it may have outstanding, or few could excuse a primary that has
    /// the others wait.
    fn unseen(&self, waited: u64, during: u64) -> usize {
        let most = self.window.saturating_mul(during);
        let waits = |account: &Account| account.shown.saturating_mul(waited).min(most);
        let all = self.accounts.values().map(waits).fold(0, u64::saturating_add);
        usize::try_from(all / during.max(1)).unwrap_or(usize::MAX)
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

    /// The pending signed requests that have waited since `until` or longer, each with its place in the order of arrival: at
    /// most `most` that are not executed, and the oldest `most` of those that are ordered again, of each kind at most
    /// `most_bytes` together, or one. However many there are of one kind, they keep none of the other out of sight.
    /// Of those that are not executed what was shown and still waits comes first, then the oldest of each client, of those of
    /// which nothing was shown the last time before the others, and then the rest; what does not fit is passed over. So a client keeps
    /// nobody's oldest request out of sight for longer than one of its own waits.
    #[must_use]
    pub fn waiting_since(
        &self,
        until: Time,
        most: usize,
        most_bytes: usize,
        shown: Option<&Shown>,
    ) -> Waiting {
        let entry = |order: &u64| {
            let key = self.order.get(order)?;
            Some((*order, key.0, &self.entries[key]))
        };
        let old = |orders: &mut dyn Iterator<Item = &u64>, looked_at: usize| {
            let old = orders.filter_map(entry).take_while(|(_, _, entry)| entry.at <= until);
            old.take(looked_at).collect::<Vec<_>>()
        };
        let room = |passes_over: bool, candidates: Vec<(u64, ClientId, &Entry)>| {
            let (mut bytes, mut found) = (0, Vec::new());
            for (order, client, entry) in candidates {
                let size = entry.bytes.max(1);
                if found.len() == most || !found.is_empty() && bytes + size > most_bytes {
                    if passes_over && found.len() < most {
                        continue;
                    }
                    break;
                }
                bytes += size;
                found.push((order, entry.digest, client));
            }
            found
        };
        let mut new = old(&mut self.order.keys().filter(|order| !self.again.contains(order)), LOOKED_AT);
        let mut clients = BTreeSet::new();
        let mut rank = |order: u64, client: ClientId| {
            let first = clients.insert(client);
            match shown {
                Some(shown) if shown.has(order) => 0,
                Some(shown) if first && shown.has_of(client) => 2,
                _ if first => 1,
                _ => 3,
            }
        };
        // Oldest first: of each client the first is ranked before the others.
        let mut ranked: Vec<_> =
            new.iter().map(|(order, client, _)| (rank(*order, *client), *order)).collect();
        ranked.sort_unstable();
        let place: BTreeMap<u64, usize> =
            ranked.iter().zip(0..).map(|((_, order), place)| (*order, place)).collect();
        new.sort_by_key(|(order, ..)| place[order]);
        Waiting { new: room(true, new), again: room(false, old(&mut self.again.iter(), most)) }
    }

    /// Which of the requests that were shown still wait, and are not executed.
    pub fn still_new<'a>(&'a self, shown: &'a Shown) -> impl Iterator<Item = Digest> + 'a {
        let new = shown.requests.iter().filter(|(order, _)| !self.again.contains(order));
        new.filter_map(|(order, _)| Some(self.entries[self.order.get(order)?].digest))
    }

    /// Whether any of the requests that were shown still waits.
    #[must_use]
    pub fn still_waits(&self, shown: &Shown) -> bool {
        shown.requests.iter().any(|(order, _)| self.order.contains_key(order))
    }

    /// When the oldest pending signed request came.
    #[must_use]
    pub fn oldest_came(&self) -> Option<Time> {
        let (_, key) = self.order.first_key_value()?;
        Some(self.entries[key].at)
    }
}
