//! Places for callers who have not said who they are.
//!
//! Whoever can open a TCP connection can leave it silent. Were such callers to wait for a place, a
//! few dozen silent connections would lock everybody out; so a new caller always has one, and where
//! there is none left a caller of the address that holds most loses its own, the oldest of them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;
use tokio::sync::Notify;

/// A bounded number of places.
pub(crate) struct Places {
    most: usize,
    next: Cell<u64>,
    /// Who holds one, oldest first.
    held: RefCell<VecDeque<Held>>,
}

struct Held {
    number: u64,
    address: IpAddr,
    lost: Rc<Notify>,
}

/// One caller's place, free again when dropped.
pub(crate) struct Place {
    places: Rc<Places>,
    number: u64,
    lost: Rc<Notify>,
}

impl Places {
    /// So many places, all free.
    pub(crate) fn new(most: usize) -> Rc<Self> {
        Rc::new(Self { most, next: Cell::new(0), held: RefCell::default() })
    }

    /// A place for a new caller at this address. Where none is free, of the network that holds most the address that does
    /// loses its oldest, the new caller counted.
    pub(crate) fn take(self: &Rc<Self>, address: IpAddr) -> Place {
        let mut held = self.held.borrow_mut();
        while held.len() >= self.most {
            let loser = busiest(&held, address);
            let oldest = held.iter().position(|held| held.address == loser).unwrap_or(0);
            if let Some(oldest) = held.remove(oldest) {
                oldest.lost.notify_one();
            }
        }
        let number = self.next.get();
        self.next.set(number + 1);
        let lost = Rc::new(Notify::new());
        held.push_back(Held { number, address, lost: Rc::clone(&lost) });
        Place { places: Rc::clone(self), number, lost }
    }
}

/// Whose an address is: of IPv6 whoever has one has as many as 64 bits tell apart.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
    }
}

/// In the network with most callers the address with most, a new one at `address` among them; of several, that of the oldest
/// caller. Who has one address of a network must not cost its neighbours theirs.
fn busiest(held: &VecDeque<Held>, address: IpAddr) -> IpAddr {
    let all = || held.iter().map(|held| held.address);
    let crowd = most_of(all().map(network), network(address));
    most_of(all().filter(|at| network(*at) == crowd), address)
}

/// What is there most often, `more` once more; of several, what is first.
fn most_of(all: impl Iterator<Item = IpAddr>, more: IpAddr) -> IpAddr {
    let all: Vec<IpAddr> = all.collect();
    let mut count: BTreeMap<IpAddr, usize> = BTreeMap::new();
    all.iter().for_each(|at| *count.entry(*at).or_default() += 1);
    let of = |at: &IpAddr| count[at] + usize::from(*at == more);
    let most = all.iter().map(of).max().unwrap_or(0);
    all.iter().copied().find(|at| of(at) == most).unwrap_or(more)
}

impl Place {
    /// Works for the caller, and gives up when its place is lost.
    pub(crate) async fn hold<T>(self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.lost.notified() => None,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.held.borrow_mut().retain(|held| held.number != self.number);
    }
}
