//! What replicas say.

use crate::core::{ClientCore, Stage};
use crate::flight::{Backing, Flight};
use crate::read::{Recent, Standing};
use crate::standing::{Moments, Way};
use crate::{ClientError, Course, Output, Ticket};
use std::sync::Arc;
use troth_types::{
    AttestedRead, AttestedReply, HistoryEnd, ReadReply, Refusal, RefusalReason, Renewed, ReplicaId, Reply,
    Time, ToClient,
};

/// Marks the place that implements a rule of `docs/protocols/a2m-pbft-e.md` or `a2m-pbft-ea.md`, for `cargo xtask paper`.
macro_rules! rule {
    ($label:literal) => {};
}

impl ClientCore {
    /// Takes a message of a replica. The connection has authenticated `from`; everything else in
    /// the message is that replica's word.
    pub fn on_message(&mut self, now: Time, from: ReplicaId, message: ToClient) {
        self.advance(now);
        if message.client() != self.config.client || !self.config.group.contains(from) {
            return;
        }
        match message {
            ToClient::Reply(reply) => self.on_reply(from, reply, Backing::Final),
            // Nobody correct says so in a group that executes nothing before its place is final.
            ToClient::Tentative(_) if !self.config.acceptance.tentative => {}
            ToClient::Tentative(reply) => self.on_reply(from, reply, Backing::Tentative),
            ToClient::Attested(AttestedReply { reply, place, renewed }) => {
                self.on_reply(from, reply, Backing::Proven(&place, &renewed))
            }
            ToClient::ReadReply(reply) => self.on_read_reply(from, reply, None),
            ToClient::AttestedRead(AttestedRead { reply, end, renewed }) => {
                self.on_read_reply(from, reply, Some((&end, &renewed)));
            }
            ToClient::Event(event) => {
                let before = self.inbox.delivered();
                let is_old = before.is_some_and(|delivered| event.index <= delivered);
                self.inbox.offer(from, event);
                self.deliver_events();
                let is_of_use = self.inbox.delivered() != before;
                if is_old || is_of_use {
                    self.hears_of_events(from, is_of_use);
                }
            }
            ToClient::Refusal(refusal) => self.on_refusal(from, refusal),
        }
        self.watch_for_gaps();
    }

    fn on_reply(&mut self, from: ReplicaId, reply: Reply, backing: Backing<'_>) {
        let view = &mut self.views[usize::from(from.0)];
        *view = (*view).max(reply.view);
        let number = reply.number;
        let group = self.config.group;
        if self.flights.get(&number).is_some_and(|flight| flight.is_silent(from)) {
            self.has_answered(from, number);
        }
        let Some(flight) = self.flights.get_mut(&number) else {
            let counts = !matches!(backing, Backing::Tentative);
            if counts && self.standings.heard_late(from, &reply) {
                self.reliance[usize::from(from.0)].answered();
            }
            return;
        };
        flight.first_at.get_or_insert(self.now);
        self.standings.heard(from, number);
        let before = (flight.agreed.is_some(), flight.results.is_some());
        let designated = group.designated(self.config.client, number);
        let first_word = from == designated && flight.is_silent(designated);
        flight.on_reply(&self.config, from, reply, backing, &mut self.budget);
        let debt = &mut self.debts[usize::from(designated.0)];
        if first_word && flight.has_results_of(designated) {
            *debt = debt.saturating_sub(1);
        }
        let Some(agreed) = &flight.agreed else { return self.ask_the_rest_in_time(number, from) };
        let events_up_to = agreed.events_up_to;
        self.confirmed = self.confirmed.max(agreed.seq);
        let after = (true, flight.results.is_some());
        // What is missing now, the results or the events before them, is asked for soon.
        if flight.must_hasten(designated, *debt > 0) {
            flight.resend_at = self.now;
        } else if after != before {
            let wait = self.pace.full_after(&self.config.timing);
            flight.resend_at = flight.resend_at.min(self.now.after(wait));
        }
        if flight.results.is_some() || flight.wanted == 0 {
            self.begin_events_after(events_up_to);
        }
        self.deliver_events();
        self.release(number);
    }

    /// Settles where the session's events begin, if nothing has yet.
    pub(crate) fn begin_events_after(&mut self, index: u64) {
        if self.inbox.delivered().is_none() {
            self.inbox.begin_after(index);
            self.acknowledged = index;
        }
    }

    /// Ends a frame whose outcome may be shown: results and the events before them are there. A
    /// frame that nobody waits for ends as soon as it is known to be executed.
    fn release(&mut self, number: u64) {
        let Some(flight) = self.flights.get(&number) else { return };
        let Some(agreed) = &flight.agreed else { return };
        let events_are_out = self.inbox.delivered().is_some_and(|last| last >= agreed.events_up_to);
        if flight.wanted > 0 && !(flight.results.is_some() && events_are_out) {
            return;
        }
        let Some(mut flight) = self.land(number) else { return };
        let Some(results) = flight.results.take() else { return };
        let mut results = results.into_iter();
        for share in core::mem::take(&mut flight.shares) {
            let own = results.by_ref().take(share.operations).collect();
            let course = self.course(share.ticket, |moments, now| {
                moments.course(Way::Ordered, flight.sent_at, flight.first_at, now)
            });
            let course = self
                .naming(course, |replica| flight.is_silent(replica) && !flight.unasked.contains(&replica));
            self.finish(share.ticket, Ok(own), course);
        }
    }

    /// The course of a submission that ends now.
    fn course(&self, ticket: Ticket, of: impl FnOnce(&Moments, Time) -> Course) -> Course {
        self.tickets.get(&ticket).map_or_else(Course::default, |pending| of(&pending.moments, self.now))
    }

    /// Names who was late, where it took long.
    fn naming(&self, mut course: Course, is_silent: impl Fn(ReplicaId) -> bool) -> Course {
        if course.total() >= self.late_after {
            course.late = self.config.group.all().filter(|replica| is_silent(*replica)).collect();
        }
        course
    }

    /// Takes an executed frame out of its slot.
    pub(crate) fn land(&mut self, number: u64) -> Option<Flight> {
        let mut flight = self.flights.remove(&number)?;
        flight.drop_bodies(&self.config.group, &mut self.budget);
        flight.settle(&self.config.group, &mut self.standings);
        self.learn_whom_to_ask(&flight);
        if !flight.sent_again {
            self.pace.took(self.now.0.saturating_sub(flight.sent_at.0));
        }
        if self.latest.as_ref().is_none_or(|latest| latest.number() < number) {
            self.latest = Some(Arc::clone(&flight.frame));
        }
        Some(flight)
    }

    fn on_read_reply(&mut self, from: ReplicaId, reply: ReadReply, end: Option<(&HistoryEnd, &[Renewed])>) {
        let number = reply.number;
        let Some(read) = self.reads.get_mut(&number) else { return };
        read.first_at.get_or_insert(self.now);
        let group = &self.config.group;
        let standing = match (&self.config.history, read.nonce, end) {
            (None, None, None) => read.on_reply(group, from, reply, None, &mut self.budget),
            (Some(_), Some(_), _) if !read.hears(from) => return,
            (Some(proven), Some(nonce), Some((end, renewed))) => {
                match proven.history.end(from, &nonce, end, renewed) {
                    Some(end) if read.shows_what_was_told(&end, reply.events_up_to) => {
                        read.on_reply(group, from, reply, Some(end), &mut self.budget)
                    }
                    _ => read.on_refusal(group, from, self.config.client),
                }
            }
            // What proves nothing in a group where all prove it, or the other way round.
            _ => read.on_refusal(group, from, self.config.client),
        };
        self.go_on_with_read(number, standing);
    }

    fn go_on_with_read(&mut self, number: u64, standing: Standing) {
        match standing {
            Standing::Open => {}
            Standing::Agreed => self.release_read(number),
            Standing::Split => self.ask_again(number),
        }
    }

    fn release_read(&mut self, number: u64) {
        let Some(read) = self.reads.get(&number) else { return };
        let (Some(needed), Some(result)) = (read.events_up_to, read.result()) else { return };
        if self.inbox.delivered().is_some_and(|last| last >= needed) {
            let (ticket, sent_at, first_at) = (read.ticket, read.sent_at, read.first_at);
            let course =
                self.course(ticket, |moments, now| moments.course(Way::Fast, sent_at, first_at, now));
            let read = &self.reads[&number];
            let course = self.naming(course, |replica| read.is_silent(replica));
            self.end_read(number);
            self.fast_reads += 1;
            self.finish(ticket, Ok(vec![result]), course);
        }
    }

    pub(crate) fn end_read(&mut self, number: u64) {
        if let Some(mut read) = self.reads.remove(&number) {
            read.forget(&self.config.group, self.config.client, &mut self.budget);
        }
    }

    /// Has a read that too few replicas answer alike asked once more, if it need only be recent: they were at different places
    /// of the order, or the one that was to send the result was. Otherwise it is ordered.
    fn ask_again(&mut self, number: u64) {
        let Some(read) = self.reads.get(&number) else { return };
        rule!("MINBFT-R13");
        rule!("PBFT-E8");
        if !read.recent.is_some_and(|recent| recent.again)
            || !self.links.are_up(self.config.read_quorum(true))
        {
            return self.order_read(number);
        }
        let (ticket, operation) = (read.ticket, read.operation.clone());
        self.end_read(number);
        self.ask_all(ticket, operation, Some(Recent { again: false }));
    }

    /// Has a read ordered that too few replicas answer alike.
    pub(crate) fn order_read(&mut self, number: u64) {
        rule!("A2MPBFTE-E4");
        rule!("A2MPBFTEA-E4");
        let Some(read) = self.reads.get(&number) else { return };
        let (ticket, operation) = (read.ticket, read.operation.clone());
        self.end_read(number);
        if let Some(pending) = self.tickets.get_mut(&ticket) {
            pending.stage = Stage::Queued;
            let submitted = pending.moments.submitted;
            pending.moments.tried = Some(self.now.0.saturating_sub(submitted.0));
            self.fallen_back += 1;
            self.queue.push(ticket, vec![operation]);
        }
    }

    fn on_refusal(&mut self, from: ReplicaId, refusal: Refusal) {
        self.standings.refused(from);
        if refusal.read {
            let Some(read) = self.reads.get_mut(&refusal.number) else { return };
            let standing = read.on_refusal(&self.config.group, from, self.config.client);
            return self.go_on_with_read(refusal.number, standing);
        }
        let group = self.config.group;
        let Some(flight) = self.flights.get_mut(&refusal.number) else { return };
        // What f+1 replicas executed was refused by no correct one, unless they forgot the results.
        if flight.results.is_some() || (flight.agreed.is_some() && refusal.reason != RefusalReason::TooOld) {
            return;
        }
        let error = match flight.on_refusal(&self.config, from, refusal.reason) {
            None => return self.ask_the_rest_in_time(refusal.number, from),
            Some(RefusalReason::TooLarge) => ClientError::TooLarge,
            Some(RefusalReason::Unauthorised | RefusalReason::Removed) => ClientError::Unauthorised,
            Some(RefusalReason::TooOld) => ClientError::TooOld,
            // True of replicas that are behind; they accept the frame when they have caught up.
            Some(RefusalReason::WindowFull | RefusalReason::NotReady) => return,
        };
        if error == ClientError::TooOld {
            self.overtake();
        }
        let Some(mut flight) = self.flights.remove(&refusal.number) else { return };
        flight.drop_bodies(&group, &mut self.budget);
        for share in flight.shares {
            self.finish(share.ticket, Err(error.clone()), Course::default());
        }
    }

    /// Goes on with numbers that nobody has used yet. Another session of this client began later, and was given numbers by
    /// the clock, as this one was when it began: nothing that this one sends would ever be executed again.
    fn overtake(&mut self) {
        let by_the_clock = self.config.first_number.saturating_add(self.now.0);
        self.next_number = self.next_number.max(by_the_clock);
    }

    /// Hands out events that f+1 replicas confirm, and the outcomes that waited for them.
    fn deliver_events(&mut self) {
        let mut any = false;
        while let Some(event) = self.inbox.next(self.config.client) {
            self.outputs.push_back(Output::Event(event));
            any = true;
        }
        if !any {
            return;
        }
        self.nudge_at = None;
        self.nudge_pause = self.config.timing.resend_first;
        let frames: Vec<u64> = self.flights.keys().copied().collect();
        for number in frames {
            self.release(number);
        }
        // An outbox is repeated part by part: what comes of it brings the next part soon.
        let soon = self.now.after(self.pace.full_after(&self.config.timing).max(1));
        let lacks_events = |flight: &&mut Flight| flight.sent_again && flight.results.is_some();
        for flight in self.flights.values_mut().filter(lacks_events) {
            flight.pause = self.config.timing.resend_first;
            flight.resend_at = flight.resend_at.min(soon);
        }
        let reads: Vec<u64> = self
            .reads
            .iter()
            .filter(|(_, read)| read.events_up_to.is_some())
            .map(|(number, _)| *number)
            .collect();
        for number in reads {
            self.release_read(number);
        }
    }
}
