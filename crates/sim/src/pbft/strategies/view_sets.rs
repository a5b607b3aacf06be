//! Forged view-change sets: VIEW-CHANGEs that forget what prepared, that claim what never did, and that differ from
//! receiver to receiver; for views near and far.

use super::Peer;
use crate::adversary::{Hand, Strategy};
use crate::pbft::PbftFamily;
use troth_core::PeerMessage;
use troth_pbft::{Body, Entry, Message, ViewChange};
use troth_types::{Digest, ReplicaId, View};

/// Forges.
#[derive(Debug, Default)]
pub struct Forger {
    last: Option<ViewChange>,
}

fn forged<P: PbftFamily>(hand: &mut Hand<'_, P>, change: &ViewChange) -> ViewChange {
    let mut forged = change.clone();
    let (prepared, pre_prepared) = (&mut forged.prepared, &mut forged.pre_prepared);
    match hand.rng.below(8) {
        0 => prepared.clear(),
        1 => pre_prepared.clear(),
        2 => drop(prepared.pop()),
        3 => {
            // What was only pre-prepared, as if it had prepared, in the last view.
            let view = View(change.to.0.saturating_sub(1));
            *prepared = pre_prepared.iter().map(|entry| Entry { view, ..*entry }).collect();
            prepared.dedup_by_key(|entry| entry.seq);
        }
        4 => {
            let view = View(change.to.0.saturating_sub(1));
            prepared.iter_mut().for_each(|entry| (entry.digest, entry.view) = (Digest([5; 32]), view));
        }
        5 => {
            // Claims behind its claims: the same, pre-prepared by itself.
            let view = View(change.to.0.saturating_sub(1));
            prepared.iter_mut().for_each(|entry| entry.view = view);
            pre_prepared.iter_mut().for_each(|entry| entry.view = view);
        }
        6 => {
            // A null request in the last view, and as many witnesses as it takes, all of them itself.
            let view = View(change.to.0.saturating_sub(1));
            let mut all = Vec::new();
            for entry in prepared.iter_mut() {
                (entry.digest, entry.view) = (troth_pbft::choose::null(), view);
                all.extend(std::iter::repeat_n(*entry, hand.group.weak()));
            }
            *pre_prepared = all;
        }
        _ => {
            let repeated = prepared.first().copied();
            prepared.extend(repeated);
        }
    }
    forged
}

impl<P: PbftFamily> Strategy<P> for Forger {
    fn name(&self) -> &'static str {
        "forged view-change sets"
    }

    fn send(&mut self, hand: &mut Hand<'_, P>, _: usize, to: ReplicaId, message: Peer) {
        if let PeerMessage::Protocol(Message::Signed(signed)) = &message
            && signed.from == hand.me
            && let Body::ViewChange(change) = &signed.body
        {
            self.last = Some(change.clone());
            if hand.rng.one_in(2) {
                let forged = forged(hand, change);
                let forged = hand.sign(Body::ViewChange(forged));
                return hand.send_evil(to, PeerMessage::Protocol(forged));
            }
        }
        hand.send(to, message);
    }

    fn tick(&mut self, hand: &mut Hand<'_, P>) {
        let Some(mut change) = self.last.clone().filter(|_| hand.rng.one_in(40)) else { return };
        change.to = if hand.rng.one_in(3) { View(hand.rng.next()) } else { change.to.next() };
        let message = hand.sign(Body::ViewChange(change));
        for to in hand.others() {
            hand.send_evil(to, PeerMessage::Protocol(message.clone()));
        }
    }
}
