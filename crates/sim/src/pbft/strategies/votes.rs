//! The double voter: votes for whatever anybody proposed, and for other things to other replicas; commits to what never
//! prepared.

use super::{Peer, phase, say};
use crate::adversary::{Hand, Strategy};
use crate::pbft::PbftFamily;
use std::collections::VecDeque;
use troth_pbft::{Phase, Vote};
use troth_types::{Digest, ReplicaId};

/// Votes twice.
#[derive(Debug, Default)]
pub struct DoubleVoter {
    /// What others voted for lately.
    seen: VecDeque<Vote>,
}

impl<P: PbftFamily> Strategy<P> for DoubleVoter {
    fn name(&self) -> &'static str {
        "double voter"
    }

    fn send(&mut self, hand: &mut Hand<'_, P>, _: usize, to: ReplicaId, message: Peer) {
        let Some((Phase::Prepare(vote) | Phase::Commit(vote), signed)) = phase(&message) else {
            return hand.send(to, message);
        };
        let others = self.seen.iter().filter(|other| (other.view, other.seq) == (vote.view, vote.seq));
        let others: Vec<Digest> =
            others.map(|other| other.digest).filter(|other| *other != vote.digest).collect();
        if !others.is_empty() && hand.rng.one_in(2) {
            let digest = hand.rng.pick(&others);
            let vote = Vote { digest, ..vote };
            let (prepare, commit) =
                (say(hand, Phase::Prepare(vote), signed), say(hand, Phase::Commit(vote), signed));
            hand.send_evil(to, prepare);
            return hand.send_evil(to, commit);
        }
        hand.send(to, message);
    }

    fn hears(&mut self, hand: &mut Hand<'_, P>, _: usize, from: ReplicaId, message: &Peer) -> bool {
        let Some((heard, signed)) = phase(message) else { return true };
        let vote = match heard {
            Phase::Prepare(vote) | Phase::Commit(vote) => vote,
            Phase::PrePrepare(proposal) => {
                Vote { view: proposal.view, seq: proposal.seq, digest: proposal.batch.digest() }
            }
        };
        if self.seen.len() == 64 {
            self.seen.pop_front();
        }
        self.seen.push_back(vote);
        // Says at once what nobody has prepared yet.
        if from != hand.me && hand.rng.one_in(4) {
            for to in hand.others() {
                let commit = say(hand, Phase::Commit(vote), signed);
                hand.send_evil(to, commit);
            }
        }
        true
    }
}
