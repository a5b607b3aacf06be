//! What an operator may choose, and what the simulator may break.

use troth_types::Limits;

/// The largest window, in batches.
const MAX_WINDOW: u64 = 1 << 13;

/// The parameters of a PBFT group. All replicas of a group use the same values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Checkpoint interval K, in batches.
    pub interval: u64,
    /// Window L, in batches: how far ordering may run ahead of the last stable checkpoint. At least 2K.
    pub window: u64,
    /// Batches that the primary may have under way.
    pub pipeline: u64,
    /// How many times as long as the others take to agree requests may typically wait until a backup finds the primary
    /// slow.
    pub slower_by: u64,
    /// Microseconds until a replica that waits for the execution of a request leaves the view.
    pub request_timeout: u64,
    /// Microseconds until a replica that waits for a NEW-VIEW, and knows that a quorum does, wants the next view.
    pub view_timeout: u64,
    /// Microseconds between status messages while something is under way.
    pub status_interval: u64,
    /// Microseconds by which a batch's time may be ahead of a replica's clock.
    pub clock_bound: u64,
    /// Whether batches are executed as soon as they prepared, for clients that know tentative replies from final ones.
    pub tentative: bool,
    /// Whether reads are answered that are not ordered, for clients that wait for 2f+1 equal answers.
    pub fast_reads: bool,
    /// The bounds on frames and clients.
    pub limits: Limits,
    /// Whether CHECKPOINTs carry the attested histories of what their senders executed (A2M-PBFT-E); of the others none
    /// counts.
    pub histories: bool,
    /// Whether PRE-PREPARE, PREPARE and COMMIT are signed by their senders (§4), as all else that replicas agree with; of
    /// those that are not, none counts.
    pub signs_phases: bool,
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
        slower_by: 4,
        request_timeout: 1_000_000,
        view_timeout: 1_000_000,
        status_interval: 100_000,
        clock_bound: 2_000_000,
        tentative: true,
        fast_reads: true,
        limits: Limits::DEFAULT,
        histories: false,
        signs_phases: false,
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
            return Err("a primary must be allowed to take as long as the others");
        }
        // Q, with all that it may hold of each number, fits a VIEW-CHANGE that everybody decodes.
        if self.window > MAX_WINDOW {
            return Err("the window must be at most 8192 batches");
        }
        Ok(())
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

/// Flaws of published implementations (guide.md §2.3, §2.8), each of which the simulator can put back to show the
/// counter-example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flaw {
    /// The null rule counts replicas whose window has passed a number as if they had prepared nothing there.
    NullRule,
    /// F-P4: a VIEW-CHANGE is sent once.
    NoResend,
    /// Condition A2 counts the entries of Q instead of their senders.
    SetEntries,
    /// A read is answered once all that the state reflects has committed, as §5.1 has it, whatever else this replica
    /// has vouched for.
    ReadExecuted,
    /// The same without tentative execution, where clients take f+1 final replies for a write.
    ReadFinal,
}

impl Flaw {
    /// Every flaw, with the name by which the simulator's command line knows it.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::NullRule, "NULL-RULE"),
        (Self::NoResend, "F-P4"),
        (Self::SetEntries, "SET-ENTRIES"),
        (Self::ReadExecuted, "READ-EXECUTED"),
        (Self::ReadFinal, "READ-FINAL"),
    ];
}
