//! The network: delay, loss, duplication, reordering, partitions, and links that are deaf in one
//! direction.

use crate::{Options, Rng};

/// The state of all links.
#[derive(Clone, Debug)]
pub struct Network {
    n: usize,
    rng: Rng,
    delay_min: u64,
    delay_mean: u64,
    loss: u64,
    duplication: u64,
    spike: u64,
    spike_mean: u64,
    /// Bits of those whose links nothing silences.
    bridges: u64,
    /// Until when the link from a replica to another is deaf.
    deaf_until: Vec<u64>,
    /// How often a fault of the links began.
    pub faults: u64,
}

impl Network {
    /// The network of a seed's world.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        let n = usize::from(options.n);
        let faulty = options.faulty.iter().filter(|_| options.bridges);
        Self {
            n,
            rng: Rng::stream(options.seed, "network", 0),
            delay_min: options.delay_min,
            delay_mean: options.delay_mean,
            loss: options.loss,
            duplication: options.duplication,
            spike: options.spike,
            spike_mean: options.spike_mean,
            bridges: faulty.fold(0, |mask, faulty| mask | 1 << faulty.replica),
            deaf_until: vec![0; n * n],
            faults: 0,
        }
    }

    /// From now on everything arrives, soon.
    pub fn heal(&mut self) {
        self.loss = 0;
        self.duplication = 0;
        self.spike = 0;
        self.delay_mean = self.delay_mean.min(200);
        self.join();
    }

    /// No link is deaf any more.
    pub fn join(&mut self) {
        self.deaf_until.fill(0);
    }

    fn delay(&mut self) -> u64 {
        let usual = self.delay_min + self.rng.exponential(self.delay_mean);
        if self.rng.chance(self.spike) { usual + self.rng.exponential(self.spike_mean) } else { usual }
    }

    /// The delays of the copies of a message that arrive: none, one or two.
    pub fn copies(&mut self) -> [Option<u64>; 2] {
        if self.rng.chance(self.loss) {
            return [None, None];
        }
        let first = self.delay();
        let second = self.rng.chance(self.duplication).then(|| self.delay() + self.rng.exponential(5_000));
        [Some(first), second]
    }

    /// Whether the link from a replica to another passes messages now.
    #[must_use]
    pub fn hears(&self, now: u64, from: u16, to: u16) -> bool {
        now >= self.deaf_until[usize::from(from) * self.n + usize::from(to)]
    }

    fn deafen(&mut self, from: usize, to: usize, until: u64) {
        if self.bridges & (1 << from | 1 << to) != 0 {
            return;
        }
        let link = &mut self.deaf_until[from * self.n + to];
        *link = (*link).max(until);
    }

    /// The replicas fall into two groups; the bits of those in the first.
    pub fn partition(&mut self, until: u64) -> u64 {
        self.faults += 1;
        let side = self.rng.subset(self.n);
        let one_way = self.rng.one_in(3);
        for from in 0..self.n {
            for to in 0..self.n {
                let (a, b) = (side >> from & 1, side >> to & 1);
                if a != b && (a == 1 || !one_way) {
                    self.deafen(from, to, until);
                }
            }
        }
        side
    }

    /// One replica is not heard, or hears nothing, or both.
    pub fn isolate(&mut self, replica: u16, until: u64) {
        self.faults += 1;
        let how = self.rng.below(4);
        for other in 0..self.n {
            if how != 0 {
                self.deafen(usize::from(replica), other, until);
            }
            if how == 0 || how == 3 {
                self.deafen(other, usize::from(replica), until);
            }
        }
    }

    /// The links among the replicas fall silent at random, each direction by itself.
    pub fn cut(&mut self, until: u64) {
        self.faults += 1;
        let share = self.rng.pick(&[200_000, 500_000, 800_000]);
        for from in 0..self.n {
            for to in 0..self.n {
                if self.rng.chance(share) {
                    self.deafen(from, to, until);
                }
            }
        }
    }

    /// What is said among these replicas passes; what they say to the others and hear from them does
    /// not.
    pub fn confine(&mut self, members: u64, until: u64) {
        self.faults += 1;
        for from in 0..self.n {
            for to in 0..self.n {
                if (members >> from & 1) != (members >> to & 1) {
                    self.deafen(from, to, until);
                }
            }
        }
    }
}
