//! What a new view starts from (MinBFT §4: the computation of S), as a pure function that the new
//! primary runs and every replica runs again.

use crate::evidence::Evidence;
use crate::message::{Certified, NewView};
use crate::{Config, Flaw};
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_core::rule;
use troth_types::{Batch, Digest, Seq, View};

/// The start of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The checkpoint it starts from.
    pub base: (Seq, Digest),
    /// The batches that follow it.
    pub chosen: Vec<Batch>,
}

/// Chooses. `new_view` gives the valid NEW-VIEW of a view above 0, which must be known for the highest
/// view of any commitment in the evidence.
pub fn choose<'a>(
    config: &Config,
    evidence: &[Evidence],
    new_view: impl Fn(View) -> Option<&'a NewView>,
) -> Option<Choice> {
    rule!("MINBFT-V7");
    let base = evidence.iter().map(|evidence| evidence.stable).max_by_key(|stable| stable.0)?;
    if config.follows(Flaw::OrderByCounter) {
        return Some(by_counter(evidence, base));
    }
    if config.follows(Flaw::LongestLog) {
        return Some(longest_log(evidence, base));
    }
    // Order is (view, n): commitments of the highest view rule, and none of an older view is mixed
    // in except what that view itself started from.
    let Some(view) = evidence.iter().filter_map(|evidence| evidence.view).max() else {
        return Some(Choice { base, chosen: Vec::new() });
    };
    rule!("MINBFT-V8");
    let mut batches: BTreeMap<Seq, Batch> = BTreeMap::new();
    let mut base = base;
    if view > View(0) {
        let started = new_view(view)?;
        // A faulty replica may show an older stable checkpoint than the one its view started from; what
        // that view carried over would then hang in the air.
        if started.base.0 > base.0 {
            base = started.base;
        }
        for (seq, batch) in (started.base.0.0 + 1..).zip(&started.chosen) {
            batches.insert(Seq(seq), batch.clone());
        }
    }
    let start = start_of(view, &new_view)?;
    if evidence.iter().any(|shown| shown.view == Some(view) && !without_hole(config, shown, start)) {
        return None;
    }
    for (seq, prepare) in first_prepares(evidence, view) {
        if let Some(prepare) = prepare.prepare() {
            batches.entry(seq).or_insert_with(|| prepare.batch.clone());
        }
    }
    let mut chosen = Vec::new();
    while let Some(batch) = batches.remove(&Seq(base.0.0 + 1 + chosen.len() as u64)) {
        chosen.push(batch);
    }
    Some(Choice { base, chosen })
}

/// The last number that a view started with.
pub fn start_of<'a>(view: View, new_view: impl Fn(View) -> Option<&'a NewView>) -> Option<Seq> {
    if view == View(0) {
        return Some(Seq(0));
    }
    new_view(view).map(|started| Seq(started.base.0.0 + started.chosen.len() as u64))
}

/// Whether the commitments that a VIEW-CHANGE shows of its sender's highest view, which started with numbers
/// up to `start`, follow each other from there, or from the stable checkpoint that it shows. A correct
/// sender passes over numbers only where the state was transferred to it, below that checkpoint. A hole would
/// end S before a commitment that somebody else may have executed in the old view.
pub fn without_hole(config: &Config, shown: &Evidence, start: Seq) -> bool {
    if config.follows(Flaw::CutUnderPipelining) {
        return true;
    }
    let Some(view) = shown.view else { return true };
    rule!("MINBFT-V20");
    let from = shown.stable.0.max(start);
    let after = shown.prepares.range((view, from.next())..=(view, Seq(u64::MAX)));
    after.zip(from.0 + 1..).all(|(((_, seq), _), expected)| seq.0 == expected)
}

/// Whether all commitments that a VIEW-CHANGE shows are within the window of the stable checkpoint that it shows, as each of a
/// correct sender is (W2): that one only grows. A faulty sender certifies any number as its own checkpoint, and so a commitment
/// a window behind it (W1). What a view started with would then end where no stable checkpoint is near, and whoever works there
/// certifies checkpoints that nobody else takes for possible.
pub fn within_window(config: &Config, shown: &Evidence) -> bool {
    rule!("MINBFT-V22");
    let last = shown.stable.0.0.saturating_add(config.window);
    shown.prepares.keys().all(|(_, seq)| seq.0 <= last)
}

/// The PREPAREs of a view in the evidence. Where a faulty primary certified two for one number, the
/// one with the lower counter value is what every correct replica processed first.
fn first_prepares(evidence: &[Evidence], view: View) -> BTreeMap<Seq, Arc<Certified>> {
    rule!("MINBFT-V9");
    let mut first: BTreeMap<Seq, Arc<Certified>> = BTreeMap::new();
    for prepares in evidence.iter().map(|evidence| &evidence.prepares) {
        for ((_, seq), prepare) in prepares.range((view, Seq(0))..=(view, Seq(u64::MAX))) {
            let known = first.entry(*seq).or_insert_with(|| prepare.clone());
            if prepare.value() < known.value() {
                *known = prepare.clone();
            }
        }
    }
    first
}

/// F-M2, literally: "it picks in VIEW-CHANGE messages the requests in O sets with UI counter values
/// greater than the UI counter value in the checkpoint certificate", in counter order, whatever the
/// view.
fn by_counter(evidence: &[Evidence], base: (Seq, Digest)) -> Choice {
    let mut by_count: BTreeMap<u64, Batch> = BTreeMap::new();
    for evidence in evidence {
        for ((_, seq), message) in &evidence.prepares {
            if let Some(prepare) = message.prepare().filter(|_| *seq > base.0) {
                by_count.insert(message.value().count(), prepare.batch.clone());
            }
        }
    }
    Choice { base, chosen: by_count.into_values().collect() }
}

/// The longest log first, then the highest view.
fn longest_log(evidence: &[Evidence], base: (Seq, Digest)) -> Choice {
    let longest = evidence.iter().max_by_key(|evidence| {
        let last = evidence.prepares.keys().map(|(_, seq)| *seq).max();
        (last, evidence.view)
    });
    let mut batches: BTreeMap<Seq, Batch> = BTreeMap::new();
    for ((_, seq), message) in longest.iter().flat_map(|evidence| &evidence.prepares) {
        if let Some(prepare) = message.prepare() {
            batches.insert(*seq, prepare.batch.clone());
        }
    }
    let mut chosen = Vec::new();
    while let Some(batch) = batches.remove(&Seq(base.0.0 + 1 + chosen.len() as u64)) {
        chosen.push(batch);
    }
    Choice { base, chosen }
}
