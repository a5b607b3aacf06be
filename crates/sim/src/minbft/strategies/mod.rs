//! MinBFT's written strategies, a file each.

mod checkpoints;
mod collude;
mod counters;
mod equivocate;
mod frame;
mod heir;
mod hold_back;
mod replay;
mod view_sets;

use super::MinBftWorld;
use crate::adversary::{Hand, Liar, Selective, Strategy};
use crate::protocol::Named;
use crate::{Message, Protocol};
use troth_core::PeerMessage;

type Peer = PeerMessage<Message<MinBftWorld>>;
type MinBftHand<'a> = Hand<'a, MinBftWorld>;

/// All of them, by name.
pub const ALL: &[Named<MinBftWorld>] = &[
    ("equivocating primary", || Box::new(equivocate::Equivocator::default())),
    ("selective sender", || Box::new(Selective::default())),
    ("counter holder-back", || Box::new(hold_back::HolderBack::default())),
    ("forged view-change sets", || Box::new(view_sets::Forger)),
    ("truncated view-change sets", || Box::new(view_sets::Truncator)),
    ("conflicting checkpoints", || Box::new(checkpoints::Conflicting::default())),
    ("stale replayer", || Box::new(replay::Replayer::default())),
    ("liar to clients", || Box::new(Liar::default())),
    ("framing relay", || Box::new(frame::Framer)),
    ("two counters", || Box::new(counters::TwoCounters::default())),
    ("colluders", || Box::new(collude::Colluder::default())),
];

/// The strategy of who has two components.
pub(super) fn heir() -> Box<dyn Strategy<MinBftWorld>> {
    Box::new(heir::Heir::default())
}

/// What a message is, by name; nothing for those that every protocol has.
fn kind(message: &Peer) -> &'static str {
    match message {
        PeerMessage::Protocol(message) => MinBftWorld::kind(message),
        _ => "",
    }
}
