//! What a replica's component or host certifies of each message, with a domain of its own for each kind,
//! and what a receiver must verify before it acts on one.

use crate::message::{Body, Certified, LogEntry, Message, NewView, SignedRequest, StableProof, ViewChange};
use crate::state::COUNTER;
use std::sync::Arc;
use troth_auth::{Authentic, Claim, Evidence, Ui};
use troth_core::rule;
use troth_types::{Digest, GroupId, Hasher, Malformed, ReplicaId, View, Wire};

/// The epoch of the components that `troth init` makes a group with.
const FIRST_EPOCH: u64 = 1;

fn hasher(tag: &'static str, group: GroupId, from: ReplicaId) -> Hasher {
    let mut hasher = Hasher::new(tag);
    hasher.fixed(&group.0).number(u64::from(from.0));
    hasher
}

fn wire_digest(tag: &'static str, encode: impl FnOnce(&mut Vec<u8>)) -> Digest {
    let mut out = Vec::new();
    encode(&mut out);
    let mut hasher = Hasher::new(tag);
    hasher.bytes(&out);
    hasher.finish()
}

/// The digest of all of a VIEW-CHANGE but its target. Nested messages enter by what their
/// identifiers cover, so the digest names them without their bytes.
pub(crate) fn view_change_rest(change: &ViewChange) -> Digest {
    let entries = change.log.iter().map(|entry| entry.ui());
    let nested = change.stable.votes.iter().map(|vote| &vote.ui).chain(entries);
    let epochs = later_epochs(nested);
    let tag = match epochs.is_some() {
        true => "troth/minbft/view-change-rest/v2",
        false => "troth/minbft/view-change-rest/v1",
    };
    wire_digest(tag, |out| {
        encode_epochs(epochs.as_deref(), out);
        encode_names(&change.stable.votes, out);
        u32::try_from(change.log.len()).expect("bounded by the log").encode(out);
        for entry in &change.log {
            let (tag, view, rest, ui) = match entry {
                LogEntry::Whole(message) => {
                    0u8.encode(out);
                    encode_name(message, out);
                    continue;
                }
                LogEntry::ViewChange(view, rest, ui) => (1u8, view, rest, ui),
                LogEntry::NewView(view, rest, ui) => (2u8, view, rest, ui),
            };
            tag.encode(out);
            view.encode(out);
            rest.encode(out);
            ui.value().0.encode(out);
        }
        u32::try_from(change.requests.len()).expect("bounded by the group").encode(out);
        for request in &change.requests {
            request.digest.encode(out);
            request.signature.encode(out);
        }
    })
}

/// The digest of all of a NEW-VIEW but its view.
pub(crate) fn new_view_rest(new_view: &NewView) -> Digest {
    let epochs = later_epochs(new_view.changes.iter().map(|change| &change.ui));
    let tag = match epochs.is_some() {
        true => "troth/minbft/new-view-rest/v2",
        false => "troth/minbft/new-view-rest/v1",
    };
    wire_digest(tag, |out| {
        encode_epochs(epochs.as_deref(), out);
        encode_names(&new_view.changes, out);
        new_view.base.encode(out);
        u32::try_from(new_view.chosen.len()).expect("bounded by the window").encode(out);
        for batch in &new_view.chosen {
            batch.digest().encode(out);
        }
    })
}

/// The epochs of nested identifiers, in order, unless all are of components that a group begins with. Two
/// components of one replica may certify the same digest at the same value: without the epoch a relay could put
/// one's certificate in the other's place, and the sender would be condemned for it. A group that never replaced
/// a component is understood by releases that knew of none.
fn later_epochs<'a>(nested: impl Iterator<Item = &'a Ui>) -> Option<Vec<u64>> {
    let epochs: Vec<u64> = nested.map(|ui| ui.certificate.epoch.0).collect();
    epochs.iter().any(|epoch| *epoch != FIRST_EPOCH).then_some(epochs)
}

fn encode_epochs(epochs: Option<&[u64]>, out: &mut Vec<u8>) {
    if let Some(epochs) = epochs {
        troth_types::put_list(out, epochs);
    }
}

fn encode_name(message: &Certified, out: &mut Vec<u8>) {
    message.from.encode(out);
    message.digest.encode(out);
    message.value().0.encode(out);
}

fn encode_names(messages: &[Arc<Certified>], out: &mut Vec<u8>) {
    u32::try_from(messages.len()).expect("bounded by the group").encode(out);
    for message in messages {
        encode_name(message, out);
    }
}

fn nested_digest(tag: &'static str, group: GroupId, from: ReplicaId, view: View, rest: &Digest) -> Digest {
    let mut hasher = hasher(tag, group, from);
    hasher.number(view.0).digest(rest);
    hasher.finish()
}

const VIEW_CHANGE: &str = "troth/minbft/view-change/v1";
const NEW_VIEW: &str = "troth/minbft/new-view/v1";

impl Body {
    /// The message's name.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Prepare(_) => "PREPARE",
            Self::Commit(_) => "COMMIT",
            Self::Checkpoint(_) => "CHECKPOINT",
            Self::ViewChange(_) => "VIEW-CHANGE",
            Self::NewView(_) => "NEW-VIEW",
            Self::AcceptNewView(_) => "COMMIT(NEW-VIEW)",
            Self::RequestViewChange(_) => "REQ-VIEW-CHANGE",
        }
    }

    /// What is certified or signed of this body.
    #[must_use]
    pub fn digest(&self, group: GroupId, from: ReplicaId) -> Digest {
        match self {
            Self::Prepare(prepare) => {
                let mut hasher = hasher("troth/minbft/prepare/v1", group, from);
                hasher.number(prepare.view.0).number(prepare.seq.0).digest(&prepare.batch.digest());
                hasher.finish()
            }
            Self::Commit(commit) => {
                let epoch = commit.prepare.ui.certificate.epoch.0;
                let tag = match epoch == FIRST_EPOCH {
                    true => "troth/minbft/commit/v1",
                    false => "troth/minbft/commit/v2",
                };
                let mut hasher = hasher(tag, group, from);
                if epoch != FIRST_EPOCH {
                    hasher.number(epoch);
                }
                hasher.digest(&commit.prepare.digest).fixed(&commit.prepare.value().0.to_le_bytes());
                hasher.number(u64::from(commit.prepare.from.0));
                hasher.finish()
            }
            Self::Checkpoint(checkpoint) => {
                let tag = match checkpoint.epochs.is_empty() {
                    true => "troth/minbft/checkpoint/v1",
                    false => "troth/minbft/checkpoint/v2",
                };
                let mut hasher = hasher(tag, group, from);
                hasher.number(checkpoint.seq.0).digest(&checkpoint.digest);
                if !checkpoint.epochs.is_empty() {
                    hasher.number(checkpoint.written().count() as u64);
                }
                for (replica, epoch) in checkpoint.written() {
                    hasher.number(u64::from(replica.0)).number(epoch);
                }
                hasher.finish()
            }
            Self::ViewChange(change) => {
                nested_digest(VIEW_CHANGE, group, from, change.to, &view_change_rest(change))
            }
            Self::NewView(new_view) => {
                nested_digest(NEW_VIEW, group, from, new_view.view, &new_view_rest(new_view))
            }
            Self::AcceptNewView(accept) => {
                let mut hasher = hasher("troth/minbft/accept-new-view/v1", group, from);
                hasher.number(accept.view.0).digest(&accept.new_view);
                hasher.finish()
            }
            Self::RequestViewChange(request) => {
                let mut hasher = hasher("troth/minbft/request-view-change/v1", group, from);
                hasher.number(request.to.0);
                hasher.finish()
            }
        }
    }
}

impl Certified {
    fn claims<'a>(&'a self, group: GroupId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        if self.digest != self.body.digest(group, self.from) {
            return Err(Malformed::Invalid("a digest that is not the body's"));
        }
        rule!("MINBFT-U4");
        claims.push(Claim { by: self.from, digest: self.digest, evidence: Evidence::Ui(COUNTER, &self.ui) });
        match &self.body {
            Body::Prepare(_) | Body::Checkpoint(_) | Body::AcceptNewView(_) => Ok(()),
            Body::Commit(commit) => match commit.prepare.body {
                Body::Prepare(_) => commit.prepare.claims(group, claims),
                _ => Err(Malformed::Invalid("a COMMIT must carry a PREPARE")),
            },
            Body::ViewChange(change) => change.claims(self.from, group, claims),
            Body::NewView(new_view) => new_view.changes.iter().try_for_each(|change| match change.body {
                Body::ViewChange(_) => change.claims(group, claims),
                _ => Err(Malformed::Invalid("a NEW-VIEW rests on VIEW-CHANGEs")),
            }),
            Body::RequestViewChange(_) => {
                Err(Malformed::Invalid("a REQ-VIEW-CHANGE is signed, not certified"))
            }
        }
    }
}

impl StableProof {
    fn claims<'a>(&'a self, group: GroupId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        self.votes.iter().try_for_each(|vote| match vote.body {
            Body::Checkpoint(_) => vote.claims(group, claims),
            _ => Err(Malformed::Invalid("a stable checkpoint rests on CHECKPOINTs")),
        })
    }
}

impl SignedRequest {
    fn claims<'a>(
        &'a self,
        group: GroupId,
        evidence: Evidence<'a>,
        claims: &mut Vec<Claim<'a>>,
    ) -> Result<(), Malformed> {
        if self.digest != Body::RequestViewChange(self.request.clone()).digest(group, self.from) {
            return Err(Malformed::Invalid("a digest that is not the request's"));
        }
        claims.push(Claim { by: self.from, digest: self.digest, evidence });
        Ok(())
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
        for request in &self.requests {
            request.claims(group, Evidence::Signature(&request.signature), claims)?;
        }
        for entry in &self.log {
            let (tag, view, rest, ui) = match entry {
                LogEntry::Whole(message) => {
                    if message.from != from {
                        return Err(Malformed::Invalid("a VIEW-CHANGE lists its sender's messages"));
                    }
                    match message.body {
                        Body::ViewChange(_) | Body::NewView(_) => {
                            return Err(Malformed::Invalid(
                                "nested VIEW-CHANGEs and NEW-VIEWs stand as stubs",
                            ));
                        }
                        _ => message.claims(group, claims)?,
                    }
                    continue;
                }
                LogEntry::ViewChange(view, rest, ui) => (VIEW_CHANGE, view, rest, ui),
                LogEntry::NewView(view, rest, ui) => (NEW_VIEW, view, rest, ui),
            };
            let digest = nested_digest(tag, group, from, *view, rest);
            claims.push(Claim { by: from, digest, evidence: Evidence::Ui(COUNTER, ui) });
        }
        Ok(())
    }
}

impl Authentic for Message {
    fn claims<'a>(&'a self, group: GroupId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        match self {
            Self::Certified(message) => message.claims(group, claims),
            Self::RequestViewChange(request) => {
                rule!("MINBFT-V21");
                request.claims(group, Evidence::PresentSignature(&request.signature), claims)
            }
            Self::Status(_) => Ok(()),
            Self::Stable(proof) => proof.claims(group, claims),
            Self::Evidence(message) => match message.body {
                Body::NewView(_) | Body::AcceptNewView(_) => message.claims(group, claims),
                _ => Err(Malformed::Invalid("evidence is a NEW-VIEW or a commitment to one")),
            },
        }
    }
}
