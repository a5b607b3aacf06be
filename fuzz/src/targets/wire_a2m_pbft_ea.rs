//! What A2M-PBFT-EA's replicas say to each other, and what they keep of it.

use crate::samples;
use crate::wire::{Decoder, of, one_of, seed};
use crate::{Bound, Target};
use std::sync::Arc;
use troth_a2m_pbft_ea::{
    Accept, Attested, Body, Checkpoint, Committed, Message, NewView, PrePrepare, Record, StableProof, Status,
    ViewChange, Vote, WantViewChange, Wanted,
};
use troth_core::PeerMessage;
use troth_trusted::a2m::{Attestation, Claim, Content, LogId, Request};
use troth_trusted::{CounterValue, Epoch, Proof};
use troth_types::{Digest, ReplicaId, Seq, Signature, View};

pub(super) const TARGET: Target = Target {
    name: "wire-a2m-pbft-ea",
    run: |input| one_of(GROUP, input),
    seeds,
    bound: Bound::DECODER,
    longest: 8192,
};

pub(super) const GROUP: &[Decoder] = &[
    of::<PeerMessage<Message>>(),
    of::<Message>(),
    of::<Body>(),
    of::<Attested>(),
    of::<StableProof>(),
    of::<ViewChange>(),
    of::<Committed>(),
    of::<Vote>(),
    of::<WantViewChange>(),
    of::<Wanted>(),
    of::<Status>(),
    of::<Record>(),
];

fn said(content: Content) -> Attestation {
    let claim = Claim {
        request: Request::Lookup,
        log: LogId(2),
        slot: CounterValue::new(1, 2),
        nonce: [7; 32],
        content,
    };
    Attestation { epoch: Epoch(1), claim, proof: Proof::Mac([8; 32]) }
}

fn attested_by(from: u16, body: Body) -> Arc<Attested> {
    let attestation = said(Content::Assigned { value: [3; 32], digest: [4; 32] });
    Arc::new(Attested { from: ReplicaId(from), body, digest: Digest([3; 32]), attestation })
}

fn attested(body: Body) -> Arc<Attested> {
    attested_by(1, body)
}

fn seeds() -> Vec<Vec<u8>> {
    let digest = Digest([2; 32]);
    let history = said(Content::Assigned { value: [5; 32], digest: [6; 32] });
    let checkpoint = attested(Body::Checkpoint(Checkpoint { seq: Seq(4), digest, history }));
    let stable = StableProof { votes: vec![checkpoint.clone(), attested_by(2, checkpoint.body.clone())] };
    let proposal =
        attested(Body::PrePrepare(PrePrepare { view: View(2), seq: Seq(5), batch: samples::batch() }));
    let vote = Vote { view: View(2), seq: Seq(5), digest };
    let prepare = attested(Body::Prepare(vote));
    let commit = attested(Body::Commit(vote));
    let accepted = attested(Body::Accept(Accept { view: View(2), new_view: digest }));
    let committed =
        Committed { proposal: proposal.clone(), prepares: vec![prepare.clone()], commit: commit.clone() };
    let want = WantViewChange { to: View(3), nonce: [5; 32] };
    let wanted = Arc::new(Wanted { from: ReplicaId(1), want, digest, signature: Signature([4; 64]) });
    let end = CounterValue::new(2, u64::MAX);
    let change = ViewChange {
        left: View(2),
        to: View(3),
        stable: stable.clone(),
        accepted: Some(accepted.clone()),
        committed: vec![committed.clone()],
        wanted: vec![wanted.clone()],
        abandoned: vec![said(Content::Skipped { end, value: [0; 32], digest: [9; 32] })],
    };
    let changes = vec![attested(Body::ViewChange(change.clone()))];
    let new_view = NewView { view: View(3), changes, base: (Seq(4), digest), chosen: vec![samples::batch()] };
    let new_view = attested(Body::NewView(new_view));
    let status = Status {
        view: View(3),
        active: true,
        stable: Seq(4),
        executed: Seq(5),
        slots: vec![7, 3, 1],
        changes: 5,
        accepts: 3,
        lacks: Some(View(1)),
        wishes: true,
    };
    vec![
        seed(GROUP, &stable),
        seed(GROUP, &change),
        seed(GROUP, &committed),
        seed(GROUP, &vote),
        seed(GROUP, &want),
        seed(GROUP, &*wanted),
        seed(GROUP, &status),
        seed(GROUP, &*checkpoint),
        seed(GROUP, &new_view.body),
        seed(GROUP, &Body::Want(want)),
        seed(GROUP, &PeerMessage::Protocol(Message::Attested(new_view.clone()))),
        seed(GROUP, &Message::Attested(proposal.clone())),
        seed(GROUP, &Message::Attested(prepare.clone())),
        seed(GROUP, &Message::Attested(commit)),
        seed(GROUP, &Message::Want(wanted.clone())),
        seed(GROUP, &Message::Status(status)),
        seed(GROUP, &Message::Stable(Arc::new(stable.clone()))),
        seed(GROUP, &Message::FetchHistory(Seq(3))),
        seed(GROUP, &Message::FetchProposals(View(3), vec![Seq(4), Seq(6)])),
        seed(GROUP, &Message::History(Seq(3), vec![digest; 2])),
        seed(GROUP, &Record::History(Seq(3), vec![digest; 2])),
        seed(GROUP, &Record::Frame(samples::frame(1, 1))),
        seed(GROUP, &Record::Proposal(proposal)),
        seed(GROUP, &Record::Prepared(vec![prepare])),
        seed(GROUP, &Record::Leaving(vec![wanted])),
        seed(GROUP, &Record::NewView(new_view)),
        seed(GROUP, &Record::Accepted(accepted)),
        seed(GROUP, &Record::Stable(Arc::new(stable))),
        seed(GROUP, &Record::Filled(vec![(1, 1 << 65), (2, 7)])),
        seed(GROUP, &Record::Executed(Seq(3), samples::batch())),
    ]
}
