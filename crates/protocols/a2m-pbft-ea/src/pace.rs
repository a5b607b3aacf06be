//! Slow and unfair primaries (not in the paper; ADR 3): a primary that orders just in time for nobody's timer.
//!
//! A backup times how long requests wait until they are ordered, and how long the others take to commit to what it voted
//! for. A correct primary is about as fast as the others are; one under which everything takes much longer is found
//! wanting, and so is one that lets a request wait while it orders others that came later. Who finds it wanting goes on
//! with it until f+1 do, and wants the next view then.

use crate::Vote;
use crate::message::{Message, Status};
use crate::retransmission::SOON;
use crate::state::{A2mPbftEa, Timer};
use std::collections::BTreeSet;
use troth_blocks::{Look, Patience, Shown, Voters};
use troth_core::{Cx, To, rule};
use troth_types::{Digest, ReplicaId, Time};

/// Of PREPREPARE, PREPARE and COMMIT the last two are timed: twice as long is more than all three take.
const PHASES: u64 = 2;

impl A2mPbftEa {
    /// Looks at the primary now and then while anything waits.
    pub(crate) fn watch_pace(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.looking && self.active && !self.pool.is_empty() {
            self.look_again(cx, self.patience().between_looks());
        }
    }

    /// Looks at the primary so many microseconds from now.
    fn look_again(&mut self, cx: &mut Cx<'_, Self>, micros: u64) {
        self.looking = true;
        self.look_due = self.after(cx, micros);
        cx.set_timer(Timer::Pace, self.look_due);
    }

    /// A view begins: its primary is as if everything had come just now.
    pub(crate) fn begin_pace(&mut self, cx: &Cx<'_, Self>) {
        self.pace.begin(self.after(cx, self.patience().spared()));
        self.committed_at.clear();
    }

    /// A view ends, with what was thought of its primary.
    pub(crate) fn forget_pace(&mut self, cx: &mut Cx<'_, Self>) {
        self.wanting = false;
        (self.time_is_over, self.bore_once) = (false, false);
        self.wished_by = Voters::NONE;
        self.shown = None;
        self.looking = false;
        cx.cancel_timer(Timer::Pace);
        cx.cancel_timer(Timer::Overtaken);
    }

    /// This replica votes for a batch, with its frames here: from now on it times how long the others take to commit to it. A
    /// backup that committed before counts, for all f+1 correct ones must be able to tell, the last one to hear of a batch, too.
    pub(crate) fn time_agreement(&mut self, cx: &Cx<'_, Self>, vote: Vote) {
        rule!("A2MPBFTEA-P1");
        let Some(slot) = self.slots.get(&vote.seq) else { return };
        let primary = self.primary();
        let same = |(by, message): &(&ReplicaId, &std::sync::Arc<crate::Attested>)| {
            **by != primary && message.voted().is_some_and(|voted| voted.digest == vote.digest)
        };
        let before = slot.commits.iter().filter(same).map(|(by, _)| *by);
        self.pace.prepared(vote.seq, cx.now(), before);
    }

    /// Somebody committed to a batch.
    pub(crate) fn time_commit(&mut self, cx: &Cx<'_, Self>, by: ReplicaId, vote: Vote) {
        let proposed = self.slots.get(&vote.seq).and_then(|slot| slot.proposed());
        if by != self.primary() && proposed == Some(vote.digest) {
            self.pace.committed(vote.seq, by, cx.now(), self.group.weak());
        }
    }

    /// Takes stock of how long requests waited.
    pub(crate) fn on_pace_timer(&mut self, cx: &mut Cx<'_, Self>) {
        self.looking = false;
        self.lateness.note(self.look_due, cx.now());
        if !self.active || self.is_primary() {
            return self.pool.forget_waits();
        }
        rule!("A2MPBFTEA-P1");
        // One that is behind or repairs itself waits for itself, and looks as soon as it does not. One that was, not long
        // ago, passes over one look, and no second one: who could have it behind before each would never be looked at.
        if self.lags() {
            self.pool.forget_waits();
            return self.look_again(cx, self.config.status_interval / 4);
        }
        if std::mem::take(&mut self.lagged) && !self.spared {
            self.spared = true;
            self.pool.forget_waits();
            return self.look_again(cx, self.patience().between_looks());
        }
        self.spared = false;
        // What is proposed and not ordered waits like everything else: nobody is ordered for by a proposal alone.
        let waited = self.pool.typical_wait(cx.now(), |_| false);
        let (limits, most) = (&self.config.limits, self.config.batch_bytes());
        let times = PHASES * self.patience().agreements(self.pool.len(), self.pool.bytes(), limits, most);
        // No phase is faster than this replica comes to what is due, whoever else is.
        let own = times.saturating_mul(self.lateness.take());
        let least = self.patience().least(waited.map(|(_, clients)| clients)).saturating_add(own);
        rule!("A2MPBFTEA-P2");
        let look = self.pace.look(cx.now(), waited.map(|(waited, _)| waited), times, least);
        if look == Look::TooSlow {
            self.find_wanting(cx, "it orders more slowly than the others agree");
        } else if look == Look::Good {
            self.wanting = false;
        }
    }

    /// What is borne of a primary.
    fn patience(&self) -> Patience {
        Patience {
            request_timeout: self.config.request_timeout,
            slower_by: self.config.slower_by,
            // Frames that the primary alone was shown are asked of it (R7) before anybody can vote.
            fetched: self.config.status_interval / SOON,
        }
    }

    /// How long a request may wait while others that came later are ordered.
    pub(crate) fn overtaking_patience(&self) -> u64 {
        let phase = self.pace.agreement().map(|phase| phase.saturating_add(self.lateness.mean()));
        let agreement = phase.map(|phase| phase.saturating_mul(PHASES));
        let bears = self.pace.doubt().bears(self.patience().overtaken(agreement));
        bears.min(self.back_off.of(self.config.request_timeout))
    }

    /// Shows the oldest pending frames to the primary, again and again: their clients may have sent them to some only,
    /// and what was shown may be lost on the way. From then on the primary has no reason to let them wait.
    pub(crate) fn show_oldest(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.active || self.is_primary() {
            return;
        }
        let half = self.overtaking_patience() / 2;
        if self.lags() {
            rule!("A2MPBFTEA-P3");
            return cx.set_timer(Timer::Forward, self.after(cx, half));
        }
        let until = Time(cx.now().0.saturating_sub(half));
        let before = self.shown.as_ref();
        let oldest = self.pool.waiting_since(until, Shown::MOST, Shown::MOST_BYTES, before);
        // What is executed is shown beside the others and judges nobody: it must not stand for one that does.
        let judged = if oldest.new.is_empty() { &oldest.again } else { &oldest.new };
        let Some(shown) = Shown::after(before.cloned(), judged, cx.now()) else {
            // What it bears has grown since this was due.
            if let Some(came) = self.pool.oldest_came() {
                let timer = if self.shown.is_some() { Timer::Overtaken } else { Timer::Forward };
                cx.set_timer(timer, came.after(half).max(self.after(cx, 1)));
            }
            return;
        };
        let frames = oldest.digests().filter_map(|digest| self.frames.get(digest).cloned()).collect();
        let frames = self.ask_favours(cx, frames);
        if !frames.is_empty() {
            cx.show_frames(To::One(self.primary()), frames);
        }
        self.shown = Some(shown);
        cx.set_timer(Timer::Overtaken, self.after(cx, half));
    }

    /// The oldest requests were shown to the primary a while ago.
    pub(crate) fn on_overtaken_timer(&mut self, cx: &mut Cx<'_, Self>) {
        let Some(shown) = &self.shown else { return };
        if self.pool.oldest().is_none() || !self.active || self.is_primary() {
            return;
        }
        if self.lags() {
            rule!("A2MPBFTEA-P3");
            // What it waits for may be executed in what it lacks: shown all the same, it would be charged to it (R17).
            // What is left afterwards was shown before.
            return cx.set_timer(Timer::Overtaken, self.after(cx, self.overtaking_patience() / 2));
        }
        // What is executed is ordered again for this replica's sake: others may well come first.
        let proposed = self.proposed_frames();
        let left = self.pool.still_new(shown).any(|digest| !proposed.contains(&digest));
        let overtaken = left && self.pool.newest_proposed() > shown.at;
        if overtaken && shown.again && self.pace.agreement().is_some() {
            rule!("A2MPBFTEA-P3");
            self.find_wanting(cx, "it leaves a request out that others overtake");
        }
        self.show_oldest(cx);
    }

    /// Frames of batches that this replica voted for in this view, or that it started with, and that are not executed yet.
    fn proposed_frames(&self) -> BTreeSet<Digest> {
        let open = self.slots.range(self.delivered.next()..).filter(|(seq, _)| **seq <= self.prepared_up_to);
        let batches = open.filter_map(|(_, slot)| slot.batch());
        let carried = self.started.chosen.iter().filter(|_| self.started.end() > self.delivered);
        batches.chain(carried).flat_map(|batch| batch.frames.iter().copied()).collect()
    }

    /// It would rather have another primary, until a look finds this one good.
    pub(crate) fn find_wanting(&mut self, cx: &mut Cx<'_, Self>, reason: &'static str) {
        if self.wanting {
            return;
        }
        rule!("A2MPBFTEA-P4");
        self.pace.blame(self.primary(), self.group.weak());
        self.wanting = true;
        self.suspicions += 1;
        cx.suspect(self.primary(), reason);
        cx.send(To::Others, Message::Status(self.status_message()));
    }

    /// What somebody's last status says of the primary of this view.
    pub(crate) fn note_wish(&mut self, from: ReplicaId, status: &Status) {
        if status.view != self.view || !status.active {
            return;
        }
        if status.wishes {
            self.wished_by.insert(from);
        } else {
            self.wished_by.remove(from);
        }
    }

    /// Wants the next view where f+1 would rather have its primary, one of whom is correct. Who wants a later one, or has
    /// moved to one, says so with that.
    pub(crate) fn follow_wishes(&mut self, cx: &mut Cx<'_, Self>) {
        rule!("A2MPBFTEA-P5");
        let wants = self.wants.values().filter(|wanted| wanted.want.to > self.view).map(|wanted| wanted.from);
        let left = self
            .changes
            .values()
            .filter(|message| message.view_change().is_some_and(|change| change.to > self.view));
        let mut all =
            wants.chain(left.map(|message| message.from)).fold(self.wished_by, |mut all, replica| {
                all.insert(replica);
                all
            });
        if self.wanting {
            all.insert(self.me);
        }
        if self.active && all.count() >= self.group.weak() {
            self.want_next(cx);
        }
    }
}
