//! §4.2: the three phases.

use super::harness::{Net, SMALL, WALL, batch, covers, frame, r};
use crate::message::{Message, PrePrepare, Record, Vote};
use crate::{Config, Timer};
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_core::{Agreement, Note, To};
use troth_types::{Batch, ClientEntry, ClientId, Configuration, Digest, Seq, Time, View};

fn is_prepare(message: &Message) -> bool {
    matches!(message, Message::Prepare(_))
}

fn is_commit(message: &Message) -> bool {
    matches!(message, Message::Commit(_))
}

fn proposal(view: u64, seq: u64, batch: Batch) -> Message {
    Message::PrePrepare(PrePrepare { view: View(view), seq: Seq(seq), batch })
}

fn vote(view: u64, seq: u64, digest: Digest) -> Vote {
    Vote { view: View(view), seq: Seq(seq), digest }
}

#[test]
fn what_a_client_asks_for_is_executed_by_all_after_three_phases() {
    covers!("PBFT-N2");
    covers!("PBFT-N6");
    covers!("PBFT-N8");
    covers!("PBFT-N9");
    let mut net = Net::new(1);
    let (one, two) = (frame(1, 1), frame(2, 1));
    net.order(&one);
    net.order(&two);
    for replica in 0..4 {
        assert_eq!(net.node(replica).history(), [one.digest(), two.digest()], "replica {replica}");
    }
}

#[test]
fn a_request_is_pending_until_it_is_executed_whatever_its_digest() {
    covers!("PBFT-N1");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, [1]);
    assert_eq!(net.node(1).pbft.pool.len(), 1);
    net.request(&one, [1]);
    assert_eq!(net.node(1).pbft.pool.len(), 1, "it is one request however often it comes");
    net.order(&one);
    assert_eq!(net.node(1).pbft.pool.len(), 0);
}

#[test]
fn the_pipeline_bounds_what_a_primary_has_under_way() {
    covers!("PBFT-N2");
    let mut net = Net::with(1, Config { pipeline: 2, ..SMALL });
    for number in 1..=6 {
        net.request(&frame(number, 1), [0]);
    }
    let proposals = net.wire.iter().filter(|flight| matches!(flight.message, Message::PrePrepare(_)));
    assert_eq!(proposals.filter(|flight| flight.to == r(1)).count(), 2);
}

#[test]
fn only_the_primary_of_the_view_proposes_and_once_for_a_number() {
    covers!("PBFT-N3");
    let mut net = Net::new(1);
    let (one, two) = (frame(1, 1), frame(2, 1));
    net.request(&one, [1]);
    net.request(&two, [1]);
    net.tell(2, 1, proposal(0, 1, batch(&[&one])));
    net.tell(1, 1, proposal(1, 1, batch(&[&one])));
    // It is the primary of view 4 as well.
    net.tell(0, 1, proposal(4, 1, batch(&[&one])));
    assert_eq!((net.node(1).ignored(), net.sent(1, is_prepare)), (3, 0));
    net.tell(0, 1, proposal(0, 1, batch(&[&one])));
    net.tell(0, 1, proposal(0, 1, batch(&[&two])));
    let suspected = |note: &&Note| matches!(note, Note::Suspected { .. });
    assert_eq!(net.node(1).notes.iter().filter(suspected).count(), 1);
    assert_eq!(net.sent(1, is_prepare), 4, "one PREPARE, to the three others and itself");
}

#[test]
fn a_batch_of_more_frames_than_allowed_is_not_taken() {
    covers!("PBFT-N3");
    let mut net = Net::new(1);
    let many = Batch { time: Time(WALL), frames: vec![Digest([7; 32]); SMALL.limits.batch_frames + 1] };
    net.tell(0, 1, proposal(0, 1, many));
    assert!(net.node(1).pbft.slots.is_empty());
}

#[test]
fn the_proposal_is_the_primarys_only_vote() {
    covers!("PBFT-N4");
    covers!("PBFT-N8");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, [1]);
    let batch = batch(&[&one]);
    let digest = batch.digest();
    net.tell(0, 1, proposal(0, 1, batch));
    net.run_where(|flight| flight.from == r(1) && flight.to == r(1));
    net.tell(0, 1, Message::Prepare(vote(0, 1, digest)));
    assert_eq!(net.sent(1, is_commit), 0, "the primary and this replica are two of three");
    net.tell(2, 1, Message::Prepare(vote(0, 1, Digest([9; 32]))));
    net.tell(2, 1, Message::Prepare(vote(0, 1, digest)));
    assert_eq!(net.sent(1, is_commit), 0, "its first vote counts, and was for another batch");
    net.tell(3, 1, Message::Prepare(vote(1, 1, digest)));
    assert_eq!(net.sent(1, is_commit), 0, "a vote of another view");
    net.tell(3, 1, Message::Prepare(vote(0, 1, digest)));
    assert_eq!(net.sent(1, is_commit), 4);
}

#[test]
fn nothing_prepares_before_the_own_vote_is_durable() {
    covers!("PBFT-N8");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, [1]);
    let batch = batch(&[&one]);
    let digest = batch.digest();
    net.tell(0, 1, proposal(0, 1, batch));
    for backup in [2, 3] {
        net.tell(backup, 1, Message::Prepare(vote(0, 1, digest)));
    }
    assert_eq!(net.sent(1, is_commit), 0);
    net.run_where(|flight| flight.from == r(1) && flight.to == r(1));
    assert!(net.node(1).pbft.prepared.contains_key(&Seq(1)));
}

#[test]
fn commits_of_another_view_do_not_count_nor_two_of_one_replica() {
    covers!("PBFT-N5");
    covers!("PBFT-N9");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, [1]);
    let batch = batch(&[&one]);
    let digest = batch.digest();
    net.tell(0, 1, proposal(0, 1, batch));
    for from in [0, 2] {
        net.tell(from, 1, Message::Commit(vote(0, 1, digest)));
        net.tell(from, 1, Message::Commit(vote(0, 1, digest)));
    }
    net.tell(3, 1, Message::Commit(vote(1, 1, digest)));
    assert!(net.node(1).executed.is_empty());
    net.tell(3, 1, Message::Commit(vote(0, 1, digest)));
    assert_eq!(net.node(1).history(), [one.digest()], "2f+1 committed, whether or not it prepared here");
}

#[test]
fn commits_for_different_batches_are_not_counted_together() {
    covers!("PBFT-N9");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, [1]);
    let batch = batch(&[&one]);
    let digest = batch.digest();
    net.tell(0, 1, proposal(0, 1, batch));
    net.tell(0, 1, Message::Commit(vote(0, 1, digest)));
    net.tell(2, 1, Message::Commit(vote(0, 1, Digest([9; 32]))));
    net.tell(3, 1, Message::Commit(vote(0, 1, digest)));
    assert!(net.node(1).executed.is_empty());
}

#[test]
fn a_backup_votes_for_frames_that_it_holds() {
    covers!("PBFT-N6");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.tell(0, 1, proposal(0, 1, batch(&[&one])));
    assert_eq!(net.sent(1, is_prepare), 0);
    net.fire(1, Timer::Fetch);
    assert_eq!(net.node(1).frames_asked, [(To::One(r(0)), vec![one.digest()])], "the primary has it");
    net.step(r(1), |pbft, cx| troth_core::Agreement::on_known_frames(pbft, cx, vec![one.clone()]));
    assert_eq!(net.sent(1, is_prepare), 4);
}

#[test]
fn frames_far_ahead_of_what_was_executed_are_not_fetched() {
    covers!("PBFT-R11");
    let mut net = Net::new(1);
    let far = SMALL.pipeline + 1;
    for (number, seq) in [(1, far), (2, far - 1)] {
        let missing = Batch { time: Time(WALL), frames: vec![Digest([number; 32])] };
        net.tell(0, 1, proposal(0, seq, missing));
    }
    net.fire(1, Timer::Fetch);
    assert_eq!(net.node(1).frames_asked, [(To::One(r(0)), vec![Digest([2; 32])])]);
}

#[test]
fn a_time_ahead_of_the_clock_is_refused_until_one_correct_replica_vouches() {
    covers!("PBFT-N7");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, [1]);
    let ahead = Batch { time: Time(WALL + 3_600_000_000), ..batch(&[&one]) };
    let digest = ahead.digest();
    net.tell(0, 1, proposal(0, 1, ahead));
    assert_eq!(net.sent(1, is_prepare), 0);
    net.tell(2, 1, Message::Prepare(vote(0, 1, digest)));
    assert_eq!(net.sent(1, is_prepare), 4, "the primary and another are f+1");
}

#[test]
fn a_time_behind_the_clock_is_refused_until_one_correct_replica_vouches() {
    covers!("PBFT-N7");
    let oldest = WALL + Net::new(1).now - SMALL.clock_bound - SMALL.request_timeout;
    for (time, votes) in [(oldest, 4), (oldest - 1, 0)] {
        let mut net = Net::new(1);
        let one = frame(1, 1);
        net.request(&one, [1]);
        let behind = Batch { time: Time(time), ..batch(&[&one]) };
        let digest = behind.digest();
        net.tell(0, 1, proposal(0, 1, behind));
        assert_eq!(net.sent(1, is_prepare), votes);
        net.tell(2, 1, Message::Prepare(vote(0, 1, digest)));
        assert_eq!(net.sent(1, is_prepare), 4, "the primary and another are f+1");
    }
}

#[test]
fn a_batch_that_fills_up_may_be_old() {
    covers!("PBFT-N7");
    let mut net = Net::new(1);
    net.node_mut(1).pbft.filled = Seq(1);
    net.tell(0, 1, proposal(0, 1, Batch { time: Time(WALL - 3_600_000_000), frames: Vec::new() }));
    assert_eq!(net.sent(1, is_prepare), 4, "nobody may propose another in its place");
}

#[test]
fn an_empty_batch_needs_a_due_deadline() {
    covers!("PBFT-N7");
    let mut net = Net::new(1);
    net.tell(0, 1, proposal(0, 1, Batch { time: Time(WALL), frames: Vec::new() }));
    assert_eq!(net.sent(1, is_prepare), 0);
    net.node_mut(1).pbft.reached.deadline = Some(Time(WALL));
    net.fire(1, Timer::Status);
    assert_eq!(net.sent(1, is_prepare), 4);
}

#[test]
fn promises_are_durable_before_anybody_hears_of_them() {
    covers!("PBFT-R1");
    covers!("PBFT-R2");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, [1]);
    net.node_mut(1).trail.clear();
    let batch = batch(&[&one]);
    let digest = batch.digest();
    net.tell(0, 1, proposal(0, 1, batch.clone()));
    assert_eq!(net.node(1).trail, ["persist", "persist", "broadcast"], "the frame, the promise, the PREPARE");
    assert!(net.node(1).records.contains(&Record::PrePrepared(View(0), Seq(1), batch)));
    net.run_where(|flight| flight.from == r(1) && flight.to == r(1));
    net.node_mut(1).trail.clear();
    net.tell(2, 1, Message::Prepare(vote(0, 1, digest)));
    assert_eq!(
        net.node(1).trail,
        ["persist", "broadcast", "tentative"],
        "what prepared, the COMMIT, a reply"
    );
    net.node_mut(0).trail.clear();
    net.request(&one, [0]);
    assert_eq!(net.node(0).trail, ["persist", "persist", "broadcast"], "the same at the primary");
}

#[test]
fn what_a_quorum_committed_is_executed_though_the_primary_showed_something_else_here() {
    covers!("PBFT-R8");
    let mut net = Net::new(1);
    let (one, two) = (frame(1, 1), frame(2, 1));
    net.request(&one, [1]);
    net.request(&two, [1]);
    let (shown, committed) = (batch(&[&one]), batch(&[&two]));
    net.tell(0, 1, proposal(0, 1, shown));
    for from in [0, 2, 3] {
        net.tell(from, 1, Message::Commit(vote(0, 1, committed.digest())));
    }
    assert!(net.node(1).executed.is_empty(), "nobody has shown it yet");
    net.wire.clear();
    net.fire(1, Timer::Status);
    let asked =
        |message: &Message| matches!(message, Message::FetchBatches(asked) if *asked == [committed.digest()]);
    assert_eq!(net.sent(1, asked), 3);
    net.tell(2, 1, Message::Batches(vec![batch(&[]), committed.clone()]));
    assert_eq!(net.node(1).history(), [two.digest()]);
    assert!(!net.node(1).pbft.batches.contains_key(&batch(&[]).digest()), "nobody asked for that one");
}

#[test]
fn votes_beyond_the_window_are_held_and_those_further_away_dropped() {
    covers!("PBFT-N4");
    let mut net = Net::new(1);
    let highest = SMALL.window;
    net.tell(2, 1, Message::Prepare(vote(0, 2 * highest, Digest([1; 32]))));
    net.tell(2, 1, Message::Prepare(vote(0, 2 * highest + 1, Digest([1; 32]))));
    assert_eq!(net.node(1).pbft.slots.keys().copied().collect::<Vec<_>>(), [Seq(2 * highest)]);
    let one = frame(1, 1);
    net.request(&one, [1]);
    net.tell(0, 1, proposal(0, highest + 1, batch(&[&one])));
    assert_eq!(net.sent(1, is_prepare), 0, "nobody votes above H");
}

#[test]
fn a_client_with_two_contents_under_one_number_is_told_of() {
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, [1]);
    let draft = troth_types::FrameDraft {
        group: net.group.id(),
        client: ClientId(1),
        number: 1,
        events_seen: 7,
        operations: Vec::new(),
    };
    let other = draft.sign(troth_types::Signature([1; 64]));
    let other = troth_auth::Verified::made_here(std::sync::Arc::new(other));
    net.request(&other, [1]);
    let told = |note: &Note| matches!(note, Note::ClientAccused { client: ClientId(1), number: 1 });
    assert!(net.node(1).notes.iter().any(told));
}

#[test]
fn what_waits_of_a_removed_client_waits_no_longer_and_completes_batches() {
    covers!("PBFT-N10");
    let mut net = Net::new(1);
    let entry = |removed| ClientEntry { key: [1; 32], link: [1; 32], removed };
    let clients = BTreeMap::from([(ClientId(1), entry(true)), (ClientId(2), entry(false))]);
    let configuration = Arc::new(Configuration::new(Vec::new(), clients));
    let named = frame(1, 2);
    net.request(&named, 0..4);
    net.request(&frame(1, 1), [1]);
    net.request(&frame(2, 1), [1]);
    net.run_where(|flight| matches!(flight.message, Message::PrePrepare(_)));
    net.step(r(1), |pbft, cx| pbft.on_configured(cx, &configuration));
    let pbft = &net.node(1).pbft;
    assert!(!pbft.is_pending(ClientId(1), 1) && !pbft.is_pending(ClientId(1), 2));
    assert!(pbft.is_pending(ClientId(2), 1), "another client");
    assert!(pbft.frame(&named.digest()).is_some(), "a batch that others may execute names it");
    assert!(pbft.frame(&frame(1, 1).digest()).is_none());
}

#[test]
fn what_was_proposed_here_alone_is_let_go_when_another_batch_is_executed() {
    covers!("PBFT-R11");
    let mut net = Net::new(1);
    let (one, other) = (frame(1, 1), frame(2, 1));
    let missing = Digest([7; 32]);
    let alone = Batch { time: Time(WALL), frames: vec![other.digest(), missing] };
    net.tell(0, 3, proposal(0, 1, alone));
    net.step(r(3), |pbft, cx| pbft.on_known_frames(cx, vec![other.clone()]));
    assert!(net.node(3).pbft.frames.get(&other.digest()).is_some(), "it is wanted");
    net.request(&one, 0..4);
    net.run_where(|flight| flight.to != r(3) || !matches!(flight.message, Message::PrePrepare(_)));
    for _ in 0..3 {
        net.now += SMALL.status_interval;
        (0..4).for_each(|replica| net.fire(replica, Timer::Status));
        net.run();
    }
    let pbft = &net.node(3).pbft;
    assert_eq!(net.node(3).history(), [one.digest()]);
    assert!(pbft.frames.get(&other.digest()).is_none());
    assert!(!pbft.frames.wants(&missing, Seq(u64::MAX)));
}

#[test]
fn a_proposal_far_ahead_asks_for_nothing_and_is_voted_for_where_its_frames_are_here() {
    covers!("PBFT-R11");
    let far = SMALL.pipeline.max(4) + 1;
    let missing = Batch { time: Time(WALL), frames: vec![Digest([7; 32])] };
    let mut net = Net::new(1);
    net.tell(0, 1, proposal(0, far, missing));
    assert!(!net.node(1).pbft.frames.wants(&Digest([7; 32]), Seq(u64::MAX)));
    let one = frame(1, 1);
    net.request(&one, [1]);
    net.tell(0, 1, proposal(0, far + 1, batch(&[&one])));
    assert_eq!(net.sent(1, is_prepare), 4);
    // What is near is asked for at once, when a number before it is executed.
    let first = batch(&[&one]);
    net.tell(0, 1, proposal(0, 1, first.clone()));
    for from in [0, 2, 3] {
        net.tell(from, 1, Message::Commit(vote(0, 1, first.digest())));
    }
    net.run_where(|flight| flight.from == flight.to);
    assert_eq!(net.node(1).history(), [one.digest()]);
    assert!(net.node(1).pbft.frames.wants(&Digest([7; 32]), Seq(far)));
    assert!(net.node(1).timers.contains_key(&Timer::Fetch));
}

// PBFT-N6 "… and it has executed no other batch at that number."
#[test]
fn nobody_votes_against_what_it_has_executed() {
    covers!("PBFT-N6");
    let (one, other) = (frame(1, 1), frame(2, 1));
    for (executed, votes) in [(None, true), (Some(&one), true), (Some(&other), false)] {
        let mut net = Net::new(1);
        net.request(&one, [1]);
        net.step(r(1), |pbft, _| pbft.decided.extend(executed.map(|frame| (Seq(1), batch(&[frame])))));
        net.tell(0, 1, proposal(0, 1, batch(&[&one])));
        assert_eq!(net.sent(1, is_prepare) > 0, votes, "{executed:?}");
    }
}
