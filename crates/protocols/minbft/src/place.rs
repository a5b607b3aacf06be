//! Where a message stands in its sender's counter (deviation D2).

use troth_trusted::CounterValue;
use troth_types::{Seq, View};

/// Bits of the count; what is left of the lower half is for the checkpoint.
const COUNT_BITS: u32 = 20;

/// A counter value `[view | checkpoint | count]`. A component never goes back, so the value itself shows
/// that its sender has left the older views, and that no commitment of the same view that came before a
/// CHECKPOINT(p) was made within the window of a later checkpoint than p. Neither can be had from a faulty
/// sender's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The view in which it was certified.
    pub view: View,
    /// The number of the last own CHECKPOINT certified in this view; 0 before the first.
    pub checkpoint: Seq,
    /// How many messages since: 0 is a CHECKPOINT itself, or the VIEW-CHANGE to this view.
    pub count: u64,
}

impl Place {
    /// The highest number that a CHECKPOINT may have: 2^44 - 1 batches.
    pub const LAST_CHECKPOINT: Seq = Seq((1 << (64 - COUNT_BITS)) - 1);
    /// The most messages without a CHECKPOINT among them.
    pub const LAST_COUNT: u64 = (1 << COUNT_BITS) - 1;

    /// What a counter value says.
    #[must_use]
    pub fn of(value: CounterValue) -> Self {
        let rest = value.count();
        Self { view: View(value.view()), checkpoint: Seq(rest >> COUNT_BITS), count: rest & Self::LAST_COUNT }
    }

    /// The value of a CHECKPOINT of this number in this view, if there is one.
    #[must_use]
    pub fn of_checkpoint(view: View, seq: Seq) -> Option<CounterValue> {
        let possible = seq > Seq(0) && seq <= Self::LAST_CHECKPOINT;
        possible.then(|| Self { view, checkpoint: seq, count: 0 }.value())
    }

    /// The value of the VIEW-CHANGE to a view.
    #[must_use]
    pub fn of_view_change(view: View) -> CounterValue {
        CounterValue::new(view.0, 0)
    }

    /// The value of a view's NEW-VIEW, or of a backup's commitment to it.
    #[must_use]
    pub fn of_start(view: View) -> CounterValue {
        CounterValue::new(view.0, 1)
    }

    /// Whether a PREPARE or a COMMIT may stand here: not where a view begins.
    #[must_use]
    pub fn is_working(&self) -> bool {
        self.count >= 1 && (self.view == View(0) || self.checkpoint > Seq(0) || self.count >= 2)
    }

    /// The counter value. Its parts must be within their bounds.
    #[must_use]
    pub fn value(&self) -> CounterValue {
        debug_assert!(self.checkpoint <= Self::LAST_CHECKPOINT && self.count <= Self::LAST_COUNT);
        CounterValue::new(self.view.0, self.checkpoint.0 << COUNT_BITS | self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_order_by_view_then_checkpoint_then_count() {
        let place = |view, checkpoint, count| Place { view: View(view), checkpoint: Seq(checkpoint), count };
        let ascending = [
            place(0, 0, 1),
            place(0, 0, Place::LAST_COUNT),
            place(0, 1, 0),
            place(0, Place::LAST_CHECKPOINT.0, Place::LAST_COUNT),
            place(1, 0, 0),
            place(1, 0, 1),
            place(1, 7, 0),
            place(u64::MAX, 0, 0),
        ];
        for (one, next) in ascending.iter().zip(&ascending[1..]) {
            assert!(one.value() < next.value(), "{one:?} {next:?}");
        }
        for one in ascending {
            assert_eq!(Place::of(one.value()), one);
        }
    }

    #[test]
    fn a_checkpoint_has_one_value_in_a_view() {
        assert_eq!(Place::of_checkpoint(View(3), Seq(0)), None, "genesis needs no CHECKPOINT");
        assert_eq!(Place::of_checkpoint(View(3), Seq(1 << 44)), None);
        let value = Place::of_checkpoint(View(3), Seq(9)).expect("possible");
        assert_eq!(Place::of(value), Place { view: View(3), checkpoint: Seq(9), count: 0 });
    }

    #[test]
    fn work_begins_behind_the_start_of_a_view() {
        let working = |view, rest| Place::of(CounterValue::new(view, rest)).is_working();
        assert!(!working(0, 0) && working(0, 1));
        assert!(!working(1, 0) && !working(1, 1) && working(1, 2));
        assert!(!working(1, 1 << COUNT_BITS) && working(1, (1 << COUNT_BITS) + 1));
    }
}
