//! PBFT §4.4, "View changes": VIEW-CHANGE.

use crate::Flaw;
use crate::choose::Shown;
use crate::message::{Body, Entry, Record, Signed, ViewChange};
use crate::state::{Pbft, Timer};
use std::sync::Arc;
use troth_core::{Cx, Note, To, rule};
use troth_types::{ReplicaId, Seq, View};

impl Pbft {
    /// Leaves the view: for the receivers of the VIEW-CHANGE and for itself, nothing of the older views counts any more.
    pub(crate) fn leave_view(&mut self, cx: &mut Cx<'_, Self>, to: View) {
        rule!("PBFT-V2");
        self.view = to;
        self.active = false;
        self.reconsider = true;
        self.forget_view(cx);
        self.waits_for_view = false;
        cx.cancel_timer(Timer::NewView);
        self.back_off.failed();
        let change = self.view_change();
        // Not to forget what P and Q name is a promise.
        rule!("PBFT-R3");
        cx.persist(Record::Leaving(change.clone()));
        cx.sign(Body::ViewChange(change), To::Others);
        cx.note(Note::ViewChange { to });
    }

    /// Lets go of what belongs to the view that ends.
    pub(crate) fn forget_view(&mut self, cx: &mut Cx<'_, Self>) {
        self.undo(cx);
        self.slots.clear();
        self.forget_passed();
        self.touched.clear();
        self.lacking.clear();
        self.start_lacks.forget();
        // What is still needed is named again by the NEW-VIEW; what nobody has must not hide it.
        self.frames.want_nothing();
        self.doubtful.clear();
        self.distrust.view_ends();
        self.proposed_view = false;
        self.forget_pace(cx);
        self.timed = None;
        cx.cancel_timer(Timer::Forward);
        cx.cancel_timer(Timer::Request);
    }

    /// VIEW-CHANGE ⟨v', C, P, Q⟩.
    fn view_change(&self) -> ViewChange {
        let of = |seq: &Seq, (digest, view): (&troth_types::Digest, &View)| Entry {
            seq: *seq,
            digest: *digest,
            view: *view,
        };
        ViewChange {
            to: self.view,
            stable: (*self.stable_proof).clone(),
            prepared: self.prepared.values().copied().collect(),
            pre_prepared: self
                .pre_prepared
                .iter()
                .flat_map(|(seq, at)| at.iter().map(|entry| of(seq, entry)))
                .collect(),
        }
    }

    /// Whether a replica's VIEW-CHANGE for this view is a later one than is known.
    pub(crate) fn brings_view_change(&self, from: ReplicaId, to: View) -> bool {
        let known = self.changes.get(&from).and_then(|known| known.view_change());
        known.is_none_or(|known| known.to < to)
    }

    /// A VIEW-CHANGE of somebody: the one to the highest view counts.
    pub(crate) fn on_view_change(&mut self, cx: &mut Cx<'_, Self>, message: &Arc<Signed>) {
        let Some(change) = message.view_change() else { return };
        if !self.brings_view_change(message.from, change.to) {
            return;
        }
        let known = self.changes.get(&message.from).and_then(|known| known.view_change());
        if change.to == View(0) || Shown::new(&self.group, &self.config, message.from, change).is_none() {
            return self.condemn(cx, message.from, "a VIEW-CHANGE that breaks the rules of its sets");
        }
        // One from each for each view that this replica is in: who goes on and on is of no more use.
        let news = change.to > self.view && known.is_none_or(|known| known.to <= self.view);
        self.useful += u64::from(news);
        rule!("PBFT-R13");
        // Nobody has need of those after the first beyond this view, nor of those to views that are left, though each is good.
        let in_vain = change.to < self.view || known.is_some_and(|known| known.to > self.view);
        self.in_vain += u64::from(in_vain);
        let stable = Arc::new(change.stable.clone());
        self.changes.insert(message.from, message.clone());
        self.reconsider = true;
        // Where checkpoints are claims, one alone makes nothing stable.
        if !self.config.follows(Flaw::NullRule) {
            self.adopt_stable(cx, &stable);
        }
        self.watch_new_view(cx);
    }

    /// Joins a later view that f+1 replicas have moved to or beyond: the smallest such, so that faulty replicas alone
    /// neither start a view change nor choose its target.
    pub(crate) fn join_later_view(&mut self, cx: &mut Cx<'_, Self>) {
        rule!("PBFT-V4");
        let targets =
            self.changes.values().filter_map(|message| message.view_change()).map(|change| change.to);
        let later: Vec<View> = targets.filter(|to| *to > self.view).collect();
        if later.len() >= self.group.weak()
            && let Some(to) = later.into_iter().min()
        {
            self.leave_view(cx, to);
        }
    }

    /// The VIEW-CHANGEs for the present view.
    pub(crate) fn present_changes(&self) -> impl Iterator<Item = &Arc<Signed>> {
        let present =
            |message: &&Arc<Signed>| message.view_change().is_some_and(|change| change.to == self.view);
        self.changes.values().filter(present)
    }
}
