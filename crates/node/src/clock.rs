//! The two clocks of a replica.

use std::time::{Duration, Instant, SystemTime};
use troth_core::Env;
use troth_types::Time;

/// A monotonic clock that starts at one second, and the machine's time of day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

/// The local clock's first reading: not 0, so that "before the start" can be said.
const FIRST: u64 = 1_000_000;

impl Clock {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now() }
    }

    /// Both clocks now.
    pub(crate) fn env(&self) -> Env {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Env { now: self.now(), wall: Time(micros(wall)) }
    }

    /// The local clock.
    pub(crate) fn now(&self) -> Time {
        Time(FIRST + micros(self.start.elapsed()))
    }

    /// When the local clock will read `at`.
    pub(crate) fn instant(&self, at: Time) -> Instant {
        self.start + Duration::from_micros(at.0.saturating_sub(FIRST).min(YEARS))
    }
}

/// Far enough for any timer, near enough for [`Instant`].
const YEARS: u64 = 100_000_000_000_000;

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
