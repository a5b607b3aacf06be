//! The room for reads that wait and for answers that do, shared by all clients.

use std::collections::BTreeMap;
use troth_types::ClientId;

/// Reads and answers of all clients that wait at once.
const MOST: usize = 4096;
/// Bytes of the reads that wait in a replica, and of the answers to them.
pub const HELD_READS: usize = 32 << 20;
/// The same of one client; its first is taken however large it is.
const MOST_OF_ONE: usize = 512;
const MOST_BYTES_OF_ONE: usize = 1 << 20;

/// What is held: how many, and their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Held {
    count: usize,
    bytes: usize,
}

impl Held {
    fn with(self, bytes: usize) -> Self {
        Self { count: self.count + 1, bytes: self.bytes + bytes }
    }
}

/// Whether there is room for one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// There is.
    Free,
    /// There is once this client, who holds most, has given up something.
    After(ClientId),
    /// Its client holds as much as it may, or nobody holds more.
    None,
}

/// The room that is taken.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Room {
    clients: BTreeMap<ClientId, Held>,
    all: Held,
}

impl Room {
    /// Whether there is room for one more of a client. Where all of it is taken, whoever holds most gives way to one that
    /// holds less even with this one: so many clients that fill it keep nobody out who holds little.
    pub(crate) fn space(&self, client: ClientId, bytes: usize) -> Space {
        let own = self.clients.get(&client).copied().unwrap_or_default();
        let share = own.count == 0 || (own.count < MOST_OF_ONE && own.bytes + bytes <= MOST_BYTES_OF_ONE);
        if !share {
            return Space::None;
        }
        let (own, all) = (own.with(bytes), self.all.with(bytes));
        let lacks: Option<fn(&Held) -> usize> = match (all.bytes > HELD_READS, all.count > MOST) {
            (true, _) => Some(|held| held.bytes),
            (false, true) => Some(|held| held.count),
            (false, false) => None,
        };
        let Some(of) = lacks else { return Space::Free };
        let most = self.clients.iter().max_by_key(|(_, held)| of(held));
        most.filter(|(_, held)| of(held) > of(&own)).map_or(Space::None, |(client, _)| Space::After(*client))
    }

    /// Takes room that there is.
    pub(crate) fn take(&mut self, client: ClientId, bytes: usize) {
        let held = self.clients.entry(client).or_default();
        (*held, self.all) = (held.with(bytes), self.all.with(bytes));
    }

    pub(crate) fn give_back(&mut self, client: ClientId, bytes: usize) {
        let Some(held) = self.clients.get_mut(&client) else { return };
        (held.count, held.bytes) = (held.count - 1, held.bytes - bytes);
        (self.all.count, self.all.bytes) = (self.all.count - 1, self.all.bytes - bytes);
        if held.count == 0 {
            self.clients.remove(&client);
        }
    }
}
