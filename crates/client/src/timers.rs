//! Time and connections.

use crate::core::{ClientCore, Stage};
use crate::{ClientError, Course, Ticket};
use std::collections::BTreeSet;
use std::sync::Arc;
use troth_types::{ReplicaId, Time, Wish};

/// What a replica owes for each result that was to come from it and was waited for in vain: so many answers in
/// time, before it is waited for again.
const OWED: u32 = 8;
/// The most that it can owe.
const MOST_OWED: u32 = 64;

/// Notes that a result was to come from this replica and was waited for in vain.
fn owes(debts: &mut [u32], replica: ReplicaId) {
    let debt = &mut debts[usize::from(replica.0)];
    *debt = (*debt + OWED).min(MOST_OWED);
}

impl ClientCore {
    /// Does what is due. Calling early or often is harmless.
    pub fn on_timer(&mut self, now: Time) {
        self.advance(now);
        self.expire_tickets();
        self.give_up_reads();
        self.resend_frames();
        self.ask_late();
        self.nudge();
    }

    /// When [`ClientCore::on_timer`] next has something to do.
    #[must_use]
    pub fn next_wake(&self) -> Option<Time> {
        // Tickets and reads are numbered in the order of their deadlines: each waits equally long.
        let ticket = self.tickets.first_key_value().map(|(_, pending)| pending.deadline);
        let read = self.reads.first_key_value().map(|(_, read)| read.give_up_at);
        let frame = self.flights.values().map(|flight| flight.due_at()).min();
        let unavailable = self
            .links
            .too_few_since()
            .filter(|_| !self.tickets.is_empty())
            .map(|since| since.after(self.config.timing.unavailable_after));
        [ticket, read, frame, unavailable, self.nudge_at].into_iter().flatten().min()
    }

    /// Tells whether the host has a connection to a replica. Until it says so for the first time
    /// all count as connected. Nothing is sent to a replica without a connection; when it comes
    /// back it is sent what is outstanding, and no frame is made while fewer than f+1 are
    /// connected, so that its operations stay known as not executed.
    pub fn on_connection(&mut self, now: Time, replica: ReplicaId, up: bool) {
        self.advance(now);
        if !self.config.group.contains(replica) {
            return;
        }
        let is_new = self.links.set(self.now, replica, up);
        if !up {
            // Whoever was asked and is gone answers nothing.
            let numbers: Vec<u64> = self.flights.keys().copied().collect();
            numbers.into_iter().for_each(|number| self.ask_the_rest_if_lost(number, replica));
        }
        if !is_new {
            return;
        }
        let mut frames: Vec<_> = self.flights.values().map(|flight| Arc::clone(&flight.frame)).collect();
        if frames.is_empty() {
            // Executed long ago, it only makes the replica repeat the events that we may have missed.
            frames.extend(self.latest.clone());
        }
        for flight in self.flights.values_mut() {
            flight.sent_again = true;
            flight.unasked.retain(|one| *one != replica);
        }
        for frame in frames {
            self.send_frame_to(replica, &frame, Wish::Full);
        }
    }

    /// Ends every submission with [`ClientError::Closed`].
    pub fn close(&mut self) {
        let open: Vec<_> = self.tickets.iter().map(|(ticket, pending)| (*ticket, pending.stage)).collect();
        for (ticket, stage) in open {
            self.end_unanswered(ticket, stage, ClientError::Closed { sent: stage != Stage::Queued });
        }
        self.queue.retain(|_| false);
    }

    pub(crate) fn is_unavailable(&self) -> bool {
        self.links
            .too_few_since()
            .is_some_and(|since| since.after(self.config.timing.unavailable_after) <= self.now)
    }

    fn expire_tickets(&mut self) {
        let unavailable = self.is_unavailable();
        let due: Vec<(Ticket, Stage)> = self
            .tickets
            .iter()
            .take_while(|(_, pending)| unavailable || pending.deadline <= self.now)
            .map(|(ticket, pending)| (*ticket, pending.stage))
            .collect();
        if due.is_empty() {
            return;
        }
        for (ticket, stage) in due {
            let sent = stage != Stage::Queued;
            let error = if !self.links.enough() {
                ClientError::Unavailable { unreachable: self.links.unreachable(), sent }
            } else if sent {
                ClientError::TimedOut
            } else {
                ClientError::Unsent
            };
            self.end_unanswered(ticket, stage, error);
        }
        let tickets = &self.tickets;
        self.queue.retain(|ticket| tickets.contains_key(&ticket));
    }

    fn end_unanswered(&mut self, ticket: Ticket, stage: Stage, error: ClientError) {
        self.finish(ticket, Err(error), Course::default());
        match stage {
            Stage::Queued => {}
            Stage::Reading(number) => self.end_read(number),
            Stage::Sent(number) => self.abandon(number),
        }
    }

    /// Notes that one submission of a frame gave up. The frame keeps its slot unless replicas
    /// agreed that it was executed.
    fn abandon(&mut self, number: u64) {
        let Some(flight) = self.flights.get_mut(&number) else { return };
        flight.wanted -= 1;
        if flight.wanted > 0 {
            return;
        }
        if let Some(events_up_to) = flight.agreed.as_ref().map(|agreed| agreed.events_up_to) {
            self.begin_events_after(events_up_to);
            self.land(number);
        }
    }

    fn give_up_reads(&mut self) {
        while let Some((&number, read)) = self.reads.first_key_value() {
            if read.give_up_at > self.now {
                break;
            }
            if read.lacks_result() {
                let designated = self.config.group.designated(self.config.client, number);
                owes(&mut self.debts, designated);
            }
            for replica in self.config.group.all().filter(|replica| read.is_silent(*replica)) {
                self.standings.left_read(replica);
            }
            self.order_read(number);
        }
    }

    fn resend_frames(&mut self) {
        let due: Vec<u64> = self
            .flights
            .iter()
            .filter(|(_, flight)| flight.resend_at <= self.now)
            .map(|(number, _)| *number)
            .collect();
        let mut in_vain = false;
        for number in due {
            let Some(flight) = self.flights.get_mut(&number) else { continue };
            let designated = self.config.group.designated(self.config.client, number);
            if flight.lacks_results() && flight.is_silent(designated) && !flight.is_hastened() {
                owes(&mut self.debts, designated);
            }
            flight.sent_again = true;
            if let Some(one) = flight.whom_to_ask(&self.config.group, designated)
                && self.links.is_up(one)
            {
                flight.resend_at = self.now.after(self.pace.full_after(&self.config.timing).max(1));
                let frame = Arc::clone(&flight.frame);
                self.send_frame_to(one, &frame, Wish::Full);
                continue;
            }
            in_vain |= flight.agreed.is_none();
            if flight.agreed.is_none() {
                // All are asked for everything now.
                flight.was_resent = true;
                (flight.rest_at, flight.unasked) = (None, Vec::new());
            }
            let longest = self.config.timing.resend_longest;
            flight.pause =
                if flight.wanted == 0 { longest } else { flight.pause.saturating_mul(2).min(longest) };
            // A pause of zero would never end.
            flight.resend_at = self.now.after(flight.pause.max(1));
            if flight.agreed.is_none() {
                self.sign_flight(number);
            }
            let Some(flight) = self.flights.get(&number) else { continue };
            let frame = Arc::clone(&flight.frame);
            self.send_frame_again(&frame);
        }
        if in_vain {
            self.pace.in_vain(&self.config.timing);
        }
    }

    /// Events without a frame under way have nothing that repeats them: when copies stay
    /// unconfirmed, the latest frame sent again makes replicas repeat their outboxes.
    pub(crate) fn watch_for_gaps(&mut self) {
        let idle = self.flights.is_empty() && self.latest.is_some() && self.inbox.is_waiting();
        if !idle {
            (self.nudge_at, self.repeats) = (None, None);
        } else if self.nudge_at.is_none() {
            self.nudge_at = Some(self.now.after(self.nudge_pause.max(1)));
        }
    }

    /// A replica sends an event that was delivered before, or one that could be delivered came. An outbox is repeated part by part,
    /// from what was seen when the latest frame was made, which may be very much ago: where parts of it come, of as many
    /// replicas as are believed, the next is asked for soon. Not where one says alone that there is more.
    pub(crate) fn hears_of_events(&mut self, from: ReplicaId, is_of_use: bool) {
        let Some(repeats) = &mut self.repeats else { return };
        repeats.insert(from);
        let comes = is_of_use || repeats.len() >= self.config.believed();
        if comes && self.inbox.is_behind() {
            let soon = self.now.after(self.pace.full_after(&self.config.timing).max(1));
            self.nudge_at = Some(self.nudge_at.map_or(soon, |at| at.min(soon)));
            self.nudge_pause = self.config.timing.resend_first;
        }
    }

    fn nudge(&mut self) {
        if self.nudge_at.is_none_or(|at| at > self.now) {
            return;
        }
        self.nudge_at = None;
        self.nudge_pause = self.nudge_pause.saturating_mul(2).min(self.config.timing.resend_longest);
        if let Some(frame) = self.latest.clone().filter(|_| self.flights.is_empty()) {
            self.repeats = Some(BTreeSet::new());
            self.send_frame_again(&frame);
        }
        self.watch_for_gaps();
    }
}
