//! The heir: has the component that it had, and the one that takes its place. While the correct replicas are parted, the old
//! one orders the admission with those who have the primary, and no more than that; from then on it is with the others
//! alone, who go to another view with it. What the new one certifies first is worth nothing and stays with it. It shows a
//! CHECKPOINT that was stable long ago, behind which receivers might look for no more, and one of the admission, and then
//! commits to whatever is proposed to it: in one view what one part proposes, in the next one what the other does. It is
//! the schedule behind MINBFT-E10.

use super::{MinBftHand, Peer, kind};
use crate::adversary::Strategy;
use crate::minbft::MinBftWorld;
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_core::PeerMessage;
use troth_minbft::{Body, Certified, Checkpoint, Commit, Message};
use troth_trusted::CounterValue;
use troth_types::{Digest, ReplicaId, Seq, ToClient, View};

/// A number that is stable when a component is replaced, and far below it.
const LONG_STABLE: Seq = Seq(1);

/// Two components of one replica.
#[derive(Debug, Default)]
pub struct Heir {
    /// The view in which the new component works, and the number that it commits to next.
    works: Option<(View, Seq)>,
    /// What was proposed, by view and number.
    proposed: BTreeMap<(View, Seq), Arc<Certified>>,
    /// What it shows of the present view.
    shown: Vec<Message>,
}

impl Heir {
    /// Whether another replica is with the primary of the moment at which the component was replaced.
    fn inside(hand: &MinBftHand<'_>, other: ReplicaId) -> bool {
        hand.pact.part >> other.0 & 1 == 1
    }

    /// The PREPARE that a message is or holds.
    fn prepare(message: &Peer) -> Option<&Arc<Certified>> {
        let PeerMessage::Protocol(Message::Certified(message)) = message else { return None };
        match &message.body {
            Body::Prepare(_) => Some(message),
            Body::Commit(commit) => Some(&commit.prepare),
            _ => None,
        }
    }

    /// Begins in a view: with what nobody is to see, if it has not begun at all, and with what is to stand for that.
    fn begin(&mut self, hand: &mut MinBftHand<'_>, prepare: &Arc<Certified>, view: View, admitted: Seq) {
        let at = CounterValue::new(view.0, 0);
        if self.works.is_none() {
            let first = Commit { prepare: Arc::clone(prepare) };
            hand.certify_as_heir(at, Body::Commit(first));
        }
        self.shown.clear();
        for (seq, epochs) in [(LONG_STABLE, Vec::new()), (admitted, vec![(hand.me, 2)])] {
            let vote = Checkpoint { seq, digest: Digest([7; 32]), epochs, given: false };
            self.shown.extend(hand.certify_as_heir(at, Body::Checkpoint(vote)));
        }
        self.works = Some((view, admitted.next()));
    }

    /// Commits to what was proposed to it, and shows that.
    fn go_on(&mut self, hand: &mut MinBftHand<'_>) {
        let Some(admitted) = hand.succession.at else { return };
        let view_of_now = self.works.map(|(view, _)| view);
        let later =
            |(view, seq): &(View, Seq)| *seq == admitted.next() && view_of_now.is_none_or(|now| *view > now);
        let begins = self.proposed.iter().find(|(place, _)| later(place));
        if let Some(((view, _), prepare)) = begins.map(|(place, prepare)| (*place, Arc::clone(prepare))) {
            self.begin(hand, &prepare, view, admitted);
        }
        while let Some((view, seq)) = self.works
            && let Some(prepare) = self.proposed.get(&(view, seq)).cloned()
        {
            let commit = hand.certify_as_heir(CounterValue::new(view.0, 0), Body::Commit(Commit { prepare }));
            let Some(commit) = commit else { return };
            self.shown.push(commit);
            self.works = Some((view, seq.next()));
        }
    }

    /// Shows all of the present view, to those who work in it.
    fn show(&self, hand: &mut MinBftHand<'_>) {
        let Some((view, _)) = self.works else { return };
        let inside = Self::inside(hand, hand.group.primary(view));
        let mut meant = hand.others();
        meant.retain(|to| Self::inside(hand, *to) == inside);
        for to in meant {
            for message in &self.shown {
                hand.send_evil(to, PeerMessage::Protocol(message.clone()));
            }
        }
    }
}

impl Strategy<MinBftWorld> for Heir {
    fn name(&self) -> &'static str {
        "heir of itself"
    }

    fn send(&mut self, hand: &mut MinBftHand<'_>, _: usize, to: ReplicaId, message: Peer) {
        if hand.succession.at.is_some() && Self::inside(hand, to) {
            return hand.acted();
        }
        hand.send(to, message);
    }

    fn client(&mut self, hand: &mut MinBftHand<'_>, _: usize, message: ToClient) {
        hand.client(message);
    }

    fn hears(&mut self, hand: &mut MinBftHand<'_>, _: usize, from: ReplicaId, message: &Peer) -> bool {
        let prepare = Self::prepare(message);
        let place = prepare.and_then(|message| Some((message, message.prepare()?)));
        if let Some((message, prepare)) = place {
            self.proposed.insert((prepare.view, prepare.seq), Arc::clone(message));
            self.go_on(hand);
            self.show(hand);
        }
        match hand.succession {
            succession if !succession.asked => true,
            // Its old component commits to the admission and to nothing beyond.
            succession if succession.at.is_none() => {
                place.is_none_or(|(_, prepare)| prepare.seq <= succession.executed.next())
            }
            _ => !Self::inside(hand, from) && kind(message) != "EVIDENCE",
        }
    }

    fn tick(&mut self, hand: &mut MinBftHand<'_>) {
        self.go_on(hand);
        self.show(hand);
    }
}
