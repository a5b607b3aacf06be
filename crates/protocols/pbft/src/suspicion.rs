//! PBFT §4.4, "View changes": the timers that start one (§4.5.2, "Liveness").

use crate::message::{Message, Status};
use crate::state::{Pbft, Timer};
use troth_core::{Cx, To, rule};
use troth_types::ReplicaId;

impl Pbft {
    /// Runs the timers for the oldest pending request. They start anew when another becomes the oldest, and for nothing
    /// else: progress of other requests does not help one that is starved (F-P5), nor does a client that has its own
    /// executed ones give way one after the other: each has no more than its own time from when it came. One that has yet to
    /// execute what is stable waits for itself, for what it waits for may have been executed there: it begins to wait for
    /// nothing, and wishes nothing before it has.
    pub(crate) fn watch_oldest(&mut self, cx: &mut Cx<'_, Self>) {
        rule!("PBFT-V1");
        let waits_on = self.timed.is_some() && self.pool.oldest().map(|(order, _)| order) == self.timed;
        let runs_on = waits_on || (self.gave_way && self.timed.is_some());
        if self.active && self.lags() && runs_on {
            // The time runs on: who could have this replica behind again and again would never be found out.
            return;
        }
        if std::mem::take(&mut self.time_is_over) && runs_on {
            cx.set_timer(Timer::Request, cx.now());
        }
        let oldest = self.pool.oldest().filter(|_| self.active && !self.lags()).map(|(order, _)| order);
        let gave_way = std::mem::take(&mut self.gave_way);
        if oldest == self.timed {
            return;
        }
        self.timed = oldest;
        let runs_on = gave_way && oldest.is_some();
        if !runs_on {
            // What was waited for is executed, or nobody waits here any more.
            self.impatient = false;
        }
        if oldest.is_some() {
            let patience = self.back_off.of(self.config.request_timeout);
            let came = self.pool.oldest_came().unwrap_or_default();
            if self.shown.as_ref().is_some_and(|shown| self.pool.still_waits(shown)) {
                cx.cancel_timer(Timer::Forward);
            } else {
                cx.set_timer(Timer::Forward, came.after(self.overtaking_patience() / 2).max(cx.now()));
            }
            // Whoever has all of its own give way, just before they are shown, must not end the view with the time that
            // the first of them had.
            let due = if runs_on { came.after(patience) } else { self.after(cx, patience) };
            if !runs_on || due > self.request_due {
                self.request_due = due;
                cx.set_timer(Timer::Request, due);
            }
        } else {
            cx.cancel_timer(Timer::Forward);
            cx.cancel_timer(Timer::Request);
        }
    }

    /// Runs the timers for the application's deadline, which has nobody who asks for it.
    pub(crate) fn watch_deadline(&mut self, cx: &mut Cx<'_, Self>) {
        self.overdue = false;
        let Some(deadline) = self.reached.deadline else {
            cx.cancel_timer(Timer::Deadline);
            return cx.cancel_timer(Timer::Overdue);
        };
        rule!("PBFT-V13");
        let wait = deadline.0.saturating_sub(cx.wall().0);
        let patience = self.back_off.of(self.config.request_timeout);
        cx.set_timer(Timer::Deadline, self.after(cx, wait));
        cx.set_timer(Timer::Overdue, self.after(cx, wait.saturating_add(patience)));
    }

    /// The deadline has been due for long.
    pub(crate) fn on_overdue(&mut self, cx: &mut Cx<'_, Self>) {
        if self.active && !self.lags() && self.deadline_due(cx) {
            self.overdue = true;
            self.wish(cx, "it lets no agreed time pass");
        } else if self.active {
            // The clock was set back meanwhile, or it is behind.
            self.watch_deadline(cx);
        }
    }

    /// The oldest pending request has waited too long.
    pub(crate) fn on_request_timeout(&mut self, cx: &mut Cx<'_, Self>) {
        if self.active && self.lags() && self.timed.is_some() {
            rule!("PBFT-V1");
            // What it waits for may be executed in what it lacks.
            self.time_is_over = true;
        } else if self.active && self.timed.is_some() {
            self.impatient = true;
            self.wish(cx, "the oldest request waits too long");
        }
    }

    /// The time for the NEW-VIEW runs from the moment at which 2f+1 replicas are known to have moved to the view or
    /// beyond; before, a new primary can do nothing. Those that are beyond count: they will not come back, and whoever
    /// waited for them here would wait for ever.
    pub(crate) fn watch_new_view(&mut self, cx: &mut Cx<'_, Self>) {
        let moved = self.changes.values().filter_map(|message| message.view_change());
        let moved = moved.filter(|change| change.to >= self.view).count();
        if self.active || self.waits_for_view || moved < self.group.quorum() {
            return;
        }
        rule!("PBFT-V14");
        self.waits_for_view = true;
        cx.set_timer(Timer::NewView, self.after(cx, self.back_off.of(self.config.view_timeout)));
    }

    /// The NEW-VIEW has not come in time.
    pub(crate) fn on_new_view_timeout(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.active {
            self.suspicions += 1;
            cx.suspect(self.primary(), "no valid NEW-VIEW in time");
            self.leave_view(cx, self.view.next());
        }
    }

    /// Says that it would rather have another primary, and goes on with this one: who left alone would be missing to the
    /// others, who have no reason to follow where it was this replica that stood still.
    pub(crate) fn wish(&mut self, cx: &mut Cx<'_, Self>, reason: &'static str) {
        rule!("PBFT-V16");
        self.suspicions += 1;
        cx.suspect(self.primary(), reason);
        cx.send(To::Others, Message::Status(self.status_message()));
    }

    /// Whether this replica would rather have another primary.
    pub(crate) fn wishes(&self) -> bool {
        self.wanting || (self.impatient && !self.lags()) || self.overdue
    }

    /// What somebody's last status says of the primary of this view. What came before the view begins here does not count, or
    /// this replica could leave the view in the step in which it enters it; whoever means it says it again.
    pub(crate) fn note_wish(&mut self, from: ReplicaId, status: &Status) {
        rule!("PBFT-V19");
        if status.view != self.view || !status.active || !self.active {
            return;
        }
        if status.wishes {
            self.wished_by.insert(from);
        } else {
            self.wished_by.remove(from);
        }
    }

    /// Leaves the view where f+1 wish it, one of whom is correct.
    pub(crate) fn follow_wishes(&mut self, cx: &mut Cx<'_, Self>) {
        rule!("PBFT-V17");
        let mut all = self.wished_by;
        // Who has left it says so with what it left by: with f others it may have done so, and they may be silent now.
        for message in self.changes.values() {
            if message.view_change().is_some_and(|change| change.to > self.view) {
                all.insert(message.from);
            }
        }
        if self.wishes() {
            all.insert(self.me);
        }
        if self.active && all.count() >= self.group.weak() {
            self.leave_view(cx, self.view.next());
        }
    }
}
