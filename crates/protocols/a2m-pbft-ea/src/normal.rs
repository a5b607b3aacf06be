//! §4.3.1, "Design": PREPREPARE, PREPARE, COMMIT, execution.

use crate::config::Config;
use crate::message::{Accept, Attested, Body, PrePrepare, Record};
use crate::state::A2mPbftEa;
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_blocks::Admitted;
use troth_core::{Cx, Note, Ordered, Outcome, Reached, VerifiedFrame, rule};
use troth_types::{Batch, Configuration, Digest, Hasher, ReplicaId, Seq};

/// Takes a vote among those for a number; whether it is the first of its sender.
fn enter(votes: &mut BTreeMap<ReplicaId, Arc<Attested>>, vote: &Arc<Attested>) -> bool {
    let vacant = !votes.contains_key(&vote.from);
    votes.entry(vote.from).or_insert_with(|| vote.clone());
    vacant
}

impl A2mPbftEa {
    /// A frame that this replica verified: it is pending from now on until its (client, number) is executed, whatever
    /// its digest.
    pub(crate) fn admit(&mut self, cx: &mut Cx<'_, Self>, frame: VerifiedFrame) {
        rule!("A2MPBFTEA-N1");
        let digest = frame.digest();
        let wanted = self.frames.wants(&digest, self.wants_up_to());
        if let Some((order, older)) = self.pool.give_way(frame.client(), frame.number()) {
            self.gave_way |= self.timed == Some(order);
            self.frames.settle(&older);
        }
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
        self.frame_came(&digest);
    }

    /// What waits of removed clients would be shown to primaries that take nothing of theirs any more. What a batch names
    /// of it stays, to complete that batch.
    pub(crate) fn configured(&mut self, configuration: &Arc<Configuration>) {
        rule!("A2MPBFTEA-H8");
        self.history.log.configured(configuration);
        rule!("A2MPBFTEA-N12");
        for digest in self.pool.retain(|client, _| !configuration.is_removed(client)) {
            self.frames.settle(&digest);
        }
    }

    /// A client that signed this frame and, under the same number, the one with that digest and another content has
    /// shown two faces.
    fn compare(&self, cx: &mut Cx<'_, Self>, frame: &VerifiedFrame, other: &Digest) {
        if self.frames.contradicts(frame, other) {
            cx.note(Note::ClientAccused { client: frame.client(), number: frame.number() });
        }
    }

    /// As primary: proposes what waits, as soon as there is room (adaptive batching).
    pub(crate) fn try_propose(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.active || !self.is_primary() {
            return;
        }
        rule!("A2MPBFTEA-N2");
        loop {
            let last = self.prepared_up_to.max(self.started.end()).max(self.delivered).max(self.stable.0);
            let under_way = last.0.saturating_sub(self.delivered.0);
            let seq = last.next();
            if under_way >= self.config.pipeline || seq > self.highest() {
                return;
            }
            let (most, bytes) = (self.config.limits.batch_frames, self.config.batch_bytes());
            // A batch costs its messages however little is in it.
            if under_way > 0 && !self.pool.has_gathered(most, bytes) {
                return;
            }
            let frames = self.pool.propose(most, bytes);
            let idle = under_way == 0 && self.reached.seq == self.delivered;
            if frames.is_empty() && !(self.deadline_due(cx) && idle) {
                return;
            }
            self.frames.name(seq, &frames);
            let batch = Batch { time: cx.wall(), frames };
            self.prepared_up_to = seq;
            self.log_frames(cx, &batch);
            self.attest(cx, Body::PrePrepare(PrePrepare { view: self.view, seq, batch }));
        }
    }

    /// Whether the application's deadline has come on this replica's clock.
    pub(crate) fn deadline_due(&self, cx: &Cx<'_, Self>) -> bool {
        self.reached.deadline.is_some_and(|deadline| deadline <= cx.wall() && deadline > self.reached.time)
    }

    /// Puts the frames of a batch into the log before anybody hears of this replica's vote for it.
    pub(crate) fn log_frames(&mut self, cx: &mut Cx<'_, Self>, batch: &Batch) {
        for frame in self.frames.log(&batch.frames) {
            cx.persist(Record::Frame(frame.into_inner()));
        }
    }

    /// PREPREPARE ⟨v, n, batch⟩. There is one of a number in a view.
    pub(crate) fn on_pre_prepare(
        &mut self,
        cx: &mut Cx<'_, Self>,
        by: ReplicaId,
        message: &Arc<Attested>,
        proposal: &PrePrepare,
    ) {
        rule!("A2MPBFTEA-N3");
        let from = message.from;
        if proposal.view != self.entered || from != self.group.primary(proposal.view) {
            return cx.ignore(from, "a PREPREPARE of another view or by a backup");
        }
        if proposal.seq <= self.started.end() {
            return cx.ignore(from, "a PREPREPARE for what the view started with");
        }
        if proposal.batch.frames.len() > self.config.limits.batch_frames {
            return cx.suspect(from, "a batch with more frames than a batch may have");
        }
        let Some(slot) = self.slot(proposal.seq) else {
            self.heard(message, proposal.seq, false);
            return cx.ignore(from, "a PREPREPARE outside of the window");
        };
        let (first, asked) = (slot.proposal.is_none(), !slot.asked.is_empty());
        if first {
            slot.proposal = Some(message.clone());
            slot.passed_on = by != from;
            if proposal.seq <= self.named_up_to() {
                self.frames.name(proposal.seq, &proposal.batch.frames);
            }
        }
        if first {
            self.note_shown(by, from, asked);
            self.pass_on(cx, message);
        } else {
            self.note_repeated(cx, by, message, proposal.seq);
        }
        self.heard(message, proposal.seq, first);
    }

    /// PREPARE ⟨v, n, d⟩ of a backup.
    pub(crate) fn on_prepare(&mut self, cx: &mut Cx<'_, Self>, message: &Arc<Attested>, vote: crate::Vote) {
        rule!("A2MPBFTEA-N4");
        let from = message.from;
        if vote.view != self.entered || from == self.group.primary(vote.view) {
            return cx.ignore(from, "a PREPARE of another view or by the primary");
        }
        let first = self.slot(vote.seq).is_some_and(|slot| enter(&mut slot.prepares, message));
        self.heard(message, vote.seq, first);
    }

    /// COMMIT ⟨v, n, d⟩.
    pub(crate) fn on_commit(&mut self, cx: &mut Cx<'_, Self>, message: &Arc<Attested>, vote: crate::Vote) {
        rule!("A2MPBFTEA-N5");
        if vote.view != self.entered {
            return cx.ignore(message.from, "a COMMIT of another view");
        }
        let first = self.slot(vote.seq).is_some_and(|slot| enter(&mut slot.commits, message));
        self.heard(message, vote.seq, first);
        if first {
            self.time_commit(cx, message.from, vote);
        }
    }

    /// COMMIT(NEWVIEW) ⟨v, H(NEWVIEW)⟩.
    pub(crate) fn on_accept(&mut self, cx: &mut Cx<'_, Self>, message: &Arc<Attested>, accept: Accept) {
        if accept.view < self.entered && self.known_views.get(accept.view).is_none() {
            return cx.ignore(message.from, "a commitment to the start of a view that is over");
        }
        let (first, known) = (self.known_views.accept(message), self.known_views.get(accept.view).is_some());
        if first && known {
            cx.remember(Record::Accepted(message.clone()));
        }
        // Who commits to the starts of views that nobody heard of may do so without end.
        self.useful += u64::from(first && (known || accept.view <= self.view));
        // To work out what a view starts with costs milliseconds: what is no news, and what nothing is known for, decides nothing.
        self.reconsider |= first && known;
    }

    /// PREPARE for what was proposed, number after number.
    pub(crate) fn try_prepare(&mut self, cx: &mut Cx<'_, Self>) {
        while self.active && !self.is_primary() {
            rule!("A2MPBFTEA-N6");
            self.prepared_up_to = self.prepared_up_to.max(self.stable.0);
            let seq = self.prepared_up_to.next();
            let Some(slot) = self.slots.get(&seq).filter(|_| seq <= self.highest()) else { return };
            let Some((digest, batch)) = slot.proposed().zip(slot.batch().cloned()) else { return };
            let vouched = slot.voters(&digest).count() > self.group.f();
            let proposal = slot.proposal.clone();
            rule!("A2MPBFTEA-N7");
            if !self.frames.name(seq, &batch.frames) {
                return;
            }
            if !vouched && !self.acceptable(cx, &batch) {
                return;
            }
            rule!("A2MPBFTEA-R1");
            self.log_frames(cx, &batch);
            proposal.into_iter().for_each(|proposal| cx.persist(Record::Proposal(proposal)));
            self.prepared_up_to = seq;
            let vote = self.vote(seq, digest);
            self.time_agreement(cx, vote);
            self.attest(cx, Body::Prepare(vote));
        }
    }

    /// The local judgement of a proposal: its time is one that this replica's clock bears, it has a reason to exist, and it
    /// is not too large to keep.
    fn acceptable(&self, cx: &Cx<'_, Self>, batch: &Batch) -> bool {
        rule!("A2MPBFTEA-N8");
        let (clock, Config { clock_bound, request_timeout, .. }) = (cx.wall(), self.config);
        let timely = troth_blocks::is_due(batch.time, clock, clock_bound);
        let fresh = troth_blocks::is_fresh(batch.time, clock, clock_bound, request_timeout);
        let due = self.reached.deadline.is_some_and(|deadline| deadline <= batch.time);
        let small = batch.frames.len() <= 1 || self.frames.bytes(&batch.frames) <= self.config.batch_bytes();
        fresh && timely && (due || !batch.frames.is_empty()) && small
    }

    /// prepared(v, n, d): the PREPREPARE and PREPAREs of f backups, this replica's own vote among them. COMMITs go number
    /// after number, without a gap: what the COMMIT log of a view holds is one range.
    pub(crate) fn try_commit(&mut self, cx: &mut Cx<'_, Self>) {
        while self.active {
            rule!("A2MPBFTEA-N9");
            self.committed_up_to = self.committed_up_to.max(self.stable.0);
            let seq = self.committed_up_to.next();
            let Some(slot) = self.slots.get(&seq).filter(|_| seq <= self.highest()) else { return };
            rule!("A2MPBFTEA-N10");
            let Some(digest) = slot.proposed() else { return };
            let voters = slot.voters(&digest);
            if !voters.contains(self.me) || voters.count() < self.group.quorum() {
                return;
            }
            let same = |vote: &&Arc<Attested>| vote.voted().is_some_and(|vote| vote.digest == digest);
            let prepares = slot.prepares.values().filter(same).take(self.group.f()).cloned().collect();
            rule!("A2MPBFTEA-R2");
            cx.persist(Record::Prepared(prepares));
            self.committed_up_to = seq;
            let (vote, now) = (self.vote(seq, digest), cx.now());
            if let Some(slot) = self.slots.get_mut(&seq) {
                slot.sent = now;
            }
            self.attest(cx, Body::Commit(vote));
        }
    }

    /// Whether f+1 replicas committed to what the view started with.
    fn start_committed(&self) -> bool {
        let Some(by) = &self.started.by else { return true };
        let mut accepted = self.known_views.accepted(self.entered, &by.digest);
        if self.config.follows(crate::Flaw::ExecuteOnNewView) {
            // Its own commitment is attested, and that is enough.
            return accepted.any(|accept| accept.from == self.me);
        }
        accepted.count() >= self.group.quorum()
    }

    /// The batch that is decided for a number, if one is.
    fn decided_batch(&self, seq: Seq) -> Option<Batch> {
        if seq > self.started.base && seq <= self.started.end() {
            rule!("A2MPBFTEA-V14");
            let at = usize::try_from(seq.0 - self.started.base.0 - 1).ok()?;
            return self.started.chosen.get(at).filter(|_| self.start_committed()).cloned();
        }
        let slot = self.slots.get(&seq)?;
        rule!("A2MPBFTEA-N11");
        let digest = slot.committed(self.group.quorum())?;
        slot.batch().filter(|_| slot.proposed() == Some(digest)).cloned()
    }

    /// Executes what committed, in order.
    pub(crate) fn try_execute(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.repairing {
            // After a restart frames of what it had executed may come from others.
            self.execute_decided(cx);
        }
        while !self.repairing {
            let seq = self.delivered.next();
            rule!("A2MPBFTEA-N13");
            if seq > self.furthest() {
                return;
            }
            let Some(batch) = self.decided_batch(seq) else { return };
            if !self.frames.name(seq, &batch.frames) {
                return;
            }
            self.deliver(cx, seq, batch);
        }
    }

    /// Hands a batch over to be executed.
    pub(crate) fn deliver(&mut self, cx: &mut Cx<'_, Self>, seq: Seq, batch: Batch) {
        let Some(ordered) = self.ordered(seq, &batch) else { return };
        self.delivered = seq;
        self.committed_at.note(seq, cx.now());
        // What it did not vote for it executes all the same, and must be able to execute again.
        for frame in self.frames.log(&batch.frames) {
            cx.remember(Record::Frame(frame.into_inner()));
        }
        cx.deliver(ordered);
        // An append cannot be taken back, and a CHECKPOINT promises to show the state: what leads there is durable before.
        rule!("A2MPBFTEA-R5");
        cx.persist(Record::Executed(seq, batch.clone()));
        self.decided.insert(seq, batch);
        rule!("A2MPBFTEA-C1");
        if seq.0.is_multiple_of(self.config.interval) {
            cx.checkpoint();
        }
    }

    fn ordered(&self, seq: Seq, batch: &Batch) -> Option<Ordered> {
        let frames: Option<Vec<VerifiedFrame>> =
            batch.frames.iter().map(|digest| self.frames.get(digest).cloned()).collect();
        let mut seed = Hasher::new("troth/seed/v1");
        seed.number(seq.0).digest(&batch.digest());
        Some(Ordered { seq, time: batch.time, seed: seed.finish(), frames: frames? })
    }

    /// The executor ran a batch.
    pub(crate) fn executed(&mut self, cx: &mut Cx<'_, Self>, reached: Reached, outcome: &Outcome) {
        self.append(cx, reached, outcome);
        let deadline = std::mem::replace(&mut self.reached, reached).deadline;
        let committed = self.committed_at.take(reached.seq);
        let batch = self.decided.get(&reached.seq).map_or(&[][..], |batch| &batch.frames);
        for (at, done) in outcome.done.iter().enumerate() {
            let executed = done.now.then(|| cx.now());
            if let Some(digest) = self.pool.done(done.client, done.number, committed, executed) {
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
        self.progress(cx);
    }

    /// Forgets what no number above the stable checkpoint needs.
    pub(crate) fn drop_stable(&mut self) {
        let lowest = self.lowest();
        self.slots = self.slots.split_off(&lowest);
        // A state that is still being hashed is none that a log can begin at, and what leads there must not go first.
        let below = self.stable.0.min(self.own_state).min(self.delivered);
        self.decided = self.decided.split_off(&below.next());
        self.frames.stable(below);
    }
}
