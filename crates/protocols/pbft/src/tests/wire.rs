//! The encoding, and what a signature covers.

use super::harness::{Net, batch, covers, frame};
use crate::message::{
    Body, Checkpoint, Entry, Message, NewView, Phase, PrePrepare, Record, Signed, StableProof, Status,
    ViewChange, Vote,
};
use std::sync::Arc;
use troth_auth::Authentic;
use troth_types::{Digest, Seq, Signature, View, Wire};

fn samples(net: &Net) -> Vec<Message> {
    let vote = Vote { view: View(3), seq: Seq(9), digest: Digest([2; 32]) };
    let checkpoint = Body::Checkpoint(Checkpoint { seq: Seq(4), digest: Digest([4; 32]) });
    let votes = [0, 2].map(|from| match net.signed(from, checkpoint.clone()) {
        Message::Signed(message) => message,
        _ => unreachable!("a body becomes a signed message"),
    });
    let stable = StableProof { votes: votes.to_vec() };
    let entry = Entry { seq: Seq(5), digest: Digest([1; 32]), view: View(2) };
    let change = ViewChange {
        to: View(4),
        stable: stable.clone(),
        prepared: vec![entry],
        pre_prepared: vec![entry, Entry { seq: Seq(6), ..entry }],
    };
    let change = net.signed(1, Body::ViewChange(change));
    let Message::Signed(inner) = change.clone() else { unreachable!("as above") };
    let base = (Seq(4), Digest([4; 32]));
    let chosen = vec![batch(&[&frame(1, 1)]), batch(&[])];
    let new_view = NewView { view: View(4), changes: vec![inner], base, chosen };
    let status = Status {
        view: View(4),
        active: false,
        stable: Seq(4),
        executed: Seq(5),
        slots: vec![0, 7],
        changes: 5,
        wishes: true,
    };
    let proposal = PrePrepare { view: View(3), seq: Seq(9), batch: batch(&[&frame(1, 1)]) };
    vec![
        Message::PrePrepare(proposal.clone()),
        Message::Prepare(vote),
        Message::Commit(vote),
        change,
        net.signed(0, Body::NewView(new_view)),
        Message::Status(status),
        Message::Stable(Arc::new(stable)),
        Message::FetchBatches(vec![Digest([2; 32])]),
        Message::Batches(vec![batch(&[&frame(2, 1)])]),
        Message::WrongTags(vec![Digest([6; 32])]),
        net.signed(0, Body::Phase(Phase::PrePrepare(proposal))),
        net.signed(1, Body::Phase(Phase::Prepare(vote))),
        net.signed(1, Body::Phase(Phase::Commit(vote))),
    ]
}

#[test]
fn messages_and_records_come_back_as_they_were() {
    let net = Net::new(1);
    let samples = samples(&net);
    for message in &samples {
        assert_eq!(Message::from_wire(&message.to_wire()).as_ref(), Ok(message));
    }
    let signed = |kind: fn(&Signed) -> bool| {
        samples.iter().find_map(|message| match message {
            Message::Signed(signed) if kind(signed) => Some(signed.clone()),
            _ => None,
        })
    };
    let change = signed(|signed| signed.view_change().is_some()).expect("a sample");
    let new_view = signed(|signed| signed.new_view().is_some()).expect("a sample");
    let inner = change.view_change().expect("looked for just now").clone();
    let entry = inner.prepared[0];
    for record in [
        Record::Frame(frame(1, 1).into_inner()),
        Record::PrePrepared(View(1), Seq(2), batch(&[&frame(1, 1)])),
        Record::Prepared(entry),
        Record::Stable(Arc::new(inner.stable.clone())),
        Record::Leaving(inner),
        Record::NewView(new_view),
        Record::Executed(Seq(3), batch(&[])),
    ] {
        assert_eq!(Record::from_wire(&record.to_wire()), Ok(record));
    }
}

#[test]
fn a_cut_message_is_malformed_and_bodies_nest_to_a_bounded_depth() {
    let net = Net::new(1);
    for message in samples(&net) {
        let bytes = message.to_wire();
        for length in 0..bytes.len() {
            assert!(Message::from_wire(&bytes.slice(..length)).is_err());
        }
    }
    let (seq, digest) = (Seq(4), Digest([4; 32]));
    let checkpoint = Body::Checkpoint(Checkpoint { seq, digest });
    let nested = |body: Body| {
        let Message::Signed(message) = net.signed(1, body) else { unreachable!("as above") };
        Body::NewView(NewView {
            view: View(1),
            changes: vec![message],
            base: (seq, digest),
            chosen: Vec::new(),
        })
    };
    let once = nested(checkpoint);
    let twice = nested(once.clone());
    assert_eq!(Body::from_wire(&once.to_wire()), Ok(once), "its form is judged elsewhere");
    assert!(Body::from_wire(&twice.to_wire()).is_err());
    let vote = Vote { view: View(0), seq, digest };
    for phase in [Phase::Prepare(vote), Phase::Commit(vote)] {
        assert!(
            Body::from_wire(&nested(Body::Phase(phase)).to_wire()).is_err(),
            "votes stand inside nothing"
        );
    }
}

#[test]
fn a_proof_names_each_replica_once_and_says_one_thing() {
    let net = Net::new(1);
    let vote = |from, seq| match net
        .signed(from, Body::Checkpoint(Checkpoint { seq: Seq(seq), digest: Digest([4; 32]) }))
    {
        Message::Signed(message) => message,
        _ => unreachable!("a body becomes a signed message"),
    };
    let decodes = |votes: &[Arc<Signed>]| {
        StableProof::from_wire(&StableProof { votes: votes.to_vec() }.to_wire()).is_ok()
    };
    assert!(decodes(&[vote(0, 4), vote(2, 4)]));
    assert!(!decodes(&[vote(2, 4), vote(2, 4)]));
    assert!(!decodes(&[vote(2, 4), vote(0, 4)]));
    let mixed = Message::Stable(Arc::new(StableProof { votes: vec![vote(0, 4), vote(2, 8)] }));
    assert!(mixed.claims(net.group.id(), &mut Vec::new()).is_err());
}

#[test]
fn what_is_signed_is_checked_with_all_that_it_rests_on() {
    covers!("PBFT-A2");
    let net = Net::new(1);
    let claims = |message: &Message| {
        let mut claims = Vec::new();
        message.claims(net.group.id(), &mut claims).map(|()| claims.len())
    };
    let counts: Vec<_> = samples(&net).iter().map(claims).collect();
    let of_lists = [Ok(0), Ok(0), Ok(0), Ok(3), Ok(4), Ok(0), Ok(2), Ok(0), Ok(0), Ok(0)];
    assert_eq!(counts, [&of_lists[..], &[Ok(1); 3]].concat());
    let Message::Signed(signed) =
        net.signed(1, Body::Checkpoint(Checkpoint { seq: Seq(4), digest: Digest([4; 32]) }))
    else {
        unreachable!("as above")
    };
    let other = Body::Checkpoint(Checkpoint { seq: Seq(8), digest: Digest([4; 32]) });
    let swapped = Signed { body: other.clone(), ..(*signed).clone() };
    assert!(claims(&Message::Signed(Arc::new(swapped))).is_err(), "a digest of something else");
    let nested = Signed { signature: Signature([9; 64]), ..(*signed).clone() };
    let not_a_change = NewView {
        view: View(1),
        changes: vec![Arc::new(nested)],
        base: (Seq(0), Digest::ZERO),
        chosen: Vec::new(),
    };
    assert!(claims(&net.signed(1, Body::NewView(not_a_change))).is_err(), "a NEW-VIEW rests on VIEW-CHANGEs");
    let by = |from| other.digest(net.group.id(), super::harness::r(from));
    assert_ne!(by(0), by(1), "a digest names its sender");
    let proposed = batch(&[]);
    let vote = Vote { view: View(3), seq: Seq(9), digest: proposed.digest() };
    let proposal = PrePrepare { view: View(3), seq: Seq(9), batch: proposed };
    let of = |phase| Body::Phase(phase).digest(net.group.id(), super::harness::r(1));
    let (first, second, third) =
        (of(Phase::PrePrepare(proposal)), of(Phase::Prepare(vote)), of(Phase::Commit(vote)));
    assert!(first != second && second != third && first != third, "a digest names the kind");
    let later = Vote { view: View(4), ..vote };
    assert_ne!(of(Phase::Commit(later)), third, "and all that is said");
}
