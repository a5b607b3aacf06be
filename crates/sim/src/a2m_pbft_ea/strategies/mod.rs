//! A2M-PBFT-EA's written strategies, a file each.

mod ahead;
mod checkpoints;
mod equivocate;
mod forge;
mod histories;
mod replay;
mod wants;

use super::A2mPbftEaWorld;
use crate::Message;
use crate::adversary::{Hand, Liar, Reminder, Selective, Stale};
use crate::protocol::Named;
use std::sync::Arc;
use troth_a2m_pbft_ea::{A2mPbftEa, Body, Message as Sent, place};
use troth_auth::Seal;
use troth_core::{Agreement, PeerMessage};
use troth_trusted::a2m::{Answer, Attestation, LogId, Nonce, Operation, Slot, slot_nonce};

type Peer = PeerMessage<Message<A2mPbftEaWorld>>;
type EaHand<'a> = Hand<'a, A2mPbftEaWorld>;

/// All of them, by name.
pub const ALL: &[Named<A2mPbftEaWorld>] = &[
    ("equivocating primary", || Box::new(equivocate::Equivocator::default())),
    ("runs ahead of its logs", || Box::new(ahead::Runner)),
    ("selective sender", || Box::new(Selective::default())),
    ("forged view changes", || Box::new(forge::Forger::default())),
    ("wants without end", || Box::new(wants::Wanter::default())),
    ("conflicting checkpoints", || Box::new(checkpoints::Conflicting)),
    ("false histories", || Box::new(histories::Falsifier::default())),
    ("stale replayer", || Box::new(replay::Replayer)),
    ("stale answers", || Box::new(Stale::default())),
    ("liar to clients", || Box::new(Liar::default())),
    ("reminder of what is done", || Box::new(Reminder::default())),
];

/// Has a body attested by the real component, if its slot is still free there.
fn attest(hand: &mut EaHand<'_>, body: Body) -> Option<Peer> {
    let (log, slot) = place::of(&body)?;
    let digest = body.digest(hand.group.id(), hand.me);
    let nonce = Some(slot_nonce(slot));
    let advance = Operation::Advance { log, slot, previous: [0; 32], value: digest.0, nonce };
    let attestation = answer(hand, advance)?;
    let message = A2mPbftEa::seal(body, digest, hand.me, Seal::Slot(attestation));
    Some(PeerMessage::Protocol(message))
}

/// What the real component says of a slot.
fn look_up(hand: &mut EaHand<'_>, log: LogId, slot: Slot, nonce: Nonce) -> Option<Attestation> {
    answer(hand, Operation::Lookup { log, slot, nonce })
}

fn answer(hand: &mut EaHand<'_>, operation: Operation) -> Option<Attestation> {
    match hand.logs(&[operation]).ok()?.pop()? {
        Answer::Attested(attestation) => Some(attestation),
        Answer::Done => None,
    }
}

/// A message of the faulty replica itself.
fn own<'a>(hand: &EaHand<'_>, message: &'a Peer) -> Option<&'a Arc<troth_a2m_pbft_ea::Attested>> {
    match message {
        PeerMessage::Protocol(Sent::Attested(message)) if message.from == hand.me => Some(message),
        _ => None,
    }
}
