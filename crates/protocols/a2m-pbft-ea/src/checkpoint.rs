//! §4.3.1: checkpoints, garbage collection and state transfer, as in A2M-PBFT-E (§4.2.2) with quorums of f+1.

use crate::message::{Attested, Body, Checkpoint, Record, StableProof};
use crate::place::{CHECKPOINT, COMMIT, NEW_VIEW, PREPARE, VIEW_CHANGE, flattened};
use crate::state::{A2mPbftEa, Asked, Timer};
use std::sync::Arc;
use troth_blocks::{Behind, Voters};
use troth_core::{Cx, Note, Reached, rule};
use troth_trusted::a2m::{LogId, Operation};
use troth_types::{ClientId, Digest, Group, ReplicaId, Seq, View};

/// The last number of a checkpoint that counts. No group comes so far, and a quorum of faulty replicas must not bring one
/// to where a window above it is no number any more.
const FURTHEST: Seq = Seq(u64::MAX / 2);

/// What a certificate proves, where its attestations are good: the number and digest that f+1 distinct replicas
/// vouched for, with the same history; zero for one without votes.
#[must_use]
pub fn proven(group: &Group, proof: &StableProof) -> Option<(Seq, Digest)> {
    rule!("A2MPBFTEA-C2");
    let target = proof.target();
    if proof.votes.is_empty() {
        return Some(target);
    }
    let vouched = proof.votes[0].checkpoint().and_then(Checkpoint::target)?;
    let same = |vote: &&Arc<Attested>| vote.checkpoint().and_then(Checkpoint::target) == Some(vouched);
    if target.0 > FURTHEST {
        return None;
    }
    // A proof may be looked at before its attestations are, and so be anybody's.
    let members = proof.votes.iter().filter(same).map(|vote| vote.from).filter(|from| group.contains(*from));
    let voters: Voters = members.collect();
    (target.0 > Seq(0) && voters.count() >= group.quorum()).then_some(target)
}

impl A2mPbftEa {
    /// The certificate of the last stable checkpoint; none for genesis.
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
        if seq >= self.stable.0 {
            self.own_digests.insert(seq, digest);
        }
        if seq <= self.stable.0 {
            // Those ahead of this replica made it stable already; its own log may begin here all the same.
            cx.compact(seq);
        }
        self.drop_stable();
        self.compare_with_stable(cx);
        self.history.due(seq, digest);
        self.progress(cx);
    }

    /// Has due CHECKPOINTs attested, with what the history holds there. One slot is each number's: of a state that was found wrong, nothing can be taken back.
    pub(crate) fn try_checkpoint(&mut self, cx: &mut Cx<'_, Self>) {
        for (seq, digest, history) in self.history.ready(self.stable.0) {
            rule!("A2MPBFTEA-C3");
            self.attest(cx, Body::Checkpoint(Checkpoint { seq, digest, history }));
        }
    }

    /// Whether a vote for a checkpoint at this number may count.
    fn may_become_stable(&self, seq: Seq) -> bool {
        // Nobody correct is further ahead of a stable checkpoint that this replica has not heard of, and it will.
        let furthest = self.stable.0.0.max(self.delivered.0) + 2 * self.config.window;
        seq > self.stable.0 && seq.0 <= furthest && seq.0.is_multiple_of(self.config.interval)
    }

    /// Whether a replica's CHECKPOINT for this number may count and is not here, as a number has one slot; or is only late, as
    /// those of the slowest replicas always are.
    pub(crate) fn brings_checkpoint(&self, from: ReplicaId, seq: Seq) -> bool {
        if seq <= self.stable.0 {
            let heard = self.heard.get(&(from, CHECKPOINT)).copied().unwrap_or_default();
            return seq > heard && seq < self.lowest() && seq.0.is_multiple_of(self.config.interval);
        }
        let known = self.checkpoint_votes.get(&seq).is_some_and(|votes| votes.contains_key(&from));
        self.may_become_stable(seq) && !known
    }

    /// Whether this certificate would show a higher checkpoint to be stable, if all in it is good.
    pub(crate) fn brings_stable(&self, proof: &StableProof) -> bool {
        proven(&self.group, proof).is_some_and(|(seq, _)| seq > self.stable.0)
    }

    /// CHECKPOINT ⟨n, s, ⟨x, d⟩_q⟩.
    pub(crate) fn on_checkpoint_vote(
        &mut self,
        cx: &mut Cx<'_, Self>,
        message: &Arc<Attested>,
        vote: &Checkpoint,
    ) {
        if !self.may_become_stable(vote.seq) {
            return self.heard(message, vote.seq, false);
        }
        let votes = self.checkpoint_votes.entry(vote.seq).or_default();
        let first = votes.insert(message.from, message.clone()).is_none();
        let same = |other: &&Arc<Attested>| other.checkpoint().and_then(Checkpoint::target) == vote.target();
        let same: Vec<Arc<Attested>> = votes.values().filter(same).cloned().collect();
        self.heard(message, vote.seq, first);
        if same.len() >= self.group.quorum() {
            self.adopt_stable(cx, &Arc::new(StableProof { votes: same }));
        }
    }

    /// f+1 attested CHECKPOINTs are a proof wherever they come from.
    pub(crate) fn adopt_stable(&mut self, cx: &mut Cx<'_, Self>, proof: &Arc<StableProof>) {
        let Some((seq, digest)) = proven(&self.group, proof) else {
            return cx.ignore(self.me, "a checkpoint certificate that does not hold");
        };
        if seq <= self.stable.0 {
            return;
        }
        rule!("A2MPBFTEA-C4");
        self.useful += 1;
        self.stable = (seq, digest);
        self.stable_proof = proof.clone();
        self.checkpoint_votes = self.checkpoint_votes.split_off(&seq.next());
        self.own_digests = self.own_digests.split_off(&seq);
        // The logs forget what it covers: without it nothing would say why there is a hole.
        rule!("A2MPBFTEA-R12");
        cx.persist(Record::Stable(proof.clone()));
        self.drop_stable();
        self.advanced = true;
        cx.stable(seq, digest);
        self.certified(cx);
        self.forget_stable(cx);
        if self.repairing {
            // Nobody keeps the earlier one any more.
            self.repair(cx);
        }
        self.compare_with_stable(cx);
        self.notice_lag(cx);
        self.reconsider = true;
    }

    /// Has the logs forget what lies below the stable checkpoint in the present view: room for what comes.
    pub(crate) fn forget_stable(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.knows_logs {
            return;
        }
        rule!("A2MPBFTEA-C5");
        let (here, plain) = (flattened(self.view, self.stable.0), flattened(View(0), self.stable.0));
        let wanted = [(PREPARE, here), (COMMIT, here), (CHECKPOINT, plain)];
        let all = [VIEW_CHANGE, NEW_VIEW].map(|log| (log, self.last_filled(log)));
        // What the others hold is being shown while a view is left. Of CHECKPOINTs a VIEWCHANGE shows the certificate alone,
        // and they go on: whoever is kept out of every view would fill their log.
        let active = self.active;
        let may_go = |log: LogId| active || log == CHECKPOINT;
        let mut operations = Vec::new();
        for (log, slot) in wanted.into_iter().chain(all).filter(|(log, _)| may_go(*log)) {
            let slot = slot.min(self.last_filled(log));
            if slot > self.forgotten.get(&log).copied().unwrap_or_default() {
                self.forgotten.insert(log, slot);
                operations.push(Operation::Truncate { log, slot });
            }
        }
        if !operations.is_empty() {
            let ticket = self.ticket(Asked::Truncate);
            cx.trusted(ticket, operations);
        }
    }

    /// The divergence alarm: a state that differs from a stable checkpoint is not this service's. Nothing is executed or
    /// vouched for before the state is right again.
    pub(crate) fn compare_with_stable(&mut self, cx: &mut Cx<'_, Self>) {
        let (seq, digest) = self.stable;
        if self.repairing || self.own_digests.get(&seq).is_none_or(|own| *own == digest) {
            return;
        }
        rule!("A2MPBFTEA-T3");
        cx.note(Note::Diverged { seq });
        self.repairing = true;
        self.history.withdraw();
        self.repair(cx);
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

    /// It has caught up. One that is kept behind bears more and more: others' checkpoints are no progress of its own.
    pub(crate) fn notice_end_of_lag(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.lags() && std::mem::take(&mut self.advanced) {
            self.back_off.progressed();
        }
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
        rule!("A2MPBFTEA-T1");
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
        rule!("A2MPBFTEA-T2");
        rule!("A2MPBFTEA-T4");
        self.history.log.installed(reached.seq);
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
        self.history.due(reached.seq, digest);
        if self.stable.0 == reached.seq {
            cx.stable(reached.seq, digest);
        }
        self.reconsider = true;
        self.progress(cx);
    }
}
