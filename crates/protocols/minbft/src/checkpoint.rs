//! MinBFT §4, "Servers: garbage collection and checkpoints".

use crate::evidence;
use crate::message::{Body, Certified, Checkpoint, Record, StableProof};
use crate::place::Place;
use crate::state::{MinBft, Timer, Verdict};
use std::sync::Arc;
use troth_blocks::Behind;
use troth_core::{Cx, Note, rule};
use troth_types::{Digest, ReplicaId, Seq, View};

/// An own checkpoint that is yet to be vouched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DueCheckpoint {
    pub(crate) seq: Seq,
    pub(crate) digest: Digest,
    /// Whether the state came from others, or may have.
    pub(crate) given: bool,
}

impl MinBft {
    /// The certificates of the last stable checkpoint; none for genesis.
    #[must_use]
    pub fn stable_proof(&self) -> &Arc<StableProof> {
        &self.stable_proof
    }

    /// The digest of an own checkpoint is known.
    pub(crate) fn checkpoint_taken(&mut self, cx: &mut Cx<'_, Self>, seq: Seq, digest: Digest) {
        if self.repairing {
            // Of a state that is being thrown away.
            return;
        }
        self.own_state = self.own_state.max(seq);
        self.drop_executed();
        if seq >= self.stable.0 {
            self.own_digests.insert(seq, digest);
        }
        if seq <= self.stable.0 {
            // Those ahead of this replica made it stable already: no later proof will say so of its state,
            // and without it a replica that is always a little behind would never shorten its log.
            rule!("MINBFT-C5");
            cx.compact(seq);
        }
        self.compare_with_stable(cx);
        self.due_checkpoints.push_back(DueCheckpoint { seq, digest, given: false });
        self.settle(cx);
    }

    /// Has due CHECKPOINTs certified. Between a VIEW-CHANGE and the acceptance of the NEW-VIEW nothing
    /// else is certified: the first value of a view belongs to its start.
    pub(crate) fn try_checkpoint(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.active() {
            return;
        }
        rule!("MINBFT-C3");
        let plain = self.config.follows(crate::Flaw::AdoptCounters);
        if !plain && self.own_checkpoint.seq > Place::of(self.requested).checkpoint {
            // The first in a new view: it is what bounds this replica's commitments there. As it was, whatever this replica
            // knows by now (E5, E12).
            self.certify(cx, Body::Checkpoint(self.own_checkpoint.clone()));
        }
        // Which of them are this component's to certify is known once the configuration names it.
        while self.is_named()
            && let Some(due) = self.due_checkpoints.pop_front()
        {
            // What was reached before this component was admitted is not its to certify.
            if due.seq > self.own_checkpoint.seq && self.admitted_at().is_none_or(|at| due.seq >= at) {
                self.committed = self.committed.max(due.seq);
                self.certify_checkpoint(cx, &due);
            }
        }
    }

    fn certify_checkpoint(&mut self, cx: &mut Cx<'_, Self>, due: &DueCheckpoint) {
        rule!("MINBFT-E5");
        let DueCheckpoint { seq, digest, given } = *due;
        let epochs = self.configuration.epochs_at(seq);
        rule!("MINBFT-E12");
        let given = given && !epochs.is_empty();
        self.own_checkpoint = Checkpoint { seq, digest, epochs, given };
        self.certify(cx, Body::Checkpoint(self.own_checkpoint.clone()));
    }

    /// CHECKPOINT ⟨n, d⟩_UI(i).
    pub(crate) fn on_checkpoint_vote(
        &mut self,
        cx: &mut Cx<'_, Self>,
        message: &Arc<Certified>,
        checkpoint: &Checkpoint,
    ) -> Verdict {
        let view = View(message.value().view());
        if view > self.view || (view == self.view && !self.active()) {
            return Verdict::Wait;
        }
        let furthest = self.stable.0.0.max(self.delivered.0) + 2 * self.config.window;
        if checkpoint.seq.0 > furthest {
            // Nobody correct is that far ahead of a stable checkpoint this replica has not heard of.
            return Verdict::Wait;
        }
        if !evidence::by_the_named(&self.config, message, checkpoint) {
            return Verdict::Condemn("a CHECKPOINT by a component that it says was replaced");
        }
        if let Err(why) = self.peer_mut(message.from).walk.checkpoint(checkpoint.seq) {
            return Verdict::Condemn(why);
        }
        if view == self.view {
            // Its COMMIT(NEW-VIEW) may have been passed over. This binds it as much: from now on each of its
            // logs shows that it worked in the view.
            rule!("MINBFT-V18");
            self.started.accepted.insert(message.from);
        }
        if checkpoint.seq >= self.stable.0 {
            let votes = self.checkpoint_votes.entry(checkpoint.seq).or_default();
            votes.insert(message.from, message.clone());
            let mut same: Vec<Arc<Certified>> = votes
                .values()
                .filter(|vote| matches!(&vote.body, Body::Checkpoint(other) if other == checkpoint))
                .cloned()
                .collect();
            if same.len() >= self.group.quorum() {
                // A readmitted replica begins above all views in the proof: a liar that vouches as of a later one than
                // the others, and was among the first, must not be in it once they have all said the same.
                rule!("MINBFT-E3");
                same.sort_by_key(|vote| vote.value().view());
                same.truncate(self.group.quorum());
                self.adopt_stable(cx, &Arc::new(StableProof { votes: same }));
            }
        }
        Verdict::Done
    }

    /// f+1 CHECKPOINTs are a proof wherever they come from: from the senders one by one, from a
    /// VIEW-CHANGE, or from somebody who noticed that this replica is behind.
    pub(crate) fn adopt_stable(&mut self, cx: &mut Cx<'_, Self>, proof: &Arc<StableProof>) {
        let Ok((seq, digest)) = evidence::check_stable(&self.group, &self.config, proof) else {
            return cx.ignore(self.me, "a checkpoint certificate that does not hold");
        };
        if !self.is_vouched_for(proof) {
            return cx.ignore(self.me, "a checkpoint certificate by a component that was replaced before");
        }
        let before = self.lowest_proof.clone();
        self.note_where_to_begin(proof);
        if self.lowest_proof != before && seq <= self.stable.0 {
            cx.remember(Record::Stable(proof.clone()));
        }
        if (seq, digest) == self.stable && proof.view() < self.stable_proof.view() {
            // A faulty vote may come from a view that nobody else ever reaches: a readmitted replica begins above
            // all of them (E3).
            self.stable_proof = proof.clone();
            self.recheck = true;
        }
        if seq <= self.stable.0 {
            return;
        }
        rule!("MINBFT-C4");
        self.stable = (seq, digest);
        self.stable_proof = proof.clone();
        self.truncate_logs();
        self.checkpoint_votes = self.checkpoint_votes.split_off(&seq);
        self.own_digests = self.own_digests.split_off(&seq);
        self.slots = self.slots.split_off(&self.delivered.next());
        self.drop_executed();
        cx.remember(Record::Stable(proof.clone()));
        self.back_off.progressed();
        cx.stable(seq, digest);
        if self.repairing {
            // Nobody keeps the earlier one any more.
            self.repair(cx);
        }
        self.compare_with_stable(cx);
        self.notice_lag(cx);
        self.recheck = true;
    }

    /// Lets go of batches that no start needs: what is stable, and in an own state that a log can begin at. A
    /// state that is still being hashed is none, and what leads from the one before to it must not go first.
    fn drop_executed(&mut self) {
        rule!("MINBFT-R6");
        let below = self.stable.0.min(self.own_state).min(self.delivered);
        self.decided = self.decided.split_off(&below.next());
        self.frames.stable(below);
    }

    /// Lets go of the messages that the stable checkpoint stands for.
    pub(crate) fn truncate_logs(&mut self) {
        let (seq, config) = (self.stable.0, self.config);
        for peer in &mut self.peers {
            peer.truncate(&config, seq);
        }
        let oldest = self.peer(self.me).log.front().map(|logged| logged.message.value().view());
        self.known_views.retain(&self.group, View(oldest.unwrap_or(self.view.0)));
    }

    /// The divergence alarm: a state that differs from a stable checkpoint is not this service's. Ordering goes
    /// on, for that rests on no state; nothing is executed or vouched for before the state is right again.
    pub(crate) fn compare_with_stable(&mut self, cx: &mut Cx<'_, Self>) {
        let (seq, digest) = self.stable;
        if self.repairing || self.own_digests.get(&seq).is_none_or(|own| *own == digest) {
            return;
        }
        rule!("MINBFT-T6");
        cx.note(Note::Diverged { seq });
        self.repairing = true;
        self.due_checkpoints.clear();
        self.repair(cx);
    }

    /// Has the wrong state replaced by the stable checkpoint's.
    fn repair(&mut self, cx: &mut Cx<'_, Self>) {
        let (seq, digest) = self.stable;
        cx.repair_state(seq, digest, self.sources());
    }

    /// The wrong state is replaced: what was executed since the stable checkpoint is executed again, and no
    /// read is answered from a state before what clients may have seen.
    fn repaired(&mut self, cx: &mut Cx<'_, Self>, at: Seq) {
        self.repairing = false;
        self.read_barrier = self.read_barrier.max(self.committed).max(self.delivered);
        self.delivered = at;
        self.own_state = at;
        self.own_digests.retain(|seq, _| *seq == at);
        self.execute_decided(cx);
    }

    /// A replica that is behind what is stable first lets the ordinary messages arrive; one that is a
    /// whole window behind cannot catch up by them, nor does the state come any more of an earlier stable one.
    pub(crate) fn notice_lag(&mut self, cx: &mut Cx<'_, Self>) {
        let (stable, _) = self.stable;
        if self.delivered >= stable || self.repairing {
            return;
        }
        match self.lag.noticed(self.delivered, stable, self.config.window) {
            Behind::Waits => {
                let at = self.after(cx, 4 * self.config.status_interval);
                cx.set_timer(Timer::Behind, at);
            }
            Behind::WaitsAlready => {}
            Behind::Fetches => {
                if self.delivered.0 + self.config.window <= stable.0 {
                    // What the transferred state contains is not waited for any more.
                    self.slots = self.slots.split_off(&stable.next());
                }
                self.fetch_stable_state(cx);
            }
        }
    }

    /// Still behind after the ordinary messages had their time.
    pub(crate) fn on_behind(&mut self, cx: &mut Cx<'_, Self>) {
        self.lag.is_over();
        if self.delivered < self.stable.0 && !self.repairing {
            self.fetch_stable_state(cx);
        }
    }

    /// State transfer to the stable checkpoint, from those who vouch for it.
    pub(crate) fn fetch_stable_state(&mut self, cx: &mut Cx<'_, Self>) {
        rule!("MINBFT-T1");
        let (seq, digest) = self.stable;
        cx.fetch_state(seq, digest, self.sources());
        self.lag.fetches(seq);
        let at = self.after(cx, 16 * self.config.status_interval);
        cx.set_timer(Timer::Behind, at);
    }

    /// Who may have the stable checkpoint: those who vouch first; but they may be faulty, and any other may
    /// have it, too.
    fn sources(&self) -> Vec<ReplicaId> {
        let mut sources: Vec<ReplicaId> = self.stable_proof.votes.iter().map(|vote| vote.from).collect();
        for replica in self.group.all() {
            if !sources.contains(&replica) {
                sources.push(replica);
            }
        }
        sources
    }

    /// The state of a stable checkpoint is in force. What the replica does with its peers' counters is
    /// in [`MinBft::drain`]; everything that waited for the state is tried again (guide.md §1.5).
    pub(crate) fn installed(
        &mut self,
        cx: &mut Cx<'_, Self>,
        reached: troth_core::Reached,
        digest: Digest,
        executed: &dyn Fn(troth_types::ClientId, u64) -> bool,
    ) {
        rule!("MINBFT-T3");
        self.reached = reached;
        self.watch_deadline(cx);
        if self.repairing {
            self.repaired(cx, reached.seq);
        }
        self.delivered = self.delivered.max(reached.seq);
        self.slots = self.slots.split_off(&self.delivered.next());
        for digest in self.pool.retain(|client, number| !executed(client, number)) {
            self.frames.settle(&digest);
        }
        self.own_digests.insert(reached.seq, digest);
        self.own_state = self.own_state.max(reached.seq);
        self.drop_executed();
        // A replica that reached a checkpoint by transfer issues its own CHECKPOINT, or it could never
        // drop what it certified before, nor commit to what follows. Those before it are of no use any more, and
        // none is certified while it only follows.
        self.due_checkpoints.retain(|due| due.seq > reached.seq);
        self.due_checkpoints.push_back(DueCheckpoint { seq: reached.seq, digest, given: true });
        if self.stable.0 == reached.seq {
            cx.stable(reached.seq, digest);
        }
        if self.lag.is_watched() {
            // What is missing now has the time that messages take, not what a transfer was given.
            let at = self.after(cx, 4 * self.config.status_interval);
            cx.set_timer(Timer::Behind, at);
        }
        self.recheck = true;
        self.settle(cx);
    }
}
