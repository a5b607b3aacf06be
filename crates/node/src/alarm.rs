//! What wakes the loop when a timer is due.

use std::pin::Pin;
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// Longer than any timer.
const FAR: Duration = Duration::from_secs(3600);

/// Set again only where it would ring too late, as each setting wakes the runtime's driver by a system call.
/// A timer that was moved or cancelled leaves it to ring once for nothing.
pub(crate) struct Alarm {
    sleep: Pin<Box<Sleep>>,
    at: Instant,
}

impl Alarm {
    pub(crate) fn new() -> Self {
        let at = Instant::now() + FAR;
        Self { sleep: Box::pin(tokio::time::sleep_until(at.into())), at }
    }

    /// Rings at this moment at the latest.
    pub(crate) fn no_later_than(&mut self, at: Instant) {
        if at < self.at {
            self.sleep.as_mut().reset(at.into());
            self.at = at;
        }
    }

    /// Waits until it rings.
    pub(crate) async fn rung(&mut self) {
        self.sleep.as_mut().await;
        self.at = Instant::now() + FAR;
        self.sleep.as_mut().reset(self.at.into());
    }
}
