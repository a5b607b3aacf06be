//! Links that lose one kind of message for a while and pass all others. A network may do so, and seldom does by chance: that
//! one replica alone hears of a checkpoint, or that nobody hears who leaves a view while everything else goes on.

use crate::options::FaultClass;
use crate::{Options, Rng};
use std::collections::BTreeSet;

/// Which kind is lost now, and where.
#[derive(Clone, Debug)]
pub struct Selective {
    n: usize,
    rng: Rng,
    /// Whether anything is lost so.
    active: bool,
    pause: u64,
    length: u64,
    /// Bits of those whose links nothing silences.
    bridges: u64,
    /// What was sent so far: each kind is as likely, however seldom it is sent.
    seen: BTreeSet<&'static str>,
    kind: &'static str,
    /// Bits of the receivers that do not get it, of each sender.
    lost: Vec<u64>,
    until: u64,
    next: u64,
}

impl Selective {
    /// The links of a seed's world.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        let faulty = options.faulty.iter().filter(|_| options.bridges);
        Self {
            n: usize::from(options.n),
            rng: Rng::stream(options.seed, "kinds", 1),
            active: options.has(FaultClass::Kinds),
            pause: options.fault_pause,
            length: options.fault_length + options.view_timeout,
            bridges: faulty.fold(0, |mask, faulty| mask | 1 << faulty.replica),
            seen: BTreeSet::new(),
            kind: "",
            lost: Vec::new(),
            until: 0,
            next: 0,
        }
    }

    /// Whether a message of this kind passes from a replica to another now.
    pub fn passes(&mut self, now: u64, from: u16, to: u16, kind: &'static str) -> bool {
        if !self.active || (self.bridges >> from | self.bridges >> to) & 1 == 1 {
            return true;
        }
        self.seen.insert(kind);
        if now >= self.next {
            self.begin(now);
        }
        kind != self.kind || now >= self.until || self.lost[usize::from(from)] >> to & 1 == 0
    }

    fn begin(&mut self, now: u64) {
        let kinds: Vec<&'static str> = self.seen.iter().copied().collect();
        self.kind = self.rng.pick(&kinds);
        self.until = now + self.rng.exponential(self.length);
        self.next = self.until + self.rng.exponential(self.pause).max(500);
        let share = self.rng.pick(&[300_000, 600_000, 1_000_000]);
        let Self { rng, n, .. } = self;
        let mut links = || (0..*n).filter(|_| rng.chance(share)).fold(0, |mask, to| mask | 1 << to);
        self.lost = (0..*n).map(|_| links()).collect();
    }

    /// From now on everything passes.
    pub fn heal(&mut self) {
        self.active = false;
    }
}
