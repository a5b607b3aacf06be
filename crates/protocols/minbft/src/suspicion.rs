//! MinBFT §4, view change: from the time-out to the decision to leave the view.

use crate::message::{Body, RequestViewChange, SignedRequest};
use crate::state::{MinBft, Phase, Timer};
use std::sync::Arc;
use troth_core::{Cx, Note, To, rule};
use troth_types::{Member, View};

impl MinBft {
    /// Runs the timers for the oldest pending request. They start anew when another becomes the oldest,
    /// and for nothing else: progress of other requests does not help one that is starved.
    pub(crate) fn watch_oldest(&mut self, cx: &mut Cx<'_, Self>) {
        rule!("MINBFT-V1");
        let oldest = if self.active() { self.pool.oldest().map(|(order, _)| order) } else { None };
        if oldest == self.timed {
            return;
        }
        self.timed = oldest;
        if oldest.is_some() {
            let patience = self.request_patience();
            let came = self.pool.oldest_came().unwrap_or_default();
            if self.is_judged() {
                cx.cancel_timer(Timer::Forward);
            } else {
                cx.set_timer(Timer::Forward, came.after(self.overtaking_patience() / 2).max(cx.now()));
            }
            cx.set_timer(Timer::Request, self.after(cx, patience));
        } else {
            cx.cancel_timer(Timer::Forward);
            cx.cancel_timer(Timer::Request);
        }
    }

    /// Runs the timers for the application's deadline, which has nobody who asks for it: a primary that
    /// orders all requests and lets no time pass is suspected like one that orders nothing.
    pub(crate) fn watch_deadline(&mut self, cx: &mut Cx<'_, Self>) {
        let Some(deadline) = self.reached.deadline else {
            cx.cancel_timer(Timer::Deadline);
            return cx.cancel_timer(Timer::Overdue);
        };
        rule!("MINBFT-V19");
        let wait = deadline.0.saturating_sub(cx.wall().0);
        cx.set_timer(Timer::Deadline, self.after(cx, wait));
        cx.set_timer(Timer::Overdue, self.after(cx, wait.saturating_add(self.request_patience())));
    }

    /// The deadline has been due for long.
    pub(crate) fn on_overdue(&mut self, cx: &mut Cx<'_, Self>) {
        if self.active() && self.deadline_due(cx) {
            self.suspect(cx, "it lets no agreed time pass");
        } else if self.active() {
            // The clock was set back meanwhile.
            self.watch_deadline(cx);
        }
    }

    /// The oldest pending request has waited too long.
    pub(crate) fn on_request_timeout(&mut self, cx: &mut Cx<'_, Self>) {
        if self.active() && self.timed.is_some() {
            self.suspect(cx, "the oldest request waits too long");
        }
    }

    /// The NEW-VIEW has not come in time.
    pub(crate) fn on_new_view_timeout(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.active() && self.may_certify() {
            self.suspect(cx, "no valid NEW-VIEW in time");
            self.watch_new_view(cx);
        }
    }

    /// Waits for the NEW-VIEW of the present view, twice as long for each view that failed.
    pub(crate) fn watch_new_view(&mut self, cx: &mut Cx<'_, Self>) {
        let patience = self.back_off.of(self.config.view_timeout);
        cx.set_timer(Timer::NewView, self.after(cx, patience));
    }

    /// Wants the next view: REQ-VIEW-CHANGE to all.
    pub(crate) fn suspect(&mut self, cx: &mut Cx<'_, Self>, reason: &'static str) {
        let to = self.view.next();
        if self.wanted_view >= to {
            return;
        }
        self.suspicions += 1;
        self.wanted_view = to;
        cx.suspect(self.primary(), reason);
        cx.sign(Body::RequestViewChange(RequestViewChange { to }), To::Others);
    }

    /// REQ-VIEW-CHANGE: the highest of each replica counts.
    pub(crate) fn on_request_view_change(&mut self, cx: &mut Cx<'_, Self>, signed: &Arc<SignedRequest>) {
        self.note_request(signed);
        self.welcome(cx, signed);
        self.follow_requests(cx);
        self.settle(cx);
    }

    /// Whether a REQ-VIEW-CHANGE may do anything: it is above the one that is known of its sender, or a readmitted replica asks
    /// to be taken up.
    pub(crate) fn may_move(&self, signed: &SignedRequest) -> bool {
        rule!("MINBFT-R17");
        if !self.group.contains(signed.from) {
            return false;
        }
        let known = self.requests.get(&signed.from);
        known.is_none_or(|known| known.request.to < signed.request.to) || self.may_be_welcomed(signed.from)
    }

    pub(crate) fn note_request(&mut self, signed: &Arc<SignedRequest>) {
        if !self.group.contains(signed.from) {
            return;
        }
        let known = self.requests.get(&signed.from);
        if known.is_none_or(|known| known.request.to < signed.request.to) {
            self.requests.insert(signed.from, signed.clone());
        }
    }

    /// A request that a VIEW-CHANGE shows. Everybody must find it good that knows the key, or the VIEW-CHANGE of
    /// a replica that was not told yet would not be; but a replica whose host was replaced says itself what it
    /// wants now.
    pub(crate) fn note_shown_request(&mut self, signed: &Arc<SignedRequest>) {
        rule!("MINBFT-V21");
        if !self.configuration.member(signed.from).is_some_and(Member::has_changed_host) {
            self.note_request(signed);
        }
    }

    /// Leaves the view once f+1 replicas want a later one: for the highest view that f+1 of them want
    /// or go beyond, so that faulty replicas alone neither start a view change nor choose its target.
    pub(crate) fn follow_requests(&mut self, cx: &mut Cx<'_, Self>) {
        rule!("MINBFT-V2");
        let mut targets: Vec<View> = self.requests.values().map(|signed| signed.request.to).collect();
        targets.sort_unstable_by(|a, b| b.cmp(a));
        let Some(to) = targets.get(self.group.weak() - 1).copied() else { return };
        if to <= self.view {
            return;
        }
        let grounds = self.requests.values().filter(|signed| signed.request.to >= to);
        let grounds: Vec<_> = grounds.take(self.group.weak()).cloned().collect();
        self.leave_view(cx, to, grounds);
    }

    fn leave_view(&mut self, cx: &mut Cx<'_, Self>, to: View, grounds: Vec<Arc<SignedRequest>>) {
        self.rest_from_welcomes();
        self.view = to;
        self.phase = Phase::Changing;
        self.wanted_view = self.wanted_view.max(to);
        self.slots.clear();
        // What is still needed is named again by the VIEW-CHANGEs; what nobody has must not hide it.
        self.frames.want_nothing();
        self.known_views.want_nothing();
        self.candidates.clear();
        self.proposed_view = false;
        self.due_view_change = Some(grounds);
        self.timed = None;
        cx.cancel_timer(Timer::Forward);
        cx.cancel_timer(Timer::Request);
        cx.cancel_timer(Timer::Pace);
        cx.cancel_timer(Timer::Overtaken);
        self.looking = false;
        self.watch_new_view(cx);
        self.back_off.failed();
        cx.note(Note::ViewChange { to });
        self.recheck = true;
    }
}
