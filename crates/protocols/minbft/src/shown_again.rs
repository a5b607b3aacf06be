//! VIEW-CHANGEs and NEW-VIEWs that one replica is sent in answer to its STATUS messages: each may be megabytes, and what
//! its sender lacks is what it says.

use crate::message::{Body, Message};
use std::collections::BTreeMap;
use troth_core::rule;
use troth_trusted::CounterValue;
use troth_types::{ReplicaId, Time};

/// By whom a message is certified, and at which value: there is one such; and whether it goes as evidence, which was asked
/// for, and not in its sender's order.
pub(crate) type Name = (ReplicaId, CounterValue, bool);

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

/// The most in one answer: no more of a sender can wait for their turn (`MOST_HEAVY`), and one that asks seldom needs the
/// next, too.
const MOST_LARGE: usize = 4;
/// Doublings of the time after which one that was sent is sent again: half an interval between two STATUS messages, so that
/// the next has it, and sixteen of them in the end.
const MOST_DOUBLINGS: u32 = 5;

/// What one replica was sent: when each was last, and how often before.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct ShownAgain(BTreeMap<Name, (Time, u32)>);

impl ShownAgain {
    /// Which of those that it lacks are sent now, in answer to one STATUS: the first few that it was not sent so lately that they
    /// may be on their way, or so often that it seems to want them for no more than to have them sent.
    pub(crate) fn choose(&mut self, now: Time, interval: u64, lacking: &[Name]) -> Vec<Name> {
        rule!("MINBFT-R15");
        let is_due = |name: &&Name| {
            let sent = self.0.get(name);
            sent.is_none_or(|(at, times)| now.0 >= at.0.saturating_add((interval / 2) << times))
        };
        let chosen: Vec<Name> = lacking.iter().filter(is_due).take(MOST_LARGE).copied().collect();
        for name in &chosen {
            let again =
                |(at, times): &mut (Time, u32)| (*at, *times) = (now, (*times + 1).min(MOST_DOUBLINGS));
            self.0.entry(*name).and_modify(again).or_insert((now, 0));
        }
        chosen
    }

    /// Forgets those that are not here any more.
    pub(crate) fn retain(&mut self, is_here: impl Fn(&Name) -> bool) {
        self.0.retain(|name, _| is_here(name));
    }
}
