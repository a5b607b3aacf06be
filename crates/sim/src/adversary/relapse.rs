//! Relapse: colluders that hear everybody and say nothing while the correct replicas are parted, go with one part once a
//! view begins there, and then are as they were when views began to change and go with the other part, which knows nothing
//! of what was done meanwhile. Until then they pass on between the parts what changes views, or some kinds of it, as nobody
//! else would. Their components stay where they are, and forget nothing meanwhile. They know no rule of the protocol.

use super::{Hand, Strategy};
use crate::{Message, Protocol, Rng};
use troth_core::PeerMessage;
use troth_types::{ReplicaId, ToClient};

/// How far the colluders are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// They do as correct replicas do.
    #[default]
    Honest,
    /// They hear everybody, and nobody hears them.
    Silent,
    /// They go with the part in [`Pact::part`](super::Pact).
    First,
    /// They are as they were, and go with the others.
    Second,
}

/// A replica that takes part in it.
#[derive(Debug, Default)]
pub struct Relapse {
    /// The stage in which it acted last.
    seen: Stage,
    /// Whether views began to change in this round: it is to be again what it was then.
    kept: bool,
}

impl Relapse {
    /// Whether another replica is one that it goes with.
    fn goes_with<P: Protocol>(hand: &Hand<'_, P>, other: ReplicaId) -> bool {
        let bit = 1 << other.0;
        let inside = hand.pact.part & bit != 0;
        hand.pact.members & bit != 0
            || match hand.pact.stage {
                Stage::Honest => true,
                Stage::Silent => false,
                Stage::First => inside,
                Stage::Second => !inside,
            }
    }

    /// Whether the colluders pass on what is of a kind, in this round: all of them do the same.
    fn passes_on<P: Protocol>(hand: &Hand<'_, P>, kind: &str) -> bool {
        Rng::stream(hand.pact.turned, kind, 0).below(3) < 2
    }

    /// Notices that the stage is another one.
    fn look<P: Protocol>(&mut self, hand: &mut Hand<'_, P>) {
        let stage = hand.pact.stage;
        if self.seen == stage {
            return;
        }
        self.seen = stage;
        if let Some(logs) = hand.logs.as_mut() {
            logs.forget_nothing(stage != Stage::Honest);
        }
        match stage {
            Stage::Silent => self.kept = false,
            Stage::Second if self.kept => hand.restore_at_rest(0),
            _ => {}
        }
    }
}

impl<P: Protocol> Strategy<P> for Relapse {
    fn name(&self) -> &'static str {
        "relapse"
    }

    fn send(&mut self, hand: &mut Hand<'_, P>, _: usize, to: ReplicaId, message: PeerMessage<Message<P>>) {
        if Self::goes_with(hand, to) && self.seen == hand.pact.stage {
            hand.send(to, message);
        } else {
            hand.acted();
        }
    }

    fn client(&mut self, hand: &mut Hand<'_, P>, _: usize, message: ToClient) {
        // Without their answers clients ask for nothing new, and the parts have the same to order.
        if matches!(hand.pact.stage, Stage::Honest | Stage::Second) {
            hand.client(message);
        } else {
            hand.acted();
        }
    }

    fn hears(
        &mut self,
        hand: &mut Hand<'_, P>,
        _: usize,
        from: ReplicaId,
        message: &PeerMessage<Message<P>>,
    ) -> bool {
        self.look(hand);
        let silent = hand.pact.stage == Stage::Silent;
        let correct = hand.pact.members & (1 << from.0) == 0;
        let changes = |message: &Message<P>| P::changes_view(message).then(|| P::kind(message));
        let changes = match message {
            PeerMessage::Protocol(message) => changes(message),
            _ => None,
        };
        if silent && !self.kept {
            hand.save_at_rest(0);
        }
        self.kept |= silent && correct && changes.is_some();
        let passing = silent || hand.pact.stage == Stage::First;
        if let Some(kind) = changes.filter(|_| passing && correct) {
            let part = hand.pact.part;
            let inside = |replica: ReplicaId| part & (1 << replica.0) != 0;
            for to in hand.others().into_iter().filter(|to| inside(*to) != inside(from)) {
                if hand.pact.members & (1 << to.0) == 0 && Self::passes_on(hand, kind) {
                    hand.send_evil(to, message.clone());
                }
            }
        }
        silent || Self::goes_with(hand, from)
    }

    fn tick(&mut self, hand: &mut Hand<'_, P>) {
        self.look(hand);
    }
}
