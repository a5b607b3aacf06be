//! What a target is, and the bound that it keeps.

use crate::allocator::peak_of;

/// How much memory reading an input may take: so many bytes, and so many for each byte of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Whatever the input.
    pub fixed: u64,
    /// For each byte of it.
    pub per_byte: u64,
}

impl Bound {
    /// Of decoders that are to hold what they were sent and little more.
    pub const DECODER: Self = Self { fixed: 64 << 10, per_byte: 64 };

    fn of(self, length: usize) -> u64 {
        self.fixed + self.per_byte * length as u64
    }
}

/// One reader of foreign bytes, or several that are alike.
#[derive(Clone, Copy)]
pub struct Target {
    /// As `cargo xtask fuzz --target` and `targets.toml` name it.
    pub name: &'static str,
    /// Takes an input. It panics where something is wrong.
    pub run: fn(&[u8]),
    /// Inputs to begin with, made from what is valid.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// The memory that it may take.
    pub bound: Bound,
    /// The longest input that is tried.
    pub longest: usize,
}

impl Target {
    /// Takes an input and holds the target to its bound.
    ///
    /// # Panics
    /// Where the target does, and where it takes more memory than its bound.
    pub fn check(&self, input: &[u8]) {
        let ((), peak) = peak_of(|| (self.run)(input));
        let bound = self.bound.of(input.len());
        assert!(
            peak <= bound,
            "{}: {peak} bytes of memory for an input of {}, over its bound of {bound}",
            self.name,
            input.len()
        );
    }
}
