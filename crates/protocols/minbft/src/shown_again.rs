//! VIEW-CHANGEs and NEW-VIEWs that one replica is sent in answer to its STATUS messages.

use crate::message::{Body, Message};
use troth_trusted::CounterValue;
use troth_types::ReplicaId;

/// By whom a message is certified, and at which value: there is one such; and whether it goes as evidence, which was asked
/// for, and not in its sender's order.
pub(crate) type Name = (ReplicaId, CounterValue, bool);

/// What one replica was sent. No more of a sender can wait for their turn (`MOST_HEAVY`) than one answer has, and one that
/// asks seldom needs the next, too.
pub(crate) type ShownAgain = troth_blocks::ShownAgain<Name>;

/// The name of a large message.
pub(crate) fn name_of_large(message: &Message) -> Option<Name> {
    let (certified, evidence) = match message {
        Message::Certified(message) => (message, false),
        Message::Evidence(message) => (message, true),
        _ => return None,
    };
    let is_large = matches!(certified.body, Body::ViewChange(_) | Body::NewView(_));
    is_large.then(|| (certified.from, certified.value(), evidence))
}
