//! Requests that wait for their execution, oldest first (protocols.md §1.6: the suspicion timer runs
//! for the oldest pending request).

use std::collections::BTreeMap;
use troth_types::{ClientId, Digest};

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// It is pending now.
    New,
    /// A request with this client and number was pending already, whatever its digest.
    Pending,
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
    proposed: bool,
}

/// Pending requests by (client, slot of its window): bounded by clients times window, and in bytes by clients
/// times their budget, where one request is taken however large it is. A request is
/// pending until its (client, number) is executed, whatever the digest (F-M10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestPool {
    window: u64,
    client_bytes: usize,
    /// Bytes of each client's pending requests.
    bytes: BTreeMap<ClientId, usize>,
    entries: BTreeMap<(ClientId, u64), Entry>,
    order: BTreeMap<u64, (ClientId, u64)>,
    next: u64,
}

impl RequestPool {
    /// An empty pool for clients with this window and this budget of bytes.
    #[must_use]
    pub fn new(window: u64, client_bytes: usize) -> Self {
        Self {
            window,
            client_bytes,
            bytes: BTreeMap::new(),
            entries: BTreeMap::new(),
            order: BTreeMap::new(),
            next: 0,
        }
    }

    /// Takes a verified request in.
    pub fn admit(&mut self, client: ClientId, number: u64, digest: Digest, bytes: usize) -> Admitted {
        let key = (client, number % self.window);
        if let Some(entry) = self.entries.get(&key) {
            return if entry.number == number { Admitted::Pending } else { Admitted::SlotTaken };
        }
        let held = self.bytes.get(&client).copied().unwrap_or(0);
        if held > 0 && held + bytes > self.client_bytes {
            return Admitted::Full;
        }
        self.bytes.insert(client, held + bytes);
        let order = self.next;
        self.next += 1;
        self.entries.insert(key, Entry { number, digest, bytes, order, proposed: false });
        self.order.insert(order, key);
        Admitted::New
    }

    /// The request (client, number) is executed: it is no longer pending, and neither is an older
    /// number in its slot. Returns the digest that was pending.
    pub fn done(&mut self, client: ClientId, number: u64) -> Option<Digest> {
        let key = (client, number % self.window);
        let entry = self.entries.get(&key).filter(|entry| entry.number <= number).copied()?;
        self.forget(key, entry);
        Some(entry.digest)
    }

    fn forget(&mut self, key: (ClientId, u64), entry: Entry) {
        self.entries.remove(&key);
        self.order.remove(&entry.order);
        let held = self.bytes.get_mut(&key.0).expect("a client with a request has its bytes counted");
        *held -= entry.bytes;
        if *held == 0 {
            self.bytes.remove(&key.0);
        }
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

    /// The oldest pending request: its place in the order of arrival, and its digest.
    #[must_use]
    pub fn oldest(&self) -> Option<(u64, Digest)> {
        let (order, key) = self.order.first_key_value()?;
        Some((*order, self.entries[key].digest))
    }

    /// Takes up to `most` requests of together at most `most_bytes` that were not proposed yet, oldest first, and
    /// marks them proposed. The first is taken however large it is.
    pub fn propose(&mut self, most: usize, most_bytes: usize) -> Vec<Digest> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        for key in self.order.values() {
            if taken.len() == most {
                break;
            }
            let entry = self.entries.get_mut(key).expect("the order lists what is in the pool");
            if !entry.proposed {
                bytes += entry.bytes;
                if !taken.is_empty() && bytes > most_bytes {
                    break;
                }
                entry.proposed = true;
                taken.push(entry.digest);
            }
        }
        taken
    }

    /// Whether anything waits to be proposed.
    #[must_use]
    pub fn has_unproposed(&self) -> bool {
        self.entries.values().any(|entry| !entry.proposed)
    }

    /// A new view: nothing of it is proposed, except what `carried` says is in the view's start.
    pub fn restart(&mut self, carried: impl Fn(&Digest) -> bool) {
        for entry in self.entries.values_mut() {
            entry.proposed = carried(&entry.digest);
        }
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
