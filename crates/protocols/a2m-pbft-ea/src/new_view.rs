//! Appendix A: NEWVIEW, and the commitment to it (F-A1).

use crate::choose::{Choice, choose, highest};
use crate::evidence::{Evidence, evidence};
use crate::message::{Accept, Attested, Body, NewView, Record};
use crate::place::{NEW_VIEW, flattened};
use crate::state::{A2mPbftEa, Asked, Started, Timer};
use std::collections::BTreeSet;
use std::sync::Arc;
use troth_blocks::Voters;
use troth_core::{Cx, Note, rule};
use troth_types::{Batch, Digest, Seq, View};

/// What a replica thinks of a NEWVIEW.
pub(crate) enum Judgement {
    /// It follows from what it shows.
    Valid,
    /// It rests on an earlier NEWVIEW, which this replica does not know to be valid.
    Undecided,
    /// It proves that its sender broke a rule.
    Invalid(&'static str),
}

/// The highest view above 0 that the VIEWCHANGEs of a NEWVIEW left: the one whose start it goes on from.
pub(crate) fn rests_on(new_view: &NewView) -> Option<View> {
    let left = new_view.changes.iter().filter_map(|change| change.view_change()).map(|change| change.left);
    left.max().filter(|view| *view > View(0))
}

impl A2mPbftEa {
    /// As primary of the view that this replica moved to: NEWVIEW, once f+1 VIEWCHANGEs are usable and the frames that they
    /// choose are here. Which views they left does not matter: the highest whose start is known counts (F-A3, F-A4).
    pub(crate) fn try_new_view(&mut self, cx: &mut Cx<'_, Self>) {
        let slot = flattened(View(0), Seq(self.view.0));
        if self.active || !self.is_primary() || self.last_filled(NEW_VIEW) >= slot {
            return;
        }
        let changes: Vec<Arc<Attested>> = self.present_changes().cloned().collect();
        let shown: Vec<Evidence<'_>> =
            changes.iter().filter_map(|change| evidence(&self.group, &self.config, change).ok()).collect();
        rule!("A2MPBFTEA-V12");
        let usable = self.usable(shown);
        if usable.len() < self.group.quorum() {
            return;
        }
        let started = highest(&usable).and_then(|view| self.known_views.start(&self.group, view));
        let Some(Choice { base, chosen }) = choose(&usable, started) else { return };
        let senders: Voters = usable.iter().map(|evidence| evidence.from).collect();
        if !self.holds_frames(base.0, &chosen) {
            return;
        }
        let changes = changes.into_iter().filter(|change| senders.contains(change.from)).collect();
        self.attest(cx, Body::NewView(NewView { view: self.view, changes, base, chosen }));
    }

    /// Those VIEWCHANGEs that decide something together: where one left a view whose start is not known here, or does not
    /// fit it, the others must do.
    fn usable<'a>(&mut self, mut shown: Vec<Evidence<'a>>) -> Vec<Evidence<'a>> {
        while let Some(highest) = highest(&shown) {
            let started = self.known_views.start(&self.group, highest);
            if highest > View(0) && started.is_none() {
                let left = shown.iter().filter(|evidence| evidence.change.left == highest);
                left.for_each(|evidence| self.known_views.want(highest, evidence.from));
                shown.retain(|evidence| evidence.change.left < highest);
                continue;
            }
            let unfit: Vec<_> = shown
                .iter()
                .filter(|evidence| evidence.change.left == highest)
                .filter(|evidence| choose(std::slice::from_ref(*evidence), started).is_none())
                .map(|evidence| evidence.from)
                .collect();
            if unfit.is_empty() {
                break;
            }
            shown.retain(|evidence| !unfit.contains(&evidence.from));
        }
        shown
    }

    /// Whether this replica has every frame that these batches name and that it has not executed; what it lacks is wanted
    /// from now on.
    fn holds_frames(&mut self, base: Seq, chosen: &[Batch]) -> bool {
        rule!("A2MPBFTEA-V13");
        let mut complete = true;
        for (seq, batch) in (base.0 + 1..).map(Seq).zip(chosen) {
            if seq > self.stable.0 {
                complete &= self.frames.name(seq, &batch.frames);
            }
        }
        if !complete {
            let named = chosen.iter().flat_map(|batch| &batch.frames).copied();
            self.starts_lack.lacks(named.filter(|digest| self.frames.wants(digest, Seq(u64::MAX))));
        }
        complete
    }

    /// A frame came: what is known of starts is looked at again where it was the last that one of them lacked.
    pub(crate) fn frame_came(&mut self, digest: &Digest) {
        rule!("A2MPBFTEA-V13");
        self.reconsider |= self.starts_lack.came(digest);
    }

    /// Whether a NEWVIEW follows from what it shows: the same computation that its sender made.
    fn judge(&self, new_view: &NewView) -> Judgement {
        rule!("A2MPBFTEA-V12");
        let senders: Voters = new_view.changes.iter().map(|change| change.from).collect();
        if senders.count() < self.group.quorum() || senders.count() != new_view.changes.len() {
            return Judgement::Invalid("a NEWVIEW without f+1 VIEWCHANGEs of distinct replicas");
        }
        let mut shown = Vec::new();
        for change in &new_view.changes {
            if change.view_change().is_none_or(|change| change.to != new_view.view) {
                return Judgement::Invalid("a NEWVIEW with a VIEWCHANGE for another view");
            }
            match evidence(&self.group, &self.config, change) {
                Ok(evidence) => shown.push(evidence),
                Err(_) => return Judgement::Invalid("a NEWVIEW with an invalid VIEWCHANGE"),
            }
        }
        let started = match rests_on(new_view) {
            None => None,
            Some(view) => match self.known_views.start(&self.group, view) {
                Some(started) => Some(started),
                None => return Judgement::Undecided,
            },
        };
        match choose(&shown, started) {
            Some(choice) if choice.base == new_view.base && choice.chosen == new_view.chosen => {
                Judgement::Valid
            }
            _ => Judgement::Invalid("a NEWVIEW that does not follow from its VIEWCHANGEs"),
        }
    }

    /// Whether the NEWVIEW of this view is not here, and may be of use.
    pub(crate) fn brings_start(&self, view: View) -> bool {
        let lacked = || self.known_views.lacks(&self.group).contains(&view);
        (view > self.entered || lacked()) && self.known_views.get(view).is_none()
    }

    /// Whether this is the NEWVIEW that this replica has and waits to enter: everybody shows it with every STATUS of its own,
    /// and did as it should.
    pub(crate) fn waits_with(&self, message: &Attested) -> bool {
        let known = message.new_view().and_then(|new_view| self.known_views.get(new_view.view));
        !self.active && known.is_some_and(|known| known.digest == message.digest)
    }

    /// NEWVIEW ⟨v_to, V, O⟩. It convinces whoever sends it, and whoever gets it: one that has not left its view, too.
    pub(crate) fn on_new_view(&mut self, cx: &mut Cx<'_, Self>, message: &Arc<Attested>) {
        let Some(new_view) = message.new_view() else { return };
        if message.from != self.group.primary(new_view.view) {
            // Nothing has to be known to see it, and it would stand in the way of the primary's.
            return self.condemn(cx, message.from, "a NEWVIEW by a backup");
        }
        if !self.brings_start(new_view.view) {
            return;
        }
        self.known_views.offer(new_view.view, message, rests_on(new_view));
        self.reconsider = true;
        for change in &new_view.changes {
            if let Some(accepted) = change.view_change().and_then(|change| change.accepted.as_ref()) {
                self.known_views.accept(accepted);
            }
        }
    }

    /// Judges the NEWVIEWs that may be decided now, the lowest first.
    pub(crate) fn try_judge(&mut self, cx: &mut Cx<'_, Self>) {
        rule!("A2MPBFTEA-R10");
        for (view, message, accepts) in self.known_views.believed(&self.group) {
            // A later start may rest on it, here and elsewhere, and who is started again has to show why it is valid.
            cx.remember(Record::NewView(message));
            accepts.into_iter().for_each(|accept| cx.remember(Record::Accepted(accept)));
            self.known_views.judged(view);
        }
        for message in self.known_views.unjudged(&self.group) {
            let Some(new_view) = message.new_view() else { continue };
            match self.judge(new_view) {
                Judgement::Valid => {
                    self.useful += 1;
                    self.known_views.judged(new_view.view);
                    cx.remember(Record::NewView(message.clone()));
                }
                Judgement::Undecided if new_view.view >= self.view => {
                    // What breaks a rule is never wanted: it would be asked for in the place of what decides something.
                    self.known_views.want(new_view.view, message.from);
                }
                Judgement::Undecided => {}
                Judgement::Invalid(why) => {
                    self.known_views.reject(new_view.view);
                    self.condemn(cx, message.from, why);
                }
            }
        }
    }

    /// Enters the highest view, from the one that it moves to on, whose NEWVIEW is known to be valid, when the frames that it
    /// carries over are here: it commits to nothing that it does not hold.
    pub(crate) fn try_enter(&mut self, cx: &mut Cx<'_, Self>) {
        let lowest = if self.active { self.view.next() } else { self.view };
        let Some(message) = self.known_views.highest_valid(&self.group, lowest).cloned() else { return };
        let Some(new_view) = message.new_view() else { return };
        if self.holds_frames(new_view.base.0, &new_view.chosen) {
            self.enter(cx, &message, new_view);
        } else {
            rule!("A2MPBFTEA-R6");
            self.awaited = Seq(new_view.base.0.0 + new_view.chosen.len() as u64);
        }
    }

    fn enter(&mut self, cx: &mut Cx<'_, Self>, message: &Arc<Attested>, new_view: &NewView) {
        rule!("A2MPBFTEA-V14");
        self.asked.retain(|_, asked| !matches!(asked, Asked::Abandon(_)));
        self.view = new_view.view;
        self.active = true;
        self.waits_for_view = false;
        self.wanted_view = self.wanted_view.max(self.view);
        self.certificate.clear();
        for timer in [Timer::NewView, Timer::Forward, Timer::Request] {
            cx.cancel_timer(timer);
        }
        self.forget_pace(cx);
        self.begin_pace(cx);
        self.left_out = None;
        self.helped.clear();
        self.begin(message, new_view);
        self.adopt_base(cx, new_view);
        rule!("A2MPBFTEA-R4");
        for batch in &new_view.chosen {
            self.log_frames(cx, batch);
        }
        cx.persist(Record::NewView(message.clone()));
        self.attest(cx, Body::Accept(Accept { view: self.view, new_view: message.digest }));
        self.known_views.judged(self.entered);
        self.known_views.entered(&self.group, self.entered);
        self.changes.retain(|_, change| change.view_change().is_some_and(|change| change.to > new_view.view));
        let carried: BTreeSet<Digest> =
            new_view.chosen.iter().flat_map(|batch| batch.frames.iter().copied()).collect();
        self.pool.restart(cx.now(), |digest| carried.contains(digest));
        self.timed = None;
        // The new primary has as long for a due deadline as the old one had.
        self.watch_deadline(cx);
        cx.note(Note::ViewEntered { view: self.view });
        self.forget_stable(cx);
    }

    /// What the NEWVIEW carries over is what the view starts with.
    pub(crate) fn begin(&mut self, message: &Arc<Attested>, new_view: &NewView) {
        self.entered = new_view.view;
        self.awaited = Seq(0);
        self.heard.clear();
        let (base, chosen) = (new_view.base.0, new_view.chosen.clone());
        self.started = Started { by: Some(message.clone()), base, chosen };
        self.slots.clear();
        self.prepared_up_to = self.started.end();
        self.committed_up_to = self.started.end();
        for (seq, batch) in (base.0 + 1..).map(Seq).zip(&new_view.chosen) {
            if seq > self.stable.0 || seq > self.delivered {
                self.frames.name(seq, &batch.frames);
            }
        }
    }

    /// The base is stable: its proof stands in one of the VIEWCHANGEs, or in one of those that an earlier NEWVIEW shows.
    fn adopt_base(&mut self, cx: &mut Cx<'_, Self>, new_view: &NewView) {
        let earlier = self.known_views.all_valid(&self.group);
        let earlier = earlier.iter().filter_map(|message| message.new_view());
        let changes = std::iter::once(new_view).chain(earlier).flat_map(|start| &start.changes);
        let proofs = changes.filter_map(|change| change.view_change()).map(|change| &change.stable);
        let proofs: Vec<_> = proofs.filter(|proof| proof.target().0 > self.stable.0).cloned().collect();
        for proof in proofs {
            self.adopt_stable(cx, &Arc::new(proof));
        }
    }
}
