//! The client as a pure machine.

use crate::alone::Alone;
use crate::asked::Reliance;
use crate::budget::Budget;
use crate::flight::Flight;
use crate::inbox::Inbox;
use crate::links::Links;
use crate::nonces::Nonces;
use crate::pace::Pace;
use crate::queue::{Queue, fits_a_frame};
use crate::read::{FastRead, Recent};
use crate::standing::{Moments, Standings};
use crate::{ClientError, Config, Course, Output, Standing, SubmitError, Ticket};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use troth_auth::Signer;
use troth_types::{Frame, FrameDraft, Read, ReplicaId, Seq, Time, ToReplica, View, Wish};

/// Marks the place that implements a rule of `docs/protocols/minbft.md` or `pbft.md`, for `cargo xtask paper`.
macro_rules! rule {
    ($label:literal) => {};
}

/// Where a submission is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// In line for a frame.
    Queued,
    /// Part of the frame with this number.
    Sent(u64),
    /// A fast read with this number.
    Reading(u64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) deadline: Time,
    pub(crate) stage: Stage,
    pub(crate) moments: Moments,
}

/// A client of one group, without clock, socket or randomness. The host calls it with messages
/// and the time, then takes [`Output`]s until there are none, and calls [`ClientCore::on_timer`]
/// at [`ClientCore::next_wake`].
///
/// A result is accepted when f+1 distinct replicas agree on it, at least one of which is correct;
/// a read that was not ordered when as many do as [`Config::read_quorum`] says. Whatever up to f replicas send can delay an answer, never
/// change one, and never make this machine grow beyond [`Bounds`](crate::Bounds) and its window.
///
/// Frame numbers share `number % client_window` slots with the replicas' tables, where a number
/// overtakes the earlier one of its slot. So number t is sent only when t - window is known to
/// have completed. A frame that nobody waits for any more, because its submissions timed out,
/// keeps its slot and is sent again every [`Timing::resend_longest`](crate::Timing) until
/// replicas answer: reusing the slot earlier would make the lost outcome unknowable for ever.
#[derive(Clone, Debug)]
pub struct ClientCore {
    pub(crate) config: Config,
    pub(crate) signer: Arc<dyn Signer>,
    /// The latest time the host told; it never goes back.
    pub(crate) now: Time,
    pub(crate) tickets: BTreeMap<Ticket, Pending>,
    pub(crate) next_ticket: u64,
    pub(crate) queue: Queue,
    pub(crate) flights: BTreeMap<u64, Flight>,
    pub(crate) next_number: u64,
    pub(crate) reads: BTreeMap<u64, FastRead>,
    pub(crate) next_read: u64,
    /// What reads are answered under, where answers prove the ends of histories.
    nonces: Option<Nonces>,
    pub(crate) inbox: Inbox,
    pub(crate) acknowledged: u64,
    /// The latest frame that completed: sent again it makes replicas repeat events.
    pub(crate) latest: Option<Arc<Frame>>,
    pub(crate) nudge_at: Option<Time>,
    pub(crate) nudge_pause: u64,
    /// Who has sent again, since all were asked for events, what was delivered before; nothing where nobody was asked.
    pub(crate) repeats: Option<BTreeSet<ReplicaId>>,
    pub(crate) budget: Budget,
    pub(crate) links: Links,
    pub(crate) views: Vec<View>,
    pub(crate) pace: Pace,
    /// What each replica owes: results that it was to send and did not.
    pub(crate) debts: Vec<u32>,
    /// Which replicas answer when they are asked, and only then.
    pub(crate) reliance: Vec<Reliance>,
    /// Whether the primary is sent frames that nobody else is.
    pub(crate) alone: Alone,
    /// Until when nothing is sent without signature.
    pub(crate) signs_until: Time,
    /// Microseconds for which it signed everything, or does, the last time that it had to.
    pub(crate) signs_for: u64,
    /// The highest batch in which a frame of this client was executed, by the word of f+1 replicas.
    pub(crate) confirmed: Seq,
    pub(crate) fast_reads: u64,
    /// Fast reads that had to be ordered.
    pub(crate) fallen_back: u64,
    pub(crate) standings: Standings,
    /// Microseconds after which the course of a submission names who was late.
    pub(crate) late_after: u64,
    pub(crate) outputs: VecDeque<Output>,
}

impl ClientCore {
    /// A client that signs with `signer`.
    ///
    /// # Panics
    /// If `config.first_number` or `config.limits.client_window` is 0.
    #[must_use]
    pub fn new(config: Config, signer: Arc<dyn Signer>) -> Self {
        assert!(config.first_number > 0, "frame numbers start at 1");
        assert!(config.limits.client_window > 0, "a window has at least one slot");
        let group = config.group;
        let nonces = config.history.as_ref();
        let nonces = nonces.map(|proven| Nonces::new(&config, &proven.session, signer.as_ref()));
        Self {
            signer,
            now: Time::default(),
            tickets: BTreeMap::new(),
            next_ticket: 0,
            queue: Queue::default(),
            flights: BTreeMap::new(),
            next_number: config.first_number,
            reads: BTreeMap::new(),
            next_read: config.first_number,
            nonces,
            inbox: Inbox::new(&config),
            acknowledged: config.events_seen.unwrap_or(0),
            latest: None,
            nudge_at: None,
            nudge_pause: config.timing.resend_first,
            repeats: None,
            budget: Budget::new(group.n(), config.bounds.reply_bytes),
            links: Links::new(&config),
            views: vec![View::default(); group.n()],
            pace: Pace::default(),
            debts: vec![0; group.n()],
            reliance: vec![Reliance::default(); group.n()],
            alone: Alone::default(),
            signs_until: Time::default(),
            signs_for: 0,
            confirmed: Seq::default(),
            fast_reads: 0,
            fallen_back: 0,
            standings: Standings::new(group.n()),
            late_after: u64::MAX,
            outputs: VecDeque::new(),
            config,
        }
    }

    /// Has operations executed, all in one frame: in order and together. Many submissions may be
    /// outstanding; those that wait at the same time share frames, and each gets its own results.
    ///
    /// # Errors
    /// Nothing was taken: see [`SubmitError`].
    pub fn submit(&mut self, now: Time, operations: Vec<Bytes>) -> Result<Ticket, SubmitError> {
        self.admit(now, &operations)?;
        let ticket = self.ticket(Stage::Queued);
        self.queue.push(ticket, operations);
        Ok(ticket)
    }

    /// The same, in a frame that no other submission shares: of its answers none is left out because of those to others.
    ///
    /// # Errors
    /// As [`ClientCore::submit`].
    pub fn submit_apart(&mut self, now: Time, operations: Vec<Bytes>) -> Result<Ticket, SubmitError> {
        self.admit(now, &operations)?;
        let ticket = self.ticket(Stage::Queued);
        self.queue.push_apart(ticket, operations);
        Ok(ticket)
    }

    /// Has an operation that changes nothing answered: from the current state where enough replicas
    /// agree, else ordered like any other. The ticket ends with exactly one result.
    ///
    /// # Errors
    /// As [`ClientCore::submit`].
    pub fn read(&mut self, now: Time, operation: Bytes) -> Result<Ticket, SubmitError> {
        self.look(now, operation, false)
    }

    /// The same from a state that need not be the current one, but shows all that this client was told before: by the outcomes
    /// of what it had ordered, and by events. As many replicas must agree as are believed, one of which is correct; others may
    /// be away. What earlier reads showed it need not show: of two answers either may be of the later state, unless they tell.
    ///
    /// Where answers prove the ends of histories, no more replicas are needed for the current state, and this is
    /// [`ClientCore::read`].
    ///
    /// # Errors
    /// As [`ClientCore::submit`].
    pub fn read_recent(&mut self, now: Time, operation: Bytes) -> Result<Ticket, SubmitError> {
        self.look(now, operation, self.config.history.is_none())
    }

    fn look(&mut self, now: Time, operation: Bytes, recent: bool) -> Result<Ticket, SubmitError> {
        let operations = vec![operation];
        self.admit(now, &operations)?;
        let ticket = self.ticket(Stage::Queued);
        if self.may_ask(recent) {
            let operation = operations.into_iter().next().expect("one was put in");
            self.ask_all(ticket, operation, recent.then_some(Recent { again: true }));
        } else {
            self.queue.push(ticket, operations);
        }
        Ok(ticket)
    }

    /// Whether enough replicas may answer a read alike.
    pub(crate) fn may_ask(&self, recent: bool) -> bool {
        self.links.are_up(self.config.read_quorum(recent))
            && self.inbox.delivered().is_some()
            && self.reads.len() < self.config.bounds.reads
    }

    /// Asks all replicas for what a read shows.
    pub(crate) fn ask_all(&mut self, ticket: Ticket, operation: Bytes, recent: Option<Recent>) {
        let number = self.read_number();
        if let Some(pending) = self.tickets.get_mut(&ticket) {
            pending.stage = Stage::Reading(number);
        }
        let group = self.config.group;
        let nonce = self.nonces.as_ref().map(|nonces| nonces.of(number));
        rule!("MINBFT-R12");
        rule!("PBFT-E7");
        let least = recent.map(|_| self.confirmed.max(self.inbox.told().batch));
        let message = Read { client: self.config.client, number, nonce, least, operation };
        for to in group.all().filter(|to| self.links.is_up(*to)) {
            self.outputs.push_back(Output::Send { to, message: ToReplica::Read(message.clone()) });
        }
        let give_up_at = self.now.after(self.config.timing.read_wait);
        let needed = self.config.read_quorum(recent.is_some());
        let moments = (self.now, give_up_at);
        let read = FastRead::new(&group, needed, ticket, message, moments, self.inbox.told(), recent);
        self.reads.insert(number, read);
    }

    /// A number for a read of which somebody sends the result who is there and owes nothing, if anybody does.
    fn read_number(&mut self) -> u64 {
        let good = |number: &u64| {
            let designated = self.config.group.designated(self.config.client, *number);
            self.links.is_up(designated) && self.debts[usize::from(designated.0)] == 0
        };
        let mut turns = self.next_read..self.next_read + self.config.group.n() as u64;
        let number = turns.find(good).unwrap_or(self.next_read);
        self.next_read = number + 1;
        number
    }

    /// The next thing for the host to do. Frames are made here, when the machine has nothing else
    /// to say and its window allows: all that was submitted before shares them.
    pub fn poll(&mut self) -> Option<Output> {
        if self.outputs.is_empty() {
            self.send_ready();
        }
        let output = self.outputs.pop_front();
        if let (Some(Output::Event(event)), false) = (&output, self.config.hold_acknowledgements) {
            self.acknowledged = self.acknowledged.max(event.index);
        }
        output
    }

    /// Notes that the application has taken all events up to `index`, so that replicas may forget
    /// them; for [`Config::hold_acknowledgements`]. Later frames carry it.
    pub fn acknowledge_events(&mut self, index: u64) {
        let delivered = self.inbox.delivered().unwrap_or(0);
        self.acknowledged = self.acknowledged.max(index.min(delivered));
    }

    /// Where the primary probably is: the highest view that f+1 replicas' replies have reached,
    /// so one that a correct replica is really in or past.
    #[must_use]
    pub fn view_hint(&self) -> View {
        let mut views = self.views.clone();
        views.sort_unstable();
        views[self.config.group.n() - self.config.believed()]
    }

    /// Whether f+1 replicas are connected, without which nothing completes.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.links.enough()
    }

    /// The replicas without a connection.
    #[must_use]
    pub fn unreachable(&self) -> Vec<ReplicaId> {
        self.links.unreachable()
    }

    /// The highest batch in which a frame of this client was executed, by the word of f+1 replicas; 0 before
    /// the first.
    #[must_use]
    pub fn confirmed(&self) -> Seq {
        self.confirmed
    }

    /// Reads that were answered without being ordered.
    #[must_use]
    pub fn fast_reads(&self) -> u64 {
        self.fast_reads
    }

    /// Fast reads that had to be ordered, because too few replicas answered alike in time.
    #[must_use]
    pub fn fallen_back(&self) -> u64 {
        self.fallen_back
    }

    /// How a replica of the group does, as far as this client sees it.
    #[must_use]
    pub fn standing(&self, replica: ReplicaId) -> Standing {
        self.standings.of(replica, self.links.is_up(replica))
    }

    /// Has the courses of submissions that take so many microseconds name the replicas that were late; none does where nobody
    /// asked for it.
    pub fn name_late_after(&mut self, micros: u64) {
        self.late_after = micros;
    }

    /// Submissions without an outcome.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.tickets.len()
    }

    /// Bytes held on the word of fewer than f+1 replicas: unconfirmed results and events.
    #[must_use]
    pub fn unconfirmed_bytes(&self) -> usize {
        self.budget.total() + self.inbox.bytes()
    }

    fn admit(&mut self, now: Time, operations: &[Bytes]) -> Result<(), SubmitError> {
        self.advance(now);
        if operations.is_empty() {
            return Err(SubmitError::Empty);
        }
        if !fits_a_frame(operations, &self.config.limits) {
            return Err(SubmitError::TooLarge);
        }
        if self.is_unavailable() {
            return Err(SubmitError::Unavailable { unreachable: self.links.unreachable() });
        }
        if self.has_room(operations) { Ok(()) } else { Err(SubmitError::Busy) }
    }

    /// Whether the queue has room for one more submission. An empty queue has room for any.
    #[must_use]
    pub fn has_room(&self, operations: &[Bytes]) -> bool {
        let bounds = &self.config.bounds;
        let bytes: usize = operations.iter().map(Bytes::len).sum();
        self.queue.is_empty()
            || (self.queue.operations() + operations.len() <= bounds.queue_operations
                && self.queue.bytes() + bytes <= bounds.queue_bytes)
    }

    fn ticket(&mut self, stage: Stage) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let deadline = self.now.after(self.config.timing.deadline);
        self.tickets.insert(ticket, Pending { deadline, stage, moments: Moments::new(self.now) });
        ticket
    }

    pub(crate) fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    /// Ends a submission.
    pub(crate) fn finish(&mut self, ticket: Ticket, result: Result<Vec<Bytes>, ClientError>, course: Course) {
        if self.tickets.remove(&ticket).is_some() {
            self.outputs.push_back(Output::Done { ticket, result, course });
        }
    }

    /// Makes and sends frames while the window and the connections allow.
    fn send_ready(&mut self) {
        while !self.queue.is_empty() && self.links.enough() && self.slot_is_free() {
            let alone = self.inbox.delivered().is_none();
            let (operations, shares) = self.queue.take_frame(&self.config.limits, alone);
            let number = self.next_number;
            self.next_number += 1;
            for share in &shares {
                if let Some(pending) = self.tickets.get_mut(&share.ticket) {
                    pending.stage = Stage::Sent(number);
                }
            }
            let draft = FrameDraft {
                group: self.config.group.id(),
                client: self.config.client,
                number,
                events_seen: self.acknowledged,
                operations,
            };
            let frame = Arc::new(self.prove(draft));
            let view = self.view_hint();
            let alone = self.goes_alone(&frame, view);
            let group = self.config.group;
            let (asked, unasked): (Vec<_>, Vec<_>) = match alone {
                Some(primary) => {
                    self.send_frame_to(primary, &frame, Wish::Alone);
                    let turns = group.turns(self.config.client, number).take(self.config.answers());
                    (turns.collect(), group.all().filter(|one| *one != primary).collect())
                }
                None => {
                    let unasked = self.need_not_answer(number);
                    group.all().partition(|one| !unasked.contains(one))
                }
            };
            if alone.is_none() {
                asked.iter().for_each(|to| self.send_frame_to(*to, &frame, Wish::Usual));
                unasked.iter().for_each(|to| self.send_frame_to(*to, &frame, Wish::Nothing));
            }
            let timing = &self.config.timing;
            let pause = self.pace.resend_after(timing);
            let rest = if alone.is_some() { self.shown_by() } else { self.pace.rest_after(timing) };
            let mut flight = Flight::new(&group, frame, shares, self.now, pause, self.inbox.told());
            flight.rest_at = (!unasked.is_empty()).then(|| self.now.after(rest));
            (flight.asked, flight.unasked) = (asked, unasked);
            (flight.alone, flight.view) = (alone.is_some(), view);
            self.flights.insert(number, flight);
        }
    }

    /// Whether the next number's slot is free: the number one window earlier has completed.
    fn slot_is_free(&self) -> bool {
        if self.inbox.delivered().is_none() && !self.flights.is_empty() {
            return false;
        }
        let window = self.config.limits.client_window;
        self.next_number.checked_sub(window).is_none_or(|before| !self.flights.contains_key(&before))
    }

    /// Sends a frame to all connected replicas once more.
    pub(crate) fn send_frame_again(&mut self, frame: &Arc<Frame>) {
        for to in self.config.group.all() {
            self.send_frame_to(to, frame, Wish::Full);
        }
    }

    pub(crate) fn send_frame_to(&mut self, to: ReplicaId, frame: &Arc<Frame>, wish: Wish) {
        if self.links.is_up(to) {
            if let Some(flight) = self.flights.get_mut(&frame.number()) {
                flight.asks_again(to);
            }
            let message = ToReplica::Request { frame: Arc::clone(frame), wish };
            self.outputs.push_back(Output::Send { to, message });
        }
    }
}
