//! What a VIEWCHANGE proves (appendix A), as a pure function of it. Every attestation and signature in it was checked
//! before.

use crate::checkpoint::proven;
use crate::message::{Attested, Committed, ViewChange, Vote, Wanted};
use crate::place::{COMMIT, end_of, flattened};
use crate::{Config, Flaw};
use std::sync::Arc;
use troth_blocks::Voters;
use troth_core::rule;
use troth_trusted::a2m::{Content, Nonce, Slot};
use troth_types::{Digest, Group, Hasher, ReplicaId, Seq, View};

/// The most views that a replica may leave at once: what it shows of them is one call to its component.
pub const MOST_ABANDONED: usize = 256;

/// A valid VIEWCHANGE and its sender. A set of them holds each sender once.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Whose it is.
    pub from: ReplicaId,
    /// What it says.
    pub change: &'a ViewChange,
    /// The stable checkpoint that it proves.
    pub stable: (Seq, Digest),
}

impl Evidence<'_> {
    /// The digest of the NEWVIEW by which the sender entered the view that it left; none of view 0.
    #[must_use]
    pub fn entered(&self) -> Option<Digest> {
        self.change.accepted.as_ref().and_then(|accepted| accepted.accept()).map(|accept| accept.new_view)
    }

    /// The first number that it shows a commitment to.
    #[must_use]
    pub fn first(&self) -> Option<Seq> {
        self.change.committed.first().and_then(|first| first.commit.commit()).map(|vote| vote.seq)
    }
}

/// The nonce Z: all nonces of a WANTVIEWCHANGE certificate hashed together, in the order of the replicas' numbers.
#[must_use]
pub fn shared_nonce(wanted: &[Arc<Wanted>]) -> Nonce {
    rule!("A2MPBFTEA-V4");
    let mut hasher = Hasher::new("troth/a2m-pbft-ea/nonce/v1");
    hasher.number(wanted.len() as u64);
    for wanted in wanted {
        hasher.fixed(&wanted.want.nonce);
    }
    hasher.finish().0
}

/// Whether these are WANTVIEWCHANGEs of f+1 distinct replicas for exactly this view, in the order of their numbers.
#[must_use]
pub fn certifies(group: &Group, wanted: &[Arc<Wanted>], to: View) -> bool {
    rule!("A2MPBFTEA-V3");
    let voters: Voters =
        wanted.iter().map(|wanted| wanted.from).filter(|from| group.contains(*from)).collect();
    voters.count() >= group.quorum()
        && wanted.is_sorted_by(|one, next| one.from < next.from)
        && wanted.iter().all(|wanted| wanted.want.to == to)
}

/// The slots of the COMMIT log that a VIEWCHANGE must show as skipped: in the view left the one behind the last
/// commitment, or behind the stable checkpoint where there is none above it; in each view after it the very first.
#[must_use]
pub fn to_look_up(config: &Config, left: View, to: View, last: Seq) -> Vec<Slot> {
    rule!("A2MPBFTEA-V6");
    let slot = |view: u64| match View(view) == left || config.follows(Flaw::OneHighest) {
        true => flattened(View(view), last.next()),
        false => flattened(View(view), Seq(0)),
    };
    (left.0..to.0).map(slot).collect()
}

/// What a VIEWCHANGE proves, or the rule that it breaks.
pub fn evidence<'a>(
    group: &Group,
    config: &Config,
    message: &'a Attested,
) -> Result<Evidence<'a>, &'static str> {
    let from = message.from;
    let Some(change) = message.view_change() else { return Err("no VIEWCHANGE") };
    if change.left >= change.to || change.to.0 - change.left.0 > MOST_ABANDONED as u64 {
        return Err("a VIEWCHANGE that leaves no view, or too many");
    }
    if !certifies(group, &change.wanted, change.to) {
        return Err("a VIEWCHANGE without f+1 WANTVIEWCHANGEs for its view");
    }
    let Some(stable) = proven(group, &change.stable) else {
        return Err("a VIEWCHANGE with a checkpoint that is not stable");
    };
    rule!("A2MPBFTEA-V5");
    let accepts =
        change.accepted.as_ref().map(|accepted| (accepted.from, accepted.accept().map(|it| it.view)));
    let expected = (change.left > View(0)).then_some((from, Some(change.left)));
    if accepts != expected {
        return Err("a VIEWCHANGE that does not show how its sender entered the view");
    }
    let last = committed(group, config, from, change, stable.0)?;
    abandoned(config, change, last)?;
    Ok(Evidence { from, change, stable })
}

/// The last number that the sender shows a commitment to: its commitments follow each other, and each rests on a prepared
/// certificate.
fn committed(
    group: &Group,
    config: &Config,
    from: ReplicaId,
    change: &ViewChange,
    stable: Seq,
) -> Result<Seq, &'static str> {
    let mut last = None;
    for committed in &change.committed {
        rule!("A2MPBFTEA-V7");
        let Some(vote) = committed.commit.commit().filter(|vote| vote.view == change.left) else {
            return Err("a VIEWCHANGE with a COMMIT of another view");
        };
        if committed.commit.from != from || !prepared(group, committed, vote) {
            return Err("a VIEWCHANGE with a COMMIT that nothing prepared");
        }
        rule!("A2MPBFTEA-V8");
        let follows = last.is_none_or(|last: Seq| vote.seq == last.next());
        if !follows || vote.seq <= stable || vote.seq.0 - stable.0 > config.window {
            return Err("a VIEWCHANGE whose COMMITs do not follow each other");
        }
        last = Some(vote.seq);
    }
    Ok(last.unwrap_or(stable))
}

/// A prepared certificate: the primary's PREPREPARE and PREPAREs of f backups for the same.
#[must_use]
pub fn prepared(group: &Group, committed: &Committed, vote: &Vote) -> bool {
    let primary = group.primary(vote.view);
    let same = |message: &Arc<Attested>| message.voted().as_ref() == Some(vote);
    let backups =
        committed.prepares.iter().filter(|message| same(message) && message.pre_prepare().is_none());
    let backups =
        backups.map(|message| message.from).filter(|from| group.contains(*from) && *from != primary);
    let backups: Voters = backups.collect();
    let proposed = committed.proposal.pre_prepare().is_some() && committed.proposal.from == primary;
    proposed && same(&committed.proposal) && backups.count() + 1 >= group.quorum()
}

/// The sender's COMMIT log shows that it committed to nothing else in any view that it left: each is skipped to its end,
/// from behind the last commitment shown, under the nonce that everybody who wanted the change has a part in.
fn abandoned(config: &Config, change: &ViewChange, last: Seq) -> Result<(), &'static str> {
    let nonce = shared_nonce(&change.wanted);
    let slots = to_look_up(config, change.left, change.to, last);
    if change.abandoned.len() != slots.len() {
        return Err("a VIEWCHANGE that does not show each view abandoned");
    }
    for (attestation, slot) in change.abandoned.iter().zip(slots) {
        rule!("A2MPBFTEA-V9");
        let claim = &attestation.claim;
        if (claim.log, claim.slot, claim.nonce) != (COMMIT, slot, nonce) {
            return Err("a VIEWCHANGE with a lookup of something else");
        }
        match claim.content {
            Content::Skipped { end, .. } if end >= end_of(View(slot.view())) => {}
            _ => return Err("a VIEWCHANGE of a view that was not abandoned"),
        }
    }
    Ok(())
}
