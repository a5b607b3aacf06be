//! What a new view starts from (TOCS §3.2.4, the decision procedure), as a pure function that the new primary runs and
//! every replica runs again on the same VIEW-CHANGEs.

use crate::checkpoint::proven;
use crate::message::{Entry, ViewChange};
use crate::normal::MOST_PRE_PREPARED;
use crate::{Config, Flaw};
use std::collections::BTreeSet;
use troth_core::rule;
use troth_types::{Batch, Digest, Group, ReplicaId, Seq};

/// A VIEW-CHANGE and its sender. A set of them holds each sender once.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// Whose it is.
    pub from: ReplicaId,
    /// What it says.
    pub change: &'a ViewChange,
    /// The stable checkpoint that it proves: the sender's low water mark h.
    pub stable: (Seq, Digest),
}

impl<'a> Shown<'a> {
    /// A VIEW-CHANGE that keeps the rules of form: it proves its checkpoint; every number of P and Q is within the
    /// window above that, every view of them below the one it is for; P names a number once, Q a number and batch, and
    /// few batches for a number.
    pub fn new(group: &Group, config: &Config, from: ReplicaId, change: &'a ViewChange) -> Option<Self> {
        rule!("PBFT-V5");
        let stable = proven(group, config.histories, &change.stable)?;
        let within = |entry: &Entry| {
            entry.seq > stable.0 && entry.seq.0 - stable.0.0 <= config.window && entry.view < change.to
        };
        let literal = config.follows(Flaw::SetEntries);
        let ascends = |one: &Entry, next: &Entry| {
            (one.seq, one.digest) < (next.seq, next.digest) || (literal && one == next)
        };
        let once = change.prepared.is_sorted_by(|one, next| one.seq < next.seq)
            && change.pre_prepared.is_sorted_by(ascends);
        let all = change.prepared.iter().chain(&change.pre_prepared).all(within);
        // A correct sender's Q has no more for one number: what anybody else's had, every NEW-VIEW would have to carry.
        let few = change
            .pre_prepared
            .windows(MOST_PRE_PREPARED + 1)
            .all(|some| some[0].seq != some[MOST_PRE_PREPARED].seq);
        (once && few && all).then_some(Self { from, change, stable })
    }

    /// What prepared at the sender at a number.
    fn prepared(&self, seq: Seq) -> Option<Entry> {
        let at = self.change.prepared.binary_search_by_key(&seq, |entry| entry.seq).ok()?;
        Some(self.change.prepared[at])
    }

    /// Whether the sender pre-prepared the batch in its entry's view or later.
    fn pre_prepared(&self, entry: &Entry) -> bool {
        let key = (entry.seq, entry.digest);
        let at = self.change.pre_prepared.binary_search_by_key(&key, |entry| (entry.seq, entry.digest));
        at.is_ok_and(|at| self.change.pre_prepared[at].view >= entry.view)
    }
}

/// The start of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The checkpoint it starts from.
    pub base: (Seq, Digest),
    /// The digests of the batches that follow it; that of a null request where nothing can have committed.
    pub chosen: Vec<Digest>,
}

/// The digest of the batch that stands for a null request.
#[must_use]
pub fn null() -> Digest {
    Batch::default().digest()
}

/// Chooses. Nothing where these VIEW-CHANGEs decide nothing for some number: then more are waited for, never guessed.
#[must_use]
pub fn choose(group: &Group, config: &Config, shown: &[Shown<'_>]) -> Option<Choice> {
    let base = base(group, config, shown)?;
    let mut chosen = Vec::new();
    // The view goes on behind the last number at which anything prepared. A null request that prepared may have
    // committed as well as any batch: what ends here is numbers at which nothing did.
    rule!("PBFT-V9");
    let mut end = 0;
    for seq in (base.0.0 + 1..=base.0.0 + config.window).map(Seq) {
        let digest = match at(group, config, shown, seq)? {
            At::Prepared(digest) => {
                end = chosen.len() + 1;
                digest
            }
            At::Nothing => null(),
        };
        chosen.push(digest);
    }
    chosen.truncate(end);
    Some(Choice { base, chosen })
}

/// The highest checkpoint that any of them proves stable.
fn base(group: &Group, config: &Config, shown: &[Shown<'_>]) -> Option<(Seq, Digest)> {
    rule!("PBFT-V6");
    let highest = shown.iter().map(|shown| shown.stable).max();
    if !config.follows(Flaw::NullRule) {
        return highest;
    }
    // As where checkpoints are claims: the highest that f+1 name and that 2f+1 have not passed.
    let claims: BTreeSet<(Seq, Digest)> = shown.iter().map(|shown| shown.stable).collect();
    claims.into_iter().rev().find(|claim| {
        shown.iter().filter(|shown| shown.stable.0 <= claim.0).count() >= group.quorum()
            && shown.iter().filter(|shown| shown.stable == *claim).count() >= group.weak()
    })
}

/// What a number gets.
enum At {
    /// The batch that prepared there, by condition A.
    Prepared(Digest),
    /// A null request, by condition B.
    Nothing,
}

fn at(group: &Group, config: &Config, shown: &[Shown<'_>], seq: Seq) -> Option<At> {
    let below = |shown: &&Shown<'_>| shown.stable.0 < seq;
    let mut candidates: Vec<Entry> = shown.iter().filter_map(|shown| shown.prepared(seq)).collect();
    candidates.sort_unstable_by_key(|entry| (std::cmp::Reverse(entry.view), entry.digest));
    let agrees = |entry: &Entry, other: Option<Entry>| {
        other.is_none_or(|other| {
            other.view < entry.view || (other.view == entry.view && other.digest == entry.digest)
        })
    };
    rule!("PBFT-V7");
    let found = candidates.iter().find(|entry| {
        // A1: 2f+1 prepared nothing that contradicts it. A2: f+1 pre-prepared it in that view or later, so that one
        // correct replica did and has the batch.
        let no_contradiction = shown.iter().filter(below).filter(|shown| agrees(entry, shown.prepared(seq)));
        let senders = shown.iter().filter(|shown| shown.pre_prepared(entry)).count();
        let witnesses = if config.follows(Flaw::SetEntries) {
            let entries = shown.iter().flat_map(|shown| &shown.change.pre_prepared);
            entries.filter(|other| (other.seq, other.digest) == (entry.seq, entry.digest)).count()
        } else {
            senders
        };
        no_contradiction.count() >= group.quorum() && witnesses >= group.weak()
    });
    if let Some(entry) = found {
        return Some(At::Prepared(entry.digest));
    }
    rule!("PBFT-V8");
    let literal = config.follows(Flaw::NullRule);
    let idle =
        shown.iter().filter(|shown| literal || below(shown)).filter(|shown| shown.prepared(seq).is_none());
    (idle.count() >= group.quorum()).then_some(At::Nothing)
}
