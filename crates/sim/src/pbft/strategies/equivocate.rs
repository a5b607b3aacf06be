//! The equivocating primary: proposes a batch to some and another batch for the same number to the others, and starts
//! views differently for different replicas.

use super::{Peer, phase, say};
use crate::adversary::{Hand, Strategy};
use crate::pbft::PbftFamily;
use troth_core::PeerMessage;
use troth_pbft::{Body, Message, NewView, Phase, PrePrepare};
use troth_types::{Batch, ReplicaId, Seq, Time, View};

/// Proposes twice.
#[derive(Debug, Default)]
pub struct Equivocator {
    /// The other proposal for this view and number, and who is shown it.
    other: Option<(View, Seq, Batch, u64)>,
}

fn other_batch<P: PbftFamily>(hand: &mut Hand<'_, P>, batch: &Batch) -> Batch {
    let mut frames = batch.frames.clone();
    match hand.rng.below(4) {
        0 => frames.reverse(),
        1 => frames.truncate(frames.len() / 2),
        2 => frames.extend(batch.frames.first().copied()),
        _ => frames.clear(),
    }
    Batch { time: Time(batch.time.0 + hand.rng.below(3)), frames }
}

/// The same start from fewer VIEW-CHANGEs, or with a batch left out: a correct replica refuses the latter.
fn other_start<P: PbftFamily>(hand: &mut Hand<'_, P>, new_view: &NewView) -> NewView {
    let mut other = new_view.clone();
    match hand.rng.below(3) {
        0 if other.changes.len() > hand.group.quorum() => drop(other.changes.remove(0)),
        1 => drop(other.chosen.pop()),
        _ => other.chosen.reverse(),
    }
    other
}

impl<P: PbftFamily> Strategy<P> for Equivocator {
    fn name(&self) -> &'static str {
        "equivocating primary"
    }

    fn send(&mut self, hand: &mut Hand<'_, P>, _: usize, to: ReplicaId, message: Peer) {
        if let Some((Phase::PrePrepare(proposal), signed)) = phase(&message) {
            let at = (proposal.view, proposal.seq);
            if self.other.as_ref().is_none_or(|(view, seq, ..)| (*view, *seq) != at) {
                let shown = if hand.rng.one_in(3) { hand.rng.subset(hand.group.n()) } else { 0 };
                let batch = other_batch(hand, &proposal.batch);
                self.other = Some((at.0, at.1, batch, shown));
            }
            return match &self.other {
                Some((view, seq, batch, shown)) if shown & (1 << to.0) != 0 => {
                    let other = PrePrepare { view: *view, seq: *seq, batch: batch.clone() };
                    let other = say(hand, Phase::PrePrepare(other), signed);
                    hand.send_evil(to, other);
                }
                _ => hand.send(to, message),
            };
        }
        match &message {
            PeerMessage::Protocol(Message::Signed(signed)) if signed.from == hand.me => match &signed.body {
                Body::NewView(new_view) if hand.rng.one_in(3) => {
                    let other = other_start(hand, new_view);
                    let other = hand.sign(Body::NewView(other));
                    hand.send_evil(to, PeerMessage::Protocol(other));
                }
                _ => hand.send(to, message),
            },
            _ => hand.send(to, message),
        }
    }
}
