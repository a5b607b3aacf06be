//! What a replica knows of each replica, itself included.

use crate::evidence::Walk;
use crate::message::{Certified, SignedRequest};
use crate::shown_again::ShownAgain;
use crate::{Config, evidence};
use std::collections::VecDeque;
use std::sync::Arc;
use troth_blocks::CounterGate;
use troth_trusted::CounterValue;
use troth_types::{Seq, Time, View};

/// A processed message and when it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Logged {
    pub(crate) message: Arc<Certified>,
    pub(crate) at: Time,
}

/// One replica as this one knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Its messages in counter order, with what waits for its turn.
    pub(crate) gate: CounterGate<Arc<Certified>>,
    /// Its processed messages since its anchor: for retransmission, and for a VIEW-CHANGE's O.
    pub(crate) log: VecDeque<Logged>,
    /// The VIEW-CHANGE by which its component began, where that was admitted to the group: for whoever has yet to judge it.
    pub(crate) first: Option<Arc<Certified>>,
    /// Its commitments and checkpoints so far.
    pub(crate) walk: Walk,
    /// Its commitments up to here count for nothing: others that contradict them may have been passed over.
    pub(crate) floor: Seq,
    /// The highest view it moved to by a VIEW-CHANGE.
    pub(crate) view: View,
    /// The view that its last status said.
    pub(crate) said_view: View,
    /// The highest value of its own messages that came from itself after they had been processed.
    pub(crate) repeated: CounterValue,
    /// Of this replica itself: its last REQ-VIEW-CHANGE. Others may show one in its name that it has not made.
    pub(crate) asked: Option<Arc<SignedRequest>>,
    /// When a status of it was answered last, and one that lacked the stable checkpoint.
    pub(crate) answered: [Option<Time>; 2],
    /// The large messages that it was sent in answer.
    pub(crate) shown_again: ShownAgain,
    /// How often a view change was made for its sake, since its component was admitted.
    pub(crate) welcomes: u32,
    /// The status round before which none is made again.
    pub(crate) welcomed_until: u64,
    /// The rule that it provably broke; nothing of it is processed any more.
    pub(crate) condemned: Option<&'static str>,
}

impl Peer {
    pub(crate) fn new(config: &Config) -> Self {
        // Enough for a whole window of one commitment and the checkpoints among them, twice.
        let bound = usize::try_from(4 * config.window + 64).unwrap_or(usize::MAX);
        Self {
            gate: CounterGate::new(bound),
            log: VecDeque::new(),
            first: None,
            walk: Walk::START,
            floor: Seq(0),
            view: View(0),
            said_view: View(0),
            repeated: CounterValue(0),
            asked: None,
            answered: [None; 2],
            shown_again: ShownAgain::default(),
            welcomes: 0,
            welcomed_until: 0,
            condemned: None,
        }
    }

    /// The message by which it began, where its log does not have it any more and somebody lacks it.
    pub(crate) fn first_beyond(&self, processed: CounterValue) -> Option<&Arc<Certified>> {
        let first = self.first.as_ref().filter(|first| first.value() > processed)?;
        let is_in_log = self.log.front().is_some_and(|logged| logged.message.value() == first.value());
        (!is_in_log).then_some(first)
    }

    /// Whether it has a message of this value to show.
    pub(crate) fn shows(&self, value: CounterValue) -> bool {
        let logged = || self.log.iter().map(|logged| &logged.message);
        logged().chain(&self.first).any(|message| message.value() == value)
    }

    /// Drops what no view change and no laggard can need once `stable` is stable: everything before
    /// the newest own checkpoint that covers.
    pub(crate) fn truncate(&mut self, config: &Config, stable: Seq) {
        let anchor = self.log.iter().rposition(|logged| match &logged.message.body {
            crate::Body::Checkpoint(checkpoint) => evidence::covers(config, checkpoint.seq, stable),
            _ => false,
        });
        if let Some(anchor) = anchor {
            self.log.drain(..anchor);
        }
    }
}
