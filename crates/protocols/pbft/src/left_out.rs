//! Replicas that a primary leaves out (not in the paper): it needs 2f of the others for a batch, and f correct ones would
//! learn of each batch only by asking for it. Who had to ask is passed what comes next.

use crate::message::Message;
use crate::retransmission::SELDOM;
use crate::state::Pbft;
use crate::wire::MAX_BATCHES;
use std::collections::BTreeSet;
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
        if !helped
            || !self.active
            || self.is_primary()
            || seq <= self.delivered
            || self.batch(&digest).is_some()
        {
            return;
        }
        let weak = self.group.weak();
        let Some(slot) = self.slots.get_mut(&seq) else { return };
        if !slot.asked_helper && slot.named_elsewhere(weak) == Some(digest) {
            rule!("PBFT-R15");
            slot.asked_helper = true;
            self.ask_for_batches(cx, To::One(helper), vec![digest]);
        }
    }

    /// What f+1 backups sent a PREPARE for and the primary did not propose here, it proposed to one of them that is correct:
    /// once the batch is here it is as if the primary had. A primary that shows this replica neither its proposals nor its
    /// votes would have it commit to nothing otherwise.
    pub(crate) fn adopt_named(&mut self, cx: &Cx<'_, Self>, seq: Seq) {
        if !self.active || self.is_primary() || seq <= self.started.end || seq <= self.delivered {
            return;
        }
        let weak = self.group.weak();
        let Some(digest) = self.slots.get(&seq).and_then(|slot| slot.prepared_by(weak)) else { return };
        let Some(batch) = self.batch(&digest) else { return };
        if batch.frames.len() > self.config.limits.batch_frames {
            return;
        }
        rule!("PBFT-R16");
        if seq <= self.named_up_to() && !self.has_lost(seq, &digest) {
            self.frames.name(seq, &batch.frames);
        }
        self.note_named(cx, &batch);
        self.propose(seq, digest, batch);
        self.touched.insert(seq);
    }

    /// Another primary leaves out whom it likes.
    pub(crate) fn forget_left_out(&mut self) {
        self.left_out = None;
        self.helped.clear();
    }

    /// Somebody showed a batch that was not here.
    pub(crate) fn note_shown_by(&mut self, helper: ReplicaId) {
        if helper != self.primary() {
            self.left_out = Some((helper, 0));
        }
    }

    /// The primary showed a proposal. One that shows every other would have this replica wait for each of the rest; and one
    /// that shows it when f+1 have committed to it already leaves this replica out all the same.
    pub(crate) fn note_shown_by_primary(&mut self, seq: Seq, digest: &Digest) {
        let late = self.slots.get(&seq).and_then(|slot| slot.first_committer(digest, self.group.weak()));
        match late.filter(|by| *by != self.primary()) {
            Some(committer) => {
                rule!("PBFT-R15");
                self.left_out = Some((committer, 0));
            }
            None => {
                self.left_out = self.left_out.map(|(helper, since)| (helper, since + 1));
                self.left_out.take_if(|(_, since)| *since >= SHOWN_AGAIN);
            }
        }
    }

    /// Takes a batch that was not asked for, of one that was asked for others a while ago and that voted for this one: says
    /// whether it was lacking, and nothing where its sender may not or did so before.
    pub(crate) fn take_passed_on(
        &mut self,
        cx: &Cx<'_, Self>,
        from: ReplicaId,
        batch: &Batch,
    ) -> Option<bool> {
        let helps = self.helpers.get(&from).is_some_and(|until| *until > cx.now());
        if !helps || !self.active {
            return None;
        }
        rule!("PBFT-R15");
        let digest = batch.digest();
        let last = self.delivered.0.saturating_add(2 * self.batches_ahead());
        let near = self.slots.iter_mut().take_while(|(seq, _)| seq.0 <= last);
        let mut voted = near.filter(|(_, slot)| slot.has_vote(from, &digest));
        let (seq, slot) = voted.find(|(_, slot)| !slot.passed_on.contains(from))?;
        slot.passed_on.insert(from);
        let lacked = slot.proposal.as_ref().is_none_or(|(proposed, _)| *proposed != digest);
        let lacked = lacked && *seq > self.delivered && !self.batches.contains_key(&digest);
        if lacked && batch.frames.len() <= self.config.limits.batch_frames {
            self.passed.insert(digest);
            self.batches.insert(digest, batch.clone());
            self.note_shown_by(from);
        }
        Some(lacked)
    }

    /// What was passed on in a view, and never promised or executed, goes with it.
    pub(crate) fn forget_passed(&mut self) {
        let passed = std::mem::take(&mut self.passed);
        if passed.is_empty() {
            return;
        }
        let promised = self.pre_prepared.values().flat_map(|at| at.keys().copied());
        let needed: BTreeSet<Digest> = promised.chain(self.decided.values().map(Batch::digest)).collect();
        for digest in passed.difference(&needed) {
            self.batches.remove(digest);
        }
    }

    /// Passes a batch on to those that had to ask for one a while ago: each would ask for this one as well.
    pub(crate) fn pass_on(&mut self, cx: &mut Cx<'_, Self>, seq: Seq, digest: &Digest) {
        let now = cx.now();
        self.helped.retain(|_, until| *until > now);
        // What is far ahead the others could do nothing with yet.
        if seq > self.named_up_to() {
            return;
        }
        let Some(batch) = self.batch(digest).filter(|_| !self.helped.is_empty()) else { return };
        for replica in self.helped.keys().copied().collect::<Vec<_>>() {
            if self.may_show_one(cx, replica) {
                rule!("PBFT-R15");
                cx.send(To::One(replica), Message::Batches(vec![batch.clone()]));
            }
        }
    }

    /// Whether a replica's share has room for one batch more that it did not ask for, which it is shown then. What it asks
    /// for has a share of its own: nothing that is passed on may take the place of an answer.
    fn may_show_one(&mut self, cx: &Cx<'_, Self>, to: ReplicaId) -> bool {
        rule!("PBFT-R12");
        let share = self.config.status_interval / SELDOM;
        let filled = self.passed_batches.get(&to).copied().unwrap_or_default().max(cx.now());
        let until = filled.after((share / MAX_BATCHES as u64).max(1));
        let may = until <= cx.now().after(share);
        if may {
            self.passed_batches.insert(to, until);
        }
        may
    }
}
