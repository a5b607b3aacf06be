//! What an operator may choose, and what the simulator may break.

use troth_types::Limits;

pub use troth_blocks::KEPT_FRAMES;

/// The parameters of a MinBFT group. All replicas of a group use the same values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Checkpoint interval K, in batches (the paper's cp).
    pub interval: u64,
    /// Window L, in batches: how far ordering may run ahead of the last stable checkpoint and of a
    /// replica's own last checkpoint. At least 2K.
    pub window: u64,
    /// Batches that the primary may have under way.
    pub pipeline: u64,
    /// Microseconds until a replica that waits for the execution of a request suspects the primary.
    pub request_timeout: u64,
    /// Microseconds until a replica that waits for a NEW-VIEW wants the next view.
    pub view_timeout: u64,
    /// Microseconds between status messages while something is under way.
    pub status_interval: u64,
    /// Microseconds by which a batch's time may be ahead of a replica's clock.
    pub clock_bound: u64,
    /// So many times as long as the others take to agree may requests wait for the primary to propose them; one
    /// that lets them wait longer is suspected.
    pub slower_by: u64,
    /// Bytes of the largest message that the links carry: at least as many as a NEW-VIEW has that shows f+1 correct replicas'
    /// logs.
    pub message_bytes: usize,
    /// The bounds on frames and clients.
    pub limits: Limits,
    /// The published rules to follow literally, flaws included.
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
        view_timeout: 1_000_000,
        status_interval: 100_000,
        clock_bound: 2_000_000,
        slower_by: 4,
        message_bytes: 16 << 20,
        limits: Limits::DEFAULT,
        #[cfg(feature = "literal")]
        literal: None,
    };

    /// Bytes of the frames that one batch may name, where it names more than one: what all batches of a window
    /// name stays within [`KEPT_FRAMES`], or within one frame each where that is more.
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
        // A counter value has room for the commitments between two checkpoints of the largest window.
        troth_blocks::check_window(self.interval, self.window, self.pipeline)?;
        if self.slower_by == 0 {
            return Err("a primary must be allowed to take as long as the others");
        }
        Ok(())
    }

    /// Whether this flaw's literal rule is in force: never, outside the simulator.
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

/// The flaws of the printed protocol and of its obvious extensions (guide.md §4), each of which
/// the simulator can put back to show the counter-example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flaw {
    /// F-M1: what a NEW-VIEW carries is executed on its receipt.
    ExecuteOnNewView,
    /// F-M2: the requests of a view change are merged by counter value alone.
    OrderByCounter,
    /// F-M3: after a state transfer a replica takes over its peers' counters from their checkpoints,
    /// and counters do not order views.
    AdoptCounters,
    /// §4.4: on a stable checkpoint a replica drops all own messages before its own checkpoint,
    /// although later commitments precede it under pipelining.
    CutUnderPipelining,
    /// §4.5: a view change prefers the longest log to the highest view.
    LongestLog,
    /// §7.3 without its void rule: what a replica's earlier component certified, and was received before it
    /// was replaced, goes on to count.
    CountOldEpoch,
    /// F-M11: a restarted replica answers reads before it has executed what it committed to.
    StaleRead,
}

impl Flaw {
    /// Every flaw, with the name by which the simulator's command line knows it.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::ExecuteOnNewView, "F-M1"),
        (Self::OrderByCounter, "F-M2"),
        (Self::AdoptCounters, "F-M3"),
        (Self::CutUnderPipelining, "CUT-O"),
        (Self::LongestLog, "LONGEST-LOG"),
        (Self::CountOldEpoch, "OLD-EPOCH"),
        (Self::StaleRead, "F-M11"),
    ];
}
