//! Processor time, in microseconds, of code that finds its caches full of other things. A server that is woken for a
//! message finds them so: others have run on its core meanwhile. The same in a row costs half as much, and says nothing
//! of what a request costs.

use crate::Failure;
use rustix::time::{ClockId, clock_gettime};

/// Bytes that are walked through before each measured time: more than the caches that a core has for itself.
const OTHERS: usize = 4 << 20;
/// A cache line.
const LINE: usize = 64;
/// How often a price is taken; the middle one counts.
const TIMES: usize = 401;

/// Processor time of this thread so far.
pub(crate) fn processor() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// What fills the caches between two measured times.
pub(crate) struct Others(Vec<u8>);

impl Others {
    pub(crate) fn new() -> Self {
        Self(vec![1; OTHERS])
    }

    /// Fills the caches.
    pub(crate) fn run(&mut self) {
        for at in (0..self.0.len()).step_by(LINE) {
            self.0[at] = self.0[at].wrapping_add(1);
        }
        std::hint::black_box(&self.0);
    }
}

/// Microseconds of this thread that something takes, when others have run before.
pub(crate) fn each(mut what: impl FnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
    let (mut others, mut all) = (Others::new(), Vec::with_capacity(TIMES));
    for _ in 0..TIMES {
        others.run();
        let began = processor();
        what()?;
        all.push(processor() - began);
    }
    Ok((crate::report::median(all) - look()).max(0.0))
}

/// What a look at the clock takes itself.
pub(crate) fn look() -> f64 {
    let mut others = Others::new();
    let all: Vec<f64> = (0..TIMES)
        .map(|_| {
            others.run();
            let began = processor();
            processor() - began
        })
        .collect();
    crate::report::median(all)
}
