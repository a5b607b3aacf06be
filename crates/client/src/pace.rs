//! How long answers take, so that a group that is busy is not asked twice for what it is about to answer: clients
//! that repeat what waits in a queue make the queue longer.

use crate::Timing;

/// The initial pause grows to so many times what is configured, and no further: whoever asks again late is
/// served late where a frame was lost.
const MOST: u64 = 10;

/// What the answers so far took, in microseconds, smoothed as for TCP's retransmissions (RFC 6298): only frames
/// that were sent once tell, for an answer to others may be one to either.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    smoothed: u64,
    deviation: u64,
    /// The pause after frames that were sent again, until one that was not has its answer.
    backed_off: u64,
    answered: bool,
}

impl Pace {
    /// A frame that was sent once was answered after so long.
    pub(crate) fn took(&mut self, micros: u64) {
        if self.smoothed == 0 {
            (self.smoothed, self.deviation) = (micros, micros / 2);
        } else {
            self.deviation = (3 * self.deviation + self.smoothed.abs_diff(micros)) / 4;
            self.smoothed = (7 * self.smoothed + micros) / 8;
        }
        self.backed_off = 0;
        self.answered = true;
    }

    /// Whether it is known how long answers take.
    pub(crate) fn is_known(&self) -> bool {
        self.answered
    }

    /// What an answer usually takes.
    pub(crate) fn usual(&self) -> u64 {
        self.smoothed
    }

    /// A frame is sent again, as nobody knows what became of it.
    pub(crate) fn in_vain(&mut self, timing: &Timing) {
        self.backed_off = self.resend_after(timing).saturating_mul(2);
    }

    /// The pause before a frame is sent again for the first time.
    pub(crate) fn resend_after(&self, timing: &Timing) -> u64 {
        let usual = self.smoothed.saturating_add(4 * self.deviation);
        let most = timing.resend_first.saturating_mul(MOST);
        usual.max(self.backed_off).clamp(timing.resend_first, most.max(timing.resend_first))
    }

    /// The pause before those are asked that were told to be silent: soon after the others usually answer.
    pub(crate) fn rest_after(&self, timing: &Timing) -> u64 {
        let usual = self.smoothed.saturating_add(3 * self.deviation).max(timing.full_wait / 4);
        let latest = self.resend_after(timing);
        usual.min(latest / 4 * 3)
    }

    /// The pause from when it is agreed what happened to when what is missing is asked for.
    pub(crate) fn full_after(&self, timing: &Timing) -> u64 {
        (self.smoothed / 2).clamp(timing.full_wait, timing.full_wait.saturating_mul(MOST))
    }
}
