//! The equivocating primary: has another batch attested at the next number before its host gets there, shows one to some and
//! the other to the others as far as its component lets it, and starts views from other VIEWCHANGEs.

use super::{EaHand, Peer, attest, own};
use crate::a2m_pbft_ea::A2mPbftEaWorld;
use crate::adversary::Strategy;
use troth_a2m_pbft_ea::{Body, NewView, PrePrepare};
use troth_types::{Batch, ReplicaId, Seq, Time};

/// Proposes twice.
#[derive(Debug, Default)]
pub struct Equivocator {
    /// A proposal that its host knows nothing of, and who is shown it.
    other: Option<(Peer, u64)>,
}

fn other_batch(hand: &mut EaHand<'_>, batch: &Batch) -> Batch {
    let mut frames = batch.frames.clone();
    match hand.rng.below(4) {
        0 => frames.reverse(),
        1 => frames.truncate(frames.len() / 2),
        2 => frames.extend(batch.frames.first().copied()),
        _ => frames.clear(),
    }
    Batch { time: Time(batch.time.0 + hand.rng.below(3)), frames }
}

/// The same start from fewer VIEWCHANGEs, or with a batch left out.
fn other_start(hand: &mut EaHand<'_>, new_view: &NewView) -> NewView {
    let mut other = new_view.clone();
    match hand.rng.below(3) {
        0 => drop(other.changes.pop()),
        1 => drop(other.chosen.pop()),
        _ => other.chosen.reverse(),
    }
    other
}

impl Strategy<A2mPbftEaWorld> for Equivocator {
    fn name(&self) -> &'static str {
        "equivocating primary"
    }

    fn send(&mut self, hand: &mut EaHand<'_>, _: usize, to: ReplicaId, message: Peer) {
        let Some(body) = own(hand, &message).map(|own| own.body.clone()) else {
            return hand.send(to, message);
        };
        match body {
            Body::PrePrepare(proposal) if hand.rng.one_in(4) => {
                let batch = other_batch(hand, &proposal.batch);
                // The slot of this number is filled: the next one is not.
                let seq = Seq(proposal.seq.0 + hand.rng.below(2));
                let next = PrePrepare { view: proposal.view, seq, batch };
                if let Some(other) = attest(hand, Body::PrePrepare(next)) {
                    self.other = Some((other, hand.rng.subset(hand.group.n())));
                }
                hand.send(to, message);
            }
            Body::NewView(new_view) if hand.rng.one_in(3) => {
                let other = other_start(hand, &new_view);
                if let Some(other) = attest(hand, Body::NewView(other)) {
                    hand.send_evil(to, other);
                }
                hand.send(to, message);
            }
            _ => hand.send(to, message),
        }
        if let Some((other, _)) = self.other.clone().filter(|(_, shown)| shown & (1 << to.0) != 0) {
            hand.send_evil(to, other);
        }
    }
}
