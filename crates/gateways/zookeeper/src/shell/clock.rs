//! What time it is.

use core::time::Duration;
use rustix::time::{ClockId, clock_gettime};
use std::time::SystemTime;
use tokio::time::Instant;
use troth_types::Time;

/// What the system's clock says, which may have been set since the gateway began.
#[expect(clippy::disallowed_methods, reason = "the shell tells the machine and the group the time")]
pub(super) fn time_of_day() -> Time {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

/// How long ago the machine started, with the time in which it was suspended: the group's time goes on meanwhile, and ends
/// sessions. The clock that `Instant` reads stands still then.
pub(crate) fn since_start() -> Duration {
    rule!("ZKG-L4");
    let time = clock_gettime(ClockId::Boottime);
    // Neither is negative.
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The time of day when the gateway began, and when that was in the time that passes here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub(super) began: Time,
    since: Duration,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self::of(time_of_day(), since_start())
    }

    /// Of a gateway that began at a time of day, so long after its machine had started.
    pub(crate) fn of(began: Time, since: Duration) -> Self {
        Self { began, since }
    }

    pub(crate) fn now(self) -> Time {
        let passed = since_start().saturating_sub(self.since);
        self.began.after(u64::try_from(passed.as_micros()).unwrap_or(u64::MAX))
    }

    /// When to wake for something: counted anew each time, as timers stand still while the machine is suspended.
    pub(crate) fn at(self, time: Time) -> Instant {
        Instant::now() + Duration::from_micros(time.0.saturating_sub(self.now().0))
    }
}
