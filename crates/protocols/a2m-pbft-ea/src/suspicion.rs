//! Appendix A: the timers that start a view change ("as per the PBFT protocol"), and WANTVIEWCHANGE.

use crate::evidence::certifies;
use crate::message::{Body, WantViewChange, Wanted};
use crate::state::{A2mPbftEa, Asked, Timer};
use std::collections::BTreeSet;
use std::sync::Arc;
use troth_blocks::Shown;
use troth_core::{Cx, To, rule};
use troth_trusted::a2m::Nonce;
use troth_types::View;

/// Frames shown to the primary at once.
const MOST_SHOWN: usize = 64;

impl A2mPbftEa {
    /// Runs the timers for the oldest pending request. They start anew when another becomes the oldest, and for nothing
    /// else: progress of other requests does not help one that is starved (F-P5), nor does a client that has its own
    /// executed ones give way one after the other: each has no more than its own time from when it came.
    pub(crate) fn watch_oldest(&mut self, cx: &mut Cx<'_, Self>) {
        rule!("A2MPBFTEA-V1");
        let oldest = if self.active { self.pool.oldest().map(|(order, _)| order) } else { None };
        let gave_way = std::mem::take(&mut self.gave_way);
        if oldest == self.timed {
            return;
        }
        self.timed = oldest;
        if oldest.is_some() {
            let patience = self.back_off.of(self.config.request_timeout);
            if gave_way {
                // Whoever has all of its own give way, just before they are shown, must not end the view with the time that
                // the first of them had.
                let due = self.pool.oldest_came().unwrap_or_default().after(patience);
                if due > self.request_due {
                    self.request_due = due;
                    cx.set_timer(Timer::Request, due);
                }
                return;
            }
            self.request_due = self.after(cx, patience);
            cx.set_timer(Timer::Forward, self.after(cx, patience / 2));
            cx.set_timer(Timer::Request, self.request_due);
        } else {
            cx.cancel_timer(Timer::Forward);
            cx.cancel_timer(Timer::Request);
        }
    }

    /// Shows the oldest pending frames to the primary: their clients may have sent them to some only.
    pub(crate) fn show_oldest(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.active || self.is_primary() {
            return;
        }
        let oldest = self.pool.waiting_since(cx.now(), MOST_SHOWN, Shown::MOST_BYTES);
        let frames = oldest.digests().filter_map(|digest| self.frames.get(digest).cloned()).collect();
        let frames = self.ask_favours(cx, frames);
        if !frames.is_empty() {
            cx.show_frames(To::One(self.primary()), frames);
        }
        // They may be lost on the way: one that waits alone would leave alone.
        if self.timed.is_some() {
            let patience = self.back_off.of(self.config.request_timeout);
            cx.set_timer(Timer::Forward, self.after(cx, patience / 8));
        }
    }

    /// Runs the timers for the application's deadline, which has nobody who asks for it.
    pub(crate) fn watch_deadline(&mut self, cx: &mut Cx<'_, Self>) {
        let Some(deadline) = self.reached.deadline else {
            cx.cancel_timer(Timer::Deadline);
            return cx.cancel_timer(Timer::Overdue);
        };
        rule!("A2MPBFTEA-V16");
        let wait = deadline.0.saturating_sub(cx.wall().0);
        let patience = self.back_off.of(self.config.request_timeout);
        cx.set_timer(Timer::Deadline, self.after(cx, wait));
        cx.set_timer(Timer::Overdue, self.after(cx, wait.saturating_add(patience)));
    }

    /// The deadline has been due for long.
    pub(crate) fn on_overdue(&mut self, cx: &mut Cx<'_, Self>) {
        if self.active && self.deadline_due(cx) {
            self.suspect(cx, "it lets no agreed time pass");
        } else if self.active {
            // The clock was set back meanwhile.
            self.watch_deadline(cx);
        }
    }

    /// The oldest pending request has waited too long.
    pub(crate) fn on_request_timeout(&mut self, cx: &mut Cx<'_, Self>) {
        if self.active && self.timed.is_some() {
            self.suspect(cx, "the oldest request waits too long");
        }
    }

    /// The time for the NEWVIEW runs from the moment at which f+1 replicas are known to have moved to the view or beyond;
    /// before, a new primary can do nothing.
    pub(crate) fn watch_new_view(&mut self, cx: &mut Cx<'_, Self>) {
        let moved = self.changes.values().filter_map(|message| message.view_change());
        let moved = moved.filter(|change| change.to >= self.view).count();
        if self.active || self.waits_for_view || moved < self.group.quorum() {
            return;
        }
        rule!("A2MPBFTEA-V17");
        self.waits_for_view = true;
        cx.set_timer(Timer::NewView, self.after(cx, self.back_off.of(self.config.view_timeout)));
    }

    /// The NEWVIEW has not come in time.
    pub(crate) fn on_new_view_timeout(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.active {
            self.suspect(cx, "no valid NEWVIEW in time");
        }
    }

    /// Wants the next view; before anybody is told, a nonce is drawn.
    pub(crate) fn suspect(&mut self, cx: &mut Cx<'_, Self>, reason: &'static str) {
        let to = self.view.next();
        if self.wanted_view >= to {
            return;
        }
        self.suspicions += 1;
        cx.suspect(self.primary(), reason);
        self.wanted_view = to;
        let ticket = self.ticket(Asked::Nonce(to));
        cx.draw(ticket);
    }

    /// WANTVIEWCHANGE ⟨v_to, z⟩_σi, once the nonce is there.
    pub(crate) fn want(&mut self, cx: &mut Cx<'_, Self>, to: View, nonce: Nonce) {
        if to == self.wanted_view && to > self.view {
            cx.sign(Body::Want(WantViewChange { to, nonce }), To::Others);
        }
    }

    /// A WANTVIEWCHANGE of somebody: the one for the highest view counts.
    pub(crate) fn on_want(&mut self, wanted: &Arc<Wanted>) {
        if !self.group.contains(wanted.from) {
            return;
        }
        let (view, to) = (self.view, wanted.want.to);
        let known = self.wants.get(&wanted.from).map(|known| known.want.to);
        if known.is_none_or(|known| known < to) {
            self.useful += u64::from(to > view && known.is_none_or(|known| known <= view));
            self.wants.insert(wanted.from, wanted.clone());
        }
    }

    /// Leaves the view once f+1 replicas want the same later one, so that faulty replicas alone do not start a view change.
    pub(crate) fn follow_wants(&mut self, cx: &mut Cx<'_, Self>) {
        let later = self.wants.values().map(|wanted| wanted.want.to).filter(|to| *to > self.view);
        let targets: BTreeSet<View> = later.collect();
        for to in targets.into_iter().rev() {
            let wanted: Vec<Arc<Wanted>> =
                self.wants.values().filter(|wanted| wanted.want.to == to).cloned().collect();
            if certifies(&self.group, &wanted, to) {
                return self.leave_view(cx, to, wanted);
            }
        }
    }
}
