//! Appendix A: the timers that start a view change ("as per the PBFT protocol"), and WANTVIEWCHANGE.

use crate::evidence::certifies;
use crate::message::{Body, WantViewChange, Wanted};
use crate::state::{A2mPbftEa, Asked, Timer};
use std::collections::BTreeSet;
use std::sync::Arc;
use troth_core::{Cx, To, rule};
use troth_trusted::a2m::Nonce;
use troth_types::View;

impl A2mPbftEa {
    /// Runs the timers for the oldest pending request. They start anew when another becomes the oldest, and for nothing
    /// else: progress of other requests does not help one that is starved (F-P5), nor does a client that has its own
    /// executed ones give way one after the other: each has no more than its own time from when it came.
    pub(crate) fn watch_oldest(&mut self, cx: &mut Cx<'_, Self>) {
        rule!("A2MPBFTEA-V1");
        let waits_on = self.timed.is_some() && self.pool.oldest().map(|(order, _)| order) == self.timed;
        if self.active && self.time_is_over && waits_on && !self.lags() {
            self.time_is_over = false;
            let came = self.pool.oldest_came().unwrap_or_default();
            let own = came.after(self.back_off.of(self.config.request_timeout));
            cx.set_timer(Timer::Request, own.max(cx.now()));
        }
        let oldest = self.pool.oldest().filter(|_| self.active).map(|(order, _)| order);
        let gave_way = std::mem::take(&mut self.gave_way);
        if oldest == self.timed {
            return;
        }
        self.timed = oldest;
        self.time_is_over &= gave_way;
        self.bore_once &= gave_way;
        if oldest.is_none() {
            self.time_is_over = false;
            cx.cancel_timer(Timer::Forward);
            return cx.cancel_timer(Timer::Request);
        }
        let patience = self.back_off.of(self.config.request_timeout);
        let came = self.pool.oldest_came().unwrap_or_default();
        if self.shown.as_ref().is_some_and(|shown| self.pool.still_waits(shown)) {
            cx.cancel_timer(Timer::Forward);
        } else {
            cx.set_timer(Timer::Forward, came.after(self.overtaking_patience() / 2).max(cx.now()));
        }
        // Whoever has all of its own give way, just before they are shown, must not end the view with the time that the
        // first of them had.
        let due = if gave_way { came.after(patience) } else { self.after(cx, patience) };
        // What is over while this replica is behind was put off, and so is what takes its place, until that ends.
        if !gave_way || due > self.request_due {
            self.time_is_over = false;
            self.request_due = due;
            cx.set_timer(Timer::Request, due);
        }
    }

    /// Runs the timers for the application's deadline, which has nobody who asks for it.
    pub(crate) fn watch_deadline(&mut self, cx: &mut Cx<'_, Self>) {
        self.overdue_once = false;
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
            if self.lags() && !self.overdue_once {
                self.overdue_once = true;
                let patience = self.back_off.of(self.config.request_timeout);
                cx.set_timer(Timer::Overdue, self.after(cx, patience));
            } else {
                self.suspect(cx, "it lets no agreed time pass");
            }
        } else if self.active {
            // The clock was set back meanwhile.
            self.watch_deadline(cx);
        }
    }

    /// The oldest pending request has waited too long.
    pub(crate) fn on_request_timeout(&mut self, cx: &mut Cx<'_, Self>) {
        if self.active && self.lags() && self.timed.is_some() && !self.bore_once {
            rule!("A2MPBFTEA-V1");
            // What it waits for may be executed in what it lacks. It bears that once: of f+1 correct replicas all must want
            // the next view, and who could keep this one behind for ever would never be replaced.
            (self.time_is_over, self.bore_once) = (true, true);
            self.request_due = self.after(cx, self.back_off.of(self.config.request_timeout));
            cx.set_timer(Timer::Request, self.request_due);
        } else if self.active && self.timed.is_some() {
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
        if self.wanted_view <= self.view {
            self.suspicions += 1;
            cx.suspect(self.primary(), reason);
            self.want_next(cx);
        }
    }

    /// Has a nonce drawn, to want the next view with.
    pub(crate) fn want_next(&mut self, cx: &mut Cx<'_, Self>) {
        let to = self.view.next();
        if self.wanted_view < to {
            self.wanted_view = to;
            let ticket = self.ticket(Asked::Nonce(to));
            cx.draw(ticket);
        }
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
    /// One that is too far ahead it leaves for when it has entered a later view: gone from here it could show nothing of it.
    pub(crate) fn follow_wants(&mut self, cx: &mut Cx<'_, Self>) {
        rule!("A2MPBFTEA-V20");
        let later = self.wants.values().map(|wanted| wanted.want.to);
        let later = later.filter(|to| *to > self.view && self.may_leave_for(*to));
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
