//! Pseudo-random numbers: xoshiro256++ seeded by splitmix64, in named streams.
//!
//! A stream is a function of the root seed, a name and an index. A draw in one stream never shifts
//! another, so switching one fault class off leaves the rest of a run as it was.

/// One stream of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Rng {
    /// The stream called `name` and numbered `index` of a root seed.
    #[must_use]
    pub fn stream(seed: u64, name: &str, index: u64) -> Self {
        let mut mixed = seed ^ 0x5851_f42d_4c95_7f2d;
        let mut fold = splitmix(&mut mixed);
        for byte in name.bytes() {
            fold = (fold ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            fold ^= fold >> 29;
        }
        fold ^= index.wrapping_mul(0xd6e8_feb8_6659_fd93);
        Self { state: std::array::from_fn(|_| splitmix(&mut fold)) }
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait, reason = "a stream of numbers that never ends")]
    pub fn next(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bias of a 64-bit multiply-shift is below 2^-32 for every bound used here.
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// An index below `bound`, which must not be 0.
    pub fn index(&mut self, bound: usize) -> usize {
        self.below(bound as u64) as usize
    }

    /// A number from `low` to `high`, both included.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True `parts` times in a million.
    pub fn chance(&mut self, parts: u64) -> bool {
        parts > 0 && self.below(1_000_000) < parts
    }

    /// True once in `many` times.
    pub fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    /// One of the choices.
    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())].clone()
    }

    /// A number with an exponential distribution around `mean`, at most sixteen times it.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        // -ln(u) for u = k / 2^53: floating point, but the same operations on the same machine and
        // therefore the same run for the same seed.
        let uniform = ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        ((-uniform.ln() * mean as f64) as u64).min(mean.saturating_mul(16))
    }

    /// Puts a list into random order.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            let other = self.index(last + 1);
            list.swap(last, other);
        }
    }

    /// A random set of `0..n` as bits, each in it with probability one half.
    pub fn subset(&mut self, n: usize) -> u64 {
        self.next() & ((1u64 << n) - 1)
    }
}
