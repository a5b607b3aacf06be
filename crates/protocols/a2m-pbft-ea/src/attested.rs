//! What a log attests of each message, with a domain of its own for each kind, and what a receiver must verify before it
//! acts on one.

use crate::message::{
    Attested, Body, Checkpoint, Committed, Message, NewView, StableProof, ViewChange, WantViewChange, Wanted,
};
use crate::place;
use std::sync::Arc;
use troth_auth::{Authentic, Claim, Evidence, Looked, encode_attestation, history_claim};
use troth_core::rule;
use troth_trusted::a2m::{Attestation, Content, Request, slot_nonce};
use troth_types::{Digest, GroupId, Hasher, Malformed, ReplicaId};

fn hasher(tag: &'static str, group: GroupId, from: ReplicaId) -> Hasher {
    let mut hasher = Hasher::new(tag);
    hasher.fixed(&group.0).number(u64::from(from.0));
    hasher
}

/// Nested messages enter by their senders, digests and attestations' epochs: two components of one replica may attest the
/// same.
fn add_nested(hasher: &mut Hasher, messages: &[Arc<Attested>]) {
    hasher.number(messages.len() as u64);
    for message in messages {
        hasher.number(u64::from(message.from.0)).digest(&message.digest);
        hasher.number(message.attestation.epoch.0);
    }
}

/// What a log says of a slot that was passed over.
fn add_skipped(hasher: &mut Hasher, attestation: &Attestation) {
    let claim = &attestation.claim;
    let (end, value, digest) = match claim.content {
        Content::Skipped { end, value, digest } => (end.0, value, digest),
        // Such a VIEWCHANGE convinces nobody.
        _ => (0, [0; 32], [0; 32]),
    };
    hasher.number(attestation.epoch.0).number(u64::from(claim.log.0));
    hasher.fixed(&claim.slot.0.to_le_bytes()).fixed(&claim.nonce);
    hasher.fixed(&end.to_le_bytes()).fixed(&value).fixed(&digest);
}

fn add_committed(hasher: &mut Hasher, committed: &Committed) {
    add_nested(hasher, std::slice::from_ref(&committed.proposal));
    add_nested(hasher, &committed.prepares);
    add_nested(hasher, std::slice::from_ref(&committed.commit));
}

impl WantViewChange {
    /// What is signed of it.
    #[must_use]
    pub fn digest(&self, group: GroupId, from: ReplicaId) -> Digest {
        let mut hasher = hasher("troth/a2m-pbft-ea/want-view-change/v1", group, from);
        hasher.number(self.to.0).fixed(&self.nonce);
        hasher.finish()
    }
}

impl Body {
    /// The message's name.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::PrePrepare(_) => "PREPREPARE",
            Self::Prepare(_) => "PREPARE",
            Self::Commit(_) => "COMMIT",
            Self::Accept(_) => "COMMIT(NEWVIEW)",
            Self::Checkpoint(_) => "CHECKPOINT",
            Self::ViewChange(_) => "VIEWCHANGE",
            Self::NewView(_) => "NEWVIEW",
            Self::Want(_) => "WANTVIEWCHANGE",
        }
    }

    /// What a slot holds of this body, or what is signed of it.
    #[must_use]
    pub fn digest(&self, group: GroupId, from: ReplicaId) -> Digest {
        let tagged = |tag| hasher(tag, group, from);
        match self {
            Self::PrePrepare(proposal) => {
                let mut hasher = tagged("troth/a2m-pbft-ea/pre-prepare/v1");
                hasher.number(proposal.view.0).number(proposal.seq.0).digest(&proposal.batch.digest());
                hasher.finish()
            }
            Self::Prepare(vote) => {
                let mut hasher = tagged("troth/a2m-pbft-ea/prepare/v1");
                hasher.number(vote.view.0).number(vote.seq.0).digest(&vote.digest);
                hasher.finish()
            }
            Self::Commit(vote) => {
                let mut hasher = tagged("troth/a2m-pbft-ea/commit/v1");
                hasher.number(vote.view.0).number(vote.seq.0).digest(&vote.digest);
                hasher.finish()
            }
            Self::Accept(accept) => {
                let mut hasher = tagged("troth/a2m-pbft-ea/commit-new-view/v1");
                hasher.number(accept.view.0).digest(&accept.new_view);
                hasher.finish()
            }
            Self::Checkpoint(checkpoint) => {
                let mut hasher = tagged("troth/a2m-pbft-ea/checkpoint/v1");
                hasher.number(checkpoint.seq.0).digest(&checkpoint.digest);
                let mut history = Vec::new();
                encode_attestation(&checkpoint.history, &mut history);
                hasher.bytes(&history);
                hasher.finish()
            }
            Self::ViewChange(change) => {
                let mut hasher = tagged("troth/a2m-pbft-ea/view-change/v1");
                hasher.number(change.left.0).number(change.to.0);
                add_nested(&mut hasher, &change.stable.votes);
                add_nested(&mut hasher, change.accepted.as_slice());
                hasher.number(change.committed.len() as u64);
                change.committed.iter().for_each(|committed| add_committed(&mut hasher, committed));
                hasher.number(change.wanted.len() as u64);
                for wanted in &change.wanted {
                    hasher.number(u64::from(wanted.from.0)).digest(&wanted.digest);
                    hasher.fixed(&wanted.signature.0);
                }
                hasher.number(change.abandoned.len() as u64);
                change.abandoned.iter().for_each(|abandoned| add_skipped(&mut hasher, abandoned));
                hasher.finish()
            }
            Self::NewView(new_view) => {
                let mut hasher = tagged("troth/a2m-pbft-ea/new-view/v1");
                hasher.number(new_view.view.0);
                add_nested(&mut hasher, &new_view.changes);
                hasher.number(new_view.base.0.0).digest(&new_view.base.1);
                hasher.number(new_view.chosen.len() as u64);
                for batch in &new_view.chosen {
                    hasher.digest(&batch.digest());
                }
                hasher.finish()
            }
            Self::Want(want) => want.digest(group, from),
        }
    }
}

impl Attested {
    fn claims<'a>(&'a self, group: GroupId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        rule!("A2MPBFTEA-L1");
        if self.digest != self.body.digest(group, self.from) {
            return Err(Malformed::Invalid("a digest that is not the body's"));
        }
        let Some((log, slot)) = place::of(&self.body) else {
            return Err(Malformed::Invalid("a message that has no slot"));
        };
        let evidence = Evidence::Assigned(Looked::settled(log, slot, &self.attestation));
        claims.push(Claim { by: self.from, digest: self.digest, evidence });
        match &self.body {
            Body::Checkpoint(checkpoint) => {
                rule!("A2MPBFTEA-C6");
                claims.push(history_claim(self.from, checkpoint.seq, &checkpoint.history)?);
                Ok(())
            }
            Body::ViewChange(change) => change.claims(self.from, group, claims),
            Body::NewView(new_view) => new_view.claims(group, claims),
            _ => Ok(()),
        }
    }
}

impl StableProof {
    fn claims<'a>(&'a self, group: GroupId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        let first = self.votes.first().and_then(|vote| vote.checkpoint()).and_then(Checkpoint::target);
        self.votes.iter().try_for_each(|vote| match vote.checkpoint() {
            Some(checkpoint) if first.is_some() && checkpoint.target() == first => vote.claims(group, claims),
            _ => Err(Malformed::Invalid("a stable checkpoint rests on equal CHECKPOINTs")),
        })
    }
}

impl Wanted {
    fn claims<'a>(&'a self, group: GroupId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        rule!("A2MPBFTEA-V2");
        if self.digest != self.want.digest(group, self.from) {
            return Err(Malformed::Invalid("a digest that is not the message's"));
        }
        let evidence = Evidence::Signature(&self.signature);
        claims.push(Claim { by: self.from, digest: self.digest, evidence });
        Ok(())
    }
}

impl Committed {
    fn claims<'a>(&'a self, group: GroupId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        let all = std::iter::once(&self.proposal).chain(&self.prepares).chain(std::iter::once(&self.commit));
        all.into_iter().try_for_each(|message| match message.body {
            Body::PrePrepare(_) | Body::Prepare(_) | Body::Commit(_) => message.claims(group, claims),
            _ => Err(Malformed::Invalid("a prepared certificate is made of PREPREPARE, PREPAREs and COMMIT")),
        })
    }
}

impl ViewChange {
    fn claims<'a>(
        &'a self,
        from: ReplicaId,
        group: GroupId,
        claims: &mut Vec<Claim<'a>>,
    ) -> Result<(), Malformed> {
        self.stable.claims(group, claims)?;
        self.accepted.iter().try_for_each(|accepted| match accepted.body {
            Body::Accept(_) => accepted.claims(group, claims),
            _ => Err(Malformed::Invalid("a view is entered by a COMMIT(NEWVIEW)")),
        })?;
        self.committed.iter().try_for_each(|committed| committed.claims(group, claims))?;
        self.wanted.iter().try_for_each(|wanted| wanted.claims(group, claims))?;
        for attestation in &self.abandoned {
            let claim = &attestation.claim;
            if claim.request != Request::Lookup {
                return Err(Malformed::Invalid("a view is abandoned by lookups"));
            }
            let looked = Looked { log: claim.log, slot: claim.slot, nonce: claim.nonce, attestation };
            claims.push(Claim { by: from, digest: Digest::ZERO, evidence: Evidence::Skipped(looked) });
        }
        Ok(())
    }
}

impl NewView {
    fn claims<'a>(&'a self, group: GroupId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        self.changes.iter().try_for_each(|change| match change.body {
            Body::ViewChange(_) => change.claims(group, claims),
            _ => Err(Malformed::Invalid("a NEWVIEW rests on VIEWCHANGEs")),
        })
    }
}

impl Authentic for Message {
    fn claims<'a>(&'a self, group: GroupId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        match self {
            Self::Attested(message) => message.claims(group, claims),
            Self::Want(wanted) => wanted.claims(group, claims),
            // The link vouches for it, to this replica alone.
            Self::Status(_) | Self::FetchProposals(..) => Ok(()),
            // A certificate must show whether it is true.
            Self::FetchHistory(_) | Self::History(..) => Ok(()),
            Self::Stable(proof) => proof.claims(group, claims),
        }
    }
}

/// Whether an attestation is the lookup of the slot of its message: for those who check no keys.
#[must_use]
pub fn fills_its_slot(message: &Attested) -> bool {
    let claim = &message.attestation.claim;
    place::of(&message.body).is_some_and(|(log, slot)| {
        (claim.request, claim.log, claim.slot) == (Request::Lookup, log, slot)
            && claim.nonce == slot_nonce(slot)
            && matches!(claim.content, Content::Assigned { value, .. } if value == message.digest.0)
    })
}
