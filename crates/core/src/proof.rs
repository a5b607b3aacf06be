//! What proves the place of a batch to its clients (paper 000 §4.2).
//!
//! The tree over a batch's frames is built once, where the batch is executed, in as much room as it takes.

use bytes::Bytes;
use std::sync::Arc;
use troth_auth::{encode_attestation, entry_value};
use troth_trusted::a2m::Attestation;
use troth_trusted::run;
use troth_types::{Batch, ClientId, Digest, GroupId, Place, Time};

/// The frames of a batch as a run, in which each has a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchRun {
    time: Time,
    count: u16,
    root: Digest,
    tree: run::Tree<Box<[[u8; 32]]>>,
}

impl BatchRun {
    /// The run of a batch's frames. `None` for a batch of more than [`run::MAX_RUN`], which no group allows whose replies are
    /// proven.
    #[must_use]
    pub fn of(batch: &Batch) -> Option<Self> {
        let leaves: Vec<[u8; 32]> = batch.frames.iter().map(|frame| frame.0).collect();
        let count = u16::try_from(leaves.len()).ok()?;
        let mut tree = run::Tree::within(vec![[0; 32]; run::room(leaves.len())].into_boxed_slice());
        let root = if count == 0 { Digest::ZERO } else { Digest(tree.build(&leaves)?) };
        Some(Self { time: batch.time, count, root, tree })
    }

    /// The value that fills the slot of the batch: `x`, in which a client finds its request.
    #[must_use]
    pub fn value(&self, group: GroupId) -> Digest {
        entry_value(group, self.time, self.count, &self.root)
    }
}

/// The attested place of a batch, and whose frames are in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyProof {
    attested: Attested,
    run: BatchRun,
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

fn encoded(attestation: &Attestation) -> Bytes {
    let mut bytes = Vec::with_capacity(192);
    encode_attestation(attestation, &mut bytes);
    bytes.into()
}

impl ReplyProof {
    /// The proof of a batch whose slot is attested; `done` names the frames in their order.
    #[must_use]
    pub fn new(attestation: &Attestation, run: BatchRun, done: Vec<(ClientId, u64)>) -> Self {
        Self { attested: Attested::ForAll(encoded(attestation)), run, done }
    }

    /// The same where each client of the batch was given an attestation of its own.
    #[must_use]
    pub fn for_each(each: &[(ClientId, Attestation)], run: BatchRun, done: Vec<(ClientId, u64)>) -> Self {
        // One piece of memory for all of them.
        let mut bytes = Vec::with_capacity(each.len() * 192);
        let ends = each.iter().map(|(client, attestation)| {
            encode_attestation(attestation, &mut bytes);
            (*client, bytes.len())
        });
        let ends: Vec<(ClientId, usize)> = ends.collect();
        let (bytes, mut begin) = (Bytes::from(bytes), 0);
        let each = ends.into_iter().map(|(client, end)| {
            let own = bytes.slice(begin..end);
            begin = end;
            (client, own)
        });
        Self { attested: Attested::ForEach(each.collect()), run, done }
    }

    fn attestation_for(&self, client: ClientId) -> Option<Bytes> {
        match &self.attested {
            Attested::ForAll(attestation) => Some(attestation.clone()),
            Attested::ForEach(each) => {
                each.iter().find(|(known, _)| *known == client).map(|(_, attestation)| attestation.clone())
            }
        }
    }

    /// The place of a client's request.
    #[must_use]
    pub fn place_of(&self, client: ClientId, number: u64) -> Option<Place> {
        let index = self.done.iter().position(|done| *done == (client, number))?;
        let proof = self.run.tree.proof(u16::try_from(index).ok()?)?;
        Some(Place {
            attestation: self.attestation_for(client)?,
            time: self.run.time,
            index: proof.index,
            count: proof.count,
            path: proof.path.as_slice().iter().map(|sibling| Digest(*sibling)).collect(),
        })
    }
}
