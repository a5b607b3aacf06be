//! Messages reach nodes.

use super::World;
use super::event::{Envelope, Opened};
use crate::Protocol;
use std::rc::Rc;
use std::sync::Arc;
use troth_auth::{FrameError, FrameVerifier, ModelPairs, Verified};
use troth_core::{Agreement, Host, Input, PeerMessage, Request};
use troth_types::{Frame, ReplicaId, ToReplica};

/// Once in so many inputs a correct node's own invariants are checked thoroughly.
const INVARIANTS_ONE_IN: u64 = 8;

impl<P: Protocol> World<P> {
    /// After a node took an input: what its executor did, its invariants, its commands.
    pub(super) fn after_input(&mut self, index: usize) {
        self.collect(index);
        self.invariants_countdown -= 1;
        if self.invariants_countdown == 0 {
            self.invariants_countdown = INVARIANTS_ONE_IN;
            if let (None, Some(host)) = (self.nodes[index].adversary, &self.nodes[index].host) {
                host.machine().agreement().invariants();
            }
        }
        self.pump(index);
    }

    /// Whether a faulty host may hear a message.
    fn may_hear(&mut self, index: usize, envelope: &Envelope<P>) -> bool {
        let Some((adversary, host)) = self.nodes[index].adversary else { return true };
        let (group, now) = (self.blueprint.group, self.agenda.now);
        let this = &mut self.adversaries[adversary];
        if this.silent {
            return false;
        }
        if host == 0 {
            this.hear(envelope.from, &envelope.message);
        }
        if !this.active {
            return host == 0;
        }
        let (hears, acts) = this
            .with(&group, now, |strategy, hand| strategy.hears(hand, host, envelope.from, &envelope.message));
        self.carry_out(adversary, acts);
        hears
    }

    /// A message of a replica reaches a node.
    pub(super) fn deliver_peer(&mut self, index: usize, envelope: &Rc<Envelope<P>>) {
        self.outcome.steps += 1;
        if self.nodes[index].host.is_none() {
            return;
        }
        let now = self.agenda.now;
        self.trace.note(now, || format!("{} -> node {index}: {:?}", envelope.from, envelope.message));
        if !self.may_hear(index, envelope) {
            return;
        }
        // As long as no replica was replaced, everybody knows everybody.
        let group = self.blueprint.group.id();
        if self.newest > 0 && !envelope.is_known_to(group, &self.nodes[index].configuration) {
            return;
        }
        let Some(input) = self.input_of(index, envelope) else { return };
        let env = self.nodes[index].env(now);
        self.acts(index);
        // It may have crashed over the doubtful ones of the frames.
        let Some(host) = self.nodes[index].host.as_mut() else { return };
        host.input(env, input);
        self.after_input(index);
    }

    #[allow(clippy::type_complexity, reason = "the host's own input type, spelled out")]
    fn input_of(
        &mut self,
        index: usize,
        envelope: &Envelope<P>,
    ) -> Option<Input<crate::Message<P>, super::event::Timer<P>>> {
        let from = envelope.from;
        Some(match envelope.open(&self.messages, &self.frames) {
            Opened::Forged => {
                self.forged(from, envelope);
                return None;
            }
            // As the engine passes it over before it checks it.
            Opened::Protocol(message) if !self.agreement(index)?.is_worth_checking(message) => return None,
            Opened::Protocol(message) => Input::Message(from, self.as_believed(index, message)),
            Opened::Frames(frames) => Input::Frames(from, frames.clone()),
            Opened::Tagged => {
                let PeerMessage::Frames(list) = &envelope.message else { return None };
                return self.tagged(index, from, list.clone());
            }
            Opened::Plain => match &envelope.message {
                PeerMessage::FetchFrames(digests) => Input::FetchFrames(from, digests.clone()),
                PeerMessage::FetchState(fetch) => Input::FetchState(from, fetch.clone()),
                PeerMessage::StatePiece(piece) => Input::StatePiece(from, piece.clone()),
                PeerMessage::Protocol(_) | PeerMessage::Frames(_) => return None,
            },
        })
    }

    /// What a node agrees by, while it is up.
    fn agreement(&self, index: usize) -> Option<&P::Agreement> {
        self.nodes[index].host.as_ref().map(|host| host.machine().agreement())
    }

    /// Whether a node drops a client's frame unchecked, as the engine does: it neither holds it nor has executed it, and may
    /// do nothing with it.
    fn is_of_no_use(&self, index: usize, frame: &Frame) -> bool {
        let Some(machine) = self.nodes[index].host.as_ref().map(Host::machine) else { return true };
        let agreement = machine.agreement();
        let is_done = !P::Agreement::PROVES_REPLIES && machine.is_done(frame.client(), frame.number());
        agreement.frame(&frame.digest()).is_none() && !is_done && !agreement.may_use(frame)
    }

    /// The checks of frames by a node's own keys.
    fn checks_of(&self, index: usize) -> FrameVerifier {
        let me = self.nodes[index].replica;
        if P::AUTHENTICATORS {
            self.frames.with_pairs(me, Arc::new(ModelPairs::of(me)))
        } else {
            self.frames.clone()
        }
    }

    /// Frames of which a node finds some authentic and some not: it takes the good ones first.
    #[allow(clippy::type_complexity, reason = "as above")]
    fn tagged(
        &mut self,
        index: usize,
        from: ReplicaId,
        list: Vec<Arc<Frame>>,
    ) -> Option<Input<crate::Message<P>, super::event::Timer<P>>> {
        let checks = self.checks_of(index);
        let verdicts = checks.verify_all(list.clone());
        let doubtful: Vec<_> = list
            .into_iter()
            .zip(&verdicts)
            .filter_map(|(frame, verdict)| (*verdict == Err(FrameError::BadTag)).then_some(frame))
            .collect();
        let good: Vec<_> = verdicts.into_iter().flatten().collect();
        if !doubtful.is_empty() {
            self.outcome.doubtful += doubtful.len() as u64;
            let now = self.agenda.now;
            let env = self.nodes[index].env(now);
            let host = self.nodes[index].host.as_mut()?;
            host.input(env, Input::Doubtful(from, doubtful));
            self.after_input(index);
        }
        Some(Input::Frames(from, good))
    }

    /// A correct replica never sends what does not verify, relayed or its own.
    fn forged(&mut self, from: ReplicaId, envelope: &Envelope<P>) {
        if !self.faulty(from) {
            let result =
                Err(format!("{from} is correct and sent what does not verify: {:?}", envelope.message));
            self.checks.judge("authentic messages", &[], result);
        }
    }

    /// The message as the node takes it: a faulty replica's host sees its own messages inside others'
    /// as it knows them.
    fn as_believed(
        &self,
        index: usize,
        message: &Verified<crate::Message<P>>,
    ) -> Verified<crate::Message<P>> {
        match self.nodes[index].adversary {
            Some((adversary, host)) if !self.options.negative => {
                let message = message.clone().into_inner();
                Verified::made_here(self.adversaries[adversary].puppet.localise(host, message))
            }
            _ => message.clone(),
        }
    }

    /// A message of a client reaches a node.
    pub(super) fn deliver_client(&mut self, index: usize, message: ToReplica) {
        self.outcome.steps += 1;
        if self.nodes[index].host.is_none() {
            return;
        }
        let now = self.agenda.now;
        self.trace.note(now, || format!("client -> node {index}: {message:?}"));
        if let Some((adversary, host)) = self.nodes[index].adversary {
            let group = self.blueprint.group;
            let this = &mut self.adversaries[adversary];
            if this.silent || (!this.active && host > 0) {
                return;
            }
            if this.active {
                let (hears, acts) =
                    this.with(&group, now, |strategy, hand| strategy.hears_client(hand, host, &message));
                self.carry_out(adversary, acts);
                if !hears {
                    return;
                }
            }
        }
        let input = match message {
            ToReplica::Request { frame, .. } if self.is_of_no_use(index, &frame) => return,
            ToReplica::Request { frame, wish } => match self.checks_of(index).verify(frame) {
                Ok(frame) => Input::Requests(vec![Request { frame, wish }]),
                Err(_) => return,
            },
            ToReplica::Read(read) => Input::Read(read),
        };
        let env = self.nodes[index].env(now);
        self.acts(index);
        let host = self.nodes[index].host.as_mut().expect("looked at just now");
        host.input(env, input);
        self.after_input(index);
    }
}
