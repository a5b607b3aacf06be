//! The reminder: shows everybody what one client sent long ago, over and over, as if it waited for it, so that it is ordered
//! again and again in the places of that client's next requests. It does not stop when the faults do.

use super::{Hand, Strategy};
use crate::{Message, Protocol};
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_core::PeerMessage;
use troth_types::{ClientId, Frame, ReplicaId, ToReplica};

/// Frames kept: a window of the larger ones.
const KEPT: usize = 32;
/// Messages that it hears until it shows something again, about.
const SELDOM: u64 = 3;

/// Shows old frames.
#[derive(Debug, Default)]
pub struct Reminder {
    /// Whose places it keeps taken.
    victim: Option<ClientId>,
    frames: BTreeMap<u64, Arc<Frame>>,
}

impl Reminder {
    fn remind<P: Protocol>(&self, hand: &mut Hand<'_, P>) {
        let frames: Vec<Arc<Frame>> = self.frames.values().cloned().collect();
        if frames.is_empty() {
            return;
        }
        for to in hand.others() {
            hand.send_evil(to, PeerMessage::Frames(frames.clone()));
        }
    }
}

impl<P: Protocol> Strategy<P> for Reminder {
    fn name(&self) -> &'static str {
        "reminder of what is done"
    }

    fn hears(&mut self, hand: &mut Hand<'_, P>, _: usize, _: ReplicaId, _: &PeerMessage<Message<P>>) -> bool {
        if hand.rng.one_in(SELDOM) {
            self.remind(hand);
        }
        true
    }

    fn hears_client(&mut self, _: &mut Hand<'_, P>, _: usize, message: &ToReplica) -> bool {
        if let ToReplica::Request { frame, .. } = message
            && *self.victim.get_or_insert(frame.client()) == frame.client()
        {
            self.frames.insert(frame.number(), Arc::clone(frame));
            while self.frames.len() > KEPT {
                self.frames.pop_first();
            }
        }
        true
    }

    fn goes_on(&self) -> bool {
        true
    }

    fn tick(&mut self, hand: &mut Hand<'_, P>) {
        self.remind(hand);
    }
}
