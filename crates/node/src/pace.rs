//! How many callers are answered in a second: a handshake's arithmetic comes before anybody knows who calls, and is done on
//! the thread that orders requests.

use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

/// Lets so many through at once, and as many more as fit in time. Who waits is let through in the order in which they came.
pub(crate) struct Pace {
    every: Duration,
    most: u32,
    /// How many may go, and since when that is so.
    left: Mutex<(u32, Instant)>,
}

impl Pace {
    /// One in each such time, and `most` at once.
    pub(crate) fn new(every: Duration, most: u32) -> Self {
        Self { every, most, left: Mutex::new((most, Instant::now())) }
    }

    /// Waits for a turn. Who gives up before has taken nothing.
    pub(crate) async fn turn(&self) {
        let mut left = self.left.lock().await;
        let passed = left.1.elapsed().as_nanos() / self.every.as_nanos();
        let more = u32::try_from(passed).unwrap_or(u32::MAX).min(self.most - left.0);
        *left = match left.0 + more {
            full if full == self.most => (full, Instant::now()),
            some => (some, left.1 + self.every * more),
        };
        if left.0 == 0 {
            let next = left.1 + self.every;
            sleep_until(next).await;
            *left = (0, next);
        } else {
            left.0 -= 1;
        }
    }
}
