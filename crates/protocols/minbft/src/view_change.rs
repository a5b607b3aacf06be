//! MinBFT §4, view change: VIEW-CHANGE.

use crate::candidates::Lacking;
use crate::choose::{Choice, choose, start_of, within_window, without_hole};
use crate::epochs::{agreeing, consistent};
use crate::evidence::{Evidence, evidence};
use crate::message::{Body, Certified, LogEntry, NewView, Record, ViewChange};
use crate::place::Place;
use crate::state::{COUNTER, MinBft, Verdict};
use crate::{Flaw, message};
use std::sync::Arc;
use troth_core::{Cx, To, rule};
use troth_types::{Batch, Seq, View, Wire as _};

/// Bytes of a NEW-VIEW beside its VIEW-CHANGEs and batches, and what a link adds, at most.
const BESIDE: usize = 4096;

impl MinBft {
    /// Has the VIEW-CHANGE certified that is due, once every own message has come back: it must list
    /// them all.
    pub(crate) fn try_view_change(&mut self, cx: &mut Cx<'_, Self>) {
        if self.due_view_change.is_none() || !self.caught_up_with_itself() || !self.may_change() {
            return;
        }
        let requests = self.due_view_change.take().expect("looked at just now");
        rule!("MINBFT-V6");
        let log: Vec<LogEntry> =
            self.peer(self.me).log.iter().map(|logged| logged.message.log_entry()).collect();
        let stable = (**self.begins_on()).clone();
        let body = Body::ViewChange(ViewChange { to: self.view, stable, log, requests });
        let new = if self.config.follows(Flaw::AdoptCounters) {
            self.requested.next().expect("a counter of 128 bits is never spent")
        } else {
            Place::of_view_change(self.view)
        };
        cx.certify(COUNTER, self.requested, new, body, To::Others);
        self.requested = new;
    }

    /// VIEW-CHANGE ⟨v', C, O, RVC⟩_UI(i): ends its sender's older views for this receiver.
    pub(crate) fn on_view_change(&mut self, cx: &mut Cx<'_, Self>, message: &Arc<Certified>) -> Verdict {
        if let Err(why) = evidence(&self.group, &self.configuration, &self.config, message) {
            return Verdict::Condemn(why);
        }
        let change = message.view_change().expect("dispatched by kind");
        let peer = self.peer_mut(message.from);
        if change.to <= peer.view {
            return Verdict::Condemn("a VIEW-CHANGE that is not above the last");
        }
        peer.view = change.to;
        self.keep_first(cx, message);
        self.learn_from(cx, message, change);
        Verdict::Done
    }

    /// Takes from a valid VIEW-CHANGE what it proves to anybody: requests, a stable checkpoint, and
    /// itself. It may come inside a NEW-VIEW, ahead of its sender's other messages.
    pub(crate) fn learn_from(
        &mut self,
        cx: &mut Cx<'_, Self>,
        message: &Arc<Certified>,
        change: &ViewChange,
    ) {
        for request in &change.requests {
            self.note_shown_request(request);
        }
        self.follow_requests(cx);
        let stable = Arc::new(change.stable.clone());
        self.adopt_stable(cx, &stable);
        let latest = self.changes.get(&message.from).and_then(|known| known.view_change());
        if latest.is_none_or(|latest| latest.to < change.to) && self.is_present(message) {
            self.changes.insert(message.from, message.clone());
            self.candidates.look_again();
        }
    }

    /// What a VIEW-CHANGE proves, if this replica can stand for it now: it holds and has verified every
    /// frame that the sender's commitments name, their times are not ahead of its clock, and the start of
    /// the sender's highest view is known and valid. Otherwise it asks for what is missing. Without this
    /// rule one faulty log could name a frame that nobody has, and no new view could ever be accepted.
    pub(crate) fn admissible(&mut self, cx: &mut Cx<'_, Self>, message: &Arc<Certified>) -> Option<Evidence> {
        if !self.begins_well(message) {
            return None;
        }
        rule!("MINBFT-V12");
        let evidence = self.evidence_of(message)?;
        if !within_window(&self.config, &evidence) {
            cx.ignore(
                message.from,
                "a VIEW-CHANGE with commitments beyond the window of what it shows stable",
            );
            return None;
        }
        if let Some(view) = evidence.view
            && view > View(0)
            && self.known_views.get(view).is_none()
        {
            self.known_views.want(view);
            return None;
        }
        if let Some(view) = evidence.view {
            let start = start_of(view, |view| self.known_views.get(view)?.new_view())?;
            if !without_hole(&self.config, &evidence, start) {
                cx.ignore(message.from, "a VIEW-CHANGE with a hole in its commitments");
                return None;
            }
        }
        let above = evidence.stable.0.max(self.delivered);
        let mut lacking = Vec::new();
        for ((view, seq), prepare) in &evidence.prepares {
            let batch = prepare.prepare().map(|prepare| &prepare.batch).filter(|_| *seq > above);
            if batch.is_some_and(|batch| !self.can_stand_for_batch(cx, *seq, batch)) {
                lacking.push(Lacking::Committed(*view, *seq));
            }
        }
        // A new view carries over what the highest one started with, in which a faulty sender may have taken part without
        // what nobody has.
        let start = evidence.view.and_then(|view| self.known_views.get(view).cloned());
        for (seq, batch) in start.iter().filter_map(|message| message.new_view()).flat_map(NewView::carried) {
            if seq > above && !self.can_stand_for_batch(cx, seq, batch) {
                lacking.push(Lacking::CarriedOver(seq));
            }
        }
        let good = lacking.is_empty();
        self.candidates.lacks(message.from, lacking);
        good.then(|| (*evidence).clone())
    }

    /// Whether all frames of a batch are here, and its time has come. Otherwise they are asked for.
    pub(crate) fn can_stand_for_batch(&mut self, cx: &Cx<'_, Self>, seq: Seq, batch: &Batch) -> bool {
        let is_here = self.frames.name(seq, &batch.frames);
        is_here && self.timely(cx, batch)
    }

    /// As primary of the view that this replica moved to: NEW-VIEW, from its own VIEW-CHANGE and f
    /// others that it can stand for.
    pub(crate) fn try_new_view(&mut self, cx: &mut Cx<'_, Self>) {
        let ready = !self.active()
            && self.is_primary()
            && !self.proposed_view
            && self.due_view_change.is_none()
            && self.caught_up_with_itself();
        if !ready {
            return;
        }
        let view = self.view;
        let mut candidates: Vec<Arc<Certified>> = self
            .changes
            .values()
            .filter(|message| message.view_change().is_some_and(|change| change.to == view))
            .cloned()
            .collect();
        if candidates.len() < self.group.quorum() || !candidates.iter().any(|message| message.from == self.me)
        {
            return;
        }
        if self.candidates.too_large || !self.may_begin_now(cx, &candidates) {
            return;
        }
        let mut evidence = Vec::new();
        // Its own comes first: it is always among them. Then the smallest: a faulty replica's may be as large as it likes.
        rule!("MINBFT-V23");
        let me = self.me;
        candidates.sort_by_key(|message| (message.from != me, self.candidates.bytes(message.from)));
        for message in &candidates {
            evidence.extend(self.admissible(cx, message));
        }
        // Whoever the stable checkpoint shows as replaced is left out: the base is that one or rests below it.
        let replaced = self.replaced_by(&self.stable_proof);
        evidence.retain(|shown| !replaced(shown.from, shown.epoch));
        if evidence.first().is_none_or(|shown| shown.from != me) {
            return;
        }
        let Some(evidence) = agreeing(&self.config, evidence, self.group.quorum()) else { return };
        let changes: Vec<_> = evidence.iter().map(|shown| self.changes[&shown.from].clone()).collect();
        let Some(choice) = self.choice(&evidence) else { return };
        let before = self.stable.0;
        if !self.adopt_base(cx, choice.base.0) {
            return;
        }
        if !self.base_allows(choice.base.0, &changes) {
            // The base may have become known just now, and shows one of them replaced.
            self.recheck |= self.stable.0 > before;
            return;
        }
        let Choice { base, chosen } = choice;
        let body = NewView { view, changes, base, chosen };
        if !self.can_be_sent(&body) {
            // Each of its own logs would name it, and nobody could have it. Looked at again with the next of them, and with each
            // STATUS of its own.
            self.candidates.too_large = true;
            return cx.ignore(me, "a NEW-VIEW larger than what links carry; waits for smaller VIEW-CHANGEs");
        }
        self.proposed_view = true;
        for batch in &body.chosen {
            self.log_frames(cx, &batch.frames);
        }
        self.certify(cx, Body::NewView(body));
    }

    /// Whether links carry a NEW-VIEW.
    fn can_be_sent(&self, new_view: &NewView) -> bool {
        let shown: usize = new_view.changes.iter().map(|change| self.candidates.bytes(change.from)).sum();
        let carried: usize = new_view.chosen.iter().map(|batch| batch.to_wire().len()).sum();
        shown + carried + BESIDE <= self.config.message_bytes
    }

    /// What these VIEW-CHANGEs make a new view start from.
    pub(crate) fn choice(&self, evidence: &[Evidence]) -> Option<Choice> {
        choose(&self.config, evidence, |view| {
            self.known_views.get(view).and_then(|message| message.new_view())
        })
    }

    /// Takes evidence for an earlier view whose start is needed: its NEW-VIEW, or a commitment to it. The
    /// start is known once f+1 replicas stand behind it, or once it is judged to follow from its
    /// VIEW-CHANGEs; where these rest on a still earlier view, that is fetched first.
    pub(crate) fn on_evidence(&mut self, cx: &mut Cx<'_, Self>, message: &Arc<Certified>) {
        rule!("MINBFT-V17");
        if crate::evidence::misplaced(&self.group, &self.config, message).is_some() {
            return;
        }
        if self.known_views.offer(message) {
            self.judge_evidence(cx);
        }
    }

    /// Judges the starts that are asked for, as far as they are here: one that is known may be what the next rests on.
    pub(crate) fn judge_evidence(&mut self, cx: &mut Cx<'_, Self>) {
        self.known_views.want_what_is_needed();
        let mut learned = false;
        loop {
            let mut news = false;
            while let Some(view) =
                self.known_views.take_accepted(&self.group, &self.configuration, &self.config)
            {
                self.remember_view(cx, view);
                news = true;
            }
            for message in self.known_views.to_judge() {
                let Some(new_view) = message.new_view() else { continue };
                match self.judge_new_view(&message, new_view) {
                    Judgement::Valid { rests_on } => {
                        let view = new_view.view;
                        self.known_views.hold(view, message, rests_on);
                        self.remember_view(cx, view);
                        news = true;
                    }
                    Judgement::Needs(view) => self.known_views.rests_on(new_view.view, view),
                    Judgement::Open => {}
                    Judgement::Invalid(why) if self.is_present(&message) => {
                        self.condemn(cx, message.from, why);
                    }
                    Judgement::Invalid(_) => {}
                }
            }
            if !news {
                break;
            }
            learned = true;
        }
        if learned {
            self.recheck = true;
            self.settle(cx);
        }
    }

    /// Puts a known start of a view into the log, ahead of anything that this replica certifies on the
    /// strength of it.
    pub(crate) fn remember_view(&self, cx: &mut Cx<'_, Self>, view: View) {
        for message in self.known_views.shown(view) {
            cx.remember(match message.body {
                Body::NewView(_) => Record::NewView(message),
                _ => Record::Accepted(message),
            });
        }
    }

    /// Whether a NEW-VIEW follows from what it shows: the same computation that its sender made.
    pub(crate) fn judge_new_view(&self, message: &Certified, new_view: &NewView) -> Judgement {
        rule!("MINBFT-V13");
        if let Some(why) = crate::evidence::misplaced(&self.group, &self.config, message) {
            return Judgement::Invalid(why);
        }
        let senders: troth_blocks::Voters = new_view.changes.iter().map(|change| change.from).collect();
        if senders.count() < self.group.quorum() || senders.count() != new_view.changes.len() {
            return Judgement::Invalid("a NEW-VIEW without f+1 VIEW-CHANGEs of distinct replicas");
        }
        if !senders.contains(message.from) {
            return Judgement::Invalid("a NEW-VIEW without its primary's own VIEW-CHANGE");
        }
        let own = new_view.changes.iter().find(|change| change.from == message.from);
        if own.is_some_and(|own| own.ui.certificate.epoch != message.ui.certificate.epoch) {
            return Judgement::Invalid("a NEW-VIEW by another component than its primary's VIEW-CHANGE");
        }
        let mut shown = Vec::new();
        for change in &new_view.changes {
            if message::target(change) != Some(new_view.view) {
                return Judgement::Invalid("a NEW-VIEW with a VIEW-CHANGE for another view");
            }
            if crate::evidence::misplaced(&self.group, &self.config, change).is_some() {
                return Judgement::Invalid("a NEW-VIEW with a VIEW-CHANGE at an impossible counter value");
            }
            match evidence(&self.group, &self.configuration, &self.config, change) {
                Ok(evidence) => shown.push(evidence),
                Err(_) => return Judgement::Invalid("a NEW-VIEW with an invalid VIEW-CHANGE"),
            }
        }
        if !new_view.changes.iter().all(|change| self.begins_well(change)) {
            return Judgement::Open;
        }
        // Earlier releases begin views with them: it proves nothing against its sender.
        if !shown.iter().all(|shown| within_window(&self.config, shown)) {
            return Judgement::Open;
        }
        if !consistent(&self.config, &shown) {
            return Judgement::Invalid(
                "a NEW-VIEW with a VIEW-CHANGE of a component that another shows as replaced",
            );
        }
        let highest = shown.iter().filter_map(|evidence| evidence.view).max();
        if let Some(view) = highest.filter(|view| *view > View(0) && self.known_views.get(*view).is_none()) {
            return Judgement::Needs(view);
        }
        match self.choice(&shown) {
            Some(choice) if choice.base == new_view.base && choice.chosen == new_view.chosen => {
                // Its sender need not know; but a start that counts rules the next one, whoever entered it.
                if !self.base_allows(choice.base.0, &new_view.changes) {
                    return Judgement::Open;
                }
                Judgement::Valid { rests_on: highest.filter(|view| *view > View(0)) }
            }
            _ => Judgement::Invalid("a NEW-VIEW that does not follow from its VIEW-CHANGEs"),
        }
    }
}

/// What a replica thinks of a NEW-VIEW.
pub(crate) enum Judgement {
    /// It follows from what it shows.
    Valid {
        /// The earlier view, above 0, whose start it rests on.
        rests_on: Option<View>,
    },
    /// It rests on the NEW-VIEW of this earlier view, which this replica does not hold.
    Needs(View),
    /// It rests on a component that was admitted and whose first message has not come yet, on one that its base shows as
    /// replaced, or on commitments beyond the window of what their sender shows stable; or its base is not known yet.
    Open,
    /// It proves that its sender broke a rule.
    Invalid(&'static str),
}
