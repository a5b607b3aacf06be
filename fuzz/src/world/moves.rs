//! What happens next, as the steps say: what is the same for all protocols.

use super::{Auth, CLIENTS, Fuzzed, World};
use crate::bytes::Steps;
use crate::samples;
use bytes::Bytes;
use std::sync::Arc;
use troth_auth::{FrameError, MessageError, ModelPairs};
use troth_core::{Input, PeerMessage, Repeated, Request};
use troth_types::{
    ClientId, Digest, Frame, FrameProof, Read, ReplicaId, StateFetch, StatePiece, Tag, Wire, Wish,
};

impl<P: Fuzzed> World<P> {
    /// Takes the next step.
    pub(crate) fn step(&mut self, steps: &mut Steps<'_>) {
        let first = usize::from(steps.byte());
        let from = self.faulty[first % self.faulty.len()];
        if self.nodes.len() > 1 {
            self.deliver(first >> 3, first & 4 != 0);
        }
        match steps.byte() % 16 {
            0 => self.request(steps),
            1 => self.ask(steps),
            2 => self.pass(u64::from(steps.short()) * 50),
            3 => {
                if let Some(message) = steps.one_of(&self.said).cloned() {
                    self.tell(from, PeerMessage::Protocol(message), steps);
                }
            }
            4 => {
                if let Some(message) = P::say(self, from, steps) {
                    self.tell(from, PeerMessage::Protocol(message), steps);
                }
            }
            5 => {
                // Any bytes that are a message.
                let bytes = Bytes::copy_from_slice(steps.chunk());
                if let Ok(message) = PeerMessage::from_wire(&bytes) {
                    self.tell(from, message, steps);
                }
            }
            6 => {
                let at = self.one(steps);
                if !self.nodes[at].ended {
                    let kept = self.nodes[at].kept.clone();
                    self.restart(at, kept).expect("what was kept is whole");
                }
            }
            7 => self.show_state(from, steps),
            what => P::vouch(self, from, what, steps),
        }
    }

    /// One of the correct replicas.
    fn one(&self, steps: &mut Steps<'_>) -> usize {
        if self.nodes.len() == 1 { 0 } else { steps.below(self.nodes.len()) }
    }

    /// So many messages between correct replicas arrive. Where the first is late, the others come before it.
    fn deliver(&mut self, count: usize, is_late: bool) {
        if is_late && let Some(first) = self.wire.pop_front() {
            self.wire.push_back(first);
        }
        for _ in 0..count {
            let Some((from, to, message)) = self.wire.pop_front() else { return };
            let at = self.nodes.iter().position(|node| node.me == to).expect("a correct one");
            let bytes = message.to_wire();
            let message = PeerMessage::from_wire(&bytes).expect("what a correct replica sends decodes");
            if let Err(MessageError::Malformed(why)) = self.arrive(at, from, message) {
                panic!("{from} is correct and breaks a rule of form: {why}");
            }
        }
    }

    /// A faulty replica sends: to all correct ones, or, where there are several, to some.
    pub(super) fn tell(&mut self, from: ReplicaId, message: PeerMessage<P::Message>, steps: &mut Steps<'_>) {
        let whom = if self.nodes.len() == 1 { 0 } else { steps.byte() };
        for at in 0..self.nodes.len() {
            // A bit for each that does not hear of it.
            if (whom >> at) & 1 == 0 {
                let _ = self.arrive(at, from, message.clone());
            }
        }
    }

    /// A message arrives as bytes from outside would: it may be passed over, or refused.
    fn arrive(
        &mut self,
        at: usize,
        from: ReplicaId,
        message: PeerMessage<P::Message>,
    ) -> Result<(), MessageError> {
        let node = &self.nodes[at];
        let agreement = node.host.machine().agreement();
        let input = match message {
            PeerMessage::Protocol(message) if !agreement.is_worth_checking(&message) => {
                let _ = (agreement.waits_here(&message), agreement.author_of_dear(&message));
                return Ok(());
            }
            PeerMessage::Protocol(message) => Input::Message(from, node.messages.verify(message)?),
            PeerMessage::FetchFrames(digests) => Input::FetchFrames(from, digests),
            PeerMessage::Frames(frames) => {
                self.shown(at, from, frames);
                return Ok(());
            }
            PeerMessage::FetchState(fetch) => Input::FetchState(from, fetch),
            PeerMessage::StatePiece(piece) => Input::StatePiece(from, piece),
        };
        self.input(at, input);
        Ok(())
    }

    /// Frames are shown; those whose tags are wrong may be their clients' all the same.
    fn shown(&mut self, at: usize, from: ReplicaId, frames: Vec<Arc<Frame>>) {
        let node = &self.nodes[at];
        let agreement = node.host.machine().agreement();
        let is_wanted = |frame: &Arc<Frame>| frame.is_signed() || agreement.wants_unsigned(&frame.digest());
        let frames: Vec<_> = frames.into_iter().filter(is_wanted).collect();
        let verdicts = node.frames.verify_all(frames.clone());
        let doubtful: Vec<_> = frames
            .into_iter()
            .zip(&verdicts)
            .filter_map(|(frame, verdict)| (*verdict == Err(FrameError::BadTag)).then_some(frame))
            .collect();
        if !doubtful.is_empty() {
            self.input(at, Input::Doubtful(from, doubtful));
        }
        self.input(at, Input::Frames(from, verdicts.into_iter().flatten().collect()));
    }

    /// A client's frame arrives, and the faulty replicas know it.
    fn request(&mut self, steps: &mut Steps<'_>) {
        let client = CLIENTS[steps.below(3)];
        let number = 1 + u64::from(steps.byte() % 8);
        let operation = Bytes::copy_from_slice(steps.chunk());
        let frame = self.vouched_by_tags(samples::frame_of(client, number, vec![operation]), steps);
        let wish = [Wish::Usual, Wish::Full, Wish::Nothing, Wish::Alone][steps.below(4)];
        if !self.known.contains(&frame) {
            self.known.push(Arc::clone(&frame));
        }
        for at in 0..self.nodes.len() {
            let node = &self.nodes[at];
            let machine = node.host.machine();
            let is_held = machine.agreement().frame(&frame.digest()).is_some();
            let is_done = !P::PROVES_REPLIES && machine.is_done(frame.client(), frame.number());
            if !is_held && !is_done && !machine.agreement().may_use(&frame) {
                continue;
            }
            if let Ok(frame) = node.frames.verify(Arc::clone(&frame)) {
                self.input(at, Input::Requests(vec![Request { frame, wish }]));
            }
        }
    }

    /// Where clients may show authenticators, half of the frames have one, of which some tags may be wrong.
    fn vouched_by_tags(&self, frame: Arc<Frame>, steps: &mut Steps<'_>) -> Arc<Frame> {
        if self.auth != Auth::Mac {
            return frame;
        }
        let how = steps.byte();
        if how.is_multiple_of(2) {
            return frame;
        }
        let draft = frame.draft();
        let mut tags = ModelPairs::of_client(frame.client(), &self.group).of(&draft.signing_digest());
        for (at, tag) in tags.iter_mut().enumerate() {
            if (how >> (at + 1)) & 1 == 1 {
                *tag = Tag([0; 16]);
            }
        }
        Arc::new(draft.prove(FrameProof::Authenticator(tags)))
    }

    /// A client reads, or asks again for what is executed.
    fn ask(&mut self, steps: &mut Steps<'_>) {
        let at = self.one(steps);
        let client = ClientId(CLIENTS[steps.below(3)]);
        let number = 1 + u64::from(steps.byte() % 8);
        let how = steps.byte();
        let input = if how.is_multiple_of(4) {
            let wish = [Wish::Usual, Wish::Full, Wish::Nothing, Wish::Alone][usize::from(how) / 4 % 4];
            Input::Repeated(Repeated { client, number, events_seen: u64::from(how / 16), wish })
        } else {
            let nonce = (how % 4 == 2).then_some(Digest([how; 32]));
            let least = (how % 4 == 3).then(|| self.seq(steps));
            let operation = Bytes::copy_from_slice(steps.chunk());
            Input::Read(Read { client, number, nonce, least, operation })
        };
        self.input(at, input);
    }

    /// Frames and state, asked for or shown.
    fn show_state(&mut self, from: ReplicaId, steps: &mut Steps<'_>) {
        let states: Vec<Digest> = self.said.iter().filter_map(P::state).collect();
        let digest = steps.one_of(&states).copied().unwrap_or_else(|| self.digest_now());
        let message = match steps.byte() % 4 {
            0 => PeerMessage::FetchFrames(self.batch(steps).frames),
            1 => PeerMessage::Frames(self.known.clone()),
            2 => {
                let path = Bytes::copy_from_slice(steps.chunk());
                PeerMessage::FetchState(StateFetch { seq: self.seq(steps), digest, path })
            }
            _ => {
                let (path, content) =
                    (Bytes::copy_from_slice(steps.chunk()), Bytes::copy_from_slice(steps.chunk()));
                PeerMessage::StatePiece(StatePiece { seq: self.seq(steps), digest, path, content })
            }
        };
        self.tell(from, message, steps);
    }
}
