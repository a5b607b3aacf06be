//! False histories: tells those who lack a part of the history something else, whether or not they asked, and fills the next
//! slot of its own history before its host does, so that nothing that it executes later is proven.

use super::{EaHand, Peer, answer};
use crate::a2m_pbft_ea::A2mPbftEaWorld;
use crate::adversary::Strategy;
use troth_a2m_pbft_ea::Message as Sent;
use troth_a2m_pbft_ea::place::HISTORY;
use troth_core::PeerMessage;
use troth_trusted::a2m::{Operation, slot_nonce};
use troth_types::{Digest, ReplicaId, Seq};

/// Tells what never was.
#[derive(Debug, Default)]
pub struct Falsifier {
    /// The last number of the history that it heard or told of.
    last: Seq,
}

/// The same, with a value changed, left out, doubled, or everything moved by a number.
fn other_history(hand: &mut EaHand<'_>, from: Seq, values: &[Digest]) -> Sent {
    let mut values = values.to_vec();
    let at = hand.rng.index(values.len().max(1));
    match hand.rng.below(4) {
        0 if at < values.len() => values[at] = Digest([7; 32]),
        1 if at < values.len() => drop(values.remove(at)),
        2 => values.insert(at, Digest([6; 32])),
        _ => return Sent::History(from.next(), values),
    }
    Sent::History(from, values)
}

impl Strategy<A2mPbftEaWorld> for Falsifier {
    fn name(&self) -> &'static str {
        "false histories"
    }

    fn send(&mut self, hand: &mut EaHand<'_>, _: usize, to: ReplicaId, message: Peer) {
        match &message {
            PeerMessage::Protocol(Sent::History(from, values)) if !hand.rng.one_in(4) => {
                self.last = self.last.max(Seq(from.0 + values.len() as u64));
                let other = other_history(hand, *from, values);
                hand.send_evil(to, PeerMessage::Protocol(other));
            }
            _ => hand.send(to, message),
        }
    }

    fn hears(&mut self, hand: &mut EaHand<'_>, _: usize, from: ReplicaId, message: &Peer) -> bool {
        if let PeerMessage::Protocol(Sent::FetchHistory(wanted)) = message {
            self.last = self.last.max(*wanted);
            let count = hand.rng.below(20);
            let values = (0..count).map(|_| Digest([hand.rng.below(3) as u8; 32])).collect();
            hand.send_evil(from, PeerMessage::Protocol(Sent::History(*wanted, values)));
        }
        true
    }

    fn tick(&mut self, hand: &mut EaHand<'_>) {
        if hand.rng.one_in(20) {
            let others = hand.others();
            let to = hand.rng.pick(&others);
            let near = Seq(hand.rng.below(self.last.0 + 8));
            let message = if hand.rng.one_in(2) {
                let count = hand.rng.below(40);
                Sent::History(near, vec![Digest([5; 32]); count as usize])
            } else {
                Sent::FetchHistory(near)
            };
            hand.send_evil(to, PeerMessage::Protocol(message));
        }
        if hand.rng.one_in(400) {
            let end = Operation::End { log: HISTORY, nonce: [0; 32] };
            let Some(next) = answer(hand, end).and_then(|end| end.claim.slot.next()) else { return };
            let value = [hand.rng.below(3) as u8; 32];
            let nonce = Some(slot_nonce(next));
            let fill = if hand.rng.one_in(2) {
                Operation::Append { log: HISTORY, slot: next, value, nonce }
            } else {
                Operation::Advance { log: HISTORY, slot: next, previous: [4; 32], value, nonce }
            };
            if answer(hand, fill).is_some() {
                hand.acted();
            }
        }
    }
}
