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

/// What a replica owes that was asked and answered nothing, or something else, until others had: so many answers, before
/// it is relied on again.
const OWED: u32 = 16;
/// The most that it can owe.
const MOST_OWED: u32 = 256;
/// What an answer weighs that was not wanted: as much as so many that were not given.
const UNWANTED: u32 = 16;
/// From so much on a replica is asked for all: it does not know the wish.
const DEAF: u32 = 3 * UNWANTED;

/// How a replica has kept to what it was asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reliance {
    /// Answers that it owes.
    owes: u32,
    /// What the answers weigh that it gave where none was wanted.
    unwanted: u32,
}

impl Reliance {
    /// It was asked, and others had to be.
    fn failed(&mut self) {
        self.owes = (self.owes + OWED).min(MOST_OWED);
    }

    /// A frame had to be sent again that it need not have answered: perhaps it took that for no message, and as the primary
    /// ordered nothing.
    pub(crate) fn hears_nothing(&mut self, flight: &Flight, at: usize) {
        if !flight.alone && flight.unasked.iter().any(|one| usize::from(one.0) == at) {
            self.was_unwanted();
        }
    }

    fn was_unwanted(&mut self) {
        self.unwanted = (self.unwanted + UNWANTED).min(DEAF);
    }

    /// Whether it may be told that no answer is wanted, or be one of those that are relied on.
    fn is_good(self) -> bool {
        self.owes == 0 && self.unwanted < DEAF
    }
}

impl ClientCore {
    /// Those that need not answer a frame with this number. Nobody, unless enough others can be relied on; and not those that
    /// cannot, who show by their answers when they can again.
    pub(crate) fn need_not_answer(&self, number: u64) -> Vec<ReplicaId> {
        rule!("MINBFT-N13");
        let needed = self.config.answers();
        let turns = self.config.group.turns(self.config.client, number);
        let mut good: Vec<ReplicaId> = turns.filter(|one| self.answers_well(*one)).collect();
        if good.len() < needed { Vec::new() } else { good.split_off(needed) }
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
        flight.asked_the_rest |= !rest.is_empty();
        let frame = Arc::clone(&flight.frame);
        for to in rest {
            self.send_frame_to(to, &frame, Wish::Usual);
        }
    }

    /// Asks them where a replica that was asked is gone before it answered.
    pub(crate) fn ask_the_rest_if_lost(&mut self, number: u64, gone: ReplicaId) {
        let Some(flight) = self.flights.get(&number) else { return };
        if flight.is_silent(gone) && !flight.unasked.contains(&gone) {
            self.ask_the_rest(number);
        }
    }

    /// Asks them where all others have said what they say, and it is not enough.
    pub(crate) fn ask_the_rest_if_in_vain(&mut self, number: u64) {
        let Some(flight) = self.flights.get(&number) else { return };
        // Those that the primary shows it to answer, too.
        if flight.alone {
            return;
        }
        let mut asked = self.config.group.all().filter(|one| !flight.unasked.contains(one));
        let waits =
            asked.any(|one| self.links.is_up(one) && flight.is_silent(one) && !flight.has_refused(one));
        if flight.agreed.is_none() && !waits {
            self.ask_the_rest(number);
        }
    }

    /// Does so for all frames for which it is time.
    pub(crate) fn ask_late(&mut self) {
        let late = |at: Option<Time>| at.is_some_and(|at| at <= self.now);
        let due = self.flights.iter().filter(|(_, flight)| late(flight.rest_at));
        let due: Vec<u64> = due.map(|(number, _)| *number).collect();
        due.into_iter().for_each(|number| self.ask_the_rest(number));
    }

    /// A replica answered a frame that is under way.
    pub(crate) fn has_answered(&mut self, from: ReplicaId, number: u64, first_word: bool) {
        let flight = self.flights.get(&number);
        let wanted = flight.is_none_or(|flight| flight.alone || !flight.unasked.contains(&from));
        let reliance = &mut self.reliance[usize::from(from.0)];
        if first_word && wanted {
            reliance.owes = reliance.owes.saturating_sub(1);
        } else if first_word {
            reliance.was_unwanted();
        }
    }

    /// A frame has its outcome: who was asked and let others be asked in its place is not relied on for a while.
    pub(crate) fn learn_whom_to_ask(&mut self, flight: &Flight) {
        if flight.alone {
            return self.learn_of_primary(flight);
        }
        if !flight.sent_again {
            self.alone.took_otherwise(self.now.0.saturating_sub(flight.sent_at.0));
        }
        for replica in self.config.group.all() {
            let reliance = &mut self.reliance[usize::from(replica.0)];
            if flight.unasked.contains(&replica) {
                if flight.is_silent(replica) && reliance.unwanted < DEAF {
                    reliance.unwanted = reliance.unwanted.saturating_sub(1);
                }
            } else if flight.asked_the_rest && !flight.has_agreed(replica) {
                reliance.failed();
            }
        }
    }
}
