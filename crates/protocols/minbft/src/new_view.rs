//! MinBFT §4, view change: NEW-VIEW, and the commitment to it that the paper's text leaves out (F-M1).

use crate::known_views::rests_on;
use crate::message::{AcceptNewView, Body, Certified, NewView, Record};
use crate::state::{MinBft, Phase, Started, Timer, Verdict};
use crate::view_change::Judgement;
use std::collections::BTreeSet;
use std::sync::Arc;
use troth_blocks::Voters;
use troth_core::{Cx, Note, rule};
use troth_types::{Digest, Seq};

impl MinBft {
    /// NEW-VIEW ⟨v', V, S⟩_UI(p').
    pub(crate) fn on_new_view(
        &mut self,
        cx: &mut Cx<'_, Self>,
        message: &Arc<Certified>,
        new_view: &NewView,
    ) -> Verdict {
        if message.from != self.group.primary(new_view.view) {
            return Verdict::Condemn("a NEW-VIEW by a backup");
        }
        if new_view.view < self.view {
            // Its sender's log refers to it from now on, and this replica's own VIEW-CHANGEs, too, if it is
            // its own.
            return match self.judge_start(message, new_view) {
                Judgement::Valid { rests_on } => {
                    self.known_views.hold(new_view.view, message.clone(), rests_on);
                    self.candidates.reconsider = true;
                    self.remember_view(cx, new_view.view);
                    Verdict::Done
                }
                Judgement::Needs(_) | Judgement::Open => Verdict::Done,
                Judgement::Invalid(why) => Verdict::Condemn(why),
            };
        }
        if new_view.view == self.view && self.active() {
            // A replica that restarted in this view meets its NEW-VIEW again.
            if message.digest == self.started.digest {
                self.follow_start(message.from);
            }
            return Verdict::Done;
        }
        if self.known_views.get(new_view.view).is_none_or(|known| known.digest != message.digest) {
            match self.judge_start(message, new_view) {
                Judgement::Valid { rests_on } => {
                    self.known_views.hold(new_view.view, message.clone(), rests_on);
                    self.candidates.reconsider = true;
                    self.remember_view(cx, new_view.view);
                }
                Judgement::Needs(view) => {
                    // Either the view it rests on or f+1 commitments to this one will do.
                    self.known_views.want(new_view.view);
                    self.known_views.offer(message);
                    self.known_views.want(view);
                    return Verdict::Wait;
                }
                Judgement::Open => {
                    self.known_views.want(new_view.view);
                    self.known_views.offer(message);
                    return Verdict::Wait;
                }
                Judgement::Invalid(why) => return Verdict::Condemn(why),
            }
        }
        // The VIEW-CHANGEs inside justify that this replica leaves its view, too.
        for change in &new_view.changes {
            if let Some(inner) = change.view_change() {
                self.learn_from(cx, change, inner);
            }
        }
        if new_view.view < self.view {
            return Verdict::Done;
        }
        // Its own NEW-VIEW is what the primary waits for to come back.
        let moved = self.due_view_change.is_none() && (self.is_primary() || self.caught_up_with_itself());
        if new_view.view > self.view || !moved {
            return Verdict::Wait;
        }
        if !self.can_stand_for(cx, new_view) {
            return Verdict::Wait;
        }
        if !self.may_enter(cx, new_view) {
            return Verdict::Wait;
        }
        self.enter_view(cx, message, new_view);
        self.follow_start(message.from);
        Verdict::Done
    }

    /// Judges a NEW-VIEW, but not the one that this replica's own component certified: it followed when it was proposed, and its
    /// log refers to it from then on, whatever became known meanwhile.
    fn judge_start(&self, message: &Certified, new_view: &NewView) -> Judgement {
        rule!("MINBFT-V13");
        if message.from == self.me && self.is_present(message) {
            let rests_on = rests_on(&self.group, &self.configuration, &self.config, message);
            return Judgement::Valid { rests_on };
        }
        self.judge_new_view(message, new_view)
    }

    /// Begins the view that this replica moved to, where everything for it is here.
    pub(crate) fn try_begin_view(&mut self, cx: &mut Cx<'_, Self>) {
        self.try_new_view(cx);
        self.try_enter_known(cx);
        self.fetch_for_next_view(cx);
    }

    /// Enters the view that this replica moved to by its NEW-VIEW as evidence: where it passed over a gap in
    /// the primary's messages, the NEW-VIEW itself was among what others have dropped.
    pub(crate) fn try_enter_known(&mut self, cx: &mut Cx<'_, Self>) {
        if self.active()
            || self.is_primary()
            || self.due_view_change.is_some()
            || !self.caught_up_with_itself()
        {
            return;
        }
        if !self.passed_over_start() {
            return;
        }
        let Some(message) = self.known_views.get(self.view).cloned() else {
            return self.known_views.want(self.view);
        };
        let Some(new_view) = message.new_view() else { return };
        if !self.can_stand_for(cx, new_view) {
            return;
        }
        rule!("MINBFT-T4");
        for change in &new_view.changes {
            if let Some(inner) = change.view_change() {
                self.learn_from(cx, change, inner);
            }
        }
        if new_view.view < self.view {
            return;
        }
        if !self.may_enter(cx, new_view) {
            return;
        }
        self.enter_view(cx, &message, new_view);
        // What a replaced component accepted counts no more (E2), nor what one did of which nobody knows how it began (E10):
        // its acceptance comes again in its turn.
        let counts = |by: &Certified| self.is_present(by) && self.has_judged_the_first_of(by.from);
        let shown = self.known_views.shown(self.view);
        let accepted: Vec<_> = shown.iter().filter(|by| counts(by)).map(|by| by.from).collect();
        for replica in accepted {
            self.started.accepted.insert(replica);
        }
    }

    /// Whether the primary's NEW-VIEW of this view lies behind what was processed of the primary.
    fn passed_over_start(&self) -> bool {
        let processed = self.peer(self.primary()).gate.processed();
        processed.view() == self.view.0 && processed.count() >= 1
    }

    /// Whether this replica holds what the NEW-VIEW carries over, and its times are not ahead of the
    /// clock: it certifies nothing that it has not checked itself.
    fn can_stand_for(&mut self, cx: &Cx<'_, Self>, new_view: &NewView) -> bool {
        rule!("MINBFT-V14");
        let mut good = true;
        let above = self.delivered;
        for (seq, batch) in new_view.carried().filter(|(seq, _)| *seq > above) {
            good &= self.can_stand_for_batch(cx, seq, batch);
        }
        good
    }

    /// Whether what a view starts from is known, allows those whose VIEW-CHANGEs it rests on, and lets this replica work there.
    fn may_enter(&mut self, cx: &mut Cx<'_, Self>, new_view: &NewView) -> bool {
        let base = new_view.base.0;
        self.adopt_base(cx, base)
            && self.base_allows(base, &new_view.changes)
            && self.works_from(self.me, base)
    }

    /// The base is stable: its proof stands in one of the VIEW-CHANGEs, or in one of those that the
    /// highest earlier view rests on. Says whether it is known to be: where a view is known by the commitments to it
    /// alone, what it rests on may not be here, and comes with the next STATUS.
    pub(crate) fn adopt_base(&mut self, cx: &mut Cx<'_, Self>, base: Seq) -> bool {
        if self.stable.0 >= base {
            return true;
        }
        let earlier: Vec<Arc<Certified>> = self.known_views.all().cloned().collect();
        let changes =
            earlier.iter().filter_map(|message| message.new_view()).flat_map(|earlier| &earlier.changes);
        for change in changes.filter_map(|change| change.view_change()) {
            if change.stable.target().0 == base {
                let proof = Arc::new(change.stable.clone());
                self.adopt_stable(cx, &proof);
            }
        }
        rule!("MINBFT-V14");
        self.stable.0 >= base
    }

    /// Enters the view: a backup commits to the NEW-VIEW; nothing that it carries over is executed
    /// before f+1 replicas have done so.
    pub(crate) fn enter_view(&mut self, cx: &mut Cx<'_, Self>, message: &Arc<Certified>, new_view: &NewView) {
        rule!("MINBFT-V15");
        self.phase = Phase::Active;
        self.begin(message.digest, message.from, new_view);
        if !self.is_present(message) {
            self.started.accepted.remove(message.from);
        }
        cx.persist(Record::NewView(message.clone()));
        for batch in &new_view.chosen {
            self.log_frames(cx, &batch.frames);
        }
        // An own checkpoint above the start, from a state transfer, stands for the numbers below it.
        self.committed = self.started.end().max(self.own_checkpoint.seq);
        if !self.is_primary() {
            let accept = AcceptNewView { view: self.view, new_view: message.digest };
            self.certify(cx, Body::AcceptNewView(accept));
        }
        let carried: BTreeSet<Digest> =
            new_view.chosen.iter().flat_map(|batch| batch.frames.iter().copied()).collect();
        self.pool.restart(cx.now(), |digest| carried.contains(digest));
        self.begin_pace(cx);
        self.timed = None;
        self.known_views.want_nothing();
        cx.cancel_timer(Timer::NewView);
        // The new primary has as long for a due deadline as the old one had.
        self.watch_deadline(cx);
        cx.note(Note::ViewEntered { view: self.view });
        if self.delivered < self.started.base {
            self.fetch_stable_state(cx);
        }
        // A checkpoint right away shrinks what the next view change must show.
        if self.delivered == self.started.end() && self.delivered > self.own_checkpoint.seq {
            cx.checkpoint();
        }
        self.recheck = true;
    }

    pub(crate) fn begin(&mut self, digest: Digest, primary: troth_types::ReplicaId, new_view: &NewView) {
        let accepted: Voters = [primary].into_iter().collect();
        let chosen = new_view.chosen.clone();
        self.started = Started { base: new_view.base.0, chosen, digest, accepted };
    }

    /// The primary's numbers go on behind what the view started with.
    fn follow_start(&mut self, primary: troth_types::ReplicaId) {
        let start = (self.view, self.started.end());
        self.peer_mut(primary).walk.last = Some(start);
    }

    /// COMMIT(NEW-VIEW) ⟨v', H(NEW-VIEW)⟩_UI(i).
    pub(crate) fn on_accept_new_view(
        &mut self,
        cx: &mut Cx<'_, Self>,
        message: &Arc<Certified>,
        accept: &AcceptNewView,
    ) -> Verdict {
        if self.peer(message.from).view > accept.view {
            return Verdict::Condemn("a commitment in a view that its sender left");
        }
        if accept.view > self.view || (accept.view == self.view && !self.active()) {
            return Verdict::Wait;
        }
        let started = (self.started.digest, self.started.end());
        if accept.view < self.view {
            // Where a left view started does not matter any more; its numbers are followed from the next on.
            self.peer_mut(message.from).walk.last = None;
            return Verdict::Done;
        }
        rule!("MINBFT-V16");
        if accept.new_view != started.0 {
            return Verdict::Condemn("a commitment to another NEW-VIEW of the view");
        }
        self.peer_mut(message.from).walk.last = Some((accept.view, started.1));
        self.started.accepted.insert(message.from);
        if self.known_views.accept(message) {
            cx.persist(Record::Accepted(message.clone()));
        }
        Verdict::Done
    }
}
