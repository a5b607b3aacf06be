//! PBFT's written strategies, a file each.

mod checkpoints;
mod deny;
mod equivocate;
mod replay;
mod stall;
mod two_stories;
mod view_sets;
mod votes;

use super::PbftFamily;
use crate::adversary::{Hand, Liar, Reminder, Selective, Stale};
use crate::protocol::Named;
use std::marker::PhantomData;
use troth_core::PeerMessage;
use troth_pbft::{Body, Message, Phase};

type Peer = PeerMessage<Message>;

/// The message of the three phases that this one is, and whether it is signed.
fn phase(message: &Peer) -> Option<(Phase, bool)> {
    match message {
        PeerMessage::Protocol(Message::PrePrepare(proposal)) => {
            Some((Phase::PrePrepare(proposal.clone()), false))
        }
        PeerMessage::Protocol(Message::Prepare(vote)) => Some((Phase::Prepare(*vote), false)),
        PeerMessage::Protocol(Message::Commit(vote)) => Some((Phase::Commit(*vote), false)),
        PeerMessage::Protocol(Message::Signed(signed)) => match &signed.body {
            Body::Phase(phase) => Some((phase.clone(), true)),
            _ => None,
        },
        _ => None,
    }
}

/// A message of the three phases as a faulty replica says it, signed where its group signs such.
fn say<P: PbftFamily>(hand: &mut Hand<'_, P>, phase: Phase, signed: bool) -> Peer {
    PeerMessage::Protocol(if signed { hand.sign(Body::Phase(phase)) } else { phase.into() })
}

/// The strategies against a protocol that orders as PBFT does.
pub struct Written<P>(PhantomData<P>);

impl<P: PbftFamily> Written<P> {
    /// All of them, by name.
    pub const ALL: &'static [Named<P>] = &[
        ("equivocating primary", || Box::new(equivocate::Equivocator::default())),
        ("double voter", || Box::new(votes::DoubleVoter::default())),
        ("selective sender", || Box::new(Selective::default())),
        ("forged view-change sets", || Box::new(view_sets::Forger::default())),
        ("false witness", || Box::new(deny::FalseWitness::default())),
        ("conflicting checkpoints", || Box::new(checkpoints::Conflicting::default())),
        ("stale replayer", || Box::new(replay::Replayer)),
        ("stalling primary", || Box::new(stall::Staller::default())),
        ("liar to clients", || Box::new(Liar::default())),
    ];

    /// The same with those against histories.
    pub const AND_HISTORIES: &'static [Named<P>] = &[
        ("equivocating primary", || Box::new(equivocate::Equivocator::default())),
        ("double voter", || Box::new(votes::DoubleVoter::default())),
        ("selective sender", || Box::new(Selective::default())),
        ("forged view-change sets", || Box::new(view_sets::Forger::default())),
        ("false witness", || Box::new(deny::FalseWitness::default())),
        ("conflicting checkpoints", || Box::new(checkpoints::Conflicting::default())),
        ("stale replayer", || Box::new(replay::Replayer)),
        ("liar to clients", || Box::new(Liar::default())),
        ("stale answers", || Box::new(Stale::default())),
        ("two stories", || Box::new(two_stories::Storyteller::default())),
        ("reminder of what is done", || Box::new(Reminder::default())),
    ];
}
