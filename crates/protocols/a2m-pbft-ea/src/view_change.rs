//! Appendix A: abandoning views, and VIEWCHANGE.

use crate::evidence::{MOST_ABANDONED, evidence, shared_nonce, to_look_up};
use crate::message::{Attested, Body, Record, ViewChange, Wanted};
use crate::place::{COMMIT, PREPARE, end_of};
use crate::state::{A2mPbftEa, Asked, Timer};
use std::sync::Arc;
use troth_core::{Cx, Note, rule};
use troth_trusted::a2m::{Attestation, LogId, Operation, Slot};
use troth_types::{ReplicaId, Seq, View};

impl A2mPbftEa {
    /// Abandons every view before this one, which f+1 replicas want.
    pub(crate) fn leave_view(&mut self, cx: &mut Cx<'_, Self>, to: View, wanted: Vec<Arc<Wanted>>) {
        rule!("A2MPBFTEA-V4");
        self.view = to;
        self.active = false;
        self.wanted_view = self.wanted_view.max(to);
        self.reconsider = true;
        self.waits_for_view = false;
        self.timed = None;
        self.forget_pace(cx);
        // What is still needed is named again by the NEWVIEW; what nobody has must not hide it.
        self.frames.want_nothing();
        for timer in [Timer::NewView, Timer::Forward, Timer::Request] {
            cx.cancel_timer(timer);
        }
        self.back_off.failed();
        rule!("A2MPBFTEA-R3");
        cx.persist(Record::Leaving(wanted.clone()));
        self.certificate = wanted;
        cx.note(Note::ViewChange { to });
        self.abandon(cx);
        self.watch_new_view(cx);
    }

    /// Whether all views before this one may be left at once: others believe no VIEWCHANGE of more.
    pub(crate) fn may_leave_for(&self, to: View) -> bool {
        to.0.saturating_sub(self.entered.0) <= MOST_ABANDONED as u64
    }

    /// VIEWCHANGEs for views that are too far ahead to leave for.
    fn distant_changes(&self) -> impl Iterator<Item = (&ViewChange, ReplicaId)> {
        let changes = self.changes.values().filter_map(|it| it.view_change().map(|change| (change, it.from)));
        changes.filter(|(change, _)| !self.may_leave_for(change.to))
    }

    /// Whether others have passed so many views that it must enter one of theirs before it can leave for the next with them.
    pub(crate) fn is_views_behind(&self) -> bool {
        self.distant_changes().next().is_some()
    }

    /// Asks for the starts of the views that those left who are too far ahead: from there the next one is near. Who has left
    /// a view shows to others its VIEWCHANGE, and how the view started only to who asks.
    pub(crate) fn ask_for_distant_starts(&mut self) {
        let left: Vec<_> = self.distant_changes().map(|(change, from)| (change.left, from)).collect();
        for (view, by) in left {
            rule!("A2MPBFTEA-V20");
            self.known_views.want(view, by);
        }
    }

    /// The last number of the view left whose commitment is shown, or the stable checkpoint where there is none above it.
    fn last_shown(&self) -> Seq {
        let above = self.stable.0.max(self.started.end());
        if self.committed_up_to > above { self.committed_up_to } else { self.stable.0 }
    }

    fn slots_to_show(&self) -> Vec<Slot> {
        to_look_up(&self.config, self.entered, self.view, self.last_shown())
    }

    /// Advances the logs of votes to the end of the views left, and has it shown that nothing else was committed to there.
    /// All own COMMITs were asked for before, so the answer comes after they are back.
    pub(crate) fn abandon(&mut self, cx: &mut Cx<'_, Self>) {
        rule!("A2MPBFTEA-V19");
        if !self.knows_logs || !self.may_leave_for(self.view) {
            return;
        }
        self.asked.retain(|_, asked| !matches!(asked, Asked::Abandon(_)));
        let end = end_of(View(self.view.0 - 1));
        let advance =
            |log| Operation::Advance { log, slot: end, previous: [0; 32], value: [0; 32], nonce: None };
        let logs = [COMMIT, PREPARE].into_iter().filter(|log| self.last_filled(*log) < end);
        let logs: Vec<LogId> = logs.collect();
        let mut operations: Vec<Operation> = logs.iter().copied().map(advance).collect();
        self.filled.extend(logs.into_iter().map(|log| (log, end)));
        let nonce = shared_nonce(&self.certificate);
        let lookups = self.slots_to_show().into_iter();
        operations.extend(lookups.map(|slot| Operation::Lookup { log: COMMIT, slot, nonce }));
        let ticket = self.ticket(Asked::Abandon(self.view));
        cx.trusted(ticket, operations);
    }

    /// The component's answer: what the VIEWCHANGE shows of the views left.
    pub(crate) fn abandoned(&mut self, cx: &mut Cx<'_, Self>, to: View, shown: Vec<Attestation>) {
        if self.active || to != self.view {
            return;
        }
        if !shown.iter().map(|attestation| attestation.claim.slot).eq(self.slots_to_show()) {
            // A checkpoint became stable meanwhile.
            return self.abandon(cx);
        }
        let accepted = self.known_views.accepts(self.entered).find(|message| message.from == self.me);
        let change = ViewChange {
            left: self.entered,
            to,
            stable: (*self.stable_proof).clone(),
            accepted: accepted.filter(|_| self.entered > View(0)).cloned(),
            committed: self.own_commitments(),
            wanted: self.certificate.clone(),
            abandoned: shown,
        };
        self.attest(cx, Body::ViewChange(change));
    }

    /// Whether a VIEWCHANGE shows no more than a correct replica has to show: each attestation in it takes a check.
    pub(crate) fn may_be_whole(&self, change: &ViewChange) -> bool {
        let f = self.group.f();
        change.committed.len() as u64 <= self.config.window
            && change.committed.iter().all(|committed| committed.prepares.len() <= f)
            && change.stable.votes.len() <= self.group.n()
    }

    /// Whether a replica's VIEWCHANGE for this view is a later one than is known.
    pub(crate) fn brings_view_change(&self, from: ReplicaId, to: View) -> bool {
        let known = self.changes.get(&from).and_then(|known| known.view_change());
        to > self.entered && known.is_none_or(|known| known.to < to)
    }

    /// A VIEWCHANGE of somebody: the one to the highest view counts.
    pub(crate) fn on_view_change(&mut self, cx: &mut Cx<'_, Self>, message: &Arc<Attested>) {
        let Some(change) = message.view_change() else { return };
        if !self.brings_view_change(message.from, change.to) {
            return;
        }
        let known = self.changes.get(&message.from).and_then(|known| known.view_change());
        if let Err(why) = evidence(&self.group, &self.config, message) {
            return self.condemn(cx, message.from, why);
        }
        // One from each for each view that this replica is in: who goes on and on is of no more use.
        let news = change.to > self.view && known.is_none_or(|known| known.to <= self.view);
        self.useful += u64::from(news);
        let stable = Arc::new(change.stable.clone());
        self.changes.insert(message.from, message.clone());
        self.reconsider = true;
        self.adopt_stable(cx, &stable);
        if let Some(accepted) = &change.accepted {
            self.known_views.accept(accepted);
        }
        change.wanted.iter().for_each(|wanted| self.on_want(wanted));
        rule!("A2MPBFTEA-V3");
        if change.to > self.view && self.may_leave_for(change.to) {
            self.leave_view(cx, change.to, change.wanted.clone());
        }
        self.watch_new_view(cx);
    }

    /// The VIEWCHANGEs for the present view.
    pub(crate) fn present_changes(&self) -> impl Iterator<Item = &Arc<Attested>> {
        let present =
            |message: &&Arc<Attested>| message.view_change().is_some_and(|change| change.to == self.view);
        self.changes.values().filter(present)
    }
}
