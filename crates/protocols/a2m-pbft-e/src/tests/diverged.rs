//! A replica that more than f others led into a history that is not the group's (paper 000 §4.2.3), and how it comes back.

use super::client::history;
use super::harness::{Net, WALL, covers, frame, logs, r, renewed_logs};
use crate::{Body, Message, Timer};
use troth_auth::{HISTORY_LOG, Placed, encode_attestation};
use troth_core::{Agreement, Note, VerifiedFrame};
use troth_pbft::{AttestedCheckpoint, Checkpoint, PrePrepare, Vote};
use troth_trusted::CounterValue;
use troth_trusted::a2m::{Answer, Attestation, Operation, slot_nonce};
use troth_trusted_host::TrustedLogs;
use troth_types::{Batch, ClientId, Digest, Place, Renewed, Seq, Time, View};

fn stable(net: &Net, replica: u16) -> u64 {
    net.node(replica).replica.status().stable.0
}

/// Replicas 0 and 1 have replica 3 execute a frame at a number, of which they tell 2 nothing. Gives what 3 says to the others.
fn lead_astray(net: &mut Net, seq: u64, frame: &VerifiedFrame) -> Vec<Message> {
    net.wire.clear();
    net.step(r(3), |replica, cx| replica.on_requests(cx, vec![frame.clone()]));
    let batch = Batch { time: Time(WALL + net.now), frames: vec![frame.digest()] };
    let vote = Vote { view: View(0), seq: Seq(seq), digest: batch.digest() };
    let proposal = PrePrepare { view: View(0), seq: Seq(seq), batch };
    let told = [
        (0, Message::PrePrepare(proposal)),
        (1, Message::Prepare(vote)),
        (0, Message::Commit(vote)),
        (1, Message::Commit(vote)),
    ];
    let mut said = Vec::new();
    for (from, message) in told {
        net.tell(from, 3, message);
        while let Some(flight) = net.wire.pop_front() {
            if flight.to == r(3) {
                net.tell(3, 3, flight.message);
            } else {
                said.push(flight.message);
            }
        }
    }
    assert_eq!(net.node(3).executed_up_to(), Seq(seq));
    said
}

/// A group whose replica 3 slept through so many batches and was told of others, up to `end`.
fn diverged(end: u64, group: u64) -> Net {
    let mut net = Net::new();
    net.node_mut(3).down = true;
    net.order_many(1..=group);
    net.node_mut(3).down = false;
    (1..=end).for_each(|seq| drop(lead_astray(&mut net, seq, &frame(9, seq))));
    net
}

/// Replica 3 hears what is stable.
fn show_stable(net: &mut Net) {
    let proof = Message::Stable(net.node(0).replica.pbft().stable_proof().clone());
    net.tell(0, 3, proof);
}

fn place(net: &Net, replica: u16, seq: u64, number: u64) -> Place {
    net.node(replica).released[&Seq(seq)].place_of(ClientId(1), number).expect("its place")
}

/// What a client of this frame takes a replica's place for.
fn vote(from: u16, frame: &VerifiedFrame, place: &Place, renewed: &[Renewed]) -> Option<Digest> {
    let said = Digest([1; 32]);
    history().vote(r(from), (frame, &mut Placed::default()), &said, place, renewed)
}

/// Orders a frame of client 1, and lets replica 3 ask for the batch where it was told of another one.
fn order(net: &mut Net, number: u64) {
    net.order(&frame(1, number));
    if net.node(3).timers.contains_key(&Timer::Fetch) {
        net.fire(3, Timer::Fetch);
        net.run();
    }
}

#[test]
fn what_another_history_proves_adds_up_with_nobody_s_proof() {
    let mut net = Net::new();
    let ours = frame(1, 1);
    net.node_mut(3).down = true;
    for frame in [&frame(2, 1), &ours] {
        net.order(frame);
    }
    for (seq, frame) in [(1, &frame(9, 1)), (2, &ours)] {
        lead_astray(&mut net, seq, frame);
    }
    // The same batch at 2, behind another one.
    let (own, other) = (net.node(3).entry(2).expect("attested"), net.node(0).entry(2).expect("attested"));
    assert!(own.value == other.value && own.digest != other.digest);
    let votes: Vec<_> = (0..4).map(|from| vote(from, &ours, &place(&net, from, 2, 1), &[])).collect();
    assert!(votes[0].is_some() && votes[1] == votes[0] && votes[2] == votes[0]);
    assert!(votes[3].is_some() && votes[3] != votes[0], "no client counts it with the others");
    // Where the component of 2 is slow, the third CHECKPOINT at 4 is that of 3.
    net.node_mut(2).stalled = true;
    net.order_many(2..=3);
    lead_astray(&mut net, 3, &frame(9, 2));
    let said = lead_astray(&mut net, 4, &frame(9, 3));
    let checkpoint = said.into_iter().find(|message| matches!(message, Message::Signed(_)));
    net.tell(3, 0, checkpoint.expect("it vouches for its own history"));
    assert_eq!(stable(&net, 0), 0, "no peer counts it with the others");
    net.unstall(2);
    net.run();
    assert_eq!(stable(&net, 0), 4);
    net.node_mut(3).down = false;
    show_stable(&mut net);
    assert!(net.node(3).halted.is_some_and(|why| why.contains("not that of the group")));
}

/// What a component attests that fills one slot after the other up to this one, the last with this value.
fn filled_up_to(logs: &mut impl TrustedLogs, from: u64, to: u64, value: Digest) -> Attestation {
    let append = |seq| {
        let slot = CounterValue::new(0, seq);
        Operation::Append { log: HISTORY_LOG, slot, value: value.0, nonce: Some(slot_nonce(slot)) }
    };
    let operations: Vec<Operation> = (from..=to).map(append).collect();
    match logs.call(&operations).expect("its next slots").pop() {
        Some(Answer::Attested(attestation)) => attestation,
        other => panic!("it is attested: {other:?}"),
    }
}

#[test]
fn with_another_component_it_goes_on_from_the_group_s_history_and_leaves_its_own() {
    covers!("A2MPBFTE-N8");
    let mut net = diverged(6, 4);
    show_stable(&mut net);
    assert!(net.node(3).halted.is_some_and(|why| why.contains("not that of the group")));
    let mut old = std::mem::replace(&mut net.node_mut(3).logs, logs(3));
    net.renew(3, 2);
    let (new, renewed) = renewed_logs(3, 2);
    net.node_mut(3).logs = new;
    // Its log has it execute again what it executed, and the certificate says that the state is wrong.
    assert_eq!((net.node(3).executed_up_to(), net.node(3).halted), (Seq(6), None));
    assert_eq!(net.node(3).repairs.last().map(|(seq, _)| *seq), Some(Seq(4)));
    net.install(3, 0);
    assert_eq!(net.node(3).executed_up_to(), Seq(4), "5 and 6 were of that history, too");
    net.admit(&[(3, 2, 4)]);
    assert!(net.node(3).replica.status().votes);
    for number in 5..=8 {
        order(&mut net, number);
        let (own, other) = (net.node(3).entry(number), net.node(0).entry(number));
        assert!(own.is_some() && own == other, "the histories differ at {number}");
    }
    assert_eq!((stable(&net, 3), net.node(3).halted), (8, None));
    // Without 2 the others need its word, and so do clients.
    net.node_mut(2).down = true;
    (9..=12).for_each(|number| order(&mut net, number));
    assert_eq!(stable(&net, 0), 12);
    order(&mut net, 13);
    let (ours, renewed) = (frame(1, 13), [renewed]);
    let votes = [0, 1, 3].map(|from| vote(from, &ours, &place(&net, from, 13, 13), &renewed));
    assert!(votes[0].is_some() && votes.iter().all(|vote| *vote == votes[0]), "{votes:?}");
    // The old component goes on, and not even the group's own values make it one of the group.
    let value = net.node(0).entry(13).expect("attested").value;
    let attestation = filled_up_to(&mut old, 7, 13, value);
    let mut bytes = Vec::new();
    encode_attestation(&attestation, &mut bytes);
    let shown = Place { attestation: bytes.into(), ..place(&net, 3, 13, 13) };
    assert_eq!(vote(3, &ours, &shown, &renewed), None);
    let attestation = filled_up_to(&mut old, 14, 16, value);
    let checkpoint = Checkpoint { seq: Seq(16), digest: Digest([7; 32]) };
    let message = net.signed(3, Body::Attested(AttestedCheckpoint { checkpoint, attestation }));
    let ignored = |net: &Net| {
        let by_3 = |note: &&Note| matches!(note, Note::Ignored { from, .. } if *from == r(3));
        net.node(0).notes.iter().filter(by_3).count()
    };
    let before = ignored(&net);
    net.tell(3, 0, message);
    assert_eq!(ignored(&net), before + 1);
}

// A2MPBFTE-C1 "… but for those of a state that was found wrong": the slot is filled with what is right since, and the digest of
// the right state comes later.
#[test]
fn a_later_checkpoint_of_a_state_that_was_put_right_is_not_vouched_for() {
    covers!("A2MPBFTE-C1");
    let mut net = diverged(8, 4);
    // Its component is lost; its log has it execute all of it again, before it hears what is stable.
    net.renew(3, 2);
    net.node_mut(3).logs = renewed_logs(3, 2).0;
    assert_eq!(net.node(3).executed_up_to(), Seq(8));
    show_stable(&mut net);
    assert_eq!(net.node(3).repairs.last().map(|(seq, _)| *seq), Some(Seq(4)));
    net.install(3, 0);
    net.admit(&[(3, 2, 4)]);
    let signs = |net: &Net| net.node(3).trail.iter().filter(|did| did.starts_with("sign")).count();
    let before = signs(&net);
    net.node_mut(3).hashes_late = true;
    (5..=8).for_each(|number| order(&mut net, number));
    assert!(net.node(3).entry(8).is_some() && net.node(3).entry(8) == net.node(0).entry(8));
    assert_eq!(signs(&net), before, "it does not know the state at 8 yet");
    let state = net.node(0).state;
    net.step(r(3), |replica, cx| replica.on_checkpoint(cx, Seq(8), state));
    assert_eq!(signs(&net), before + 1);
}

#[test]
fn one_that_a_state_transfer_overtakes_is_mute_until_it_has_another_component() {
    let mut net = diverged(2, 12);
    show_stable(&mut net);
    assert_eq!(net.node(3).transfers.last().map(|(seq, _)| *seq), Some(Seq(12)));
    net.install(3, 0);
    net.wire.clear();
    order(&mut net, 13);
    net.fire(3, Timer::Status);
    net.run();
    // What others show of the history does not follow from its own.
    assert_eq!((net.node(3).executed_up_to(), net.node(3).halted), (Seq(13), None));
    assert_eq!(net.node(3).replica.history().lacks(), Some(Seq(3)));
    assert!(!net.node(3).replica.status().votes && !net.node(3).released.contains_key(&Seq(13)));
    net.renew(3, 2);
    net.admit(&[(3, 2, 13)]);
    net.run();
    assert_eq!(stable(&net, 0), 16);
    assert_eq!(net.node(3).transfers.last().map(|(seq, _)| *seq), Some(Seq(16)));
    net.install(3, 0);
    assert!(net.node(3).replica.status().votes);
    net.node_mut(2).down = true;
    // The group counts its batches, and clients their frames: three held none.
    (14..=17).for_each(|number| order(&mut net, number));
    assert_eq!(stable(&net, 0), 20);
    assert_eq!(net.node(3).entry(20), net.node(0).entry(20));
}
