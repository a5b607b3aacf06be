//! How long turns of the loop take: whoever looks now and then must see the worst of the meantime.

use troth_types::Time;

/// Microseconds that are remembered at least; twice that at most.
const REMEMBERED: u64 = 10_000_000;

/// The longest turn of late.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Longest {
    since: Time,
    now: u64,
    before: u64,
}

impl Longest {
    /// A turn that ended at `now` took so many microseconds.
    pub(crate) fn took(&mut self, now: Time, micros: u64) {
        if now.0 >= self.since.0 + REMEMBERED {
            self.before = if now.0 >= self.since.0 + 2 * REMEMBERED { 0 } else { self.now };
            (self.since, self.now) = (now, 0);
        }
        self.now = self.now.max(micros);
    }

    /// The longest one of the last ten seconds or more.
    pub(crate) fn micros(&self) -> u64 {
        self.now.max(self.before)
    }
}
