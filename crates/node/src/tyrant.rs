//! A primary that breaks no rule and serves badly: what nobody can prove and everybody suffers from. Only in builds
//! with the feature `demo-adversary`.

use crate::served::Served;
use bytes::Bytes;
use std::collections::VecDeque;
use troth_core::PeerMessage;
use troth_types::{ClientId, Group, ReplicaId, Time, Wire};

/// How it serves badly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tyranny {
    /// It sends its proposals just before the others would suspect it of sending none.
    Slow,
    /// It takes one client's requests in just before the others would suspect it of not doing so.
    Unfair(ClientId),
    /// It shows its proposals, and its votes for them, to no more than it needs, leaving f correct replicas out, and answers no
    /// client.
    Withholding,
}

/// What a tyrant holds back. `I` is a client's request on its way to the machine.
pub(crate) struct Tyrant<I> {
    tyranny: Tyranny,
    me: ReplicaId,
    /// Whether an encoded message is a proposal of this replica.
    is_proposal: fn(&Bytes, ReplicaId) -> bool,
    /// Whether one is kept back from who is left out.
    is_kept_back: fn(&Bytes, ReplicaId) -> bool,
    faults: u16,
    replicas: u16,
    /// Microseconds.
    delay: u64,
    proposals: VecDeque<(Time, ReplicaId, Bytes)>,
    requests: VecDeque<(Time, I)>,
}

impl<I> Tyrant<I> {
    /// One among replicas that run `A`, which stays a tenth below the time-out, in microseconds, of the oldest request.
    pub(crate) fn new<A: Served>(tyranny: Tyranny, me: ReplicaId, group: &Group, time_out: u64) -> Self {
        let replicas = u16::try_from(group.n()).expect("a group is small");
        Self {
            tyranny,
            me,
            is_proposal: is_proposal::<A>,
            is_kept_back: is_kept_back::<A>,
            faults: u16::try_from(group.f()).expect("fewer than the replicas"),
            replicas,
            delay: time_out / 10 * 9,
            proposals: VecDeque::new(),
            requests: VecDeque::new(),
        }
    }

    /// What goes to a replica now, of an encoded message.
    pub(crate) fn tell(&mut self, now: Time, to: ReplicaId, message: Bytes) -> Option<Bytes> {
        let is_proposal = || (self.is_proposal)(&message, self.me);
        match self.tyranny {
            Tyranny::Slow if is_proposal() => {
                self.proposals.push_back((now.after(self.delay), to, message));
                None
            }
            // The last f of the others.
            Tyranny::Withholding if self.is_left_out(to) && (self.is_kept_back)(&message, self.me) => None,
            _ => Some(message),
        }
    }

    fn is_left_out(&self, replica: ReplicaId) -> bool {
        let place = (replica.0 + self.replicas - self.me.0) % self.replicas;
        place + self.faults >= self.replicas
    }

    /// Whether clients are answered.
    pub(crate) fn answers(&self) -> bool {
        self.tyranny != Tyranny::Withholding
    }

    /// Takes a client's request, and gives it back where it is let pass now.
    pub(crate) fn request(&mut self, now: Time, client: ClientId, request: I) -> Option<I> {
        if self.tyranny != Tyranny::Unfair(client) {
            return Some(request);
        }
        self.requests.push_back((now.after(self.delay), request));
        None
    }

    /// When something is let go, if anything is held.
    pub(crate) fn next(&self) -> Option<Time> {
        let proposal = self.proposals.front().map(|(at, ..)| *at);
        proposal.into_iter().chain(self.requests.front().map(|(at, _)| *at)).min()
    }

    /// A proposal whose time has come.
    pub(crate) fn proposal(&mut self, now: Time) -> Option<(ReplicaId, Bytes)> {
        self.proposals.front().filter(|(at, ..)| *at <= now)?;
        self.proposals.pop_front().map(|(_, to, message)| (to, message))
    }

    /// A request whose time has come.
    pub(crate) fn late_request(&mut self, now: Time) -> Option<I> {
        self.requests.front().filter(|(at, _)| *at <= now)?;
        self.requests.pop_front().map(|(_, request)| request)
    }
}

fn is_proposal<A: Served>(message: &Bytes, me: ReplicaId) -> bool {
    match PeerMessage::<A::Message>::from_wire(message) {
        Ok(PeerMessage::Protocol(message)) => A::is_proposal(&message, me),
        _ => false,
    }
}

fn is_kept_back<A: Served>(message: &Bytes, me: ReplicaId) -> bool {
    match PeerMessage::<A::Message>::from_wire(message) {
        Ok(PeerMessage::Protocol(message)) => A::is_kept_back(&message, me),
        _ => false,
    }
}
