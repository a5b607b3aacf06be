//! PBFT §4.2, "Normal-case operation": PRE-PREPARE, PREPARE, COMMIT, execution.

use crate::config::{Config, Flaw};
use crate::message::{Entry, Phase, PrePrepare, Record, Vote};
use crate::state::{Pbft, Voted, first};
use std::collections::BTreeMap;
use troth_blocks::Admitted;
use troth_core::{Cx, Done, Note, Ordered, Reached, VerifiedFrame, rule};
use troth_types::{Batch, ClientId, Configuration, Digest, Hasher, ReplicaId, Seq, View};

/// Digests that Q keeps for one number. Who changes views without end could add one with each.
pub const MOST_PRE_PREPARED: usize = 16;

impl Pbft {
    /// A frame that this replica verified: it is pending from now on until its (client, number) is executed, whatever
    /// its digest.
    pub(crate) fn admit(&mut self, cx: &mut Cx<'_, Self>, frame: VerifiedFrame) {
        rule!("PBFT-N1");
        let digest = frame.digest();
        let wanted = self.frames.wants(&digest, self.wants_up_to());
        match self.admit_to_pool(cx, &frame) {
            None if wanted => self.frames.insert(frame, false),
            None => cx.ignore(self.me, "a frame without signature of a client that made wrong tags"),
            Some(admitted) => self.keep_admitted(cx, frame, wanted, admitted),
        }
        if wanted {
            self.frames_came(&[digest]);
        }
    }

    /// Frames that are executed and whose places are to be proven anew (A2M-PBFT-E, H3): they are pending, too, until they are
    /// executed again or a newer request of their client takes their place.
    pub fn order_again(&mut self, cx: &mut Cx<'_, Self>, frames: Vec<VerifiedFrame>) {
        for frame in frames {
            let (client, number) = (frame.client(), frame.number());
            self.admit(cx, frame);
            self.pool.is_again(client, number);
        }
        self.progress(cx);
    }

    /// Whether this (client, number) is pending.
    #[must_use]
    pub fn is_pending(&self, client: ClientId, number: u64) -> bool {
        self.pool.has(client, number)
    }

    /// Whether it is executed and pending, to be ordered again.
    #[must_use]
    pub fn waits_again(&self, client: ClientId, number: u64) -> bool {
        self.pool.waits_again(client, number)
    }

    /// Has a frame wait for its execution; `None` where it must not wait here.
    fn admit_to_pool(&mut self, cx: &Cx<'_, Self>, frame: &VerifiedFrame) -> Option<Admitted> {
        rule!("PBFT-M1");
        if let Some((order, older)) = self.pool.give_way(frame.client(), frame.number()) {
            self.gave_way |= self.timed == Some(order);
            self.frames.settle(&older);
        }
        let (client, number, digest, bytes) = (frame.client(), frame.number(), frame.digest(), frame.size());
        if !frame.is_signed() {
            let may = self.may_wait(frame);
            return may.then(|| self.pool.admit_unsigned(client, number, digest, bytes, cx.now()));
        }
        if let Some(unsigned) = self.pool.replace_unsigned(client, number, digest, bytes, cx.now()) {
            self.frames.settle(&unsigned);
            return Some(Admitted::New);
        }
        if let Some(older) = self.pool.give_way_to_signed(client, number) {
            self.frames.settle(&older);
        }
        Some(self.pool.admit(client, number, digest, bytes, cx.now()))
    }

    fn keep_admitted(
        &mut self,
        cx: &mut Cx<'_, Self>,
        frame: VerifiedFrame,
        wanted: bool,
        admitted: Admitted,
    ) {
        match admitted {
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
    }

    /// What waits of removed clients would be shown to primaries that take nothing of theirs any more. What a batch names
    /// of it stays, to complete that batch.
    pub(crate) fn configured(&mut self, configuration: &Configuration) {
        rule!("PBFT-N10");
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
        rule!("PBFT-N2");
        loop {
            let last = self.proposed.max(self.started.end).max(self.delivered).max(self.stable.0);
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
            let frames = self.next_frames(most, bytes);
            let idle = under_way == 0 && self.reached.seq == self.delivered;
            let due = self.deadline_due(cx) || seq <= self.filled;
            if frames.is_empty() && !(due && idle) {
                return;
            }
            self.frames.name(seq, &frames);
            let batch = Batch { time: cx.wall(), frames };
            self.proposed = seq;
            self.pre_prepare(cx, seq, &batch);
            self.tell_all(cx, Phase::PrePrepare(PrePrepare { view: self.view, seq, batch }));
        }
    }

    /// Up to this number batches without frames have a reason to exist: this replica proposes them as primary where nothing
    /// waits, and takes them of a primary, so that what comes of them need not wait for clients. Before the first event, which
    /// tells a replica what it promised, it promises nothing.
    pub fn fill_to(&mut self, cx: &mut Cx<'_, Self>, seq: Seq) {
        self.filled = seq;
        if !self.begun {
            return;
        }
        // What was proposed before this replica knew has a reason now.
        self.touch_all();
        self.progress(cx);
    }

    /// Whether the application's deadline has come on this replica's clock.
    pub(crate) fn deadline_due(&self, cx: &Cx<'_, Self>) -> bool {
        self.reached.deadline.is_some_and(|deadline| deadline <= cx.wall() && deadline > self.reached.time)
    }

    /// Promises a batch at a number in the present view: it is in Q from now on, durably before anybody hears of it.
    fn pre_prepare(&mut self, cx: &mut Cx<'_, Self>, seq: Seq, batch: &Batch) {
        rule!("PBFT-R1");
        let digest = batch.digest();
        for frame in self.frames.log(&batch.frames) {
            cx.persist(Record::Frame(frame.into_inner()));
        }
        cx.persist(Record::PrePrepared(self.view, seq, batch.clone()));
        self.enter_pre_prepared(self.view, seq, digest);
        self.batches.insert(digest, batch.clone());
    }

    /// Q takes up a batch. Where it has as many for one number as it may, the one of the lowest view goes: Q is what
    /// lets others believe that a batch prepared, so that without an entry a view change may need one more, and
    /// nothing else.
    pub(crate) fn enter_pre_prepared(&mut self, view: View, seq: Seq, digest: Digest) {
        rule!("PBFT-V3");
        let mine = self.prepared.get(&seq).map(|entry| entry.digest);
        let at = self.pre_prepared.entry(seq).or_default();
        at.insert(digest, view);
        if at.len() > MOST_PRE_PREPARED {
            let others = at.iter().filter(|(other, _)| **other != digest && Some(**other) != mine);
            let oldest = others.min_by_key(|(_, view)| **view).map(|(other, _)| *other);
            oldest.map(|oldest| at.remove(&oldest));
        }
    }

    /// PRE-PREPARE ⟨v, n, batch⟩. The first for a number counts.
    pub(crate) fn on_pre_prepare(&mut self, cx: &mut Cx<'_, Self>, from: ReplicaId, proposal: PrePrepare) {
        rule!("PBFT-N3");
        if proposal.view != self.view || from != self.primary() {
            return cx.ignore(from, "a PRE-PREPARE of another view or by a backup");
        }
        if proposal.seq <= self.started.end {
            return cx.ignore(from, "a PRE-PREPARE for what the view started with");
        }
        if proposal.batch.frames.len() > self.config.limits.batch_frames {
            return cx.suspect(from, "a batch with more frames than a batch may have");
        }
        let digest = proposal.batch.digest();
        let Some(slot) = self.slot(proposal.seq) else {
            return cx.ignore(from, "a PRE-PREPARE outside of the window");
        };
        match &slot.proposal {
            Some((known, _)) if *known == digest => {}
            Some(_) => {
                cx.suspect(from, "two PRE-PREPAREs for one number");
                self.contradicted(cx, from, "two PRE-PREPAREs for one number");
            }
            None => {
                self.useful += 1;
                self.note_shown_by_primary(proposal.seq, &digest);
                if proposal.seq <= self.named_up_to() && !self.has_lost(proposal.seq, &digest) {
                    self.frames.name(proposal.seq, &proposal.batch.frames);
                }
                self.note_named(cx, &proposal.batch);
                self.propose(proposal.seq, digest, proposal.batch);
            }
        }
    }

    /// What the primary proposed for a number, and its vote for it.
    pub(crate) fn propose(&mut self, seq: Seq, digest: Digest, batch: Batch) {
        let (primary, mine) = (self.primary(), self.is_primary());
        if let Some(slot) = self.slot(seq) {
            slot.proposal = Some((digest, batch));
            slot.prepares.insert(primary, digest);
            // Its own came back: it was pre-prepared when it was sent.
            slot.pre_prepared |= mine;
        }
        self.note_votes(seq);
    }

    /// PREPARE ⟨v, n, d⟩ of a backup.
    pub(crate) fn on_prepare(&mut self, cx: &mut Cx<'_, Self>, from: ReplicaId, vote: Vote) {
        rule!("PBFT-N4");
        if vote.view != self.view || from == self.primary() {
            return cx.ignore(from, "a PREPARE of another view or by the primary");
        }
        if let Some(slot) = self.slot(vote.seq) {
            let voted = first(&mut slot.prepares, from, vote.digest);
            self.judge_vote(cx, from, voted, vote, "two PREPAREs for one number");
            self.adopt_named(cx, vote.seq);
        }
        self.note_votes(vote.seq);
    }

    /// COMMIT ⟨v, n, d⟩.
    pub(crate) fn on_commit(&mut self, cx: &mut Cx<'_, Self>, from: ReplicaId, vote: Vote) {
        rule!("PBFT-N5");
        if vote.view != self.view {
            return cx.ignore(from, "a COMMIT of another view");
        }
        if let Some(slot) = self.slot(vote.seq) {
            let voted = first(&mut slot.commits, from, vote.digest);
            self.judge_vote(cx, from, voted, vote, "two COMMITs for one number");
            self.time_commit(cx, vote.seq, from, vote.digest);
            self.ask_helper(cx, vote.seq, from, vote.digest);
        }
    }

    /// A vote is the first of its sender for a number, or says the same again, or contradicts it.
    fn judge_vote(
        &mut self,
        cx: &mut Cx<'_, Self>,
        from: ReplicaId,
        voted: Voted,
        vote: Vote,
        what: &'static str,
    ) {
        match voted {
            Voted::First => {
                self.useful += 1;
                // A primary that left this replica out must not make it wait for the next STATUS each time.
                let weak = self.group.weak();
                let slot = self.slots.get(&vote.seq).filter(|_| vote.seq > self.delivered);
                self.named |= slot.is_some_and(|slot| slot.named_elsewhere(weak) == Some(vote.digest));
            }
            Voted::Again => {}
            Voted::Otherwise => self.contradicted(cx, from, what),
        }
    }

    /// Votes where a vote has become due: PREPARE for what was proposed, COMMIT for what prepared.
    pub(crate) fn try_vote(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.active {
            return;
        }
        for seq in std::mem::take(&mut self.touched) {
            // What is stable needs no votes, and P and Q hold nothing of it.
            let Some(slot) = self.slots.get(&seq).filter(|_| seq > self.stable.0) else { continue };
            let Some((digest, batch)) = slot.proposal.clone() else { continue };
            if !slot.pre_prepared && seq <= self.highest() {
                self.try_prepare(cx, seq, digest, &batch);
            }
            self.try_commit(cx, seq, digest);
        }
    }

    fn try_prepare(&mut self, cx: &mut Cx<'_, Self>, seq: Seq, digest: Digest, batch: &Batch) {
        let vouched = self.slots[&seq].voters(&digest).count() > self.group.f();
        if vouched || seq <= self.started.end {
            self.vouch(batch);
        }
        rule!("PBFT-N6");
        if self.has_lost(seq, &digest) {
            return;
        }
        // What is far ahead waits until it is near where its frames are not here (R11), unless a view starts with it.
        let near = seq <= self.named_up_to() || self.frames.complete(&batch.frames);
        if !near || !self.frames.name(seq, &batch.frames) {
            return;
        }
        if seq > self.started.end && !vouched && !self.acceptable(cx, seq, batch) {
            return;
        }
        self.pre_prepare(cx, seq, batch);
        let (vote, primary, now) = (self.vote(seq, digest), self.is_primary(), cx.now());
        if let Some(slot) = self.slots.get_mut(&seq) {
            (slot.pre_prepared, slot.sent) = (true, now);
        }
        if !primary {
            self.tell_all(cx, Phase::Prepare(vote));
        }
    }

    /// The local judgement of a proposal: its time is one that this replica's clock bears, it has a reason to exist, and it
    /// is not too large to keep.
    fn acceptable(&self, cx: &Cx<'_, Self>, seq: Seq, batch: &Batch) -> bool {
        rule!("PBFT-N7");
        let (clock, Config { clock_bound, request_timeout, .. }) = (cx.wall(), self.config);
        let timely = troth_blocks::is_due(batch.time, clock, clock_bound);
        // One that fills up holds nobody's sign of life, and nobody may ask for another in its place.
        let fills = batch.frames.is_empty() && seq <= self.filled;
        let fresh = fills || troth_blocks::is_fresh(batch.time, clock, clock_bound, request_timeout);
        let due = self.reached.deadline.is_some_and(|deadline| deadline <= batch.time);
        let small = batch.frames.len() <= 1 || self.frames.bytes(&batch.frames) <= self.config.batch_bytes();
        let has_a_reason = due || seq <= self.filled || !batch.frames.is_empty();
        fresh && timely && has_a_reason && small
    }

    /// prepared(v, n, d): the proposal and PREPAREs of 2f backups, this replica's own vote among them.
    fn try_commit(&mut self, cx: &mut Cx<'_, Self>, seq: Seq, digest: Digest) {
        rule!("PBFT-N8");
        let (quorum, me, view, now) = (self.group.quorum(), self.me, self.view, cx.now());
        let Some(slot) = self.slots.get_mut(&seq) else { return };
        let voters = slot.voters(&digest);
        if slot.prepared || !slot.pre_prepared || !voters.contains(me) || voters.count() < quorum {
            return;
        }
        (slot.prepared, slot.sent) = (true, now);
        let entry = Entry { seq, digest, view };
        self.prepared.insert(seq, entry);
        rule!("PBFT-R2");
        cx.persist(Record::Prepared(entry));
        self.pass_on(cx, seq, &digest);
        self.tell_all(cx, Phase::Commit(self.vote(seq, digest)));
        self.time_agreement(cx, seq, digest);
    }

    /// Executes what committed, in order.
    pub(crate) fn try_execute(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.repairing {
            // After a restart frames of what it had executed may come from others.
            self.execute_decided(cx);
        }
        while !self.repairing {
            let seq = self.delivered.next();
            let Some(slot) = self.slots.get(&seq) else { return };
            rule!("PBFT-N9");
            let Some(digest) = slot.committed(self.group.quorum()) else { return };
            if self.tentative.get(&seq).is_some_and(|tentative| tentative.digest == digest) {
                self.confirm(cx, seq);
                continue;
            }
            let proposed = slot.proposal.as_ref().filter(|(known, _)| *known == digest);
            let batch = proposed.map(|(_, batch)| batch.clone()).or_else(|| self.batch(&digest));
            let Some(batch) = batch else { return };
            self.vouch(&batch);
            if !self.frames.name(seq, &batch.frames) {
                return;
            }
            self.deliver(cx, seq, batch);
        }
    }

    /// Hands a batch over to be executed.
    pub(crate) fn deliver(&mut self, cx: &mut Cx<'_, Self>, seq: Seq, batch: Batch) {
        let Some(ordered) = self.ordered(seq, &batch) else { return };
        // Where another batch stood there: more than f replicas are faulty.
        self.undo(cx);
        self.delivered = seq;
        cx.deliver(ordered);
        self.decide(cx, seq, batch);
    }

    /// A batch has its final place, and its execution was asked for.
    pub(crate) fn decide(&mut self, cx: &mut Cx<'_, Self>, seq: Seq, batch: Batch) {
        self.committed_at.note(seq, cx.now());
        // What it did not vote for it executes all the same, and must be able to execute again.
        for frame in self.frames.log(&batch.frames) {
            cx.remember(Record::Frame(frame.into_inner()));
        }
        // A CHECKPOINT promises to show the state: what leads there is durable before it leaves.
        rule!("PBFT-R10");
        let executed = Record::Executed(seq, batch.clone());
        if seq.0.is_multiple_of(self.config.interval) {
            cx.persist(executed)
        } else {
            cx.remember(executed)
        }
        self.forget_proposal(seq, &batch.digest());
        self.batches.insert(batch.digest(), batch.clone());
        self.decided.insert(seq, batch);
        // The next number is near now.
        self.touched.insert(self.named_up_to());
        rule!("PBFT-C1");
        if seq.0.is_multiple_of(self.config.interval) {
            cx.checkpoint();
        }
    }

    /// Whether another batch was executed at a number.
    pub(crate) fn has_lost(&self, seq: Seq, digest: &Digest) -> bool {
        // The printed protocol votes there all the same.
        !self.config.follows(Flaw::NullRule)
            && self.decided.get(&seq).is_some_and(|executed| executed.digest() != *digest)
    }

    pub(crate) fn ordered(&self, seq: Seq, batch: &Batch) -> Option<Ordered> {
        let frames: Option<Vec<VerifiedFrame>> =
            batch.frames.iter().map(|digest| self.frames.get(digest).cloned()).collect();
        let mut seed = Hasher::new("troth/seed/v1");
        seed.number(seq.0).digest(&batch.digest());
        Some(Ordered { seq, time: batch.time, seed: seed.finish(), frames: frames? })
    }

    /// A batch was executed, and its place is final: its requests are done.
    pub(crate) fn settle(&mut self, cx: &mut Cx<'_, Self>, reached: Reached, done: &[Done]) {
        let deadline = std::mem::replace(&mut self.reached, reached).deadline;
        let committed = self.committed_at.take(reached.seq);
        self.count_signed(reached.seq, done);
        let batch = self.decided.get(&reached.seq).map_or(&[][..], |batch| &batch.frames);
        for (at, done) in done.iter().enumerate() {
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
    }

    /// Forgets what no number above the stable checkpoint needs.
    pub(crate) fn drop_stable(&mut self) {
        let stable = self.stable.0;
        self.slots = self.slots.split_off(&self.lowest());
        self.prepared = self.prepared.split_off(&stable.next());
        self.pre_prepared = self.pre_prepared.split_off(&stable.next());
        // A state that is still being hashed is none that a log can begin at, and what leads there must not go first.
        let below = stable.min(self.own_state).min(self.delivered);
        self.decided = self.decided.split_off(&below.next());
        self.frames.stable(below);
        self.drop_doubtful();
        // A log that is executed again holds more than a window: to look at all of it for each of its checkpoints would
        // take most of a start.
        let again = u64::try_from(self.decided.len()).is_ok_and(|decided| decided > self.config.window);
        if again && self.batches.len() <= 2 * self.batches_kept {
            return;
        }
        let mut named: BTreeMap<Digest, Batch> = BTreeMap::new();
        let pre_prepared = self.pre_prepared.values().flat_map(|at| at.keys().copied());
        let in_slots =
            self.slots.values().flat_map(|slot| slot.commits.values().chain(slot.prepares.values()));
        let decided = self.decided.values().map(Batch::digest);
        // A view may start from an older checkpoint than this one: of those who left before it was stable.
        let shown = self.present_changes().filter_map(|message| message.view_change());
        let shown: Vec<Digest> =
            shown.flat_map(|change| change.prepared.iter().map(|entry| entry.digest)).collect();
        for digest in pre_prepared.chain(in_slots.copied()).chain(decided).chain(shown) {
            if let Some(batch) = self.batches.remove(&digest) {
                named.insert(digest, batch);
            }
        }
        self.batches_kept = named.len();
        self.batches = named;
        // A view without faults never ends, and a helper may pass something on for each of its numbers.
        let batches = &self.batches;
        self.passed.retain(|digest| batches.contains_key(digest));
    }
}
