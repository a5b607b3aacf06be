//! What a replica's host signs of each message, with a domain of its own for each kind, and what a receiver must
//! verify before it acts on one.

use crate::message::{
    AttestedCheckpoint, Body, Entry, Message, NewView, Phase, Signed, StableProof, ViewChange, Vote,
};
use std::sync::Arc;
use troth_auth::{Authentic, Claim, Evidence, encode_attestation, history_claim};
use troth_core::rule;
use troth_types::{Digest, GroupId, Hasher, Malformed, ReplicaId};

fn hasher(tag: &'static str, group: GroupId, from: ReplicaId) -> Hasher {
    let mut hasher = Hasher::new(tag);
    hasher.fixed(&group.0).number(u64::from(from.0));
    hasher
}

/// Nested messages enter by their senders, digests and signatures.
fn add_nested(hasher: &mut Hasher, messages: &[Arc<Signed>]) {
    hasher.number(messages.len() as u64);
    for message in messages {
        hasher.number(u64::from(message.from.0)).digest(&message.digest).fixed(&message.signature.0);
    }
}

fn add_entries(hasher: &mut Hasher, entries: &[Entry]) {
    hasher.number(entries.len() as u64);
    for entry in entries {
        hasher.number(entry.seq.0).digest(&entry.digest).number(entry.view.0);
    }
}

fn vote(tag: &'static str, group: GroupId, from: ReplicaId, vote: Vote) -> Digest {
    let mut hasher = hasher(tag, group, from);
    hasher.number(vote.view.0).number(vote.seq.0).digest(&vote.digest);
    hasher.finish()
}

impl Body {
    /// The message's name.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Checkpoint(_) | Self::Attested(_) => "CHECKPOINT",
            Self::ViewChange(_) => "VIEW-CHANGE",
            Self::NewView(_) => "NEW-VIEW",
            Self::Phase(Phase::PrePrepare(_)) => "PRE-PREPARE",
            Self::Phase(Phase::Prepare(_)) => "PREPARE",
            Self::Phase(Phase::Commit(_)) => "COMMIT",
        }
    }

    /// What is signed of this body.
    #[must_use]
    pub fn digest(&self, group: GroupId, from: ReplicaId) -> Digest {
        match self {
            Self::Checkpoint(checkpoint) => {
                let mut hasher = hasher("troth/pbft/checkpoint/v1", group, from);
                hasher.number(checkpoint.seq.0).digest(&checkpoint.digest);
                hasher.finish()
            }
            Self::Attested(AttestedCheckpoint { checkpoint, attestation }) => {
                let mut hasher = hasher("troth/pbft/attested-checkpoint/v1", group, from);
                hasher.number(checkpoint.seq.0).digest(&checkpoint.digest);
                let mut attested = Vec::new();
                encode_attestation(attestation, &mut attested);
                hasher.bytes(&attested);
                hasher.finish()
            }
            Self::ViewChange(change) => {
                let mut hasher = hasher("troth/pbft/view-change/v1", group, from);
                hasher.number(change.to.0);
                add_nested(&mut hasher, &change.stable.votes);
                add_entries(&mut hasher, &change.prepared);
                add_entries(&mut hasher, &change.pre_prepared);
                hasher.finish()
            }
            Self::NewView(new_view) => {
                let mut hasher = hasher("troth/pbft/new-view/v1", group, from);
                hasher.number(new_view.view.0);
                add_nested(&mut hasher, &new_view.changes);
                hasher.number(new_view.base.0.0).digest(&new_view.base.1);
                hasher.number(new_view.chosen.len() as u64);
                for batch in &new_view.chosen {
                    hasher.digest(&batch.digest());
                }
                hasher.finish()
            }
            Self::Phase(Phase::PrePrepare(proposal)) => {
                let (view, seq, digest) = (proposal.view, proposal.seq, proposal.batch.digest());
                vote("troth/pbft/pre-prepare/v1", group, from, Vote { view, seq, digest })
            }
            Self::Phase(Phase::Prepare(said)) => vote("troth/pbft/prepare/v1", group, from, *said),
            Self::Phase(Phase::Commit(said)) => vote("troth/pbft/commit/v1", group, from, *said),
        }
    }
}

impl Signed {
    fn claims<'a>(&'a self, group: GroupId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        if self.digest != self.body.digest(group, self.from) {
            return Err(Malformed::Invalid("a digest that is not the body's"));
        }
        rule!("PBFT-A2");
        claims.push(Claim {
            by: self.from,
            digest: self.digest,
            evidence: Evidence::Signature(&self.signature),
        });
        match &self.body {
            Body::Checkpoint(_) | Body::Phase(_) => Ok(()),
            Body::Attested(attested) => attested.claims(self.from, claims),
            Body::ViewChange(change) => change.claims(group, claims),
            Body::NewView(new_view) => new_view.claims(group, claims),
        }
    }
}

impl AttestedCheckpoint {
    /// The slot is the checkpoint's, and it is filled.
    fn claims<'a>(&'a self, from: ReplicaId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        claims.push(history_claim(from, self.checkpoint.seq, &self.attestation)?);
        Ok(())
    }
}

impl StableProof {
    fn claims<'a>(&'a self, group: GroupId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        self.votes.iter().try_for_each(|vote| match vote.body.checkpoint() {
            Some(target) if Some(target) == self.votes[0].body.checkpoint() => vote.claims(group, claims),
            _ => Err(Malformed::Invalid("a stable checkpoint rests on equal CHECKPOINTs")),
        })
    }
}

impl ViewChange {
    fn claims<'a>(&'a self, group: GroupId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        self.stable.claims(group, claims)
    }
}

impl NewView {
    fn claims<'a>(&'a self, group: GroupId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        self.changes.iter().try_for_each(|change| match change.body {
            Body::ViewChange(_) => change.claims(group, claims),
            _ => Err(Malformed::Invalid("a NEW-VIEW rests on VIEW-CHANGEs")),
        })
    }
}

impl Authentic for Message {
    fn claims<'a>(&'a self, group: GroupId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        match self {
            // The link vouches for these, to this replica alone; where the group signs the three phases, they do not count.
            Self::PrePrepare(_) | Self::Prepare(_) | Self::Commit(_) | Self::Status(_) => Ok(()),
            Self::FetchBatches(_) | Self::Batches(_) | Self::WrongTags(_) => Ok(()),
            Self::FetchHistory(_) | Self::History(..) => Ok(()),
            Self::Signed(message) => message.claims(group, claims),
            Self::Stable(proof) => proof.claims(group, claims),
        }
    }
}
