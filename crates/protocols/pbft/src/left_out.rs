//! Replicas that a primary leaves out (not in the paper): it needs 2f of the others for a batch, and f correct ones would
//! learn of each batch only by asking for it. Who had to ask is passed what comes next.

use crate::message::Message;
use crate::retransmission::SELDOM;
use crate::state::Pbft;
use crate::wire::MAX_BATCHES;
use troth_core::{Cx, To, rule};
use troth_types::{Batch, Digest, ReplicaId, Seq};

/// Proposals in a row by which the primary shows that it leaves this replica out no more.
const SHOWN_AGAIN: u64 = 64;

impl Pbft {
    /// Asks for batches, whose answers bring something for a while whatever else brings the same meanwhile.
    pub(crate) fn ask_for_batches(&mut self, cx: &mut Cx<'_, Self>, to: To, batches: Vec<Digest>) {
        let until = self.after(cx, 2 * self.config.status_interval);
        let asked: Vec<ReplicaId> = match to {
            To::Others => self.group.all().filter(|replica| *replica != self.me).collect(),
            To::One(replica) => vec![replica],
        };
        self.helpers.extend(asked.into_iter().map(|replica| (replica, until)));
        cx.send(to, Message::FetchBatches(batches));
    }

    /// Somebody committed to a batch that is not here. Where that one helped before, it is asked at once: it passes on no
    /// more what comes, or it would have come.
    pub(crate) fn ask_helper(&mut self, cx: &mut Cx<'_, Self>, seq: Seq, helper: ReplicaId, digest: Digest) {
        let helped = self.left_out.is_some_and(|(known, _)| known == helper);
        if !helped || !self.active || self.is_primary() || seq <= self.delivered {
            return;
        }
        let weak = self.group.weak();
        let named = self.slots.get(&seq).is_some_and(|slot| slot.named_elsewhere(weak) == Some(digest));
        if named && self.batch(&digest).is_none() && self.asked_helper < seq {
            rule!("PBFT-R15");
            self.asked_helper = seq;
            self.ask_for_batches(cx, To::One(helper), vec![digest]);
        }
    }

    /// Another primary leaves out whom it likes.
    pub(crate) fn forget_left_out(&mut self) {
        self.left_out = None;
        self.asked_helper = Seq(0);
        self.helped.clear();
    }

    /// Somebody showed a batch that was not here.
    pub(crate) fn note_shown_by(&mut self, helper: ReplicaId) {
        if helper != self.primary() {
            self.left_out = Some((helper, 0));
        }
    }

    /// The primary showed a proposal. One that shows every other would have this replica wait for each of the rest.
    pub(crate) fn note_shown_by_primary(&mut self) {
        self.left_out = self.left_out.map(|(helper, since)| (helper, since + 1));
        self.left_out.take_if(|(_, since)| *since >= SHOWN_AGAIN);
    }

    /// Takes a batch that was not asked for, of one that was asked for others a while ago and that voted for this one: says
    /// whether it may have brought something, for nobody repeated it.
    pub(crate) fn take_passed_on(&mut self, cx: &Cx<'_, Self>, from: ReplicaId, batch: &Batch) -> bool {
        let helps = self.helpers.get(&from).is_some_and(|until| *until > cx.now());
        if !helps || !self.active {
            return false;
        }
        rule!("PBFT-R15");
        let (digest, last) = (batch.digest(), self.named_up_to());
        let near = self.slots.range_mut(self.delivered.next()..).take_while(|(seq, _)| **seq <= last);
        let mut voted = near.map(|(_, slot)| slot).filter(|slot| slot.has_vote(from, &digest));
        let Some(slot) = voted.find(|slot| !slot.passed_on.contains(from)) else { return false };
        slot.passed_on.insert(from);
        let lacked = slot.proposal.as_ref().is_none_or(|(proposed, _)| *proposed != digest);
        if lacked && !self.batches.contains_key(&digest) {
            self.batches.insert(digest, batch.clone());
            self.note_shown_by(from);
        }
        true
    }

    /// Passes a batch on to those that had to ask for one a while ago: each would ask for this one as well.
    pub(crate) fn pass_on(&mut self, cx: &mut Cx<'_, Self>, digest: &Digest) {
        let now = cx.now();
        self.helped.retain(|_, until| *until > now);
        let Some(batch) = self.batch(digest).filter(|_| !self.helped.is_empty()) else { return };
        for replica in self.helped.keys().copied().collect::<Vec<_>>() {
            if self.may_show_one(cx, replica) {
                rule!("PBFT-R15");
                cx.send(To::One(replica), Message::Batches(vec![batch.clone()]));
            }
        }
    }

    /// Whether a replica's share has room for one batch more, which it is shown then.
    fn may_show_one(&mut self, cx: &Cx<'_, Self>, to: ReplicaId) -> bool {
        rule!("PBFT-R12");
        let share = self.config.status_interval / SELDOM;
        let filled = self.shown_batches.get(&to).copied().unwrap_or_default().max(cx.now());
        let until = filled.after((share / MAX_BATCHES as u64).max(1));
        let may = until <= cx.now().after(share);
        if may {
            self.shown_batches.insert(to, until);
        }
        may
    }
}
