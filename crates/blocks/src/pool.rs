//! Requests that wait for their execution, oldest first (guide.md §1.6: the suspicion timer runs
//! for the oldest pending request).

mod waits;

use std::collections::{BTreeMap, BTreeSet};
use troth_types::{ClientId, Digest, Time};
pub use waits::{Stock, Waiting};

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
    /// The request without signature whose place this one took, which its client sent before.
    unsigned: Option<Digest>,
    /// Without signature: a proposal of the view's primary names it, who so has it.
    named: bool,
    /// It is executed, and is to be ordered again.
    again: bool,
    /// The primary itself showed it: what it waits since says nothing of that one.
    by_primary: bool,
    /// Another request that the primary showed last of those for which this one leaves no room, and that was kept.
    other: Option<Digest>,
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
    /// That was counted in a look that found the primary slow.
    spent: bool,
}

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
    /// What came before was counted, and counts again only where it waits for longer than so many microseconds.
    counted: (Time, u64),
    /// Looks until what was counted in a slow one counts like everything else.
    spent_for: u8,
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
            counted: (Time(0), 0),
            spent_for: 0,
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

    /// The signed form of a request has come at `now`: where it is pending without, and the primary had it, it takes that one's
    /// place in the order. Else what it waited before says nothing of the primary, and it comes last. Returns the digest of the unsigned one, which is not pending any more.
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
        entry.unsigned = Some(before.digest);
        self.unsigned.remove(&before.order);
        self.order.insert(before.order, key);
        if !before.named {
            self.comes_last(key, now);
        }
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

    /// The primary itself showed this request, or, from `now` on, its client did: it waits since, behind all that came before.
    pub fn came(&mut self, client: ClientId, number: u64, by_primary: bool, now: Time) {
        let key = (client, number % self.window);
        let entry = self.entries.get_mut(&key);
        let changed = |entry: &&mut Entry| entry.number == number && entry.by_primary != by_primary;
        let Some(entry) = entry.filter(changed) else { return };
        entry.by_primary = by_primary;
        self.comes_last(key, now);
    }

    /// Has a request count as if it had come just now: its place in the order of arrival goes with its time.
    fn comes_last(&mut self, key: (ClientId, u64), now: Time) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let came = std::mem::replace(&mut entry.at, now);
        if came == now && entry.order + 1 == self.next {
            return;
        }
        let before = std::mem::replace(&mut entry.order, self.next);
        self.next += 1;
        let orders = if entry.signed { &mut self.order } else { &mut self.unsigned };
        orders.remove(&before);
        orders.insert(entry.order, key);
        if self.again.remove(&before) {
            self.again.insert(entry.order);
        }
    }

    /// The primary showed a request with this digest, for which the one in its slot leaves no room; whether it is to be kept
    /// beside that one: as the first such, or where the one before `is_unnamed` no more.
    pub fn keeps_beside(
        &mut self,
        client: ClientId,
        number: u64,
        digest: Digest,
        is_unnamed: impl FnOnce(&Digest) -> bool,
    ) -> bool {
        let Some(entry) = self.entries.get_mut(&(client, number % self.window)) else { return false };
        let keeps = entry.other.is_none_or(|other| !is_unnamed(&other));
        if keeps {
            entry.other = Some(digest);
        }
        keeps
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

    /// A client's signed request of this number has come: an older one in its slot that is not signed, and that no primary has
    /// taken up, is not pending any more. Its client has its outcome, or has begun anew without it, and might never sign it:
    /// nobody would be suspected for either. Returns its digest.
    pub fn give_way_to_signed(&mut self, client: ClientId, number: u64) -> Option<Digest> {
        let key = (client, number % self.window);
        let idle = |entry: &&Entry| !entry.signed && !entry.proposed && !entry.named && entry.number < number;
        let entry = self.entries.get(&key).filter(idle).copied()?;
        self.forget(key, entry);
        Some(entry.digest)
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

    /// Whether this very frame waits here without signature, or did until its signed form took its place.
    #[must_use]
    pub fn came_unsigned(&self, client: ClientId, number: u64, digest: &Digest) -> bool {
        let entry = self.entries.get(&(client, number % self.window));
        entry.filter(|entry| entry.number == number).is_some_and(|entry| {
            let unsigned = if entry.signed { entry.unsigned } else { Some(entry.digest) };
            unsigned == Some(*digest)
        })
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
            unsigned: None,
            named: false,
            again: false,
            by_primary: false,
            other: None,
        };
        self.entries.insert(key, entry);
        if signed { &mut self.order } else { &mut self.unsigned }.insert(order, key);
        Admitted::New
    }

    /// The request (client, number), which was proposed at that time, is executed: it is no longer pending, and neither is an
    /// older number in its slot. Where its batch has `executed` it, then, and no earlier one had, a newer number waits from then
    /// on: the primary may have had no room for it. What was never signed and not named counts for no wait: its client may not
    /// have sent it to the primary. Returns the digest that was pending.
    pub fn done(
        &mut self,
        client: ClientId,
        number: u64,
        proposed: Time,
        executed: Option<Time>,
    ) -> Option<Digest> {
        let key = (client, number % self.window);
        let entry = self.entries.get(&key).copied()?;
        if entry.number > number {
            if let Some(now) = executed {
                self.comes_last(key, now);
            }
            return None;
        }
        let wait = self.wait(&entry, proposed);
        let account = self.forget(key, entry);
        if let Some(wait) = wait.filter(|_| entry.signed || entry.named) {
            account.waited = account.waited.saturating_add(wait);
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
    /// is as if everything had come `now`, and as if it had let nobody wait so far.
    pub fn restart(&mut self, now: Time, carried: impl Fn(&Digest) -> bool) {
        for entry in self.entries.values_mut() {
            entry.proposed = carried(&entry.digest);
            entry.named = entry.proposed;
            (entry.at, entry.by_primary) = (now, false);
        }
        for account in self.accounts.values_mut() {
            (account.last, account.spent) = (Some((0, waits::REMEMBERED)), false);
        }
        let waiting = self.entries.values().filter(|entry| !entry.proposed);
        (self.waiting, self.waiting_bytes) =
            waiting.fold((0, 0), |(count, bytes), entry| (count + 1, bytes + entry.bytes));
        self.newest_proposed = Time(0);
        self.spent_for = 0;
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
