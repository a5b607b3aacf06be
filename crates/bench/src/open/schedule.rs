//! The requests of an open loop: when each is due, whether it counts, and what happens where they pile up.

use super::alarm::Alarm;
use super::arrivals::Arrivals;
use crate::report::percentile;
use std::ops::Range;
use std::time::{Duration, Instant};

/// A request whose time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// The client that asks.
    pub(crate) client: usize,
    /// When it was due, however late it is taken: its latency is counted from here.
    pub(crate) at: Instant,
    /// Whether it was due in the measured window; it then counts, whenever its answer comes.
    pub(crate) counts: bool,
}

/// What became of the requests that were due in the measured window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Met {
    /// How many were due.
    pub(crate) due: u64,
    /// Of these, how many were not even asked, because too many waited already.
    pub(crate) refused: u64,
    /// Microseconds by which the others were asked late, with how many were.
    pub(crate) late: Vec<(u32, u32)>,
}

/// The shares at which latencies are held against lateness.
const RANKS: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 1.0];

impl Met {
    /// Whether these latencies, in microseconds with how many had each, can be those of all that was asked, counted from
    /// when it was due. Then none is missing, and since each is as long as its request was late and longer, the sorted
    /// ones are as long as the sorted times by which requests were late; counted from sending they need not be.
    pub(crate) fn shows_in(&self, latencies: &[(u32, u32)]) -> bool {
        let count = |values: &[(u32, u32)]| values.iter().map(|(_, count)| u64::from(*count)).sum::<u64>();
        let asked = self.due - self.refused;
        let longer = |rank| percentile(latencies, rank) >= percentile(&self.late, rank);
        count(latencies) == asked && count(&self.late) == asked && RANKS.into_iter().all(longer)
    }
}

/// Arrivals from a beginning to an end, on the machine's clock.
pub(crate) struct Schedule {
    arrivals: Arrivals,
    next: (Duration, usize),
    began: Instant,
    /// Since the beginning.
    window: Range<Duration>,
    /// Requests that may be outstanding.
    bound: u64,
    met: Met,
    alarm: Alarm,
}

impl Schedule {
    /// Arrivals from now to the end of the window.
    pub(crate) fn new(mut arrivals: Arrivals, window: Range<Duration>, bound: u64) -> std::io::Result<Self> {
        let next = arrivals.next().expect("arrivals have no end");
        let (began, met, alarm) = (Instant::now(), Met::default(), Alarm::new()?);
        Ok(Self { arrivals, next, began, window, bound, met, alarm })
    }

    /// The next request that is due `now` and may be asked while `outstanding` are.
    pub(crate) fn due(&mut self, now: Instant, outstanding: u64) -> Option<Due> {
        let since = now.duration_since(self.began);
        while self.next.0 <= since && !self.is_over() {
            let (at, client) = self.next;
            self.next = self.arrivals.next().expect("arrivals have no end");
            let counts = self.window.contains(&at);
            self.met.due += u64::from(counts);
            if outstanding >= self.bound {
                self.met.refused += u64::from(counts);
                continue;
            }
            if counts {
                let late = u32::try_from((since - at).as_micros()).unwrap_or(u32::MAX);
                match self.met.late.last_mut() {
                    Some((same, count)) if *same == late => *count += 1,
                    _ => self.met.late.push((late, 1)),
                }
            }
            return Some(Due { client, at: self.began + at, counts });
        }
        None
    }

    /// Whether nothing will be due any more.
    pub(crate) fn is_over(&self) -> bool {
        self.next.0 >= self.window.end
    }

    /// Waits until the next request is due; for ever after the last.
    pub(crate) async fn wait(&mut self) -> std::io::Result<()> {
        if self.is_over() {
            return std::future::pending().await;
        }
        self.alarm.wait(self.began + self.next.0).await
    }

    /// What became of the requests.
    pub(crate) fn met(self) -> Met {
        self.met
    }

    #[cfg(test)]
    pub(crate) fn began(&self) -> Instant {
        self.began
    }
}
