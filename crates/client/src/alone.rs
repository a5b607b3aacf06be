//! Small frames that are sent to the primary alone (as the clients of OSDI '99, §4.1, send their requests): it shows them to
//! the others with the batch that names them, so that a request costs its client and the others less.
//!
//! Only the primary can tell then how long it let a frame wait. So some frames go to everybody, and the client compares; and
//! where a frame is not answered soon, it and those of a while after it do.

use crate::core::ClientCore;
use crate::flight::Flight;
use crate::pace::Pace;
use troth_types::{Frame, ReplicaId, Time, View};

/// Marks the place that implements a rule of `docs/protocols/minbft.md`, for `cargo xtask paper`.
macro_rules! rule {
    ($label:literal) => {};
}

/// The most bytes of a frame that goes alone. A larger one would cost the primary more than it saves the others.
const MOST_BYTES: usize = 1024;
/// One in so many goes to everybody.
const COMPARED: u64 = 16;
/// Answers of either kind before they are compared.
const LEAST: u32 = 8;
/// Microseconds that are no difference.
const NEAR: u64 = 500;
/// Microseconds for which everything goes to everybody, the first time and at most.
const PAUSE: (u64, u64) = (1_000_000, 64_000_000);
/// After so many frames that were answered in time the next pause is a short one.
const FORGIVEN: u32 = 256;
/// What a frame that was not answered in time weighs: as much as so many that were. A machine is late now and then.
const LATE: u32 = 16;
/// So much is borne.
const BORNE: u32 = 40;

/// What is known of frames that went to the primary alone, and of the others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alone {
    /// How long answers took.
    alone: Pace,
    otherwise: Pace,
    /// How many there were since the last pause.
    answered: (u32, u32),
    /// Until when nothing goes alone.
    not_before: Time,
    pause: u64,
    /// What late answers weigh, beside those in time.
    late: u32,
}

impl Alone {
    /// A frame that went to everybody was answered after so long.
    pub(crate) fn took_otherwise(&mut self, micros: u64) {
        self.otherwise.took(micros);
        self.answered.1 = self.answered.1.saturating_add(1);
    }

    fn took(&mut self, micros: u64) {
        self.alone.took(micros);
        self.answered.0 = self.answered.0.saturating_add(1);
        self.late = self.late.saturating_sub(1);
        if self.answered.0 >= FORGIVEN {
            self.pause = 0;
        }
    }

    /// Whether frames wait longer where nobody but the primary sees how long.
    fn is_slower(&self) -> bool {
        let known = self.answered.0 >= LEAST && self.answered.1 >= LEAST;
        known && self.alone.usual() > 2 * self.otherwise.usual() + NEAR
    }

    /// A frame was not answered in time; whether that was one too many.
    fn was_late(&mut self) -> bool {
        self.late += LATE;
        self.late > BORNE
    }

    fn failed(&mut self, now: Time) {
        self.pause = (2 * self.pause).clamp(PAUSE.0, PAUSE.1);
        *self = Self { not_before: now.after(self.pause), pause: self.pause, ..Self::default() };
    }
}

impl ClientCore {
    /// The primary, where this frame is sent to it alone.
    pub(crate) fn goes_alone(&self, frame: &Frame, view: View) -> Option<ReplicaId> {
        rule!("MINBFT-N14");
        let may = self.config.primary_shows
            && frame.size() <= MOST_BYTES
            && self.now >= self.alone.not_before
            && self.alone.answered.1 >= LEAST
            && !frame.number().is_multiple_of(COMPARED)
            && self.inbox.delivered().is_some();
        let group = may.then_some(self.config.group)?;
        // Those whose turn it is answer, and nobody else.
        let mut turns = group.turns(self.config.client, frame.number()).take(self.config.answers());
        let primary = group.primary(view);
        (turns.all(|one| self.answers_well(one)) && self.links.is_up(primary)).then_some(primary)
    }

    /// When those are asked that the primary is to show a frame: not much later than what goes to everybody is answered.
    pub(crate) fn shown_by(&self) -> u64 {
        let least = self.config.timing.full_wait / 4;
        self.pace.rest_after(&self.config.timing).min(2 * self.alone.otherwise.usual() + NEAR).max(least)
    }

    /// A frame that went to the primary alone has its outcome.
    pub(crate) fn learn_of_primary(&mut self, flight: &Flight, took: u64) {
        // What went before the pause began says nothing more.
        if flight.sent_at < self.alone.not_before {
            return;
        }
        let in_vain = if flight.was_resent || (flight.asked_the_rest && !flight.was_shown()) {
            self.alone.was_late()
        } else if flight.sent_again {
            return;
        } else {
            self.alone.took(took);
            self.alone.is_slower()
        };
        if in_vain {
            self.alone.failed(self.now);
        }
    }
}
