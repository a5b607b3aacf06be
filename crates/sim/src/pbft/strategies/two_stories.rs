//! Two stories: a primary shows half of the others one order and the other half another, its accomplices vote for both,
//! each to its half, and whoever has heard of both tells each half its own. With more than f of them, correct replicas
//! execute different histories; clients must not see two.

use super::Peer;
use crate::adversary::{Hand, Strategy};
use crate::pbft::PbftFamily;
use std::collections::BTreeMap;
use troth_core::PeerMessage;
use troth_pbft::{Message, PrePrepare, Vote};
use troth_types::{Batch, Digest, ReplicaId, Seq, Time, View};

/// Tells two stories.
#[derive(Debug, Default)]
pub struct Storyteller {
    /// What each half is told at a number: the batch of the first half, of the second.
    told: BTreeMap<(View, Seq), [Option<Digest>; 2]>,
}

/// Numbers remembered.
const REMEMBERED: usize = 256;

/// The half that a replica belongs to; the accomplices hear both stories.
fn half(to: ReplicaId) -> usize {
    usize::from(to.0 % 2)
}

/// Whether a batch is the second story: it says so by its time.
fn is_second(batch: &Batch) -> bool {
    batch.time.0 % 2 == 1
}

impl Storyteller {
    fn heard(&mut self, view: View, seq: Seq, batch: &Batch) {
        if self.told.len() == REMEMBERED {
            self.told.pop_first();
        }
        let stories = self.told.entry((view, seq)).or_default();
        stories[usize::from(is_second(batch))].get_or_insert(batch.digest());
    }

    /// What the half of a replica is told in the place of this vote.
    fn version(&self, to: ReplicaId, vote: Vote) -> Vote {
        let told = self.told.get(&(vote.view, vote.seq)).and_then(|stories| stories[half(to)]);
        Vote { digest: told.unwrap_or(vote.digest), ..vote }
    }
}

fn stories(proposal: &PrePrepare) -> [PrePrepare; 2] {
    let even = Time(proposal.batch.time.0 & !1);
    let first = Batch { time: even, frames: proposal.batch.frames.clone() };
    let mut second = Batch { time: Time(even.0 + 1), ..first.clone() };
    // Another order, or one request later than the other story has it.
    if second.frames.len() > 1 {
        second.frames.reverse()
    } else {
        second.frames.clear()
    }
    let with = |batch| PrePrepare { view: proposal.view, seq: proposal.seq, batch };
    [with(first), with(second)]
}

impl<P: PbftFamily> Strategy<P> for Storyteller {
    fn name(&self) -> &'static str {
        "two stories"
    }

    fn send(&mut self, hand: &mut Hand<'_, P>, _: usize, to: ReplicaId, message: Peer) {
        let accomplice = hand.pact.members & (1 << to.0) != 0;
        match &message {
            PeerMessage::Protocol(Message::PrePrepare(proposal)) => {
                let stories = stories(proposal);
                for story in &stories {
                    self.heard(story.view, story.seq, &story.batch);
                }
                for (index, story) in stories.into_iter().enumerate() {
                    if accomplice || half(to) == index {
                        hand.send_evil(to, PeerMessage::Protocol(Message::PrePrepare(story)));
                    }
                }
            }
            PeerMessage::Protocol(Message::Prepare(vote)) => {
                let vote = self.version(to, *vote);
                hand.send_evil(to, PeerMessage::Protocol(Message::Prepare(vote)));
                hand.send_evil(to, PeerMessage::Protocol(Message::Commit(vote)));
            }
            PeerMessage::Protocol(Message::Commit(vote)) => {
                let vote = self.version(to, *vote);
                hand.send_evil(to, PeerMessage::Protocol(Message::Commit(vote)));
            }
            _ => hand.send(to, message),
        }
    }

    fn hears(&mut self, hand: &mut Hand<'_, P>, _: usize, from: ReplicaId, message: &Peer) -> bool {
        let PeerMessage::Protocol(Message::PrePrepare(proposal)) = message else { return true };
        self.heard(proposal.view, proposal.seq, &proposal.batch);
        let stories = self.told.get(&(proposal.view, proposal.seq)).copied().unwrap_or_default();
        if from != hand.me && stories.iter().all(Option::is_some) {
            for to in hand.others() {
                let Some(digest) = stories[half(to)] else { continue };
                let vote = Vote { view: proposal.view, seq: proposal.seq, digest };
                hand.send_evil(to, PeerMessage::Protocol(Message::Prepare(vote)));
                hand.send_evil(to, PeerMessage::Protocol(Message::Commit(vote)));
            }
        }
        // Its own host follows the first story.
        !is_second(&proposal.batch)
    }
}
