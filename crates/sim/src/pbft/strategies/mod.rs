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
use crate::adversary::{Liar, Selective};
use crate::protocol::Named;
use std::marker::PhantomData;
use troth_core::PeerMessage;
use troth_pbft::Message;

type Peer = PeerMessage<Message>;

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
        ("two stories", || Box::new(two_stories::Storyteller::default())),
    ];
}
