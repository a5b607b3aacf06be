//! Whom a client asks to answer a frame: as many as must say the same, as long as they do.
//!
//! All replicas are shown the frame; the others are told that no answer is wanted. They are asked as soon as those that were
//! asked cannot or do not answer alike.

use crate::core::ClientCore;
use crate::flight::Flight;
use std::sync::Arc;
use troth_types::{ReplicaId, Time, Wish};

/// Marks the place that implements a rule of `docs/protocols/minbft.md`, for `cargo xtask paper`.
macro_rules! rule {
    ($label:literal) => {};
}

/// What a replica owes that was asked and answered nothing, or something else, until others had to be: so many answers,
/// before it is relied on again. Each time it is twice as much.
const OWED: (u32, u32) = (16, 4096);
/// What an answer weighs that was not wanted: as much as so many frames that were not answered.
const UNWANTED: u32 = 16;
/// From so much on a replica is asked for all: it does not know the wish.
const DEAF: u32 = 3 * UNWANTED;
/// After so many frames it may be tried again.
const STAYS_DEAF: u32 = 1024;

/// How a replica has kept to what it was asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reliance {
    /// Answers that it owes.
    owes: u32,
    /// What it owes when it fails again.
    next: u32,
    /// What the answers weigh that it gave where none was wanted.
    unwanted: u32,
}

impl Reliance {
    /// It was asked, and others had to be. What was under way when it failed first makes it owe more, and is no failure of its
    /// own.
    pub(crate) fn failed(&mut self) {
        if self.owes > 0 {
            self.owes = (self.owes + OWED.0).min(OWED.1);
            return;
        }
        self.next = self.next.clamp(OWED.0, OWED.1);
        self.owes = self.next;
        self.next = (2 * self.next).min(OWED.1);
    }

    /// It gave the answer that counted. What it owes the next time grows less with each while it owes none.
    pub(crate) fn answered(&mut self) {
        if self.owes > 0 {
            self.owes -= 1;
        } else {
            self.next = self.next.saturating_sub(1);
        }
    }

    fn was_unwanted(&mut self) {
        self.unwanted += UNWANTED;
        if self.unwanted >= DEAF {
            self.unwanted = STAYS_DEAF;
        }
    }

    /// Whether it may be told that no answer is wanted, or be one of those that are relied on.
    pub(crate) fn is_good(self) -> bool {
        self.owes == 0 && self.unwanted < DEAF
    }
}

impl ClientCore {
    /// Those that need not answer a frame with this number. Nobody, unless enough others can be relied on and it is known how
    /// long answers take; and not those that cannot, who show by their answers when they can again.
    pub(crate) fn need_not_answer(&self, number: u64) -> Vec<ReplicaId> {
        rule!("MINBFT-N13");
        let needed = self.config.answers();
        let turns = self.config.group.turns(self.config.client, number);
        let mut good: Vec<ReplicaId> = turns.filter(|one| self.answers_well(*one)).collect();
        if good.len() < needed || !self.pace.is_known() { Vec::new() } else { good.split_off(needed) }
    }

    /// Whether a replica can be asked, and may be relied on.
    pub(crate) fn answers_well(&self, replica: ReplicaId) -> bool {
        self.links.is_up(replica) && self.reliance[usize::from(replica.0)].is_good()
    }

    /// Asks those that were told to be silent, if the frame lacks an outcome.
    pub(crate) fn ask_the_rest(&mut self, number: u64) {
        let Some(flight) = self.flights.get_mut(&number) else { return };
        flight.rest_at = None;
        if flight.agreed.is_some() {
            return;
        }
        let rest = std::mem::take(&mut flight.unasked);
        if flight.asked_the_rest || rest.is_empty() {
            return;
        }
        flight.asked_the_rest = true;
        flight.spoke_before = self.config.group.all().filter(|one| !flight.is_silent(*one)).collect();
        let frame = Arc::clone(&flight.frame);
        for to in rest {
            self.send_frame_to(to, &frame, Wish::Usual);
        }
    }

    /// Asks them where a replica that was asked, or is to show the frame to those that were, is gone before it answered.
    pub(crate) fn ask_the_rest_if_lost(&mut self, number: u64, gone: ReplicaId) {
        let Some(flight) = self.flights.get(&number) else { return };
        if flight.is_silent(gone) && (flight.asked.contains(&gone) || self.shows(flight, gone)) {
            self.ask_the_rest(number);
        }
    }

    /// Whether a frame was sent to this replica alone, so that no other has it but from this one.
    fn shows(&self, flight: &Flight, replica: ReplicaId) -> bool {
        flight.alone && self.config.group.primary(flight.view) == replica
    }

    /// A replica has said something of a frame or refused it. Asks the others where all that were asked have said what they
    /// say, and it is not enough; and soon after the first of those has.
    pub(crate) fn ask_the_rest_in_time(&mut self, number: u64, from: ReplicaId) {
        let Some(flight) = self.flights.get(&number) else { return };
        if flight.agreed.is_some() || flight.unasked.is_empty() {
            return;
        }
        let waits = |one: &ReplicaId| flight.is_silent(*one) && !flight.has_refused(*one);
        let refuses_to_show = self.shows(flight, from) && flight.has_refused(from);
        if refuses_to_show || !flight.asked.iter().any(|one| self.links.is_up(*one) && waits(one)) {
            return self.ask_the_rest(number);
        }
        // Nobody else sets the pace, or a liar could have everybody asked each time.
        if let Some(rest_at) = flight.rest_at.filter(|_| flight.asked.contains(&from)) {
            let took = self.now.0.saturating_sub(flight.sent_at.0);
            let soon = self.now.after(took.max(self.config.timing.full_wait / 4));
            if let Some(flight) = self.flights.get_mut(&number) {
                flight.rest_at = Some(rest_at.min(soon));
            }
        }
    }

    /// Does so for all frames for which it is time.
    pub(crate) fn ask_late(&mut self) {
        let late = |at: Option<Time>| at.is_some_and(|at| at <= self.now);
        let due = self.flights.iter().filter(|(_, flight)| late(flight.rest_at));
        let due: Vec<u64> = due.map(|(number, _)| *number).collect();
        due.into_iter().for_each(|number| self.ask_the_rest(number));
    }

    /// A replica answered a frame that is under way for the first time.
    pub(crate) fn has_answered(&mut self, from: ReplicaId, number: u64) {
        let flight = self.flights.get(&number);
        if flight.is_some_and(|flight| !flight.alone && flight.unasked.contains(&from)) {
            self.reliance[usize::from(from.0)].was_unwanted();
        }
    }

    /// A frame has its outcome: who was asked and let others be asked in its place is not relied on for a while.
    pub(crate) fn learn_whom_to_ask(&mut self, flight: &Flight) {
        let took = self.now.0.saturating_sub(flight.sent_at.0);
        if flight.alone {
            self.learn_of_primary(flight, took);
        } else if !flight.sent_again {
            self.alone.took_otherwise(took);
        }
        // Of what the primary showed nobody those that would have answered know nothing.
        let fails = flight.asked_the_rest && (!flight.alone || flight.was_shown());
        for replica in self.config.group.all() {
            let reliance = &mut self.reliance[usize::from(replica.0)];
            reliance.unwanted = reliance.unwanted.saturating_sub(1);
            if flight.has_agreed(replica) {
                reliance.answered();
            } else if fails && flight.asked.contains(&replica) {
                reliance.failed();
            }
        }
    }
}
