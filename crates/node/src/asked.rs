//! What clients asked and the machine has not been given yet, and how much of it a turn serves.

use crate::charges::BYTES_PER_MICRO;
use crate::engine::{Engine, Stopped};
use troth_core::{Agreement, Env, Execution, Input, Repeated, ReplicaTimer, Request};
use troth_types::{Read, Wish};

/// Bytes of answers to clients after which the turn's round of clients ends. A message of a client
/// is small and its answer need not be: a read of large values, a repetition of an old request.
const ANSWER_BYTES: usize = 1 << 20;
/// Microseconds after which the turn's round of clients ends: what an answer costs is not its length
/// where only the digest of a large result is sent.
pub(crate) const CLIENT_MICROS: u64 = 10_000;

/// Bytes of an answer from which on a frame that was executed, and is asked for again, is answered by itself.
pub(crate) const MUCH: usize = 4 << 10;

/// A checked message of a client.
pub(crate) enum Asked {
    /// A frame to be ordered.
    Request(Request),
    /// A frame that is executed, and whose results are many bytes, or with which events are asked for.
    Again(Request),
    /// A frame that is executed.
    Repeated(Repeated),
    /// A read.
    Read(Read),
}

impl Asked {
    fn request(self) -> Option<Request> {
        match self {
            Self::Request(request) => Some(request),
            Self::Again(_) | Self::Repeated(_) | Self::Read(_) => None,
        }
    }
}

impl<A: Agreement, X: Execution> Engine<A, X> {
    /// What a frame is to be served as, of which the machine may hold results or events that its client asks for again.
    pub(crate) fn asked_again(&self, request: Request) -> Asked {
        let much = self.host.machine().answer_bytes(&request.frame, request.wish) >= MUCH;
        if much { Asked::Again(request) } else { Asked::Request(request) }
    }

    /// Whether messages of clients wait for the next turn.
    pub(crate) fn has_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Whether they wait for the disk or the component, and the next turn could do nothing for them.
    pub(crate) fn asked_in_vain(&self) -> bool {
        self.has_asked() && self.is_crowded()
    }

    /// Bytes that wait to be sent, that were sent, and that were sent of events.
    fn sent(&self) -> [usize; 3] {
        [self.host.backlog_bytes(), self.answered_bytes, self.event_bytes]
    }

    /// Bytes of an answer since then, and the microseconds that are not charged for where they are sent: what waits behind the
    /// disk is encoded and sent later, all of it at once, and events that nobody asks for are nobody's.
    fn sent_since(&self, [waited, sent, events]: [usize; 3]) -> (usize, u64) {
        let waits = self.host.backlog_bytes().saturating_sub(waited);
        let charged = waits + (self.event_bytes - events);
        (waits + (self.answered_bytes - sent), charged as u64 / BYTES_PER_MICRO)
    }

    /// Has clients answered that had to wait, each charged for it, until the turn has done enough for them. The next is not
    /// waited for by its timer, which a loop that waits for the disk is told of late.
    pub(crate) fn serve_late_answers(&mut self, env: Env) -> Result<(), Stopped> {
        if !self.host.machine().has_late_answer() {
            return Ok(());
        }
        self.commands()?;
        let began = self.clock.now();
        let (mut before, mut answers) = (began, 0);
        while self.host.machine().has_late_answer() && !self.is_crowded() {
            let sent_before = self.sent();
            self.input(env, Input::Timer(ReplicaTimer::Reads));
            self.commands()?;
            let now = self.clock.now();
            let (answer, micros) = self.sent_since(sent_before);
            answers += answer;
            if let Some(client) = self.host.machine().answered_late() {
                let took = now.0.saturating_sub(before.0).max(micros);
                self.client_charges.get_mut().served(client, now, took);
            }
            before = now;
            if answers >= ANSWER_BYTES || now.0.saturating_sub(began.0) >= CLIENT_MICROS {
                break;
            }
        }
        Ok(())
    }

    /// Gives the machine what clients asked, until the turn has done enough for them: replicas must not
    /// wait for the work that a few clients can cause. At least one message has its turn.
    pub(crate) fn serve_clients(&mut self, env: Env) -> Result<(), Stopped> {
        // What the turn has left to do is nobody's question.
        self.commands()?;
        let began = self.clock.now();
        // What this turn has sent already it sent to those who had waited.
        let (sent_before, mut before, mut answers) = (self.answered_bytes, began, 0);
        while !self.is_crowded()
            && let Some(asked) = self.asked.pop_front()
        {
            // A frame is charged when it comes. What a read takes is known afterwards: it may look at much and show little.
            let serves = match &asked {
                // Its answer is made later, and charged then.
                Asked::Read(_) if A::PROVES_REPLIES => None,
                Asked::Read(read) => Some(read.client),
                Asked::Again(request) => Some(request.frame.client()),
                Asked::Repeated(repeated) => Some(repeated.client),
                Asked::Request(_) => None,
            };
            let input = match asked {
                Asked::Read(read) => Input::Read(read),
                Asked::Again(request) => Input::Requests(vec![request]),
                Asked::Repeated(repeated) => Input::Repeated(repeated),
                // First requests are answered when they have been ordered, and are ordered together where they
                // stay together; one that asks for everything is answered at once where it can be.
                Asked::Request(first) => {
                    let alone = first.wish == Wish::Full;
                    let mut requests = vec![first];
                    while let Some(Asked::Request(next)) = self.asked.front()
                        && !alone
                        && next.wish != Wish::Full
                    {
                        requests.extend(self.asked.pop_front().and_then(Asked::request));
                    }
                    Input::Requests(requests)
                }
            };
            let sent = self.sent();
            self.input(env, input);
            self.commands()?;
            let now = self.clock.now();
            if let Some(client) = serves {
                let (answer, micros) = self.sent_since(sent);
                answers += answer;
                let took = now.0.saturating_sub(before.0).max(micros);
                self.client_charges.get_mut().served(client, now, took);
            }
            before = now;
            let spent = now.0.saturating_sub(began.0);
            let sent = (self.answered_bytes - sent_before).max(answers);
            if sent >= ANSWER_BYTES || spent >= CLIENT_MICROS || self.is_stuck() {
                break;
            }
        }
        Ok(())
    }
}
