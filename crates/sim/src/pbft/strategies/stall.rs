//! The stalling primary: shows its proposals to as few as prepare them, commits to none and answers nobody, so that its
//! batches are executed tentatively at some, are final nowhere, and clients hear of too few.

use super::Peer;
use crate::adversary::{Hand, Strategy};
use crate::pbft::PbftFamily;
use troth_core::PeerMessage;
use troth_pbft::Message;
use troth_types::{ReplicaId, ToClient, View};

/// Proposes and does not commit.
#[derive(Debug, Default)]
pub struct Staller {
    /// Who is left out in this view.
    left_out: Option<(View, u64)>,
}

impl Staller {
    /// Whether a replica is left out of the view: f of the others are.
    fn leaves_out<P: PbftFamily>(&mut self, hand: &mut Hand<'_, P>, view: View, to: ReplicaId) -> bool {
        if self.left_out.is_none_or(|(known, _)| known != view) {
            let mut others = hand.others();
            hand.rng.shuffle(&mut others);
            let of = others.iter().take(hand.group.f()).fold(0, |mask, other| mask | 1 << other.0);
            self.left_out = Some((view, of));
        }
        self.left_out.is_some_and(|(_, of)| of & (1 << to.0) != 0)
    }
}

impl<P: PbftFamily> Strategy<P> for Staller {
    fn name(&self) -> &'static str {
        "stalling primary"
    }

    fn send(&mut self, hand: &mut Hand<'_, P>, _: usize, to: ReplicaId, message: Peer) {
        let keeps_back = match &message {
            PeerMessage::Protocol(Message::PrePrepare(proposal)) => self.leaves_out(hand, proposal.view, to),
            PeerMessage::Protocol(Message::Commit(vote)) => hand.group.primary(vote.view) == hand.me,
            _ => false,
        };
        if keeps_back { hand.acted() } else { hand.send(to, message) }
    }

    fn client(&mut self, hand: &mut Hand<'_, P>, _: usize, _: ToClient) {
        hand.acted();
    }
}
