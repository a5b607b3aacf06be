//! PBFT §4.4, "View changes": NEW-VIEW.

use crate::Flaw;
use crate::choose::{Choice, Shown, choose};
use crate::message::{Body, Entry, NewView, Record, Signed};
use crate::state::{Pbft, Started, Timer};
use std::collections::BTreeSet;
use std::sync::Arc;
use troth_blocks::Voters;
use troth_core::{Cx, Note, To, rule};
use troth_types::{Batch, Digest, Seq, View};

/// What a view started with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start<'a> {
    view: View,
    base: Seq,
    chosen: &'a [Digest],
}

impl Start<'_> {
    /// Which view.
    pub(crate) fn view(&self) -> View {
        self.view
    }

    /// Whether the view started with another batch at an entry's number, or with none, where the entry is of an earlier view
    /// and the number within the window (V18).
    pub(crate) fn refutes(&self, entry: &Entry, window: u64) -> bool {
        let base = self.base;
        if entry.view >= self.view || entry.seq <= base || entry.seq.0 - base.0 > window {
            return false;
        }
        let at = usize::try_from(entry.seq.0 - base.0 - 1).ok().and_then(|at| self.chosen.get(at));
        at.is_none_or(|chosen| *chosen != entry.digest)
    }
}

impl Pbft {
    /// As primary of the view that this replica moved to: NEW-VIEW, once the VIEW-CHANGEs decide every number and what
    /// they choose is here.
    pub(crate) fn try_new_view(&mut self, cx: &mut Cx<'_, Self>) {
        if self.active || !self.is_primary() || self.proposed_view || !std::mem::take(&mut self.reconsider) {
            return;
        }
        self.start_lacks.forget();
        let changes: Vec<Arc<Signed>> = self.present_changes().cloned().collect();
        let mine = changes.iter().any(|message| message.from == self.me);
        if changes.len() < self.group.quorum() || !mine {
            return;
        }
        let Some(Choice { base, chosen }) = self.choice(&changes) else { return };
        rule!("PBFT-V10");
        self.lacking = chosen.iter().filter(|digest| self.batch(digest).is_none()).copied().collect();
        if !self.lacking.is_empty() {
            return;
        }
        let chosen: Vec<Batch> = chosen.iter().filter_map(|digest| self.batch(digest)).collect();
        if !self.holds_frames(base.0, &chosen) {
            return;
        }
        self.proposed_view = true;
        cx.sign(Body::NewView(NewView { view: self.view, changes, base, chosen }), To::Others);
    }

    /// What these VIEW-CHANGEs make a view start from.
    fn choice(&self, changes: &[Arc<Signed>]) -> Option<Choice> {
        let shown = changes
            .iter()
            .map(|message| Shown::new(&self.group, &self.config, message.from, message.view_change()?));
        choose(&self.group, &self.config, &shown.collect::<Option<Vec<_>>>()?)
    }

    /// Whether this replica has every frame that these batches name and that it has not executed; what it lacks is wanted
    /// from now on.
    fn holds_frames(&mut self, base: Seq, chosen: &[Batch]) -> bool {
        let mut complete = true;
        for (seq, batch) in (base.0 + 1..).map(Seq).zip(chosen) {
            // By A2 a correct replica pre-prepared it.
            self.vouch(batch);
            if seq > self.stable.0 {
                complete &= self.frames.name(seq, &batch.frames);
            }
        }
        if !complete {
            rule!("PBFT-V10");
            let named = chosen.iter().flat_map(|batch| &batch.frames).copied();
            self.start_lacks.lacks(named.filter(|digest| self.frames.wants(digest, Seq(u64::MAX))));
        }
        complete
    }

    /// Whether a NEW-VIEW follows from what it shows: the same computation that its sender made.
    fn judge(&self, message: &Signed, new_view: &NewView) -> Result<(), &'static str> {
        rule!("PBFT-V11");
        if new_view.view == View(0) || message.from != self.group.primary(new_view.view) {
            return Err("a NEW-VIEW by a backup");
        }
        let senders: Voters = new_view.changes.iter().map(|change| change.from).collect();
        if senders.count() < self.group.quorum() || senders.count() != new_view.changes.len() {
            return Err("a NEW-VIEW without 2f+1 VIEW-CHANGEs of distinct replicas");
        }
        let all_for_it = |change: &Arc<Signed>| change.view_change().is_some_and(|it| it.to == new_view.view);
        if !new_view.changes.iter().all(all_for_it) {
            return Err("a NEW-VIEW with a VIEW-CHANGE for another view");
        }
        let chosen: Vec<Digest> = new_view.chosen.iter().map(Batch::digest).collect();
        match self.choice(&new_view.changes) {
            Some(choice) if choice == (Choice { base: new_view.base, chosen }) => Ok(()),
            _ => Err("a NEW-VIEW that does not follow from its VIEW-CHANGEs"),
        }
    }

    /// Whether this view may begin here yet.
    pub(crate) fn brings_view(&self, view: View) -> bool {
        view > self.view || (view == self.view && !self.active)
    }

    /// Whether the NEW-VIEW of a view that this replica has left, or never was in, would tell it what of P can go, if it
    /// holds. While it works in a view it has that of a later one.
    pub(crate) fn teaches(&self, new_view: &NewView) -> bool {
        if self.active || new_view.view >= self.view || self.prepared.is_empty() {
            return false;
        }
        let chosen: Vec<Digest> = new_view.chosen.iter().map(Batch::digest).collect();
        let start = Start { view: new_view.view, base: new_view.base.0, chosen: &chosen };
        self.prepared.values().any(|entry| start.refutes(entry, self.config.window))
    }

    /// What a NEW-VIEW decided otherwise did not commit in an earlier view, and never will there: P need not say any more
    /// that it prepared. It must not for ever, for Q of the others forgets (V3), and what nobody bears witness to any more
    /// keeps every view from beginning that this replica is needed for.
    pub(crate) fn forget_refuted(&mut self, new_view: &NewView) {
        rule!("PBFT-V18");
        let chosen: Vec<Digest> = new_view.chosen.iter().map(Batch::digest).collect();
        let start = Start { view: new_view.view, base: new_view.base.0, chosen: &chosen };
        self.prepared.retain(|_, entry| !start.refutes(entry, self.config.window));
    }

    /// What the last view that began here started with; of the first view nothing.
    fn last_start(&self) -> Option<(&Arc<Signed>, Start<'_>)> {
        let message = self.started.by.as_ref()?;
        let new_view = message.new_view()?;
        let chosen = &self.started.chosen;
        Some((message, Start { view: new_view.view, base: new_view.base.0, chosen }))
    }

    /// NEW-VIEW ⟨v', V, O⟩. It convinces whoever sends it, and whoever gets it: one that has not left its view, too.
    pub(crate) fn on_new_view(&mut self, cx: &mut Cx<'_, Self>, message: &Arc<Signed>) {
        let Some(new_view) = message.new_view() else { return };
        if !self.brings_view(new_view.view) && !self.teaches(new_view) {
            return;
        }
        if let Err(why) = self.judge(message, new_view) {
            return self.condemn(cx, message.from, why);
        }
        // Where checkpoints are claims, one alone makes nothing stable.
        let claims = self.config.follows(Flaw::NullRule);
        for change in &new_view.changes {
            if let Some(inner) = change.view_change()
                && (!claims || inner.stable.target().0 <= new_view.base.0)
            {
                self.adopt_stable(cx, &Arc::new(inner.stable.clone()));
            }
        }
        self.forget_refuted(new_view);
        if !self.brings_view(new_view.view) {
            // This replica has left it, or a later one.
            return;
        }
        rule!("PBFT-V12");
        self.useful += 1;
        if new_view.view > self.view {
            self.forget_view(cx);
        }
        self.view = new_view.view;
        self.active = true;
        self.waits_for_view = false;
        cx.cancel_timer(Timer::NewView);
        self.log_frames(cx, new_view);
        rule!("PBFT-R4");
        cx.persist(Record::NewView(message.clone()));
        self.begin(message, new_view);
        let carried: BTreeSet<Digest> =
            new_view.chosen.iter().flat_map(|batch| batch.frames.iter().copied()).collect();
        self.pool.restart(cx.now(), |digest| carried.contains(digest));
        self.begin_pace(cx);
        self.forget_left_out();
        self.timed = None;
        // The new primary has as long for a due deadline as the old one had.
        self.watch_deadline(cx);
        cx.note(Note::ViewEntered { view: self.view });
        // Before anything can have it leave: what its VIEW-CHANGE did not name of this start, no later view might believe.
        rule!("PBFT-V19");
        self.try_vote(cx);
    }

    /// Has the frames of what a view starts with in the log, as far as they are here, before that it began: whoever starts
    /// again in the view then promises it in its first step.
    fn log_frames(&mut self, cx: &mut Cx<'_, Self>, new_view: &NewView) {
        rule!("PBFT-V19");
        for (seq, batch) in (new_view.base.0.0 + 1..).map(Seq).zip(&new_view.chosen) {
            if seq <= self.stable.0 {
                continue;
            }
            for frame in self.frames.log(&batch.frames) {
                cx.persist(Record::Frame(frame.into_inner()));
            }
        }
    }

    /// The start of the last view that began here, where it may be shown: the own NEW-VIEW is a vote for all that it carries
    /// over, so it is not shown before Q names that.
    pub(crate) fn start_to_show(&self) -> Option<(&Arc<Signed>, Start<'_>)> {
        rule!("PBFT-V19");
        self.last_start().filter(|(message, start)| message.from != self.me || self.has_promised(start))
    }

    /// Whether Q names all that a view started with, from that view or a later one, as far as it is not stable.
    fn has_promised(&self, start: &Start<'_>) -> bool {
        let promised = |seq, digest| self.pre_prepared.get(&seq).and_then(|at| at.get(digest));
        let carried = (start.base.0 + 1..).map(Seq).zip(start.chosen);
        carried
            .filter(|(seq, _)| *seq > self.stable.0)
            .all(|(seq, digest)| promised(seq, digest).is_some_and(|view| *view >= start.view))
    }

    /// What the NEW-VIEW carries over is proposed in the view, by its primary.
    pub(crate) fn begin(&mut self, message: &Arc<Signed>, new_view: &NewView) {
        let (base, chosen) = (new_view.base.0, &new_view.chosen);
        let end = Seq(base.0 + chosen.len() as u64);
        let digests = chosen.iter().map(Batch::digest).collect();
        self.started = Started { by: Some(message.clone()), end, chosen: digests };
        self.all_voted = self.all_voted.max(end);
        self.proposed = end;
        let mine = self.is_primary();
        for (seq, batch) in (base.0 + 1..).map(Seq).zip(chosen) {
            if seq > self.stable.0 || seq > self.delivered {
                self.frames.name(seq, &batch.frames);
                self.propose(seq, batch.digest(), batch.clone());
            }
            // What this replica itself carries over it promises before its NEW-VIEW leaves, in the same step (V19): it has
            // every frame of it (V10).
            if mine && let Some(slot) = self.slots.get_mut(&seq) {
                slot.pre_prepared = false;
            }
        }
        self.touch_all();
    }
}
