//! What clients asked and the machine has not been given yet, and how much of it a turn serves.

use crate::engine::{Engine, Stopped};
use troth_core::{Agreement, Env, Execution, Input, Repeated, Request};
use troth_types::{Read, Wish};

/// Bytes of answers to clients after which the turn's round of clients ends. A message of a client
/// is small and its answer need not be: a read of large values, a repetition of an old request.
const ANSWER_BYTES: usize = 1 << 20;
/// Microseconds after which the turn's round of clients ends: what an answer costs is not its length
/// where only the digest of a large result is sent.
pub(crate) const CLIENT_MICROS: u64 = 10_000;

/// A checked message of a client.
pub(crate) enum Asked {
    /// A frame to be ordered.
    Request(Request),
    /// A frame that is executed.
    Repeated(Repeated),
    /// A read.
    Read(Read),
}

impl Asked {
    fn request(self) -> Option<Request> {
        match self {
            Self::Request(request) => Some(request),
            Self::Repeated(_) | Self::Read(_) => None,
        }
    }
}

impl<A: Agreement, X: Execution> Engine<A, X> {
    /// Whether messages of clients wait for the next turn.
    pub(crate) fn has_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Gives the machine what clients asked, until the turn has done enough for them: replicas must not
    /// wait for the work that a few clients can cause. At least one message has its turn.
    pub(crate) fn serve_clients(&mut self, env: Env) -> Result<(), Stopped> {
        // What the turn has left to do is nobody's question.
        self.commands()?;
        let began = self.clock.now();
        let mut before = began;
        while let Some(asked) = self.asked.pop_front() {
            // A frame is charged when it comes. What a read takes is known afterwards: it may look at much and show little.
            let serves = match &asked {
                Asked::Read(read) => Some(read.client),
                Asked::Repeated(repeated) => Some(repeated.client),
                Asked::Request(_) => None,
            };
            let input = match asked {
                Asked::Read(read) => Input::Read(read),
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
            self.input(env, input);
            self.commands()?;
            let now = self.clock.now();
            if let Some(client) = serves {
                self.client_charges.get_mut().served(client, now, now.0.saturating_sub(before.0));
            }
            before = now;
            let spent = now.0.saturating_sub(began.0);
            // What waits behind the disk is not among the answers yet.
            if self.answered_bytes >= ANSWER_BYTES || spent >= CLIENT_MICROS || self.is_stuck() {
                break;
            }
        }
        Ok(())
    }
}
