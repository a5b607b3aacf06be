//! What PBFT's replicas say to each other, and what they keep of it.

use crate::samples;
use crate::wire::{Decoder, of, one_of, seed};
use crate::{Bound, Target};
use std::sync::Arc;
use troth_core::PeerMessage;
use troth_pbft::{
    Body, Checkpoint, Entry, Message, NewView, PrePrepare, Record, Signed, StableProof, Status, ViewChange,
    Vote,
};
use troth_types::{Digest, ReplicaId, Seq, Signature, View};

pub(super) const TARGET: Target = Target {
    name: "wire-pbft",
    run: |input| one_of(GROUP, input),
    seeds,
    bound: Bound::DECODER,
    longest: 8192,
};

pub(super) const GROUP: &[Decoder] = &[
    of::<PeerMessage<Message>>(),
    of::<Message>(),
    of::<Body>(),
    of::<Signed>(),
    of::<StableProof>(),
    of::<ViewChange>(),
    of::<Entry>(),
    of::<PrePrepare>(),
    of::<Vote>(),
    of::<Status>(),
    of::<Record>(),
];

fn signed_by(from: u16, body: Body) -> Arc<Signed> {
    Arc::new(Signed { from: ReplicaId(from), body, digest: Digest([3; 32]), signature: Signature([4; 64]) })
}

fn signed(body: Body) -> Arc<Signed> {
    signed_by(1, body)
}

fn seeds() -> Vec<Vec<u8>> {
    let digest = Digest([2; 32]);
    let checkpoint = signed(Body::Checkpoint(Checkpoint { seq: Seq(4), digest }));
    let stable = StableProof { votes: vec![checkpoint.clone(), signed_by(2, checkpoint.body.clone())] };
    let entry = Entry { seq: Seq(5), digest, view: View(2) };
    let change = ViewChange {
        to: View(3),
        stable: stable.clone(),
        prepared: vec![entry],
        pre_prepared: vec![entry, entry],
    };
    let changes = vec![signed(Body::ViewChange(change.clone()))];
    let new_view = NewView { view: View(3), changes, base: (Seq(4), digest), chosen: vec![samples::batch()] };
    let new_view = signed(Body::NewView(new_view));
    let proposal = PrePrepare { view: View(3), seq: Seq(6), batch: samples::batch() };
    let vote = Vote { view: View(3), seq: Seq(6), digest };
    let status = Status {
        view: View(3),
        active: true,
        stable: Seq(4),
        executed: Seq(5),
        slots: vec![7, 3, 1],
        changes: 5,
        wishes: true,
    };
    vec![
        seed(GROUP, &stable),
        seed(GROUP, &change),
        seed(GROUP, &entry),
        seed(GROUP, &proposal),
        seed(GROUP, &vote),
        seed(GROUP, &status),
        seed(GROUP, &*checkpoint),
        seed(GROUP, &new_view.body),
        seed(GROUP, &PeerMessage::Protocol(Message::Signed(new_view.clone()))),
        seed(GROUP, &Message::PrePrepare(proposal)),
        seed(GROUP, &Message::Prepare(vote)),
        seed(GROUP, &Message::Commit(vote)),
        seed(GROUP, &Message::Status(status)),
        seed(GROUP, &Message::Stable(Arc::new(stable.clone()))),
        seed(GROUP, &Message::FetchBatches(vec![digest])),
        seed(GROUP, &Message::Batches(vec![samples::batch()])),
        seed(GROUP, &Message::WrongTags(vec![samples::batch().digest()])),
        seed(GROUP, &Record::Frame(samples::frame(1, 1))),
        seed(GROUP, &Record::PrePrepared(View(1), Seq(2), samples::batch())),
        seed(GROUP, &Record::Prepared(entry)),
        seed(GROUP, &Record::Leaving(change)),
        seed(GROUP, &Record::NewView(new_view)),
        seed(GROUP, &Record::Stable(Arc::new(stable))),
        seed(GROUP, &Record::Executed(Seq(3), samples::batch())),
    ]
}
