//! PBFT §4.4, "View changes": the timers that start one (§4.5.2, "Liveness").

use crate::state::{Pbft, Timer};
use troth_core::{Cx, rule};

impl Pbft {
    /// Runs the timers for the oldest pending request. They start anew when another becomes the oldest, and for nothing
    /// else: progress of other requests does not help one that is starved (F-P5).
    pub(crate) fn watch_oldest(&mut self, cx: &mut Cx<'_, Self>) {
        rule!("PBFT-V1");
        let oldest = if self.active { self.pool.oldest().map(|(order, _)| order) } else { None };
        if oldest == self.timed {
            return;
        }
        self.timed = oldest;
        if oldest.is_some() {
            let patience = self.back_off.of(self.config.request_timeout);
            let came = self.pool.oldest_came().unwrap_or_default();
            if oldest.zip(self.shown).is_some_and(|(oldest, shown)| shown.has(oldest)) {
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

    /// Runs the timers for the application's deadline, which has nobody who asks for it.
    pub(crate) fn watch_deadline(&mut self, cx: &mut Cx<'_, Self>) {
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
            self.suspect(cx, "no valid NEW-VIEW in time");
        }
    }

    /// Leaves for the next view.
    fn suspect(&mut self, cx: &mut Cx<'_, Self>, reason: &'static str) {
        self.suspicions += 1;
        cx.suspect(self.primary(), reason);
        self.leave_view(cx, self.view.next());
    }
}
