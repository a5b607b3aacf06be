//! Forged view changes: VIEWCHANGEs that leave out commitments, show older ones, claim to come from an earlier view, or rest on
//! other wants, each attested by the component before its host's own is, as far as the slot is free.

use super::{EaHand, Peer, attest, look_up, own};
use crate::a2m_pbft_ea::A2mPbftEaWorld;
use crate::adversary::Strategy;
use troth_a2m_pbft_ea::evidence::{shared_nonce, to_look_up};
use troth_a2m_pbft_ea::place::COMMIT;
use troth_a2m_pbft_ea::{Body, Config, ViewChange};
use troth_types::{ReplicaId, Seq, View};

/// Forges.
#[derive(Debug, Default)]
pub struct Forger {
    earlier: Option<ViewChange>,
}

fn forged(hand: &mut EaHand<'_>, change: &ViewChange, earlier: Option<&ViewChange>) -> ViewChange {
    let mut forged = change.clone();
    match hand.rng.below(7) {
        0 => forged.committed.clear(),
        1 => drop(forged.committed.pop()),
        2 if !forged.committed.is_empty() => drop(forged.committed.remove(0)),
        3 => forged.stable = Default::default(),
        4 => (forged.left, forged.accepted) = (View(0), None),
        5 => {
            if let Some(earlier) = earlier {
                forged.left = earlier.left;
                forged.accepted.clone_from(&earlier.accepted);
                forged.committed.clone_from(&earlier.committed);
                forged.stable = earlier.stable.clone();
            }
        }
        _ => drop(forged.wanted.pop()),
    }
    if hand.rng.one_in(4) {
        return forged;
    }
    // With the lookups that would go with it, whatever the component says.
    let last = forged.committed.last().and_then(|last| last.commit.voted()).map(|vote| vote.seq);
    let last = last.unwrap_or(forged.stable.target().0).max(Seq(0));
    let nonce = shared_nonce(&forged.wanted);
    let slots = to_look_up(&Config::DEFAULT, forged.left, forged.to, last);
    forged.abandoned = slots.into_iter().filter_map(|slot| look_up(hand, COMMIT, slot, nonce)).collect();
    forged
}

impl Strategy<A2mPbftEaWorld> for Forger {
    fn name(&self) -> &'static str {
        "forged view changes"
    }

    fn send(&mut self, hand: &mut EaHand<'_>, _: usize, to: ReplicaId, message: Peer) {
        let change = own(hand, &message).and_then(|own| own.view_change()).cloned();
        hand.send(to, message);
        let Some(mut change) = change else { return };
        // The slot of this view is filled; that of the next is not, and somebody may want it.
        let next = View(change.to.0 + 1);
        let wanted: Vec<_> = hand
            .heard
            .iter()
            .filter_map(|(_, heard)| match heard {
                troth_core::PeerMessage::Protocol(troth_a2m_pbft_ea::Message::Want(wanted)) => {
                    Some(wanted.clone())
                }
                _ => None,
            })
            .filter(|wanted| wanted.want.to == next)
            .collect();
        if hand.rng.one_in(2) {
            let mut distinct = wanted;
            distinct.sort_by_key(|wanted| wanted.from);
            distinct.dedup_by_key(|wanted| wanted.from);
            if distinct.len() >= hand.group.quorum() {
                (change.to, change.wanted) = (next, distinct);
            }
        }
        let forged = forged(hand, &change, self.earlier.as_ref());
        if let Some(forged) = attest(hand, Body::ViewChange(forged)) {
            for to in hand.others() {
                hand.send_evil(to, forged.clone());
            }
        }
        self.earlier = Some(change);
    }
}
