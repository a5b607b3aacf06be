//! PBFT §4.3, "Garbage collection".

use crate::message::{Body, Checkpoint, Record, Signed, StableProof};
use crate::state::{Pbft, Timer};
use std::sync::Arc;
use troth_blocks::{Behind, Voters};
use troth_core::{Cx, Note, Reached, To, rule};
use troth_types::{Batch, ClientId, Digest, Group, ReplicaId, Seq};

/// The last number of a checkpoint that counts. No group comes so far, and a quorum of faulty replicas must not bring one
/// to where a window above it is no number any more.
const FURTHEST: Seq = Seq(u64::MAX / 2);

/// What a certificate proves, where its signatures are good: the number and digest that 2f+1 distinct replicas
/// signed, with the same history where this group's replicas keep `histories`; zero for one without votes.
#[must_use]
pub fn proven(group: &Group, histories: bool, proof: &StableProof) -> Option<(Seq, Digest)> {
    rule!("PBFT-C2");
    let target = proof.target();
    let Some(first) = proof.votes.first() else { return Some(target) };
    let vouched = first.body.checkpoint().filter(|(_, history)| history.is_some() == histories);
    let same = |vote: &&Arc<Signed>| vouched.is_some() && vote.body.checkpoint() == vouched;
    if target.0 > FURTHEST {
        return None;
    }
    // A proof may be looked at before its signatures are, and so be anybody's.
    let members = proof.votes.iter().filter(same).map(|vote| vote.from).filter(|from| group.contains(*from));
    let voters: Voters = members.collect();
    (target.0 > Seq(0) && voters.count() >= group.quorum()).then_some(target)
}

impl Pbft {
    /// The certificate of the last stable checkpoint; none for genesis.
    #[must_use]
    pub fn stable_proof(&self) -> &Arc<StableProof> {
        &self.stable_proof
    }

    /// Whether this replica's own state at the last stable checkpoint is the one that is certified.
    #[must_use]
    pub fn has_stable_state(&self) -> bool {
        let (seq, digest) = self.stable;
        !self.repairing && self.own_digests.get(&seq) == Some(&digest)
    }

    /// Whether this replica executed what is stable, and does not know that to be wrong.
    #[must_use]
    pub fn has_executed_stable(&self) -> bool {
        !self.repairing && self.reached.seq >= self.stable.0
    }

    /// How many replicas make a quorum.
    #[must_use]
    pub fn quorum(&self) -> usize {
        self.group.quorum()
    }

    /// The votes that are here for what the last stable certificate shows: its own, and others.
    pub fn stable_votes(&self) -> impl Iterator<Item = &Arc<Signed>> {
        let others = self.checkpoint_votes.get(&self.stable.0).into_iter().flat_map(|votes| votes.values());
        self.stable_proof.votes.iter().chain(others).filter(|vote| self.is_for_stable(vote))
    }

    /// Whether a vote is for what the last stable certificate shows.
    #[must_use]
    pub fn is_for_stable(&self, vote: &Signed) -> bool {
        let shown = self.stable_proof.votes.first().and_then(|first| first.body.checkpoint());
        shown.is_some() && vote.body.checkpoint() == shown
    }

    /// Whether this replica asks for more votes for the last stable checkpoint. Others then show it what makes that stable, as
    /// if it knew the one before alone.
    #[must_use]
    pub fn seeks_votes(&self) -> bool {
        self.seeks_votes
    }

    /// Has this replica ask for more votes for the last stable checkpoint, or not any more.
    pub fn seek_votes(&mut self, seeks: bool) {
        self.seeks_votes = seeks;
    }

    /// Keeps one more vote for what the last stable certificate shows.
    pub fn keep_vote(&mut self, vote: &Arc<Signed>) {
        if self.is_for_stable(vote) {
            self.useful += 1;
            self.checkpoint_votes.entry(self.stable.0).or_default().insert(vote.from, Arc::clone(vote));
        }
    }

    /// Puts another certificate in the place of that of the last stable checkpoint, if it is one for the same.
    pub fn put_certificate(&mut self, cx: &mut Cx<'_, Self>, proof: StableProof) {
        if proven(&self.group, self.config.histories, &proof) == Some(self.stable) {
            self.stable_proof = Arc::new(proof);
            cx.remember(Record::Stable(Arc::clone(&self.stable_proof)));
        }
    }

    /// Of the votes for checkpoints beside those in the stable certificate only these count.
    pub fn retain_votes(&mut self, counts: impl Fn(&Signed) -> bool) {
        for votes in self.checkpoint_votes.values_mut() {
            votes.retain(|_, vote| counts(vote));
        }
    }

    /// The first number from a number on for which replicas take a checkpoint.
    #[must_use]
    pub fn checkpoint_from(&self, seq: Seq) -> Seq {
        let interval = self.config.interval;
        Seq(seq.0.div_ceil(interval).saturating_mul(interval))
    }

    /// A batch that was executed above the stable checkpoint.
    #[must_use]
    pub fn executed_batch(&self, seq: Seq) -> Option<&Batch> {
        self.decided.get(&seq)
    }

    /// The digest of an own checkpoint is known.
    pub(crate) fn checkpoint_taken(&mut self, cx: &mut Cx<'_, Self>, seq: Seq, digest: Digest) {
        if self.repairing {
            // Of a state that is being thrown away.
            return;
        }
        self.own_state = self.own_state.max(seq);
        if seq >= self.stable.0 {
            self.own_digests.insert(seq, digest);
        }
        if seq <= self.stable.0 {
            // Those ahead of this replica made it stable already; its own log may begin here all the same.
            cx.compact(seq);
        }
        self.drop_stable();
        self.compare_with_stable(cx);
        self.due_checkpoints.push_back((seq, digest));
        self.progress(cx);
    }

    /// Signs due CHECKPOINTs.
    pub(crate) fn try_checkpoint(&mut self, cx: &mut Cx<'_, Self>) {
        while let Some((seq, digest)) = self.due_checkpoints.pop_front() {
            rule!("PBFT-C3");
            cx.sign(Body::Checkpoint(Checkpoint { seq, digest }), To::Others);
        }
    }

    /// Whether a vote for a checkpoint at this number may count.
    fn may_become_stable(&self, seq: Seq) -> bool {
        // Nobody correct is further ahead of a stable checkpoint that this replica has not heard of, and it will.
        let furthest = self.stable.0.0.max(self.delivered.0) + 2 * self.config.window;
        seq > self.stable.0 && seq.0 <= furthest && seq.0.is_multiple_of(self.config.interval)
    }

    /// Whether this CHECKPOINT may count and is not here.
    pub(crate) fn brings_checkpoint(&self, message: &Signed) -> bool {
        let Some((vote, history)) = message.body.checkpoint() else { return false };
        let known = self.checkpoint_votes.get(&vote.seq).and_then(|votes| votes.get(&message.from));
        let of_this_kind = history.is_some() == self.config.histories;
        of_this_kind
            && self.may_become_stable(vote.seq)
            && known.is_none_or(|known| known.digest != message.digest)
    }

    /// Whether this certificate would show a higher checkpoint to be stable, if all in it is good.
    pub(crate) fn brings_stable(&self, proof: &StableProof) -> bool {
        let shown = proven(&self.group, self.config.histories, proof);
        shown.is_some_and(|(seq, _)| seq > self.stable.0)
    }

    /// CHECKPOINT ⟨n, d⟩_σi.
    pub(crate) fn on_checkpoint_vote(&mut self, cx: &mut Cx<'_, Self>, message: &Arc<Signed>) {
        let Some((vote, history)) = message.body.checkpoint() else { return };
        if history.is_some() != self.config.histories {
            return cx.ignore(message.from, "a CHECKPOINT of another kind of group");
        }
        if !self.may_become_stable(vote.seq) {
            return;
        }
        let votes = self.checkpoint_votes.entry(vote.seq).or_default();
        let news = votes.insert(message.from, message.clone()).is_none();
        // A state that was found wrong has another CHECKPOINT follow. Who goes on and on is of no more use.
        rule!("PBFT-R13");
        self.in_vain += u64::from(!news);
        let same = |other: &&Arc<Signed>| other.body.checkpoint() == Some((vote, history));
        let same: Vec<Arc<Signed>> = votes.values().filter(same).cloned().collect();
        self.useful += u64::from(news);
        if same.len() >= self.group.quorum() {
            self.adopt_stable(cx, &Arc::new(StableProof { votes: same }));
        }
    }

    /// 2f+1 signed CHECKPOINTs are a proof wherever they come from.
    pub(crate) fn adopt_stable(&mut self, cx: &mut Cx<'_, Self>, proof: &Arc<StableProof>) {
        let Some((seq, digest)) = proven(&self.group, self.config.histories, proof) else {
            return cx.ignore(self.me, "a checkpoint certificate that does not hold");
        };
        if seq <= self.stable.0 {
            return;
        }
        rule!("PBFT-C4");
        self.useful += 1;
        self.stable = (seq, digest);
        self.stable_proof = proof.clone();
        self.checkpoint_votes = self.checkpoint_votes.split_off(&seq);
        self.own_digests = self.own_digests.split_off(&seq);
        cx.remember(Record::Stable(proof.clone()));
        self.drop_stable();
        self.back_off.progressed();
        cx.stable(seq, digest);
        if self.repairing {
            // Nobody keeps the earlier one any more.
            self.repair(cx);
        }
        self.compare_with_stable(cx);
        self.notice_lag(cx);
        self.touch_all();
    }

    /// The divergence alarm: a state that differs from a stable checkpoint is not this service's. Nothing is executed or
    /// vouched for before the state is right again.
    pub(crate) fn compare_with_stable(&mut self, cx: &mut Cx<'_, Self>) {
        let (seq, digest) = self.stable;
        if self.repairing || self.own_digests.get(&seq).is_none_or(|own| *own == digest) {
            return;
        }
        rule!("PBFT-T3");
        cx.note(Note::Diverged { seq });
        self.undo(cx);
        self.repairing = true;
        self.due_checkpoints.clear();
        self.repair(cx);
    }

    /// What was executed above this number is not executed again where the state that comes takes the place of a wrong one: it
    /// may be of the same wrong history. The COMMITs of others say what stands there.
    pub fn doubt_executed(&mut self, above: Seq) {
        if self.repairing {
            drop(self.decided.split_off(&above.next()));
        }
    }

    /// Has the wrong state replaced by the stable checkpoint's.
    fn repair(&mut self, cx: &mut Cx<'_, Self>) {
        let (seq, digest) = self.stable;
        cx.repair_state(seq, digest, self.sources());
    }

    /// A replica that is behind what is stable first lets the ordinary messages arrive; one that is a whole window behind
    /// cannot catch up by them,
    /// nor does the state come any more of an earlier stable one.
    pub(crate) fn notice_lag(&mut self, cx: &mut Cx<'_, Self>) {
        let stable = self.stable.0;
        if self.delivered >= stable || self.repairing {
            return;
        }
        self.lagged = true;
        match self.lag.noticed(self.delivered, stable, self.config.window) {
            Behind::Waits => {
                let at = self.after(cx, 4 * self.config.status_interval);
                cx.set_timer(Timer::Behind, at);
            }
            Behind::WaitsAlready => {}
            Behind::Fetches => self.fetch_stable_state(cx),
        }
    }

    /// It has caught up.
    pub(crate) fn notice_end_of_lag(&mut self, cx: &mut Cx<'_, Self>) {
        if self.lag.is_watched() && !self.lags() {
            self.lag.is_over();
            cx.cancel_timer(Timer::Behind);
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
    fn fetch_stable_state(&mut self, cx: &mut Cx<'_, Self>) {
        rule!("PBFT-T1");
        let (seq, digest) = self.stable;
        cx.fetch_state(seq, digest, self.sources());
        self.lag.fetches(seq);
        let at = self.after(cx, 16 * self.config.status_interval);
        cx.set_timer(Timer::Behind, at);
    }

    /// Who may have the stable checkpoint: those who vouch first; but they may be faulty, and any other may have it, too.
    fn sources(&self) -> Vec<ReplicaId> {
        let mut sources: Vec<ReplicaId> = self.stable_proof.votes.iter().map(|vote| vote.from).collect();
        for replica in self.group.all() {
            if !sources.contains(&replica) {
                sources.push(replica);
            }
        }
        sources
    }

    /// The state of a stable checkpoint is in force; everything that waited for it is tried again (guide.md §1.5).
    pub(crate) fn installed(
        &mut self,
        cx: &mut Cx<'_, Self>,
        reached: Reached,
        digest: Digest,
        executed: &dyn Fn(ClientId, u64) -> bool,
    ) {
        rule!("PBFT-T2");
        // The state that came has nothing tentative.
        self.tentative.clear();
        self.reached = reached;
        self.watch_deadline(cx);
        if self.repairing {
            // What was executed since the stable checkpoint is executed again.
            self.repairing = false;
            self.delivered = reached.seq;
            self.own_state = reached.seq;
            self.own_digests.retain(|seq, _| *seq == reached.seq);
            self.execute_decided(cx);
        }
        self.delivered = self.delivered.max(reached.seq);
        for digest in self.pool.retain(|client, number| !executed(client, number)) {
            self.frames.settle(&digest);
        }
        self.own_digests.insert(reached.seq, digest);
        self.own_state = self.own_state.max(reached.seq);
        self.drop_stable();
        self.due_checkpoints.push_back((reached.seq, digest));
        if self.stable.0 == reached.seq {
            cx.stable(reached.seq, digest);
        }
        self.touch_all();
        self.progress(cx);
    }
}
