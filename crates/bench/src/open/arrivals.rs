//! When requests arrive that do not wait for answers.
//!
//! Gaps are exponential, so that arrivals are a Poisson process: what many clients bring about that know nothing of
//! each other. Evenly spaced ones would flatter a system, because no two of them would ever meet. They are drawn from
//! a seed, so that every variant of a round meets the same arrivals.

use std::time::Duration;

/// Arrivals at a rate, each with the client that brings it.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    state: u64,
    rate: f64,
    clients: u64,
    /// Seconds from the beginning to the last arrival.
    at: f64,
}

impl Arrivals {
    /// So many a second over all clients, without end.
    pub(crate) fn new(seed: u64, rate: f64, clients: usize) -> Self {
        assert!(rate > 0.0 && clients > 0, "somebody asks at some time");
        Self { state: seed, rate, clients: clients as u64, at: 0.0 }
    }

    /// SplitMix64 (Steele, Lea and Flood, 2014).
    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl Iterator for Arrivals {
    /// The time from the beginning, and the client.
    type Item = (Duration, usize);

    fn next(&mut self) -> Option<Self::Item> {
        // 53 bits, and never 0, whose logarithm is none.
        let share = ((self.draw() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        self.at -= share.ln() / self.rate;
        let client = (self.draw() % self.clients) as usize;
        Some((Duration::from_secs_f64(self.at), client))
    }
}
