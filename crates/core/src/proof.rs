//! What proves the place of a batch to its clients (paper 000 §4.2).

use bytes::Bytes;
use std::sync::Arc;
use troth_auth::{encode_attestation, entry_value};
use troth_trusted::a2m::Attestation;
use troth_trusted::run;
use troth_types::{Batch, ClientId, Digest, GroupId, Place};

/// The attested place of a batch, and whose frames are in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyProof {
    attested: Attested,
    batch: Batch,
    done: Vec<(ClientId, u64)>,
}

/// Whom the component's word convinces.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Attested {
    /// Everybody.
    ForAll(Bytes),
    /// Each of these the one made for it.
    ForEach(Vec<(ClientId, Bytes)>),
}

/// What is known of an executed batch's proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proven {
    /// It is here.
    Here(Arc<ReplyProof>),
    /// It will be.
    Coming,
    /// It is gone, at all replicas that know as much as this one: what the batch answered must be ordered anew to be
    /// answered again.
    Gone,
}

fn leaves(batch: &Batch) -> Vec<[u8; 32]> {
    batch.frames.iter().map(|frame| frame.0).collect()
}

fn encoded(attestation: &Attestation) -> Bytes {
    let mut bytes = Vec::with_capacity(192);
    encode_attestation(attestation, &mut bytes);
    bytes.into()
}

impl ReplyProof {
    /// The proof of a batch whose slot is attested; `done` names the frames in their order.
    #[must_use]
    pub fn new(attestation: &Attestation, batch: Batch, done: Vec<(ClientId, u64)>) -> Self {
        Self { attested: Attested::ForAll(encoded(attestation)), batch, done }
    }

    /// The same where each client of the batch was given an attestation of its own.
    #[must_use]
    pub fn for_each(each: &[(ClientId, Attestation)], batch: Batch, done: Vec<(ClientId, u64)>) -> Self {
        let each = each.iter().map(|(client, attestation)| (*client, encoded(attestation)));
        Self { attested: Attested::ForEach(each.collect()), batch, done }
    }

    fn attestation_for(&self, client: ClientId) -> Option<Bytes> {
        match &self.attested {
            Attested::ForAll(attestation) => Some(attestation.clone()),
            Attested::ForEach(each) => {
                each.iter().find(|(known, _)| *known == client).map(|(_, attestation)| attestation.clone())
            }
        }
    }

    /// The value that fills the slot of a batch: `x`, in which a client finds its request. `None` for a batch of more than
    /// [`run::MAX_RUN`] frames, which no group allows whose replies are proven.
    #[must_use]
    pub fn value(group: GroupId, batch: &Batch) -> Option<Digest> {
        let count = u16::try_from(batch.frames.len()).ok()?;
        let root =
            if count == 0 { Digest::ZERO } else { Digest(run::Tree::default().build(&leaves(batch))?) };
        Some(entry_value(group, batch.time, count, &root))
    }

    /// The places of its requests.
    #[must_use]
    pub fn places(&self) -> Places<'_> {
        let mut tree = run::Tree::default();
        tree.build(&leaves(&self.batch));
        Places { proof: self, tree }
    }
}

/// The places of a batch's requests.
pub struct Places<'a> {
    proof: &'a ReplyProof,
    tree: run::Tree,
}

impl Places<'_> {
    /// The place of a client's request.
    #[must_use]
    pub fn of(&self, client: ClientId, number: u64) -> Option<Place> {
        let index = self.proof.done.iter().position(|done| *done == (client, number))?;
        let proof = self.tree.proof(u16::try_from(index).ok()?)?;
        Some(Place {
            attestation: self.proof.attestation_for(client)?,
            time: self.proof.batch.time,
            index: proof.index,
            count: proof.count,
            path: proof.path.as_slice().iter().map(|sibling| Digest(*sibling)).collect(),
        })
    }
}
