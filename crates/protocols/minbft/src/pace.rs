//! Slow and unfair primaries (not in the paper; ADR 3): a primary that orders just in time for nobody's timer.
//!
//! A backup times how long requests wait to be proposed, and how long the others take to agree on what was. A correct
//! primary is about as fast as the others are, whatever the machines, the disks and the load; one that is much slower
//! is suspected, and so is one that lets a request wait while it proposes others that came later.

use crate::fetching::SOON;
use crate::message::Certified;
use crate::state::{MinBft, Timer};
use std::collections::BTreeSet;
use troth_blocks::{Look, Patience, Shown};
use troth_core::{Cx, To, rule};
use troth_types::{Digest, Seq, Time};

impl MinBft {
    /// Looks at the primary now and then while anything waits or was ordered.
    pub(crate) fn watch_pace(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.looking && self.active() && !self.pool.is_empty() {
            self.looking = true;
            self.pace.watch_from(cx.now());
            cx.set_timer(Timer::Pace, self.after(cx, self.patience().between_looks()));
        }
    }

    /// A view begins: its primary is as if everything had come just now.
    pub(crate) fn begin_pace(&mut self, cx: &Cx<'_, Self>) {
        self.pace.begin(self.after(cx, self.patience().spared()));
        self.pool.found_fair();
        self.proposed_at.clear();
        self.shown = None;
        self.asked_up_to = Seq(0);
        self.frames.ask_anew();
    }

    /// This replica commits to a batch: its frames are here and its time has come, so that the primary holds nothing
    /// up any more.
    pub(crate) fn note_proposed(&mut self, cx: &Cx<'_, Self>, seq: Seq, prepare: &Certified) {
        let Some(slot) = self.slots.get_mut(&seq) else { return };
        slot.at = cx.now();
        let same = (prepare.value(), prepare.digest);
        let committed = slot.commits.iter().filter(|(_, to)| **to == same).map(|(backup, _)| *backup);
        self.pace.prepared(seq, cx.now(), committed);
    }

    /// Takes stock of how long requests waited for the primary.
    pub(crate) fn on_pace_timer(&mut self, cx: &mut Cx<'_, Self>) {
        self.looking = false;
        // One that is behind or repairs itself waits for itself.
        if !self.active()
            || self.is_primary()
            || self.lag.is_watched()
            || self.repairing
            || self.awaited.is_some()
        {
            self.pool.forget_waits();
            self.pool.found_fair();
            return self.watch_pace(cx);
        }
        rule!("MINBFT-P1");
        let proposed: BTreeSet<Digest> = self.proposed().copied().collect();
        let stock = self.pool.stock(self.pace.since(), cx.now(), |digest| proposed.contains(digest));
        // Most of what waits may wait at the primary alone (N14).
        let unseen = stock.map_or(0, |stock| stock.unseen);
        let waiting = self.pool.len().saturating_sub(proposed.len()).max(unseen);
        let bytes = self.pool.bytes().saturating_sub(self.frames.bytes(&proposed));
        let (limits, most) = (&self.config.limits, self.config.batch_bytes());
        let times = self.patience().agreements(waiting, bytes, limits, most);
        let least = self.patience().least(stock.map(|stock| stock.clients));
        rule!("MINBFT-P2");
        let anew = stock.is_some_and(|stock| stock.anew);
        let waited = stock.map(|stock| stock.waited);
        let look = self.pace.look_again(cx.now(), waited, anew, times, least);
        // One hiccup is not found slow twice.
        match look {
            Look::Slow => self.pool.found_slow(cx.now(), self.patience().between_looks()),
            _ => self.pool.found_fair(),
        }
        if look == Look::TooSlow {
            rule!("MINBFT-P4");
            self.pace.blame(self.primary(), self.group.weak());
            self.suspect(cx, "it orders more slowly than the others agree");
        }
        self.watch_pace(cx);
    }

    /// Frames of batches that this replica committed to in this view and that are not executed yet.
    pub(crate) fn proposed(&self) -> impl Iterator<Item = &Digest> {
        let executed = self.reached.seq.0.saturating_sub(self.started.base.0);
        let started = self.started.chosen.iter().skip(executed as usize);
        let batches = self.slots.range(..=self.committed).filter_map(|(_, slot)| slot.batch()).chain(started);
        batches.flat_map(|batch| batch.frames.iter())
    }

    /// What is borne of a primary.
    fn patience(&self) -> Patience {
        Patience {
            request_timeout: self.config.request_timeout,
            slower_by: self.config.slower_by,
            // Frames that the primary alone was shown are asked of it (R9) before anybody can commit.
            fetched: self.config.status_interval / SOON,
        }
    }

    /// How long a request may wait while others that came later are proposed.
    pub(crate) fn overtaking_patience(&self) -> u64 {
        let bears = self.pace.doubt().bears(self.patience().overtaken(self.pace.agreement()));
        bears.min(self.request_patience())
    }

    /// Whether the primary of this view is being judged by what it was shown.
    pub(crate) fn is_judged(&self) -> bool {
        self.shown.as_ref().is_some_and(|shown| self.pool.still_waits(shown))
    }

    /// Shows the oldest pending frames to the primary: their clients may have sent them to some only. From then on it
    /// has no reason to let them wait.
    pub(crate) fn show_oldest(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.active() || self.is_primary() {
            return;
        }
        let half = self.overtaking_patience() / 2;
        let until = Time(cx.now().0.saturating_sub(half));
        let before = self.shown.as_ref();
        let oldest = self.pool.waiting_since(until, Shown::MOST, Shown::MOST_BYTES, before).new;
        let Some(shown) = Shown::after(before.cloned(), &oldest, cx.now()) else {
            // What it bears has grown since this was due.
            if let Some(came) = self.pool.oldest_came() {
                let timer = if self.shown.is_some() { Timer::Overtaken } else { Timer::Forward };
                cx.set_timer(timer, came.after(half).max(self.after(cx, 1)));
            }
            return;
        };
        let frames = oldest.iter().filter_map(|(_, digest, _)| self.frames.get(digest).cloned());
        cx.show_frames(To::One(self.primary()), frames.collect());
        self.shown = Some(shown);
        cx.set_timer(Timer::Overtaken, self.after(cx, half));
    }

    /// The oldest requests were shown to the primary a while ago.
    pub(crate) fn on_overtaken_timer(&mut self, cx: &mut Cx<'_, Self>) {
        let Some(shown) = &self.shown else { return };
        if self.pool.oldest().is_none() || !self.active() || self.is_primary() {
            return;
        }
        let proposed: BTreeSet<Digest> = self.proposed().copied().collect();
        let left = self.pool.still_new(shown).any(|digest| !proposed.contains(&digest));
        let overtaken = left && self.pool.newest_proposed() > shown.at;
        if !overtaken || !shown.again || self.pace.agreement().is_none() {
            return self.show_oldest(cx);
        }
        rule!("MINBFT-P3");
        self.pace.blame(self.primary(), self.group.weak());
        self.shown = None;
        self.suspect(cx, "it leaves a request out that others overtake");
    }
}
