//! What an operator may choose, and what the simulator may break.

use troth_trusted::run::MAX_RUN;
use troth_types::Limits;

/// The largest window, in batches.
const MAX_WINDOW: u64 = 1 << 13;

/// The parameters of an A2M-PBFT-EA group. All replicas of a group use the same values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Checkpoint interval K, in batches.
    pub interval: u64,
    /// Window L, in batches: how far ordering may run ahead of the last stable checkpoint. At least 2K.
    pub window: u64,
    /// Batches that the primary may have under way (W). The paper's is 1.
    pub pipeline: u64,
    /// Microseconds until a replica that waits for the execution of a request wants the next view.
    pub request_timeout: u64,
    /// A primary under which requests wait longer than twice so many times what the others take for two of the three phases is
    /// found wanting (A2MPBFTEA-P2).
    pub slower_by: u64,
    /// Microseconds until a replica that waits for a NEWVIEW, and knows that a quorum does, wants the next view.
    pub view_timeout: u64,
    /// Microseconds between status messages while something is under way.
    pub status_interval: u64,
    /// Microseconds by which a batch's time may be ahead of a replica's clock.
    pub clock_bound: u64,
    /// The bounds on frames and clients.
    pub limits: Limits,
    /// The flawed rule to follow.
    #[cfg(feature = "literal")]
    pub literal: Option<Flaw>,
}

impl Config {
    /// The defaults: a checkpoint every 64 batches, a second until suspicion.
    pub const DEFAULT: Self = Self {
        interval: 64,
        window: 256,
        pipeline: 4,
        request_timeout: 1_000_000,
        slower_by: 4,
        view_timeout: 1_000_000,
        status_interval: 100_000,
        clock_bound: 2_000_000,
        limits: Limits::DEFAULT,
        #[cfg(feature = "literal")]
        literal: None,
    };

    /// Bytes of the frames that one batch may name, where it names more than one.
    #[must_use]
    pub fn batch_bytes(&self) -> usize {
        troth_blocks::batch_bytes(&self.limits, self.window)
    }

    /// Bytes of frames that a client may have pending: its whole window.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        troth_blocks::pending_bytes(&self.limits)
    }

    /// Why these values cannot work, if they cannot.
    pub fn check(&self) -> Result<(), &'static str> {
        // A window of less than two intervals stalls at its edge (F-P8).
        troth_blocks::check_window(self.interval, self.window, self.pipeline)?;
        if self.slower_by == 0 {
            return Err("a primary that is as fast as the others must not be found wanting for it");
        }
        // What a VIEWCHANGE shows of a whole window fits a message that everybody decodes.
        if self.window > MAX_WINDOW {
            return Err("the window must be at most 8192 batches");
        }
        // A client finds its request by a path through the batch, and paths have a bound.
        if self.limits.batch_frames > MAX_RUN {
            return Err("a batch must have at most 256 frames, or its history cannot be proven");
        }
        Ok(())
    }

    /// Entries that the history log must have room for.
    #[must_use]
    pub fn history_room(&self) -> usize {
        troth_blocks::KeptHistory::room(self.window)
    }

    /// Whether this flaw's rule is in force: never, outside the simulator.
    #[cfg(feature = "literal")]
    pub(crate) fn follows(&self, flaw: Flaw) -> bool {
        self.literal == Some(flaw)
    }

    #[cfg(not(feature = "literal"))]
    #[inline(always)]
    pub(crate) const fn follows(&self, _: Flaw) -> bool {
        false
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Flaws of appendix A as it is printed (guide.md §3.4), each of which the simulator can put back to show the
/// counter-example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flaw {
    /// F-A1: what a NEWVIEW carries is executed on its receipt, "without need for further inter-replica communication".
    ExecuteOnNewView,
    /// F-A2: one highest number for all abandoned views.
    OneHighest,
}

impl Flaw {
    /// Every flaw, with the name by which the simulator's command line knows it.
    pub const ALL: [(Self, &'static str); 2] = [(Self::ExecuteOnNewView, "F-A1"), (Self::OneHighest, "F-A2")];
}
