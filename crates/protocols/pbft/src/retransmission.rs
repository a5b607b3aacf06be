//! Status messages (TOCS §5.2): replicas compare notes, and each sends again of its own messages what another lacks.
//! PREPAREs and COMMITs convince nobody at second hand, so nobody else's are.

use crate::message::{Message, Phase, PrePrepare, Status};
use crate::state::{Pbft, Slot, Timer};
use crate::wire::MAX_BATCHES;
use std::collections::BTreeSet;
use std::ops::Bound;
use troth_core::{Cx, To, rule};
use troth_types::{Batch, Digest, ReplicaId, Seq, Time, View};

/// Numbers whose messages are sent again in answer to one status.
const MOST_RESENT: usize = 64;
/// How often one replica is shown the start of the last view while the next does not begin: a message may be lost, and it is
/// large.
const MOST_STARTS: u8 = 4;
/// Missing frames asked for at once.
const MOST_FRAMES: usize = 128;
/// Numbers that a status tells of.
const MOST_TOLD: usize = 256;
/// The part of the interval between two status messages of a replica before which a second one has no answer.
pub(crate) const SELDOM: u64 = 4;
/// An idle replica compares notes only every so many intervals.
const IDLE_FACTOR: u64 = 8;
/// The part of the interval after which the primary is asked for what it named: a frame that was sent when the proposal
/// was has come by then.
pub(crate) const SOON: u64 = 32;

impl Pbft {
    /// Compares notes, and asks for what is missing.
    pub(crate) fn on_status_timer(&mut self, cx: &mut Cx<'_, Self>) {
        self.round += 1;
        self.lateness.note(self.status_due, cx.now());
        if self.busy() || self.round.is_multiple_of(IDLE_FACTOR) {
            cx.send(To::Others, Message::Status(self.status_message()));
        }
        self.complain_again(cx);
        let mut missing = self.frames.missing(MOST_FRAMES, self.round, self.wants_up_to());
        missing.retain(|digest| !self.doubtful.contains_key(digest));
        if !missing.is_empty() {
            rule!("PBFT-R5");
            cx.fetch_frames(To::Others, missing);
        }
        let batches = self.missing_batches();
        if !batches.is_empty() {
            self.ask_for_batches(cx, To::Others, batches);
        }
        // A proposal may have waited for nothing but a clock.
        self.touch_all();
        self.progress(cx);
        self.watch_status(cx);
    }

    /// Compares notes again after a while.
    pub(crate) fn watch_status(&mut self, cx: &mut Cx<'_, Self>) {
        self.status_due = self.after(cx, self.config.status_interval);
        cx.set_timer(Timer::Status, self.status_due);
    }

    /// Whether anything is under way that a lost message could hold up.
    fn busy(&self) -> bool {
        let beyond_stable = !self.slots.is_empty() || self.delivered > self.stable.0;
        let behind = self.delivered < self.stable.0;
        !self.pool.is_empty() || !self.active || self.wishes() || beyond_stable || behind
    }

    pub(crate) fn status_message(&self) -> Status {
        let from = self.delivered.next();
        let last = self.slots.last_key_value().map_or(Seq(0), |(last, _)| *last);
        let told = (from.0..=last.0).take(MOST_TOLD).map(|seq| match self.slots.get(&Seq(seq)) {
            None => 0,
            Some(slot) => {
                u8::from(slot.proposal.is_some()) * Status::PROPOSED
                    + u8::from(slot.prepared) * Status::PREPARED
                    + u8::from(slot.committed(self.group.quorum()).is_some()) * Status::COMMITTED
            }
        });
        let slots = if self.active { told.collect() } else { Vec::new() };
        let changes = self.present_changes().fold(0, |bits, message| bits | 1u128 << message.from.0);
        let executed = self.delivered;
        // Who asks for more votes for it says that it knows the one before.
        let stable = Seq(self.stable.0.0.saturating_sub(u64::from(self.seeks_votes)));
        let wishes = self.wishes();
        Status { view: self.view, active: self.active, stable, executed, slots, changes, wishes }
    }

    /// Sends again what the sender lacks.
    pub(crate) fn on_status(&mut self, cx: &mut Cx<'_, Self>, from: ReplicaId, status: &Status) {
        if from == self.me {
            return;
        }
        self.note_wish(from, status);
        rule!("PBFT-R6");
        if self.was_just_now(cx, self.answered.get(&from)) {
            return cx.ignore(from, "its last status was answered just now");
        }
        self.answered.insert(from, cx.now());
        let to = To::One(from);
        rule!("PBFT-R7");
        if status.stable < self.stable.0 {
            cx.send(to, Message::Stable(self.stable_proof.clone()));
        }
        // Who lacks votes for what is stable may lack this one's, whose certificate may be no better.
        let lacks_votes = self.seeks_votes && status.stable < self.stable.0;
        let from_stable = lacks_votes.then_some(self.stable.0);
        let first = from_stable.unwrap_or(status.stable.max(self.stable.0).next());
        for votes in self.checkpoint_votes.range(first..).map(|(_, votes)| votes) {
            if let Some(mine) = votes.get(&self.me) {
                cx.send(to, Message::Signed(mine.clone()));
            }
        }
        if status.view > self.view {
            return;
        }
        let behind = status.view < self.view;
        if self.active && (behind || !status.active) {
            self.show_start(cx, from);
        } else if !self.active {
            self.resend_change(cx, from, behind || status.changes & 1 << self.me.0 == 0);
            self.show_last_start(cx, from, status);
        }
        if self.active && !behind && status.active {
            self.resend_votes(cx, from, status);
        }
    }

    /// The NEW-VIEW of the present view, to who says that it does not work in it: ever more seldom, for it is large, and who
    /// has it may say so for as long as the view lasts.
    fn show_start(&mut self, cx: &mut Cx<'_, Self>, to: ReplicaId) {
        rule!("PBFT-R7");
        let Some(message) = self.start_to_show().map(|(message, _)| message.clone()) else { return };
        let (view, interval) = (self.view, self.config.status_interval);
        let shown = self.shown_starts.entry(to).or_default();
        shown.retain(|shown| *shown == view);
        if !shown.choose(cx.now(), interval, &[view]).is_empty() {
            cx.send(To::One(to), Message::Signed(message));
        }
    }

    /// A VIEW-CHANGE is sent until it is known to have come: without, a view that fewer than 2f+1 VIEW-CHANGEs reached
    /// would never begin, nor be left (F-P4).
    fn resend_change(&self, cx: &mut Cx<'_, Self>, to: ReplicaId, lacks: bool) {
        rule!("PBFT-V15");
        if lacks
            && !self.config.follows(crate::Flaw::NoResend)
            && let Some(mine) = self.changes.get(&self.me)
        {
            cx.send(To::One(to), Message::Signed(mine.clone()));
        }
    }

    /// The NEW-VIEW of the last view that began, to whoever was away then or names in P what it refutes: no view may begin with
    /// that (V18).
    fn show_last_start(&mut self, cx: &mut Cx<'_, Self>, to: ReplicaId, status: &Status) {
        rule!("PBFT-V18");
        let (view, times) = self.start_shown.get(&to).copied().unwrap_or_default();
        let times = if view == self.view { times } else { 0 };
        let Some((message, start)) = self.start_to_show().filter(|_| times < MOST_STARTS) else { return };
        let change = self.changes.get(&to).and_then(|change| change.view_change());
        let window = self.config.window;
        let names = |change: &crate::message::ViewChange| {
            change.prepared.iter().any(|entry| start.refutes(entry, window))
        };
        let missed = status.view < start.view();
        if !missed && !change.is_some_and(|change| change.to == self.view && names(change)) {
            return;
        }
        cx.send(To::One(to), Message::Signed(message.clone()));
        self.start_shown.insert(to, (self.view, times + 1));
    }

    /// Own messages of the view for numbers that the other has not executed.
    fn resend_votes(&mut self, cx: &mut Cx<'_, Self>, to: ReplicaId, status: &Status) {
        // What was sent less than half an interval ago is probably on its way.
        let settled = Time(cx.now().0.saturating_sub(self.config.status_interval / 2));
        let (view, me, mine, end) = (self.view, self.me, self.is_primary(), self.started.end);
        let open = self.slots.range((Bound::Excluded(status.executed), Bound::Unbounded)).take(MOST_RESENT);
        for (seq, slot) in open.filter(|(_, slot)| slot.sent <= settled) {
            let at = usize::try_from(seq.0 - status.executed.0 - 1).unwrap_or(usize::MAX);
            let has = status.slots.get(at).copied().unwrap_or(0);
            let says = if !mine {
                Says::Prepare
            } else if *seq > end {
                Says::PrePrepare
            } else {
                Says::InNewView
            };
            for phase in own_messages(view, me, says, *seq, slot, has) {
                self.tell_again(cx, to, phase);
            }
        }
    }

    /// Batches that somebody must have, for one correct replica at least named them: what a new view starts with, and
    /// what others vote for where the primary proposed something else here, or nothing.
    pub(crate) fn missing_batches(&self) -> Vec<Digest> {
        let elsewhere = self
            .slots
            .range(self.delivered.next()..)
            .filter_map(|(_, slot)| slot.named_elsewhere(self.group.weak()));
        let wanted: BTreeSet<Digest> = elsewhere.chain(self.lacking.iter().copied()).collect();
        wanted.into_iter().filter(|digest| self.batch(digest).is_none()).take(MAX_BATCHES).collect()
    }

    /// Whether an answer was given so short a time ago that another one is too soon.
    fn was_just_now(&self, cx: &Cx<'_, Self>, answered: Option<&Time>) -> bool {
        answered.is_some_and(|at| cx.now().0 < at.0 + self.config.status_interval / SELDOM)
    }

    /// Shows batches that somebody asks for.
    pub(crate) fn on_fetch_batches(&mut self, cx: &mut Cx<'_, Self>, from: ReplicaId, digests: &[Digest]) {
        rule!("PBFT-R12");
        if self.shown_batches.get(&from).is_some_and(|until| *until > cx.now()) {
            return cx.ignore(from, "it was shown batches just now");
        }
        let mut asked: Vec<&Digest> = digests.iter().take(MAX_BATCHES).collect();
        asked.sort_unstable();
        asked.dedup();
        let found: Vec<Batch> = asked.into_iter().filter_map(|digest| self.batch(digest)).collect();
        if !found.is_empty() && from != self.me {
            let each = self.config.status_interval / (SELDOM * MAX_BATCHES as u64);
            let until = self.after(cx, (each * found.len() as u64).max(1));
            self.shown_batches.insert(from, until);
            if !self.is_primary() {
                self.helped.insert(from, self.after(cx, self.config.status_interval));
            }
            cx.send(To::One(from), Message::Batches(found));
        }
    }

    /// Takes batches that were asked for.
    pub(crate) fn on_batches(&mut self, cx: &mut Cx<'_, Self>, from: ReplicaId, batches: Vec<Batch>) {
        let wanted = self.missing_batches();
        let (mut useful, mut lacked, alone) = (false, false, batches.len() == 1);
        for batch in batches {
            let digest = batch.digest();
            rule!("PBFT-R8");
            if wanted.contains(&digest) {
                (useful, lacked) = (true, true);
                self.batches.insert(digest, batch);
                self.note_shown_by(from);
            } else if let Some(lacking) = alone.then(|| self.take_passed_on(cx, from, &batch)).flatten() {
                (useful, lacked) = (true, lacking);
            } else {
                cx.ignore(from, "a batch that nobody asked for");
            }
        }
        self.useful += u64::from(useful);
        if lacked {
            let open: Vec<Seq> = self.slots.range(self.delivered.next()..).map(|(seq, _)| *seq).collect();
            open.into_iter().for_each(|seq| self.adopt_named(cx, seq));
            self.touch_slots();
            rule!("PBFT-V10");
            let here = self.lacking.iter().all(|digest| self.batch(digest).is_some());
            self.reconsider |= !self.lacking.is_empty() && here;
        }
    }

    /// What the primary proposed here alone, where another batch was executed, nobody needs: this replica voted for none of
    /// it, and who names it again is asked for it again.
    pub(crate) fn forget_proposal(&mut self, seq: Seq, executed: &Digest) {
        rule!("PBFT-R11");
        let proposal = self.slots.get(&seq).filter(|slot| !slot.pre_prepared);
        let Some((digest, batch)) = proposal.and_then(|slot| slot.proposal.as_ref()) else { return };
        if digest != executed {
            self.frames.let_go(seq, &batch.frames);
        }
    }

    /// Asks soon for what was named and is not here.
    pub(crate) fn watch_fetch(&mut self, cx: &mut Cx<'_, Self>) {
        let wants = self.named || !self.lacking.is_empty() || self.frames.lacks_any();
        if wants && !self.fetching {
            self.fetching = true;
            cx.set_timer(Timer::Fetch, self.after(cx, self.config.status_interval / SOON));
        }
    }

    /// Asks the primary for what it named and has not come meanwhile, or everybody for what a new view needs. What does
    /// not come is asked of all with the next status.
    pub(crate) fn on_fetch_timer(&mut self, cx: &mut Cx<'_, Self>) {
        self.fetching = false;
        let asked_before = Time(cx.now().0.saturating_sub(self.config.status_interval));
        let (now, up_to) = (cx.now(), self.wants_up_to());
        let works = self.active && !self.is_primary();
        if works {
            // The primary may have shown them to f others, with whom it goes on.
            let soon = Time(cx.now().0.saturating_sub(self.config.status_interval / SOON));
            let mut kept_back = self.frames.ask_next(MOST_FRAMES, up_to, now, soon, asked_before);
            kept_back.retain(|digest| !self.doubtful.contains_key(digest));
            if !kept_back.is_empty() {
                rule!("PBFT-R5");
                cx.fetch_frames(To::Others, kept_back);
                // One question at a time: a second would take the place of the first.
                return self.ask_for_named(cx);
            }
        }
        let mut missing = self.frames.ask_first(MOST_FRAMES, up_to, now, asked_before);
        missing.retain(|digest| !self.doubtful.contains_key(digest));
        if !missing.is_empty() {
            cx.fetch_frames(if works { To::One(self.primary()) } else { To::Others }, missing);
        }
        self.ask_for_named(cx);
    }

    /// Asks everybody for batches that are missing.
    fn ask_for_named(&mut self, cx: &mut Cx<'_, Self>) {
        let batches = self.missing_batches();
        self.named = !batches.is_empty();
        if !batches.is_empty() {
            self.ask_for_batches(cx, To::Others, batches);
        }
    }
}

/// How this replica said what it votes for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    PrePrepare,
    Prepare,
    /// As the view's primary, whose NEW-VIEW says it.
    InNewView,
}

/// Own messages for a number that the other, who has so much of it, lacks.
fn own_messages(view: View, me: ReplicaId, says: Says, seq: Seq, slot: &Slot, has: u8) -> Vec<Phase> {
    let mut messages = Vec::new();
    let Some((digest, batch)) = slot.proposal.as_ref().filter(|_| slot.pre_prepared) else { return messages };
    let vote = crate::Vote { view, seq, digest: *digest };
    if has & (Status::PREPARED | Status::COMMITTED) == 0 {
        if says == Says::PrePrepare && has & Status::PROPOSED == 0 {
            messages.push(Phase::PrePrepare(PrePrepare { view, seq, batch: batch.clone() }));
        }
        if says == Says::Prepare && slot.prepares.get(&me) == Some(digest) {
            messages.push(Phase::Prepare(vote));
        }
    }
    if slot.prepared && slot.commits.get(&me) == Some(digest) && has & Status::COMMITTED == 0 {
        messages.push(Phase::Commit(vote));
    }
    messages
}
