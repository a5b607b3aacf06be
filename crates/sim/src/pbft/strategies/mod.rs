//! PBFT's written strategies, a file each.

mod checkpoints;
mod deny;
mod equivocate;
mod replay;
mod view_sets;
mod votes;

use super::PbftWorld;
use crate::Message;
use crate::adversary::{Hand, Liar, Selective};
use crate::protocol::Named;
use troth_core::PeerMessage;

type Peer = PeerMessage<Message<PbftWorld>>;
type PbftHand<'a> = Hand<'a, PbftWorld>;

/// All of them, by name.
pub const ALL: &[Named<PbftWorld>] = &[
    ("equivocating primary", || Box::new(equivocate::Equivocator::default())),
    ("double voter", || Box::new(votes::DoubleVoter::default())),
    ("selective sender", || Box::new(Selective::default())),
    ("forged view-change sets", || Box::new(view_sets::Forger::default())),
    ("false witness", || Box::new(deny::FalseWitness::default())),
    ("conflicting checkpoints", || Box::new(checkpoints::Conflicting::default())),
    ("stale replayer", || Box::new(replay::Replayer)),
    ("liar to clients", || Box::new(Liar::default())),
];
