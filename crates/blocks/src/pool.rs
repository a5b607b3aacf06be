//! Requests that wait for their execution, oldest first (guide.md §1.6: the suspicion timer runs
//! for the oldest pending request).

use std::collections::{BTreeMap, BTreeSet};
use troth_types::{ClientId, Digest, Time};

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// It is pending now.
    New,
    /// A request with this client and number was pending already: the one with this digest.
    Pending(Digest),
    /// The slot of the client's window holds another pending number.
    SlotTaken,
    /// The client's pending requests are as many bytes as it may have.
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    number: u64,
    digest: Digest,
    bytes: usize,
    order: u64,
    /// When it came; without signature, when it was named.
    at: Time,
    proposed: bool,
    signed: bool,
    /// Without signature: a proposal of the view's primary names it, who so has it.
    named: bool,
    /// It is executed, and is to be ordered again.
    again: bool,
    /// The primary itself showed it: what it waits since says nothing of that one.
    by_primary: bool,
    /// The primary showed another request that has no room for this one, and it was kept.
    other: bool,
}

/// What the pool knows of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Account {
    /// Bytes of its pending requests.
    bytes: usize,
    /// Microseconds that its requests waited for their proposal, and how many they were.
    waited: u64,
    waits: u64,
    /// How many requests that the primary itself showed were executed since the last look.
    shown: u64,
    /// What its requests waited when that was last measured, and for how many looks that counts.
    last: Option<(u64, u16)>,
}

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
const REMEMBERED: u16 = 240;

/// Pending requests looked at to tell how long they have waited: enough for a typical one.
const SAMPLED: usize = 1024;

/// Pending requests by (client, slot of its window): bounded by clients times window, and in bytes by clients
/// times their budget, where one request is taken however large it is. A request is
/// pending until its (client, number) is executed, whatever the digest (F-M10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestPool {
    window: u64,
    client_bytes: usize,
    accounts: BTreeMap<ClientId, Account>,
    entries: BTreeMap<(ClientId, u64), Entry>,
    order: BTreeMap<u64, (ClientId, u64)>,
    /// Those of them that are executed and to be ordered again.
    again: BTreeSet<u64>,
    /// The same for requests that are not signed: only this replica knows whose they are, so nobody is suspected for
    /// them.
    unsigned: BTreeMap<u64, (ClientId, u64)>,
    next: u64,
    /// How many were not proposed yet, and their bytes.
    waiting: usize,
    waiting_bytes: usize,
    /// When the request came that came last of those that were proposed.
    newest_proposed: Time,
}

impl RequestPool {
    /// An empty pool for clients with this window and this budget of bytes.
    #[must_use]
    pub fn new(window: u64, client_bytes: usize) -> Self {
        Self {
            window,
            client_bytes,
            accounts: BTreeMap::new(),
            entries: BTreeMap::new(),
            order: BTreeMap::new(),
            again: BTreeSet::new(),
            unsigned: BTreeMap::new(),
            next: 0,
            waiting: 0,
            waiting_bytes: 0,
            newest_proposed: Time(0),
        }
    }

    /// Takes a verified request in, which came at `now`.
    pub fn admit(
        &mut self,
        client: ClientId,
        number: u64,
        digest: Digest,
        bytes: usize,
        now: Time,
    ) -> Admitted {
        self.admit_as(client, number, digest, bytes, now, true)
    }

    /// Takes a request in that only an authenticator shows to be its client's (PBFT, OSDI '99 §5.2): it may be proposed,
    /// and no timer runs for it.
    pub fn admit_unsigned(
        &mut self,
        client: ClientId,
        number: u64,
        digest: Digest,
        bytes: usize,
        now: Time,
    ) -> Admitted {
        self.admit_as(client, number, digest, bytes, now, false)
    }

    /// The signed form of a request has come at `now`: where it is pending without, it takes that one's place in the order.
    /// What it waited before says nothing of the primary, unless that had it. Returns the digest of the unsigned one, which is not pending any more.
    pub fn replace_unsigned(
        &mut self,
        client: ClientId,
        number: u64,
        digest: Digest,
        bytes: usize,
        now: Time,
    ) -> Option<Digest> {
        let key = (client, number % self.window);
        let entry = self.entries.get_mut(&key).filter(|entry| entry.number == number && !entry.signed)?;
        let before = *entry;
        (entry.digest, entry.bytes, entry.signed) = (digest, bytes, true);
        if !entry.named {
            entry.at = now;
        }
        self.unsigned.remove(&before.order);
        self.order.insert(before.order, key);
        let account = self.accounts.get_mut(&client).expect("a client with a request has an account");
        account.bytes = account.bytes - before.bytes + bytes;
        if !before.proposed {
            self.waiting_bytes = self.waiting_bytes - before.bytes + bytes;
        }
        Some(before.digest)
    }

    /// A pending request is executed: it waits for its place to be proven anew, and says nothing of its primary.
    pub fn is_again(&mut self, client: ClientId, number: u64) {
        let entry = self.entries.get_mut(&(client, number % self.window));
        if let Some(entry) = entry.filter(|entry| entry.number == number) {
            entry.again = true;
            self.again.insert(entry.order);
        }
    }

    /// The primary itself showed this request, or, from `now` on, its client did.
    pub fn came(&mut self, client: ClientId, number: u64, by_primary: bool, now: Time) {
        let entry = self.entries.get_mut(&(client, number % self.window));
        if let Some(entry) = entry.filter(|entry| entry.number == number && entry.by_primary != by_primary) {
            (entry.by_primary, entry.at) = (by_primary, now);
        }
    }

    /// The primary showed a request for which the one in its slot leaves no room; whether it is the first such.
    pub fn is_first_other(&mut self, client: ClientId, number: u64) -> bool {
        let entry = self.entries.get_mut(&(client, number % self.window));
        entry.is_some_and(|entry| !std::mem::replace(&mut entry.other, true))
    }

    /// Whether this (client, number) is pending and executed.
    #[must_use]
    pub fn waits_again(&self, client: ClientId, number: u64) -> bool {
        let entry = self.entries.get(&(client, number % self.window));
        entry.is_some_and(|entry| entry.number == number && entry.again)
    }

    /// A client's request of this number has come: an older one in its slot that is executed is not pending any more. Its
    /// client has the answer, or would not have sent the newer one. Returns its place in the order of arrival, and its digest.
    pub fn give_way(&mut self, client: ClientId, number: u64) -> Option<(u64, Digest)> {
        let key = (client, number % self.window);
        let entry = self.entries.get(&key).filter(|entry| entry.again && entry.number < number).copied()?;
        self.forget(key, entry);
        Some((entry.order, entry.digest))
    }

    /// Whether this (client, number) is pending.
    #[must_use]
    pub fn has(&self, client: ClientId, number: u64) -> bool {
        self.entries.get(&(client, number % self.window)).is_some_and(|entry| entry.number == number)
    }

    /// A primary's proposal names a request: where it waits without signature, it waits for that primary from `now` on.
    pub fn named(&mut self, client: ClientId, number: u64, now: Time) {
        let entry = self.entries.get_mut(&(client, number % self.window));
        if let Some(entry) = entry.filter(|entry| entry.number == number && !entry.signed && !entry.named) {
            (entry.at, entry.named) = (now, true);
        }
    }

    /// Whether anything waits without signature.
    #[must_use]
    pub fn has_unsigned(&self) -> bool {
        !self.unsigned.is_empty()
    }

    /// Forgets what is pending of a client without its signature; returns the digests.
    pub fn forget_unsigned(&mut self, client: ClientId) -> Vec<Digest> {
        let of_client = self.entries.range((client, 0)..=(client, u64::MAX));
        let gone: Vec<_> =
            of_client.filter(|(_, entry)| !entry.signed).map(|(key, entry)| (*key, *entry)).collect();
        for (key, entry) in &gone {
            self.forget(*key, *entry);
        }
        gone.into_iter().map(|(_, entry)| entry.digest).collect()
    }

    /// Whether this very frame waits here without signature.
    #[must_use]
    pub fn waits_unsigned(&self, client: ClientId, number: u64, digest: &Digest) -> bool {
        let entry = self.entries.get(&(client, number % self.window));
        entry.is_some_and(|entry| entry.number == number && !entry.signed && entry.digest == *digest)
    }

    fn admit_as(
        &mut self,
        client: ClientId,
        number: u64,
        digest: Digest,
        bytes: usize,
        now: Time,
        signed: bool,
    ) -> Admitted {
        let key = (client, number % self.window);
        if let Some(entry) = self.entries.get(&key) {
            return if entry.number == number {
                Admitted::Pending(entry.digest)
            } else {
                Admitted::SlotTaken
            };
        }
        let account = self.accounts.entry(client).or_default();
        if account.bytes > 0 && account.bytes + bytes > self.client_bytes {
            return Admitted::Full;
        }
        account.bytes += bytes;
        let order = self.next;
        self.next += 1;
        self.waiting += 1;
        self.waiting_bytes += bytes;
        let entry = Entry {
            number,
            digest,
            bytes,
            order,
            at: now,
            proposed: false,
            signed,
            named: false,
            again: false,
            by_primary: false,
            other: false,
        };
        self.entries.insert(key, entry);
        if signed { &mut self.order } else { &mut self.unsigned }.insert(order, key);
        Admitted::New
    }

    /// The request (client, number), which was proposed at that time, is executed: it is no longer pending, and
    /// neither is an older number in its slot. What was never signed and not named counts for no wait: its client may not
    /// have sent it to the primary. Returns the digest that was pending.
    pub fn done(&mut self, client: ClientId, number: u64, proposed: Time) -> Option<Digest> {
        let key = (client, number % self.window);
        let entry = self.entries.get(&key).filter(|entry| entry.number <= number).copied()?;
        let account = self.forget(key, entry);
        if (entry.signed || entry.named) && !entry.again && !entry.by_primary {
            account.waited = account.waited.saturating_add(proposed.0.saturating_sub(entry.at.0));
            account.waits += 1;
        }
        account.shown += u64::from(entry.by_primary);
        self.newest_proposed = self.newest_proposed.max(entry.at);
        Some(entry.digest)
    }

    /// The account stays until the next look at all of them.
    fn forget(&mut self, key: (ClientId, u64), entry: Entry) -> &mut Account {
        self.entries.remove(&key);
        if !entry.proposed {
            self.waiting -= 1;
            self.waiting_bytes -= entry.bytes;
        }
        if entry.signed { &mut self.order } else { &mut self.unsigned }.remove(&entry.order);
        self.again.remove(&entry.order);
        let account = self.accounts.get_mut(&key.0).expect("a client with a request has an account");
        account.bytes -= entry.bytes;
        account
    }

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

    /// Bytes of all pending requests.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.accounts.values().map(|account| account.bytes).sum()
    }

    /// Keeps only what `pending` says is still pending; returns the digests of what went.
    pub fn retain(&mut self, pending: impl Fn(ClientId, u64) -> bool) -> Vec<Digest> {
        let gone: Vec<_> = self
            .entries
            .iter()
            .filter(|(key, entry)| !pending(key.0, entry.number))
            .map(|(key, entry)| (*key, *entry))
            .collect();
        for (key, entry) in &gone {
            self.forget(*key, *entry);
        }
        gone.into_iter().map(|(_, entry)| entry.digest).collect()
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

    /// Takes up to `most` requests of together at most `most_bytes` that were not proposed yet, oldest first, and
    /// marks them proposed. The first is taken however large it is.
    pub fn propose(&mut self, most: usize, most_bytes: usize) -> Vec<Digest> {
        self.propose_where(most, most_bytes, |_| true)
    }

    /// The same, where those of a client that are not signed are left for a later batch unless `fits` takes the client.
    pub fn propose_where(
        &mut self,
        most: usize,
        most_bytes: usize,
        mut fits: impl FnMut(ClientId) -> bool,
    ) -> Vec<Digest> {
        let (mut taken, mut taken_bytes) = (Vec::new(), 0);
        let (mut signed, mut unsigned) = (self.order.iter().peekable(), self.unsigned.iter().peekable());
        loop {
            let earlier = match (signed.peek(), unsigned.peek()) {
                (Some((one, _)), Some((other, _))) => one < other,
                (one, _) => one.is_some(),
            };
            let next = if earlier { signed.next() } else { unsigned.next() };
            let Some((_, key)) = next.filter(|_| taken.len() < most) else { break };
            let entry = self.entries.get_mut(key).expect("the order lists what is in the pool");
            if !entry.proposed && (entry.signed || fits(key.0)) {
                if !taken.is_empty() && taken_bytes + entry.bytes > most_bytes {
                    break;
                }
                taken_bytes += entry.bytes;
                entry.proposed = true;
                taken.push(entry.digest);
            }
        }
        self.waiting -= taken.len();
        self.waiting_bytes -= taken_bytes;
        taken
    }

    /// Whether anything waits to be proposed.
    #[must_use]
    pub fn has_unproposed(&self) -> bool {
        self.waiting > 0
    }

    /// Whether as many wait to be proposed as are proposed and not executed yet, or what fills a batch of `most`
    /// requests and `most_bytes`.
    #[must_use]
    pub fn has_gathered(&self, most: usize, most_bytes: usize) -> bool {
        self.waiting >= most.min(self.entries.len() - self.waiting) || self.waiting_bytes >= most_bytes
    }

    /// A new view: nothing of it is proposed, except what `carried` says is in the view's start, and its primary
    /// is as if everything had come `now`.
    pub fn restart(&mut self, now: Time, carried: impl Fn(&Digest) -> bool) {
        for entry in self.entries.values_mut() {
            entry.proposed = carried(&entry.digest);
            entry.named = entry.proposed;
            (entry.at, entry.by_primary) = (now, false);
        }
        self.accounts.values_mut().for_each(|account| account.last = None);
        let waiting = self.entries.values().filter(|entry| !entry.proposed);
        (self.waiting, self.waiting_bytes) =
            waiting.fold((0, 0), |(count, bytes), entry| (count + 1, bytes + entry.bytes));
        self.newest_proposed = Time(0);
        self.forget_waits();
    }

    /// How many requests are pending.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
