//! MinBFT §4, "Servers: normal case operation".

use crate::config::Config;
use crate::evidence;
use crate::message::{Body, Certified, Commit, Prepare, Record};
use crate::state::{MinBft, Verdict};
use std::sync::Arc;
use troth_blocks::Admitted;
use troth_core::{Cx, Note, Ordered, Outcome, Reached, To, VerifiedFrame, rule};
use troth_types::{Batch, Digest, Hasher, ReplicaId, Seq, Time};

impl MinBft {
    /// A frame that this replica verified: it is pending from now on until its (client, number) is
    /// executed, whatever its digest (F-M10).
    pub(crate) fn admit(&mut self, cx: &mut Cx<'_, Self>, frame: VerifiedFrame) {
        rule!("MINBFT-N1");
        let digest = frame.digest();
        let wanted = self.frames.wants(&digest, self.wants_up_to());
        match self.pool.admit(frame.client(), frame.number(), digest, frame.size(), cx.now()) {
            Admitted::New => self.frames.insert(frame, true),
            Admitted::Pending(other) => {
                self.compare(cx, &frame, &other);
                if wanted {
                    self.frames.insert(frame, false);
                }
            }
            Admitted::SlotTaken | Admitted::Full if wanted => self.frames.insert(frame, false),
            Admitted::SlotTaken => cx.ignore(self.me, "the slot of the client's window is taken"),
            Admitted::Full => cx.ignore(self.me, "the client has as many bytes pending as it may"),
        }
        if wanted {
            self.asked_up_to = Seq(0);
            self.recheck = true;
        }
    }

    /// A client that signed this frame and, under the same number, the one with that digest and another content
    /// has shown two faces. Another signature of the same content is none.
    fn compare(&self, cx: &mut Cx<'_, Self>, frame: &VerifiedFrame, other: &Digest) {
        rule!("MINBFT-N11");
        if self.frames.contradicts(frame, other) {
            cx.note(Note::ClientAccused { client: frame.client(), number: frame.number() });
        }
    }

    /// As primary: proposes what waits, as soon as there is room (adaptive batching: no delay, and the
    /// batch is whatever waits, which is at least what came together).
    pub(crate) fn try_propose(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.active() || !self.is_primary() || !self.start_executed() {
            return;
        }
        rule!("MINBFT-N2");
        loop {
            let under_way = self.committed.0.saturating_sub(self.delivered.0);
            let seq = self.committed.next();
            if under_way >= self.config.pipeline || seq > self.highest() {
                return;
            }
            let limits = self.config.limits;
            // A batch costs its certificates and their checks however little is in it.
            if under_way > 0
                && seq > self.filled_up_to()
                && !self.pool.has_gathered(limits.batch_frames, self.config.batch_bytes())
            {
                return;
            }
            rule!("MINBFT-N10");
            let frames = self.pool.propose(limits.batch_frames, self.config.batch_bytes());
            let deadline = self.deadline_due(cx);
            let idle = under_way == 0 && self.reached.seq == self.delivered;
            if frames.is_empty() && !(deadline && idle) && seq > self.filled_up_to() {
                return;
            }
            self.frames.name(seq, &frames);
            rule!("MINBFT-N14");
            let alone = self.frames.to_show(&frames);
            if !alone.is_empty() {
                cx.show_frames(To::Others, alone);
            }
            let batch = Batch { time: cx.wall(), frames };
            self.log_frames(cx, &batch.frames);
            self.committed = seq;
            self.certify(cx, Body::Prepare(Prepare { view: self.view, seq, batch }));
        }
    }

    /// Whether the application's deadline has come on this replica's clock.
    pub(crate) fn deadline_due(&self, cx: &Cx<'_, Self>) -> bool {
        self.reached.deadline.is_some_and(|deadline| deadline <= cx.wall() && deadline > self.reached.time)
    }

    /// PREPARE ⟨v, n, batch⟩_UI(p).
    pub(crate) fn on_prepare(
        &mut self,
        cx: &mut Cx<'_, Self>,
        message: &Arc<Certified>,
        prepare: &Prepare,
    ) -> Verdict {
        rule!("MINBFT-N3");
        if message.from != self.group.primary(prepare.view) {
            return Verdict::Condemn("a PREPARE by a backup");
        }
        if let Err(why) = evidence::within_limits(&self.config, prepare) {
            return Verdict::Condemn(why);
        }
        if let Some(verdict) = self.wait_for_view(message, prepare.view, prepare.seq) {
            return verdict;
        }
        let config = self.config;
        if let Err(why) =
            self.peer_mut(message.from).walk.commit(&config, message.value(), prepare.view, prepare.seq)
        {
            return Verdict::Condemn(why);
        }
        if prepare.view == self.view && self.counts(message.from, prepare.seq) {
            if !self.frames.name(prepare.seq, &prepare.batch.frames) {
                self.fetch_soon(cx);
            }
            self.slots.entry(prepare.seq).or_default().prepare = Some(message.clone());
        }
        Verdict::Done
    }

    /// COMMIT ⟨v, n, PREPARE⟩_UI(i).
    pub(crate) fn on_commit(
        &mut self,
        cx: &mut Cx<'_, Self>,
        message: &Arc<Certified>,
        commit: &Commit,
    ) -> Verdict {
        let (view, seq) = match evidence::committed(&self.group, &self.config, message.from, commit) {
            Ok(prepare) => (prepare.view, prepare.seq),
            Err(why) => return Verdict::Condemn(why),
        };
        // The PREPARE goes through its own sender's order; it may be news (the primary sent it to some
        // only).
        rule!("MINBFT-N6");
        if self.offer(commit.prepare.clone()) {
            self.recheck = true;
        }
        if let Some(verdict) = self.wait_for_view(message, view, seq) {
            return verdict;
        }
        let config = self.config;
        if let Err(why) = self.peer_mut(message.from).walk.commit(&config, message.value(), view, seq) {
            return Verdict::Condemn(why);
        }
        if view == self.view {
            self.pace.committed(seq, message.from, cx.now(), self.group.weak());
        }
        if view == self.view && self.counts(message.from, seq) {
            let to = (commit.prepare.value(), commit.prepare.digest);
            self.slots.entry(seq).or_default().commits.insert(message.from, to);
        }
        Verdict::Done
    }

    /// Whether a commitment by this sender counts towards the execution of a number.
    pub(crate) fn counts(&self, from: ReplicaId, seq: Seq) -> bool {
        rule!("MINBFT-T5");
        self.is_open(seq) && seq > self.peer(from).floor && self.works_from(from, self.started.base)
    }

    /// Whether what a replica's component says counts in a view that starts from this checkpoint, or its own may enter it: one
    /// that was admitted works in no view that starts below what its predecessor may have promised. The votes for the checkpoint
    /// by which it begins may be of earlier views than the one in which that was first executed, as those of who got it by a
    /// state transfer are; and a later start may rest on its predecessor, which had a part in it before it was replaced.
    pub(crate) fn works_from(&self, replica: ReplicaId, base: Seq) -> bool {
        rule!("MINBFT-E11");
        let member = self.configuration.member(replica);
        let at = member.map(|member| member.admission().at).filter(|at| *at > Seq(0));
        at.is_none_or(|at| base >= self.settled(at)) || self.config.follows(crate::Flaw::CountOldEpoch)
    }

    /// Whether this replica may yet execute this number itself: not what it executed, and not what a state
    /// transfer will bring.
    fn is_open(&self, seq: Seq) -> bool {
        let transferred = self.delivered.0 + self.config.window <= self.stable.0.0;
        seq > if transferred { self.stable.0 } else { self.delivered }
    }

    /// A commitment counts in the view it is made in, after that view's start is known, and within the
    /// window; one of a left view is only followed.
    fn wait_for_view(&self, message: &Certified, view: troth_types::View, seq: Seq) -> Option<Verdict> {
        rule!("MINBFT-V11");
        if self.peer(message.from).view > view {
            return Some(Verdict::Condemn("a commitment in a view that its sender left"));
        }
        if view > self.view || (view == self.view && !self.active()) {
            return Some(Verdict::Wait);
        }
        if view == self.view && seq.0 > self.stable.0.0 + self.config.window {
            return Some(Verdict::Wait);
        }
        None
    }

    /// Commits to the next numbers, in order, as far as their PREPAREs, bodies and times allow.
    pub(crate) fn try_commit(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.active() || self.is_primary() {
            return;
        }
        loop {
            let seq = self.committed.next();
            if seq > self.highest() {
                return;
            }
            let Some(slot) = self.slots.get(&seq) else { return };
            let Some(prepare) = slot.prepare.clone() else { return };
            let Some(batch) = slot.batch() else { return };
            // Every replica checks the client's signature itself before it certifies: the frames here are
            // verified, and one that does not verify never gets here (F-M10).
            rule!("MINBFT-N5");
            if !self.frames.complete(&batch.frames) {
                return self.fetch_further(cx);
            }
            let vouched = slot.voters().count() >= self.group.weak();
            if !vouched && !self.acceptable(cx, seq, batch) {
                return;
            }
            let frames = batch.frames.clone();
            self.log_frames(cx, &frames);
            self.committed = seq;
            self.note_proposed(cx, seq, &prepare);
            self.certify(cx, Body::Commit(Commit { prepare }));
        }
    }

    /// The local judgement of a proposal: its time is one that this replica's clock bears, it has a
    /// reason to exist, and it is not too large to keep. Nobody is condemned for failing it.
    fn acceptable(&self, cx: &Cx<'_, Self>, seq: Seq, batch: &Batch) -> bool {
        rule!("MINBFT-N7");
        let due = self.reached.deadline.is_some_and(|deadline| deadline <= batch.time);
        rule!("MINBFT-E7");
        let has_reason = !batch.frames.is_empty() || due || seq <= self.filled_up_to();
        rule!("MINBFT-N10");
        let small = batch.frames.len() <= 1 || self.frames.bytes(&batch.frames) <= self.config.batch_bytes();
        let Config { clock_bound, request_timeout, .. } = self.config;
        // One that fills up holds nobody's sign of life, and nobody may ask for another in its place.
        let fills = batch.frames.is_empty() && seq <= self.filled_up_to();
        let fresh = fills || troth_blocks::is_fresh(batch.time, cx.wall(), clock_bound, request_timeout);
        fresh && self.timely(cx, batch) && has_reason && small
    }

    /// Whether a batch's time is not ahead of this replica's clock by more than the bound.
    pub(crate) fn timely(&self, cx: &Cx<'_, Self>, batch: &Batch) -> bool {
        troth_blocks::is_due(batch.time, cx.wall(), self.config.clock_bound)
    }

    /// Makes the frames durable before this replica commits to them.
    pub(crate) fn log_frames(&mut self, cx: &mut Cx<'_, Self>, digests: &[Digest]) {
        rule!("MINBFT-R1");
        for frame in self.frames.log(digests) {
            cx.persist(Record::Frame(frame.into_inner()));
        }
    }

    /// Whether f+1 replicas, this one among them, have committed to the start of the view.
    pub(crate) fn view_agreed(&self) -> bool {
        rule!("MINBFT-V10");
        if self.config.follows(crate::Flaw::ExecuteOnNewView) {
            return true;
        }
        let accepted = &self.started.accepted;
        let counts =
            |replica: &ReplicaId| accepted.contains(*replica) && self.works_from(*replica, self.started.base);
        self.group.all().filter(counts).count() >= self.group.quorum() && accepted.contains(self.me)
    }

    /// Whether nothing that the view carried over is left to execute, or all of it may be executed. What
    /// lies beyond needs no count of its own: whoever commits in a view has committed to its start before.
    fn start_executed(&self) -> bool {
        self.delivered >= self.started.end() || self.view_agreed()
    }

    /// Executes what is accepted, in order: first what the view started with, then f+1 commitments each.
    pub(crate) fn try_execute(&mut self, cx: &mut Cx<'_, Self>) {
        while self.active() && !self.behind_base() && !self.repairing && self.awaited.is_none() {
            let seq = self.delivered.next();
            let batch = if seq <= self.started.end() {
                if !self.view_agreed() {
                    return;
                }
                self.started.chosen[(seq.0 - self.started.base.0 - 1) as usize].clone()
            } else {
                let Some(slot) = self.slots.get(&seq) else { return };
                let voters = slot.voters();
                // Its own commitment must be durable before a replica executes (F-M11).
                rule!("MINBFT-N8");
                if voters.count() < self.group.quorum() || !voters.contains(self.me) {
                    return;
                }
                let Some(batch) = slot.batch() else { return };
                batch.clone()
            };
            let Some(ordered) = self.ordered(seq, &batch) else { return };
            self.delivered = seq;
            if let Some(slot) = self.slots.remove(&seq) {
                self.proposed_at.note(seq, slot.at);
            }
            cx.deliver(ordered);
            rule!("MINBFT-E1");
            self.awaited = self.may_reconfigure(&batch).then_some(seq);
            cx.remember(Record::Executed(seq, batch.clone()));
            self.decided.insert(seq, batch);
            rule!("MINBFT-C1");
            let forced = seq == self.started.end() && self.view.0 > 0;
            if seq.0.is_multiple_of(self.config.interval) || forced {
                cx.checkpoint();
            }
        }
    }

    /// The state of the view's base must come from others.
    fn behind_base(&self) -> bool {
        self.delivered < self.started.base
    }

    pub(crate) fn ordered(&self, seq: Seq, batch: &Batch) -> Option<Ordered> {
        let frames: Option<Vec<VerifiedFrame>> =
            batch.frames.iter().map(|digest| self.frames.get(digest).cloned()).collect();
        let mut seed = Hasher::new("troth/seed/v1");
        seed.number(seq.0).digest(&batch.digest());
        Some(Ordered { seq, time: batch.time, seed: seed.finish(), frames: frames? })
    }

    /// Whether a replica has its f+1 commitments to a batch without this COMMIT, as long as nobody fails: with the
    /// PREPARE and its own a backup needs f-1, and has them of the f-1 backups before it. What it needs when somebody
    /// fails comes a moment later.
    pub(crate) fn can_wait_for(&self, message: &Certified, to: ReplicaId) -> bool {
        let Body::Commit(commit) = &message.body else { return false };
        rule!("MINBFT-N12");
        let primary = commit.prepare.from;
        let backups = self.group.n() - 1;
        // The backups in a ring, from 0; the primary is in none.
        let place =
            |replica: ReplicaId| (usize::from(replica.0) + backups - usize::from(primary.0)) % self.group.n();
        let after = (place(to) + backups - place(message.from)) % backups;
        to != primary && message.from != primary && after >= self.group.f()
    }

    /// The executor ran a batch.
    pub(crate) fn executed(&mut self, cx: &mut Cx<'_, Self>, reached: Reached, outcome: &Outcome) {
        let deadline = std::mem::replace(&mut self.reached, reached).deadline;
        self.awaited = self.awaited.filter(|awaited| *awaited > reached.seq);
        let proposed = self.proposed_at.take(reached.seq);
        let batch = self.decided.get(&reached.seq).map_or(&[][..], |batch| &batch.frames);
        for (at, done) in outcome.done.iter().enumerate() {
            let executed = done.now.then(|| cx.now());
            if let Some(digest) = self.pool.done(done.client, done.number, proposed, executed) {
                // Where another one was executed than the one that waited here.
                let other = batch.get(at).filter(|executed| **executed != digest);
                if let Some(executed) = other.and_then(|executed| self.frames.get(executed)) {
                    self.compare(cx, executed, &digest);
                }
                self.frames.settle(&digest);
            }
        }
        if reached.deadline != deadline {
            self.watch_deadline(cx);
        }
        self.settle(cx);
    }

    /// The time-out of a request now.
    pub(crate) fn request_patience(&self) -> u64 {
        self.back_off.of(self.config.request_timeout)
    }

    /// A local time in the future.
    pub(crate) fn after(&self, cx: &Cx<'_, Self>, micros: u64) -> Time {
        cx.now().after(micros)
    }
}
