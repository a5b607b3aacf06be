//! The two clocks of a replica.

use std::time::{Duration, Instant, SystemTime};
use troth_core::Env;
use troth_types::Time;

/// A monotonic clock that starts at one second, and the machine's time of day.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    start: Instant,
    /// Who says how far the time of day is off.
    #[cfg(feature = "faults")]
    orders: Option<crate::faults::SharedOrders>,
}

/// The local clock's first reading: not 0, so that "before the start" can be said.
const FIRST: u64 = 1_000_000;

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            #[cfg(feature = "faults")]
            orders: None,
        }
    }

    /// A clock that is off as it is told.
    #[cfg(feature = "faults")]
    pub(crate) fn told_by(self, orders: Option<crate::faults::SharedOrders>) -> Self {
        Self { orders, ..self }
    }

    /// Both clocks now.
    pub(crate) fn env(&self) -> Env {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let wall = micros(wall);
        #[cfg(feature = "faults")]
        let wall = self.orders.as_ref().map_or(wall, |orders| orders.time_of_day(wall));
        Env { now: self.now(), wall: Time(wall) }
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
