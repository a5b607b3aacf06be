//! The stages of those who relapse together ([`Relapse`](crate::adversary::Relapse)): when each begins and ends.

use super::World;
use super::event::Event;
use crate::Protocol;
use crate::adversary::Stage;
use troth_types::ReplicaId;

/// Microseconds between two looks at whether those who relapse have caught up.
const LOOKS_AGAIN: u64 = 2_000;

impl<P: Protocol> World<P> {
    /// Those who relapse go on to their next stage, if the present one is over.
    pub(super) fn next_stage(&mut self) {
        let now = self.agenda.now;
        if now < self.stage_until {
            return;
        }
        let before = self.pact.borrow().stage;
        let (stage, lasts) = match before {
            // Who is behind votes for nothing.
            Stage::Honest if !self.colluders_keep_up() => (Stage::Honest, LOOKS_AGAIN),
            Stage::Honest => (Stage::Silent, self.fall_silent()),
            Stage::Silent if self.entered => {
                (Stage::First, self.adversary_rng.exponential(2 * self.options.view_timeout))
            }
            Stage::First => (Stage::Second, 50_000 + self.adversary_rng.exponential(400_000)),
            Stage::Silent | Stage::Second => {
                self.network.join();
                (Stage::Honest, self.fault_rng.exponential(self.options.fault_pause).max(500))
            }
        };
        self.pact.borrow_mut().stage = stage;
        self.trace.note(now, || format!("those who relapse go from {before:?} to {stage:?}"));
        self.stage_until = u64::MAX;
        self.stage_ends_in(lasts);
    }

    /// The correct replicas are parted; for how long they may take to work in another view.
    fn fall_silent(&mut self) -> u64 {
        let part = self.drawn_part();
        self.network.confine(part, u64::MAX);
        let turned = self.adversary_rng.next();
        let mut pact = self.pact.borrow_mut();
        (pact.part, pact.turned) = (part, turned);
        self.entered = false;
        2 * self.options.request_timeout + self.adversary_rng.exponential(4 * self.options.view_timeout)
    }

    /// The present stage is over so soon, unless it is sooner.
    fn stage_ends_in(&mut self, lasts: u64) {
        let until = self.agenda.now + lasts;
        if until < self.stage_until {
            self.stage_until = until;
            self.agenda.after(lasts, Event::Fault);
        }
    }

    /// Whether those who relapse have executed about as much as the correct ones.
    fn colluders_keep_up(&self) -> bool {
        let executed = |faulty: bool| {
            let nodes = self.nodes.iter().filter(move |node| node.adversary.is_some() == faulty);
            nodes.map(|node| node.executed.0)
        };
        let ahead = executed(false).max().unwrap_or_default();
        executed(true).all(|executed| executed + self.options.pipeline >= ahead)
    }

    fn relapses_in(&self, stage: Stage) -> bool {
        self.options.relapses && !self.healed && self.pact.borrow().stage == stage
    }

    /// A correct replica works in another view: those who relapse soon go with the part in which it is.
    pub(super) fn has_entered(&mut self, replica: ReplicaId) {
        if self.relapses_in(Stage::Silent) && !self.entered {
            self.entered = true;
            let mut pact = self.pact.borrow_mut();
            if pact.part & (1 << replica.0) == 0 {
                pact.part = !pact.part;
            }
            drop(pact);
            self.stage_ends_soon();
        }
    }

    /// A correct replica executed something: those who went with it may have what they are about to forget.
    pub(super) fn has_executed(&mut self) {
        if self.relapses_in(Stage::First) {
            self.stage_ends_soon();
        }
    }

    fn stage_ends_soon(&mut self) {
        let mean = self.adversary_rng.pick(&[100, 1_000, 10_000]);
        let lasts = self.adversary_rng.exponential(mean);
        self.stage_ends_in(lasts);
    }

    /// A part of the replicas with some of the correct ones in it and some not.
    fn drawn_part(&mut self) -> u64 {
        let correct = self.blueprint.group.all().filter(|replica| !self.faulty(*replica));
        let correct = correct.fold(0, |mask: u64, replica| mask | 1 << replica.0);
        loop {
            let part = self.adversary_rng.subset(usize::from(self.options.n));
            if part & correct != 0 && !part & correct != 0 {
                return part;
            }
        }
    }
}
