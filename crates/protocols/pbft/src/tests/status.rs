//! TOCS §5.2: status messages.

use super::harness::{Flight, Net, SMALL, covers, frame, r};
use crate::Timer;
use crate::message::{Message, PrePrepare, Status};
use troth_core::To;
use troth_types::{Batch, Digest, Seq, Time, View};

/// Everybody compares notes, as often as it takes.
fn compare_notes(net: &mut Net, rounds: usize) {
    for _ in 0..rounds {
        net.now += SMALL.status_interval;
        for replica in 0..net.group.n() as u16 {
            net.fire(replica, Timer::Status);
        }
        net.run();
    }
}

#[test]
fn whatever_was_lost_of_the_three_phases_is_sent_again() {
    covers!("PBFT-R7");
    let lost: [fn(&Message) -> bool; 4] = [
        |message| matches!(message, Message::PrePrepare(_)),
        |message| matches!(message, Message::Prepare(_)),
        |message| matches!(message, Message::Commit(_)),
        |message| matches!(message, Message::PrePrepare(_) | Message::Prepare(_) | Message::Commit(_)),
    ];
    for lost in lost {
        let mut net = Net::new(1);
        let one = frame(1, 1);
        net.request(&one, 0..4);
        // One's own copy does not travel.
        net.run_where(|flight| flight.from == flight.to || !lost(&flight.message));
        compare_notes(&mut net, 4);
        for replica in 0..4 {
            assert_eq!(net.node(replica).history(), [one.digest()], "replica {replica}");
        }
    }
}

#[test]
fn one_that_missed_a_stable_checkpoint_is_shown_its_proof() {
    covers!("PBFT-R7");
    let mut net = Net::new(1);
    net.node_mut(3).down = true;
    for number in 1..=SMALL.interval {
        net.order(&frame(number, 1));
    }
    assert_eq!(net.node(0).pbft.stable.0, Seq(SMALL.interval));
    net.node_mut(3).down = false;
    net.request(&frame(9, 1), [3]);
    compare_notes(&mut net, 2);
    assert_eq!(net.node(3).pbft.stable.0, Seq(SMALL.interval));
}

#[test]
fn frames_that_do_not_come_are_asked_of_all() {
    covers!("PBFT-R5");
    let mut net = Net::new(1);
    let batch = Batch { time: Time(super::harness::WALL), frames: vec![Digest([3; 32])] };
    net.tell(0, 1, Message::PrePrepare(PrePrepare { view: View(0), seq: Seq(1), batch }));
    net.fire(1, Timer::Status);
    assert!(net.node(1).frames_asked.contains(&(To::Others, vec![Digest([3; 32])])));
}

#[test]
fn a_status_is_answered_a_few_times_in_an_interval_and_no_more() {
    covers!("PBFT-R6");
    let mut net = Net::new(1);
    net.request(&frame(1, 1), 0..4);
    net.run_where(|flight| flight.from == flight.to);
    net.now += SMALL.status_interval;
    let status = Status {
        view: View(0),
        active: true,
        stable: Seq(0),
        executed: Seq(0),
        slots: Vec::new(),
        changes: 0,
        wishes: false,
    };
    net.tell(3, 0, Message::Status(status.clone()));
    let first = net.wire.len();
    assert!(first > 0);
    net.tell(3, 0, Message::Status(status.clone()));
    assert_eq!(net.wire.len(), first);
    assert_eq!(net.node(0).ignored(), 1);
    net.now += SMALL.status_interval;
    net.tell(3, 0, Message::Status(status));
    assert!(net.wire.len() > first);
    assert!(net.wire.iter().all(|flight| flight.to == r(3)));
}

#[test]
fn batches_are_shown_a_few_times_in_an_interval_and_no_more() {
    covers!("PBFT-R12");
    let mut net = Net::new(1);
    net.order(&frame(1, 1));
    let known = *net.node(0).pbft.batches.keys().next().expect("it was executed");
    let ask = |net: &mut Net, digest: Digest| {
        net.tell(3, 0, Message::FetchBatches(vec![digest]));
        net.sent(0, |message| matches!(message, Message::Batches(_)))
    };
    // What is not here costs no answer, and takes none away from what is.
    assert_eq!(ask(&mut net, Digest([9; 32])), 0);
    assert_eq!(ask(&mut net, known), 1);
    assert_eq!(ask(&mut net, known), 1, "it was shown just now");
    // One of them takes the time of one.
    net.now += SMALL.status_interval / 256;
    assert_eq!(ask(&mut net, known), 2);
}

/// Orders a client's next request under a primary that leaves replica 3 out.
fn order_without_3(net: &mut Net, number: u64) {
    net.request(&frame(1, number), 0..4);
    net.run_where(|flight| flight.to != r(3) || !matches!(flight.message, Message::PrePrepare(_)));
}

#[test]
fn who_had_to_ask_for_a_batch_is_passed_the_next_ones() {
    covers!("PBFT-R15");
    let mut net = Net::new(1);
    let executed = |net: &Net| net.node(3).history().len();
    let asked = |net: &Net, seq| net.node(3).pbft.slots.get(&Seq(seq)).is_some_and(|slot| slot.asked_helper);
    order_without_3(&mut net, 1);
    assert_eq!(executed(&net), 0);
    net.fire(3, Timer::Fetch);
    net.run();
    let ignored = net.node(3).ignored();
    order_without_3(&mut net, 2);
    assert_eq!((executed(&net), asked(&net, 2)), (2, false), "nobody was asked");
    assert_eq!(net.node(3).ignored(), ignored, "what two pass on is no repetition");
    // Long after it had to ask, nothing is passed on; who helped is asked as it commits.
    net.now += 2 * SMALL.status_interval;
    order_without_3(&mut net, 3);
    assert_eq!((executed(&net), asked(&net, 3)), (3, true));
    order_without_3(&mut net, 4);
    assert_eq!((executed(&net), asked(&net, 4)), (4, false));
    // The primary shows everything again, and in the end it waits for what was not shown as in the beginning.
    (5..69).for_each(|number| net.order(&frame(1, number)));
    assert_eq!(net.node(3).pbft.left_out, None);
    net.now += 2 * SMALL.status_interval;
    order_without_3(&mut net, 69);
    assert_eq!(executed(&net), 68);
}

#[test]
fn what_f_plus_1_backups_vote_for_the_primary_has_proposed() {
    covers!("PBFT-R16");
    let mut net = Net::new(1);
    // It shows replica 3 neither proposals nor votes, and 1 and 2 alone commit to nothing with it.
    let shown = |flight: &Flight| flight.from != r(0) || flight.to != r(3);
    net.request(&frame(1, 1), 0..4);
    net.run_where(shown);
    net.fire(3, Timer::Fetch);
    net.run_where(shown);
    let node = net.node(3);
    assert_eq!(node.history(), [frame(1, 1).digest()], "by its own COMMIT and those of two others");
    assert!(node.pbft.slots[&Seq(1)].prepared);
    // Votes of f backups show nothing.
    let batch = Batch { time: Time(super::harness::WALL), frames: vec![frame(1, 2).digest()] };
    let vote = crate::Vote { view: View(0), seq: Seq(2), digest: batch.digest() };
    net.step(r(3), |pbft, _| drop(pbft.batches.insert(batch.digest(), batch.clone())));
    net.tell(1, 3, Message::Prepare(vote));
    assert!(net.node(3).pbft.slots[&Seq(2)].proposal.is_none());
    net.tell(2, 3, Message::Prepare(vote));
    assert!(net.node(3).pbft.slots[&Seq(2)].proposal.is_some());
}

#[test]
fn a_proposal_that_comes_when_f_plus_1_have_committed_leaves_a_backup_out_all_the_same() {
    covers!("PBFT-R15");
    let mut net = Net::new(1);
    let late = |flight: &Flight| flight.to == r(3) && matches!(flight.message, Message::PrePrepare(_));
    net.request(&frame(1, 1), 0..4);
    net.run_where(|flight| !late(flight));
    let shown = net.node(0).pbft.slots[&Seq(1)].proposal.clone().expect("it was proposed").1;
    net.tell(0, 3, Message::PrePrepare(PrePrepare { view: View(0), seq: Seq(1), batch: shown }));
    assert_eq!(net.node(3).pbft.left_out.map(|(_, since)| since), Some(0));
    net.order(&frame(1, 2));
    assert_eq!(net.node(3).pbft.left_out.map(|(_, since)| since), Some(1));
}

#[test]
fn frames_that_the_primary_keeps_back_are_asked_of_all_before_the_next_status() {
    covers!("PBFT-R5");
    let mut net = Net::new(1);
    let batch = Batch { time: Time(super::harness::WALL), frames: vec![Digest([3; 32])] };
    net.tell(0, 1, Message::PrePrepare(PrePrepare { view: View(0), seq: Seq(1), batch }));
    let asked = |net: &Net, to| net.node(1).frames_asked.contains(&(to, vec![Digest([3; 32])]));
    net.fire(1, Timer::Fetch);
    assert!(asked(&net, To::One(r(0))) && !asked(&net, To::Others));
    net.now = net.node(1).timers[&Timer::Fetch].0.max(net.now);
    net.fire(1, Timer::Fetch);
    assert!(asked(&net, To::Others));
}

#[test]
fn no_more_is_passed_on_than_would_be_shown() {
    covers!("PBFT-R12");
    let mut net = Net::new(1);
    let batch = Batch { time: Time(super::harness::WALL), frames: vec![frame(1, 1).digest()] };
    net.step(r(1), |pbft, cx| {
        pbft.helped.insert(r(3), Time(u64::MAX));
        pbft.batches.insert(batch.digest(), batch.clone());
        (0..70).for_each(|_| pbft.pass_on(cx, Seq(1), &batch.digest()));
    });
    assert_eq!(net.sent(1, |message| matches!(message, Message::Batches(_))), 64);
}

#[test]
fn passing_on_has_bounds_of_its_own() {
    covers!("PBFT-R15");
    let mut net = Net::new(1);
    let [one, two] = [1, 2]
        .map(|number| Batch { time: Time(super::harness::WALL), frames: vec![frame(1, number).digest()] });
    let digest = one.digest();
    let shown = |net: &Net| net.sent(1, |message| matches!(message, Message::Batches(_)));
    let held = |net: &Net| net.node(3).pbft.batches.contains_key(&digest);
    net.step(r(1), |pbft, cx| {
        pbft.helped.insert(r(3), Time(u64::MAX));
        pbft.batches.insert(digest, one.clone());
        pbft.pass_on(cx, Seq(SMALL.window), &digest);
    });
    assert_eq!(shown(&net), 0, "it is far ahead");
    net.step(r(1), |pbft, cx| pbft.pass_on(cx, Seq(1), &digest));
    net.tell(3, 1, Message::FetchBatches(vec![digest]));
    assert_eq!(shown(&net), 2, "what is passed on takes no answer's place");
    net.step(r(3), |pbft, cx| pbft.ask_for_batches(cx, To::One(r(1)), vec![Digest([9; 32])]));
    net.tell(1, 3, Message::Prepare(crate::Vote { view: View(0), seq: Seq(1), digest }));
    net.tell(1, 3, Message::Batches(vec![one.clone(), two]));
    assert!(!held(&net), "one to a message");
    net.tell(1, 3, Message::Batches(vec![one.clone()]));
    assert!(held(&net));
    net.step(r(3), |pbft, cx| pbft.leave_view(cx, View(1)));
    assert!(!held(&net), "it goes with the view");
}

#[test]
fn nothing_is_taken_of_one_who_was_not_asked_or_did_not_vote_for_it_or_from_far_ahead() {
    covers!("PBFT-R15");
    let mut net = Net::new(1);
    let held = |net: &Net, batch: &Batch| net.node(3).pbft.batches.contains_key(&batch.digest());
    let batch = |number| Batch { time: Time(super::harness::WALL), frames: vec![frame(1, number).digest()] };
    let tell = |net: &mut Net, seq: u64, batch: &Batch| {
        let vote = crate::Vote { view: View(0), seq: Seq(seq), digest: batch.digest() };
        net.tell(1, 3, Message::Prepare(vote));
        net.tell(1, 3, Message::Batches(vec![batch.clone()]));
    };
    tell(&mut net, 1, &batch(1));
    assert!(!held(&net, &batch(1)), "it was asked for nothing");
    net.step(r(3), |pbft, cx| pbft.ask_for_batches(cx, To::One(r(1)), vec![Digest([9; 32])]));
    net.tell(1, 3, Message::Batches(vec![batch(2)]));
    assert!(!held(&net, &batch(2)), "it did not vote for it");
    let far = SMALL.window + 1;
    tell(&mut net, far, &batch(3));
    assert!(!held(&net, &batch(3)), "it is far ahead");
    tell(&mut net, 2, &batch(4));
    assert!(held(&net, &batch(4)));
    let ignored = net.node(3).ignored();
    net.tell(1, 3, Message::Batches(vec![batch(4)]));
    assert_eq!(net.node(3).ignored(), ignored + 1, "it was passed on before");
    net.now += 2 * SMALL.status_interval;
    tell(&mut net, 3, &batch(5));
    assert!(!held(&net, &batch(5)), "that was long ago");
}

#[test]
fn what_is_passed_on_goes_with_what_is_stable() {
    covers!("PBFT-R15");
    let mut net = Net::new(1);
    for number in 1..=4 * SMALL.window {
        // Replica 1 helps, and votes for something else for each number before it votes as the others do.
        let other = Batch { time: Time(super::harness::WALL), frames: vec![frame(2, number).digest()] };
        let vote = crate::Vote { view: View(0), seq: Seq(number), digest: other.digest() };
        net.step(r(3), |pbft, cx| pbft.ask_for_batches(cx, To::One(r(1)), vec![Digest([9; 32])]));
        net.tell(1, 3, Message::Prepare(vote));
        net.tell(1, 3, Message::Batches(vec![other.clone()]));
        assert!(net.node(3).pbft.passed.contains(&other.digest()), "{number}");
        net.order(&frame(1, number));
    }
    let node = &net.node(3).pbft;
    assert_eq!(node.delivered, Seq(4 * SMALL.window));
    let above = node.delivered.0 - node.stable.0.0;
    assert_eq!(node.passed.len() as u64, above, "what is above the stable checkpoint is kept");
}

#[test]
fn a_batch_that_f_plus_1_voted_for_and_the_primary_did_not_show_is_asked_for_soon() {
    covers!("PBFT-R8");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, 0..4);
    net.run_where(|flight| flight.to != r(3) || !matches!(flight.message, Message::PrePrepare(_)));
    assert!(net.node(3).history().is_empty() && net.node(0).history() == [one.digest()]);
    // Before the next STATUS.
    let due = net.node(3).timers[&Timer::Fetch];
    assert!(due < net.node(3).timers[&Timer::Status]);
    net.fire(3, Timer::Fetch);
    net.run();
    assert_eq!(net.node(3).history(), [one.digest()]);
}
