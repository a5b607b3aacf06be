//! Signed messages of PBFT with their lists emptied, cut, repeated and filled from one another.

use crate::Rng;
use troth_pbft::choose::null;
use troth_pbft::{Body, Entry, StableProof};
use troth_types::{Digest, Seq, View};

/// A body like this one, by somebody who knows its form and no rule. What has no lists is left to others.
pub(super) fn distorted(rng: &mut Rng, body: &Body) -> Option<Body> {
    let mut body = body.clone();
    match &mut body {
        Body::ViewChange(change) => {
            let known: Vec<Entry> = change.prepared.iter().chain(&change.pre_prepared).copied().collect();
            match rng.below(5) {
                0 => {
                    // Knows of nothing.
                    change.stable = StableProof::default();
                    change.prepared.clear();
                    change.pre_prepared.clear();
                    return Some(body);
                }
                2 => change.stable = StableProof::default(),
                1 => drop(change.stable.votes.pop()),
                _ => {}
            }
            for _ in 0..rng.range(1, 3) {
                let last = View(change.to.0.saturating_sub(1));
                let (one, other) = match rng.one_in(2) {
                    true => (&mut change.prepared, &mut change.pre_prepared),
                    false => (&mut change.pre_prepared, &mut change.prepared),
                };
                edit(rng, one, other, &known, last);
            }
            change.prepared.sort_unstable();
            change.pre_prepared.sort_unstable();
        }
        Body::NewView(new_view) => match rng.below(3) {
            0 => drop(new_view.changes.pop()),
            1 => new_view.changes.extend(new_view.changes.first().cloned()),
            _ => drop(new_view.chosen.pop()),
        },
        Body::Checkpoint(_) | Body::Attested(_) | Body::Phase(_) => return None,
    }
    Some(body)
}

/// Changes a list of claims, and sometimes another in the same way.
fn edit(rng: &mut Rng, one: &mut Vec<Entry>, other: &mut Vec<Entry>, known: &[Entry], last: View) {
    match rng.below(8) {
        0 => one.clear(),
        1 => {
            one.clear();
            other.clear();
        }
        2 if !one.is_empty() => drop(one.remove(rng.index(one.len()))),
        3 if !one.is_empty() => {
            let again = rng.pick(one);
            one.extend(std::iter::repeat_n(again, rng.index(3) + 1));
        }
        _ if !known.is_empty() => {
            let claimed = Entry { seq: somewhere(rng, known), digest: something(rng, known), view: last };
            one.retain(|entry| entry.seq != claimed.seq);
            one.push(claimed);
            other.extend(std::iter::repeat_n(claimed, rng.index(4)));
        }
        _ => {}
    }
}

fn somewhere(rng: &mut Rng, known: &[Entry]) -> Seq {
    rng.pick(known).seq
}

/// What stands at another place, or a null request.
fn something(rng: &mut Rng, known: &[Entry]) -> Digest {
    if rng.one_in(2) { null() } else { rng.pick(known).digest }
}
