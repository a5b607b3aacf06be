//! Which messages bring this replica further: the others are charged to their senders by whoever runs it.

use crate::message::{Attested, Body};
use crate::place;
use crate::state::{A2mPbftEa, Slot};
use troth_core::{Cx, rule};
use troth_types::{ReplicaId, Seq};

impl A2mPbftEa {
    /// How many messages have, where that can be told: who changes views or is behind holds back what it will need.
    pub(crate) fn brought_further(&self) -> Option<u128> {
        rule!("A2MPBFTEA-R17");
        let present = self.active && self.knows_logs && !self.repairing;
        let lags = self.lag.is_watched() || self.delivered < self.stable.0;
        (present && !lags && !self.is_views_behind()).then(|| u128::from(self.useful))
    }

    /// A proposal came that is here: by its primary behind another who passed it on, or by one who was asked for such, it may
    /// come once more.
    pub(crate) fn note_repeated(&mut self, cx: &Cx<'_, Self>, by: ReplicaId, message: &Attested, seq: Seq) {
        rule!("A2MPBFTEA-R17");
        let helps = self.helpers.get(&by).is_some_and(|until| *until > cx.now());
        let may = |slot: &Slot| helps || (by == message.from && slot.passed_on);
        let slot = self.slots.get_mut(&seq).filter(|slot| may(slot) && !slot.came_again);
        let same = slot.filter(|slot| slot.proposal.as_ref().is_some_and(|it| it.digest == message.digest));
        if let Some(slot) = same {
            slot.came_again = true;
            self.useful += 1;
        }
    }

    /// Whether this very vote is here. Whoever passes others' on before they come by themselves would have their senders
    /// charged for the check of its attestation.
    pub(crate) fn has_vote(&self, message: &Attested, seq: Seq) -> bool {
        let Some(slot) = self.slots.get(&seq) else { return false };
        let of_kind = if matches!(message.body, Body::Prepare(_)) { &slot.prepares } else { &slot.commits };
        of_kind.get(&message.from).is_some_and(|known| known.digest == message.digest)
    }

    /// A vote came. It is of use where it is the `first` of its sender for its number, and one that comes after all is decided
    /// is only late where it is above all others of its log.
    pub(crate) fn heard(&mut self, message: &Attested, seq: Seq, first: bool) {
        let Some((log, _)) = place::of(&message.body) else { return };
        let settled = self.lowest();
        let last = self.heard.entry((message.from, log)).or_default();
        if first || (seq > *last && seq < settled) {
            *last = seq.max(*last);
            self.useful += 1;
        }
    }
}
