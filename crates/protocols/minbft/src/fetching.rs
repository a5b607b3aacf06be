//! Frames that a batch or a VIEW-CHANGE names and that have not come: which are asked for, of whom, and when.
//!
//! A client that shows its frames to the primary alone, or to the others late, would hold up every batch that
//! names them until the replicas compare notes again. Their primary holds them, so it is asked soon. Where no view is
//! agreed everybody is: those who committed to a batch hold its frames.

use crate::state::{MinBft, Timer};
use troth_core::{Cx, To, rule};
use troth_types::{Seq, Time};

/// Missing frames asked for at once.
pub(crate) const MOST_FRAMES: usize = 128;
/// Batches ahead of the last commitment whose frames are wanted, at least.
const LEAST_AHEAD: u64 = 4;
/// The part of the interval between two status messages after which the primary is asked: a frame that was sent
/// when the PREPARE was has come by then.
pub(crate) const SOON: u64 = 32;
/// The same between two questions for what a view may not begin without: a second one takes the place of one that waits.
const NEXT: u64 = 16;

impl MinBft {
    /// The last batch whose frames are wanted. Far ahead only a primary that does not wait for its own batches
    /// names any; a replica that fetched all of them would hold whatever that one invents.
    pub(crate) fn wants_up_to(&self) -> Seq {
        if !self.active() {
            return Seq(u64::MAX);
        }
        rule!("MINBFT-R8");
        let under_way = self.committed.max(self.delivered).max(self.started.end());
        Seq(under_way.0.saturating_add(self.config.pipeline.max(LEAST_AHEAD)))
    }

    /// Frames are named that are not here.
    pub(crate) fn fetch_soon(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.fetching {
            self.fetching = true;
            cx.set_timer(Timer::Fetch, self.after(cx, self.config.status_interval / SOON));
        }
    }

    /// A batch cannot be committed to for want of its frames. What is wanted goes on with what was committed to, so
    /// a replica that lacks the frames of many batches asks again as it catches up, and as answers come; not while
    /// nothing does.
    pub(crate) fn fetch_further(&mut self, cx: &mut Cx<'_, Self>) {
        if self.wants_up_to() > self.asked_up_to {
            self.fetch_soon(cx);
        }
    }

    /// What a view may not begin without is asked for as soon as it is named.
    pub(crate) fn fetch_for_next_view(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.active() && self.frames.lacks_anew() {
            self.fetch_soon(cx);
        }
    }

    /// Asks everybody for what VIEW-CHANGEs and NEW-VIEWs name, a part at a time and each frame once: whoever named it
    /// first may have invented it. What does not come is asked for with the next STATUS.
    fn ask_for_next_view(&mut self, cx: &mut Cx<'_, Self>, asked_before: Time) {
        rule!("MINBFT-R2");
        let missing = self.frames.ask_first(MOST_FRAMES, self.wants_up_to(), cx.now(), asked_before);
        if !missing.is_empty() {
            cx.fetch_frames(To::Others, missing);
        }
        if self.frames.lacks_anew() {
            self.fetching = true;
            cx.set_timer(Timer::Fetch, self.after(cx, self.config.status_interval / NEXT));
        }
    }

    /// Asks the primary for what has not come meanwhile, and everybody for what it was asked for and did not send: it may have
    /// shown that to f others, with whom it goes on. What does not come is asked of all with the next STATUS.
    pub(crate) fn on_fetch_timer(&mut self, cx: &mut Cx<'_, Self>) {
        self.fetching = false;
        if self.active() && self.is_primary() {
            return;
        }
        // What was asked for just now is on its way, or waits in the queue of a replica that has much to do: to ask
        // again would make it wait longer.
        let (now, up_to) = (cx.now(), self.wants_up_to());
        let asked_before = Time(now.0.saturating_sub(self.config.status_interval));
        let soon = Time(now.0.saturating_sub(self.config.status_interval / SOON));
        if !self.active() {
            return self.ask_for_next_view(cx, asked_before);
        }
        let kept_back = self.frames.ask_next(MOST_FRAMES, up_to, now, soon, asked_before);
        if !kept_back.is_empty() {
            // One question at a time: a second would take the place of the first.
            cx.fetch_frames(To::Others, kept_back);
            return self.fetch_soon(cx);
        }
        let missing = self.frames.ask_first(MOST_FRAMES, up_to, now, asked_before);
        self.asked_up_to = up_to;
        if !missing.is_empty() {
            rule!("MINBFT-R9");
            cx.fetch_frames(To::One(self.primary()), missing);
            self.fetch_soon(cx);
        }
    }
}
