//! How often a supervisor starts the process again before it gives up.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::time::Duration;

/// A process that ends again and again has a cause that another start does not mend: a disk that fails,
/// a store that is refused. Counts starts; reads no clock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RestartLimit {
    starts: NonZeroUsize,
    within: Duration,
    recent: VecDeque<Duration>,
}

/// The process was started as often as allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the trusted process was started {starts} times within {within:?} and ended each time; \
     mend: read what it said last, and start the replica again when the cause is gone"
)]
pub struct TooManyStarts {
    /// The allowed starts.
    pub starts: NonZeroUsize,
    /// The time within which they were made.
    pub within: Duration,
}

impl RestartLimit {
    /// Allows `starts` starts within any span of length `within`, the first start included.
    pub fn new(starts: NonZeroUsize, within: Duration) -> Self {
        Self { starts, within, recent: VecDeque::new() }
    }

    /// Counts a start at `now`, the time since any fixed moment. A clock that stands still or goes back
    /// never makes room.
    ///
    /// # Errors
    /// [`TooManyStarts`]: do not start it.
    pub fn start(&mut self, now: Duration) -> Result<(), TooManyStarts> {
        while self.recent.front().is_some_and(|first| now.saturating_sub(*first) >= self.within) {
            self.recent.pop_front();
        }
        if self.recent.len() >= self.starts.get() {
            return Err(TooManyStarts { starts: self.starts, within: self.within });
        }
        self.recent.push_back(now);
        Ok(())
    }
}
