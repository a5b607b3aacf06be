//! Forged and truncated sets in view changes: VIEW-CHANGEs that hide or invent what was committed,
//! NEW-VIEWs that rest on too little or choose something else.

use super::MinBftHand;
use crate::adversary::Strategy;
use crate::minbft::MinBftWorld;
use std::sync::Arc;
use troth_minbft::{Body, LogEntry, NewView, StableProof, ViewChange};
use troth_types::{Batch, Seq, View};

/// Invents: repeats, exchanges and adds.
#[derive(Debug)]
pub struct Forger;

/// Hides: leaves out.
#[derive(Debug)]
pub struct Truncator;

fn forge_change(hand: &mut MinBftHand<'_>, mut change: ViewChange) -> ViewChange {
    match hand.rng.below(7) {
        0 => {
            if let Some(first) = change.stable.votes.first().cloned() {
                change.stable.votes.iter_mut().for_each(|vote| *vote = Arc::clone(&first));
            }
        }
        1 => {
            if let Some(last) = change.log.last().cloned() {
                change.log.push(last);
            }
        }
        2 => {
            let (a, b) = (change.log.len() / 2, change.log.len().saturating_sub(1));
            if a < b {
                change.log.swap(a, b);
            }
        }
        3 => {
            if let Some(first) = change.requests.first().cloned() {
                change.requests.iter_mut().for_each(|request| *request = Arc::clone(&first));
            }
        }
        4 => {
            // Somebody else's messages as its own.
            let other = hand.heard.iter().find_map(|(_, message)| match message {
                troth_core::PeerMessage::Protocol(troth_minbft::Message::Certified(certified)) => {
                    Some(Arc::clone(certified))
                }
                _ => None,
            });
            if let Some(other) = other {
                change.log.push(LogEntry::Whole(other));
            }
        }
        5 => change.to = View(change.to.0 + hand.rng.range(1, 6)),
        _ => {}
    }
    change
}

fn forge_new_view(hand: &mut MinBftHand<'_>, mut new_view: NewView) -> NewView {
    match hand.rng.below(6) {
        0 => {
            if let Some(first) = new_view.changes.first().cloned() {
                new_view.changes.iter_mut().for_each(|change| *change = Arc::clone(&first));
            }
        }
        1 => new_view.chosen.push(Batch::default()),
        2 => new_view.chosen.reverse(),
        3 => new_view.base.0 = Seq(new_view.base.0.0 + 1),
        4 => {
            if let Some(first) = new_view.chosen.first_mut() {
                first.frames.clear();
            }
        }
        _ => {}
    }
    new_view
}

impl Strategy<MinBftWorld> for Forger {
    fn name(&self) -> &'static str {
        "forged view-change sets"
    }

    fn certify(&mut self, hand: &mut MinBftHand<'_>, _: usize, body: Body) -> Body {
        match body {
            Body::ViewChange(change) => Body::ViewChange(forge_change(hand, change)),
            Body::NewView(new_view) => Body::NewView(forge_new_view(hand, new_view)),
            other => other,
        }
    }
}

fn truncate_change(hand: &mut MinBftHand<'_>, mut change: ViewChange) -> ViewChange {
    let length = change.log.len();
    match hand.rng.below(7) {
        0 => change.log.clear(),
        1 => change.log.truncate(length / 2),
        2 => {
            change.log.pop();
        }
        3 if length > 1 => {
            change.log.remove(0);
        }
        4 if length > 2 => {
            let middle = hand.rng.index(length);
            change.log.remove(middle);
        }
        5 => change.stable = StableProof::default(),
        6 => {
            change.stable.votes.pop();
        }
        _ => {}
    }
    if hand.rng.one_in(6) {
        change.requests.pop();
    }
    change
}

impl Strategy<MinBftWorld> for Truncator {
    fn name(&self) -> &'static str {
        "truncated view-change sets"
    }

    fn certify(&mut self, hand: &mut MinBftHand<'_>, _: usize, body: Body) -> Body {
        match body {
            Body::ViewChange(change) => Body::ViewChange(truncate_change(hand, change)),
            Body::NewView(mut new_view) => {
                match hand.rng.below(4) {
                    0 => {
                        new_view.chosen.pop();
                    }
                    1 => new_view.chosen.clear(),
                    2 => {
                        new_view.changes.pop();
                    }
                    _ => {}
                }
                Body::NewView(new_view)
            }
            other => other,
        }
    }
}
