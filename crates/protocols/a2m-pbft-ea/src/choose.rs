//! What a new view starts from (appendix A: O_c and O_p), as a pure function that the new primary runs and every replica
//! runs again on the same VIEWCHANGEs.

use crate::evidence::Evidence;
use crate::message::NewView;
use std::collections::BTreeMap;
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

/// The highest view that any of them left. What counts is what was committed to there, and what that view had started
/// with: an older view can have committed nothing else.
#[must_use]
pub fn highest(shown: &[Evidence<'_>]) -> Option<View> {
    shown.iter().map(|evidence| evidence.change.left).max()
}

/// Chooses. `started` is the valid NEWVIEW of the highest view that any of them left; none where that is view 0. Nothing
/// where a VIEWCHANGE does not fit that NEWVIEW.
#[must_use]
pub fn choose(shown: &[Evidence<'_>], started: Option<(Digest, &NewView)>) -> Option<Choice> {
    rule!("A2MPBFTEA-V10");
    let highest = highest(shown)?;
    let proven = shown.iter().map(|evidence| evidence.stable).max_by_key(|stable| stable.0)?;
    let (mut base, mut end) = (proven, Seq(0));
    let mut batches: BTreeMap<Seq, Batch> = BTreeMap::new();
    if let Some((_, started)) = started {
        // One may show an older checkpoint than the one that its view started from; what that view carried over would
        // then hang in the air.
        if started.base.0 > base.0 {
            base = started.base;
        }
        end = Seq(started.base.0.0 + started.chosen.len() as u64);
        batches.extend((started.base.0.0 + 1..).map(Seq).zip(started.chosen.iter().cloned()));
    }
    for evidence in shown.iter().filter(|evidence| evidence.change.left == highest) {
        if evidence.entered() != started.map(|(digest, _)| digest) {
            return None;
        }
        // A hole before the first commitment would hide what was committed there.
        rule!("A2MPBFTEA-V11");
        if evidence.first().is_some_and(|first| first != evidence.stable.0.max(end).next()) {
            return None;
        }
        for committed in &evidence.change.committed {
            let proposal = committed.proposal.pre_prepare()?;
            batches.entry(proposal.seq).or_insert_with(|| proposal.batch.clone());
        }
    }
    let mut chosen = Vec::new();
    while let Some(batch) = batches.remove(&Seq(base.0.0 + 1 + chosen.len() as u64)) {
        chosen.push(batch);
    }
    Some(Choice { base, chosen })
}
