//! Slow and unfair primaries (not in the paper; ADR 3): a primary that orders just in time for nobody's timer.
//!
//! A backup times how long requests wait to be proposed, and how long the others take to agree on what was. A correct
//! primary is about as fast as the others are, whatever the machines, the disks and the load; one that is much slower
//! is suspected, and so is one that lets a request wait while it proposes others that came later.

use crate::state::{MinBft, Timer};
use std::collections::BTreeSet;
use troth_blocks::Look;
use troth_core::{Cx, To, rule};
use troth_types::{Digest, Seq, Time};

/// Looks at a primary in the time after which the oldest request makes it suspected.
const LOOKS: u64 = 4;
/// Looks that a new primary is spared: it begins with what the last one left.
const SPARED: u64 = 2;
/// The part of the request time-out that no primary is blamed for.
const LEAST: u64 = 256;
/// The part of it that a single request may wait while others overtake it.
const OVERTAKEN: u64 = 20;

/// So many times what requests may typically wait.
const SINGLE: u64 = 8;

/// The oldest request, shown to the primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    order: u64,
    at: Time,
}

impl MinBft {
    /// Looks at the primary now and then while anything waits or was ordered.
    pub(crate) fn watch_pace(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.looking && self.active() && !self.pool.is_empty() {
            self.looking = true;
            cx.set_timer(Timer::Pace, self.after(cx, self.config.request_timeout / LOOKS));
        }
    }

    /// A view begins: its primary is as if everything had come just now.
    pub(crate) fn begin_pace(&mut self, cx: &Cx<'_, Self>) {
        self.pace.begin(self.after(cx, SPARED * self.config.request_timeout / LOOKS));
        self.proposed_at.clear();
        self.shown = None;
        self.asked_up_to = Seq(0);
    }

    /// Takes stock of how long requests waited for the primary.
    pub(crate) fn on_pace_timer(&mut self, cx: &mut Cx<'_, Self>) {
        self.looking = false;
        // One that is behind or repairs itself waits for itself.
        if !self.active() || self.is_primary() || self.behind || self.repairing || self.awaited.is_some() {
            self.pool.forget_waits();
            return self.watch_pace(cx);
        }
        rule!("MINBFT-P1");
        let proposed = self.proposed();
        let waited = self.pool.typical_wait(cx.now(), |digest| proposed.contains(digest));
        let rounds = 1
            + self.pool.len() / self.config.limits.batch_frames
            + self.pool.bytes() / self.config.batch_bytes();
        let least = self.config.request_timeout / LEAST;
        rule!("MINBFT-P2");
        if self.pace.look(cx.now(), waited, rounds as u64 * self.config.slower_by, least) == Look::TooSlow {
            rule!("MINBFT-P4");
            self.pace.blame(self.primary(), self.group.weak());
            self.suspect(cx, "it orders more slowly than the others agree");
        } else {
            self.unfair.good(true);
        }
        self.watch_pace(cx);
    }

    /// Frames of batches that are proposed in this view and not executed yet.
    fn proposed(&self) -> BTreeSet<Digest> {
        let started = self.started.chosen.iter();
        let batches = self.slots.values().filter_map(|slot| slot.batch()).chain(started);
        batches.flat_map(|batch| batch.frames.iter().copied()).collect()
    }

    /// When a batch that is executed was proposed. What a view started with was proposed before it came here.
    pub(crate) fn take_proposed_at(&mut self, seq: Seq) -> Time {
        while let Some((first, at)) = self.proposed_at.front().copied() {
            if first > seq {
                break;
            }
            self.proposed_at.pop_front();
            if first == seq {
                return at;
            }
        }
        Time(0)
    }

    /// How long a request may wait while others that came later are proposed.
    pub(crate) fn overtaking_patience(&self) -> u64 {
        let usual = self.pace.agreement().unwrap_or(0).saturating_mul(self.config.slower_by * SINGLE);
        let bears = self.unfair.bears((self.config.request_timeout / OVERTAKEN).max(usual));
        bears.min(self.request_patience())
    }

    /// Shows the oldest pending frame to the primary: its client may have sent it to some only. From then on it
    /// has no reason to let it wait.
    pub(crate) fn show_oldest(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.active() || self.is_primary() {
            return;
        }
        let Some((order, digest)) = self.pool.oldest() else { return };
        let primary = self.primary();
        if let Some(frame) = self.frames.get(&digest).cloned() {
            cx.show_frames(To::One(primary), vec![frame]);
        }
        if self.pace.agreement().is_some() {
            self.shown = Some(Shown { order, at: cx.now() });
            cx.set_timer(Timer::Overtaken, self.after(cx, self.overtaking_patience() / 2));
        }
    }

    /// The oldest request was shown to the primary a while ago.
    pub(crate) fn on_overtaken_timer(&mut self, cx: &mut Cx<'_, Self>) {
        let Some(shown) = self.shown else { return };
        let Some((order, digest)) = self.pool.oldest() else { return };
        if !self.active() || self.is_primary() || order != shown.order {
            return;
        }
        if self.pool.newest_proposed() <= shown.at || self.proposed().contains(&digest) {
            // Nothing overtakes it yet.
            return cx.set_timer(Timer::Overtaken, self.after(cx, self.overtaking_patience() / 2));
        }
        rule!("MINBFT-P3");
        self.unfair.blame(self.primary(), self.group.weak());
        self.shown = None;
        self.suspect(cx, "it leaves a request out that others overtake");
    }
}
