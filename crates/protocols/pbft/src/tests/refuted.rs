//! §4.4 and PBFT-V18: what a NEW-VIEW decided otherwise goes from P, as those who could bear witness to it forget.

use super::harness::{Net, SMALL, batch, covers, frame, r};
use crate::Timer;
use crate::message::{Body, Entry, Message, NewView, StableProof, ViewChange};
use std::sync::Arc;
use troth_core::Agreement;
use troth_types::{Batch, Digest, Seq, View};

fn entry(seq: u64, digest: Digest, view: u64) -> Entry {
    Entry { seq: Seq(seq), digest, view: View(view) }
}

/// What prepared at a replica, as it came to be there.
fn prepares(net: &mut Net, replica: u16, entries: &[Entry]) {
    let pbft = &mut net.node_mut(replica).pbft;
    pbft.prepared.extend(entries.iter().map(|entry| (entry.seq, *entry)));
}

/// The NEW-VIEW of view 1, which starts with this batch, by 0, 1 and 2, at whom it prepared.
fn start_with(net: &Net, first: &Batch) -> Message {
    let all = vec![entry(1, first.digest(), 0)];
    let change =
        ViewChange { to: View(1), stable: StableProof::default(), prepared: all.clone(), pre_prepared: all };
    let changes = (0..3).map(|from| match net.signed(from, Body::ViewChange(change.clone())) {
        Message::Signed(signed) => signed,
        _ => unreachable!("a body becomes a signed message"),
    });
    let (changes, base) = (changes.collect(), (Seq(0), Digest::ZERO));
    net.signed(1, Body::NewView(NewView { view: View(1), changes, base, chosen: vec![first.clone()] }))
}

/// What is left of P at a replica.
fn left(net: &Net, replica: u16) -> Vec<Entry> {
    net.node(replica).pbft.prepared.values().copied().collect()
}

#[test]
fn what_a_new_view_decided_otherwise_goes_from_p_and_nothing_else() {
    covers!("PBFT-V18");
    let first = batch(&[&frame(1, 1)]);
    let (this, other) = (first.digest(), Digest([9; 32]));
    let beyond = SMALL.window + 1;
    // It was away, and follows.
    let mut net = Net::new(1);
    prepares(&mut net, 3, &[entry(1, this, 0), entry(2, other, 0), entry(beyond, other, 0)]);
    let start = start_with(&net, &first);
    net.tell(2, 3, start);
    assert_eq!((net.node(3).view(), net.node(3).pbft.active), (View(1), true));
    assert_eq!(left(&net, 3), [entry(1, this, 0), entry(beyond, other, 0)], "nothing followed the first");
    // Another batch prepared at its number; it is in a later view.
    let mut net = Net::new(1);
    prepares(&mut net, 3, &[entry(1, other, 0), entry(2, other, 1), entry(3, other, 0)]);
    net.step(r(3), |pbft, cx| pbft.leave_view(cx, View(2)));
    let start = start_with(&net, &first);
    net.tell(2, 3, start);
    assert_eq!(net.node(3).view(), View(2), "it has left that one");
    assert_eq!(left(&net, 3), [entry(2, other, 1)], "what prepared in that view itself stays");
}

#[test]
fn the_start_of_a_view_that_is_over_is_looked_at_where_it_may_teach_and_once() {
    covers!("PBFT-V18");
    covers!("PBFT-R14");
    let first = batch(&[&frame(1, 1)]);
    let mut net = Net::new(1);
    let start = start_with(&net, &first);
    let worth = |net: &Net| net.node(3).pbft.is_worth_checking(&start);
    net.step(r(3), |pbft, cx| pbft.leave_view(cx, View(2)));
    assert!(!worth(&net), "nothing prepared here");
    prepares(&mut net, 3, &[entry(1, first.digest(), 0)]);
    assert!(!worth(&net), "it tells of nothing that did not commit");
    prepares(&mut net, 3, &[entry(2, first.digest(), 0)]);
    assert!(worth(&net));
    net.tell(2, 3, start.clone());
    assert!(!worth(&net), "it is known");
    // One that follows from nothing proves its primary faulty here as well.
    let mut net = Net::new(1);
    prepares(&mut net, 3, &[entry(1, first.digest(), 0)]);
    net.step(r(3), |pbft, cx| pbft.leave_view(cx, View(2)));
    let (changes, base, chosen) = (Vec::new(), (Seq(0), Digest::ZERO), Vec::new());
    let bad = net.signed(1, Body::NewView(NewView { view: View(1), changes, base, chosen }));
    net.tell(2, 3, bad);
    assert_eq!(net.node(3).accused(), [r(1)]);
    assert_eq!(left(&net, 3), [entry(1, first.digest(), 0)]);
}

#[test]
fn one_whose_witnesses_have_forgotten_keeps_no_view_from_beginning() {
    covers!("PBFT-V18");
    let mut net = Net::new(1);
    // A batch prepared at 3 alone, which was away ever since; the others have had so many views that none of their Q names
    // it any more.
    prepares(&mut net, 3, &[entry(1, Digest([9; 32]), 0)]);
    net.node_mut(3).down = true;
    (0..3).for_each(|replica| net.leave(replica));
    net.run();
    assert_eq!((net.node(0).view(), net.node(0).pbft.active), (View(1), true));
    // It comes back as another one goes and the view ends.
    net.node_mut(2).down = true;
    net.node_mut(3).down = false;
    let one = frame(1, 1);
    net.request(&one, [0, 1, 3]);
    [0, 1].into_iter().for_each(|replica| net.leave(replica));
    net.run();
    let works = |net: &Net| [0, 1, 3].into_iter().all(|replica| net.node(replica).pbft.active);
    for _ in 0..8 {
        if works(&net) {
            break;
        }
        for replica in [0, 1, 3] {
            net.now += SMALL.status_interval;
            net.fire(replica, Timer::Status);
            net.run();
        }
        for replica in [0, 1, 3] {
            if net.node(replica).timers.contains_key(&Timer::NewView) {
                net.fire(replica, Timer::NewView);
            }
        }
        net.run();
    }
    assert!(works(&net), "every view failed: {}", net.node(3).pbft.describe());
    net.run();
    for replica in [0, 1, 3] {
        assert_eq!(net.node(replica).history(), [one.digest()]);
    }
}

#[test]
fn what_went_from_p_is_not_in_it_after_a_restart() {
    covers!("PBFT-V18");
    let first = batch(&[&frame(1, 1)]);
    let mut net = Net::new(1);
    let stale = entry(2, Digest([9; 32]), 0);
    net.node_mut(3).records.push(crate::message::Record::Prepared(stale));
    prepares(&mut net, 3, &[stale]);
    let start = start_with(&net, &first);
    net.tell(2, 3, start);
    net.restart(3);
    assert_eq!((net.node(3).view(), left(&net, 3)), (View(1), Vec::new()));
    // One that leaves the view, and starts again, knows what it started with.
    net.leave(3);
    net.restart(3);
    assert_eq!(
        (net.node(3).pbft.active, &net.node(3).pbft.started.chosen[..]),
        (false, &[first.digest()][..])
    );
}

// A faulty primary may have its view start with what an earlier one refuted: its Q bears witness to whatever it likes.
#[test]
fn a_start_that_confirms_what_an_earlier_one_refuted_does_not_hide_that_one() {
    covers!("PBFT-V18");
    let mut net = Net::new(1);
    let (mine, other) = (batch(&[&frame(1, 1)]), batch(&[&frame(2, 1)]));
    prepares(&mut net, 3, &[entry(1, mine.digest(), 0)]);
    net.step(r(3), |pbft, cx| pbft.leave_view(cx, View(3)));
    let confirms = {
        let all = vec![entry(1, mine.digest(), 0)];
        let change = |prepared: &[Entry], pre_prepared: &[Entry]| ViewChange {
            to: View(2),
            stable: StableProof::default(),
            prepared: prepared.to_vec(),
            pre_prepared: pre_prepared.to_vec(),
        };
        let changes = [(1, change(&[], &[])), (2, change(&[], &all)), (3, change(&all, &all))];
        let changes = changes.map(|(from, change)| match net.signed(from, Body::ViewChange(change)) {
            Message::Signed(signed) => signed,
            _ => unreachable!("a body becomes a signed message"),
        });
        let (changes, base) = (changes.to_vec(), (Seq(0), Digest::ZERO));
        net.signed(2, Body::NewView(NewView { view: View(2), changes, base, chosen: vec![mine.clone()] }))
    };
    net.tell(2, 3, confirms.clone());
    assert!(net.node(3).accused().is_empty() && !net.node(3).pbft.is_worth_checking(&confirms));
    let start = start_with(&net, &other);
    assert!(net.node(3).pbft.is_worth_checking(&start));
    net.tell(0, 3, start);
    assert_eq!(left(&net, 3), []);
}

#[test]
fn the_last_start_is_shown_to_whoever_names_what_it_refutes_or_missed_it_and_to_nobody_else() {
    covers!("PBFT-V18");
    let mut net = Net::new(1);
    (0..4).for_each(|replica| net.leave(replica));
    net.run();
    let start = net.node(0).pbft.started.by.clone().expect("view 1 began with a NEW-VIEW");
    net.leave(0);
    let tells = |net: &mut Net, view: u64, prepared: &[Entry]| {
        let change = ViewChange {
            to: View(2),
            stable: StableProof::default(),
            prepared: prepared.to_vec(),
            pre_prepared: Vec::new(),
        };
        let change = net.signed(3, Body::ViewChange(change));
        net.node_mut(0).pbft.changes.remove(&r(3));
        net.tell(3, 0, change);
        net.wire.clear();
        for _ in 0..8 {
            net.now += SMALL.status_interval;
            let mut status = net.node(0).pbft.status_message();
            (status.view, status.active) = (View(view), false);
            net.tell(3, 0, Message::Status(status));
        }
        let is_start = |message: &Message| matches!(message, Message::Signed(it) if Arc::ptr_eq(it, &start));
        net.sent(0, is_start)
    };
    assert_eq!(tells(&mut net, 2, &[]), 0);
    assert_eq!(tells(&mut net, 2, &[entry(1, Digest([9; 32]), 1)]), 0, "that is of the view itself");
    assert_eq!(tells(&mut net, 2, &[entry(1, Digest([9; 32]), 0)]), 4, "as messages may be lost");
    let mut net_of_another = Net::new(1);
    (0..4).for_each(|replica| net_of_another.leave(replica));
    net_of_another.run();
    net_of_another.leave(0);
    net_of_another.wire.clear();
    let mut status = net_of_another.node(0).pbft.status_message();
    (status.view, status.active) = (View(0), true);
    net_of_another.now += SMALL.status_interval;
    net_of_another.tell(3, 0, Message::Status(status));
    let is_start = |message: &Message| matches!(message, Message::Signed(it) if it.new_view().is_some());
    assert_eq!(net_of_another.sent(0, is_start), 1, "it enters that view, and leaves it with the others");
}

#[test]
fn frames_of_what_q_forgot_outlive_a_restart() {
    covers!("PBFT-R9");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, 0..4);
    net.run_where(|flight| flight.from == flight.to || !matches!(flight.message, Message::Prepare(_)));
    let first = batch_at(&net, 2);
    for view in 1..=40 {
        net.node_mut(2).pbft.enter_pre_prepared(View(view), Seq(1), Digest([view as u8; 32]));
    }
    assert!(!net.node(2).pbft.pre_prepared[&Seq(1)].contains_key(&first), "Q has forgotten it");
    // As its log has it after it was written anew.
    let (_, records) = net.node(2).pbft.retained();
    net.node_mut(2).records = records;
    net.restart(2);
    assert!(!net.node(2).pbft.pre_prepared.get(&Seq(1)).is_some_and(|at| at.contains_key(&first)));
    assert!(net.node(2).pbft.frames.get(&one.digest()).is_some());
    assert!(!net.node(2).pbft.retained().1.is_empty());
}

/// The batch that was pre-prepared first at a replica.
fn batch_at(net: &Net, replica: u16) -> Digest {
    let at = &net.node(replica).pbft.pre_prepared[&Seq(1)];
    *at.keys().next().expect("something was pre-prepared")
}
