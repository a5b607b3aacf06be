//! §4.4 and PBFT-V19: what a view starts with is promised by whoever enters it, whatever comes next.

use super::harness::{Flight, Net, SMALL, covers, frame, r};
use crate::message::{Body, Entry, Message, Record, StableProof, Status, ViewChange};
use crate::{Pbft, Timer};
use troth_core::Agreement;
use troth_types::{Digest, Seq, View};

/// A batch that prepared everywhere in view 0, and the wire after 0, 1 and 3 have left for view 1, and 2 for view 2.
fn amid_a_view_change() -> (Net, Digest) {
    let mut net = Net::new(1);
    net.request(&frame(1, 1), 0..4);
    net.run_where(|flight| flight.from == flight.to || !matches!(flight.message, Message::Commit(_)));
    let digest = net.node(1).pbft.prepared[&Seq(1)].digest;
    [0, 1, 3].into_iter().for_each(|replica| net.leave(replica));
    let (prepared, pre_prepared) = (Vec::new(), Vec::new());
    let change = ViewChange { to: View(2), stable: StableProof::default(), prepared, pre_prepared };
    for to in [1, 3] {
        let change = net.signed(2, Body::ViewChange(change.clone()));
        net.tell(2, to, change);
    }
    (net, digest)
}

/// What one has for another on the wire arrives.
fn arrives(net: &mut Net, from: u16, to: u16) {
    let (arriving, rest): (Vec<Flight>, Vec<Flight>) =
        net.wire.drain(..).partition(|flight| (flight.from, flight.to) == (r(from), r(to)));
    net.wire.extend(rest);
    for flight in arriving {
        net.tell(from, to, flight.message);
    }
}

fn is_new_view(message: &Message) -> bool {
    matches!(message, Message::Signed(signed) if signed.new_view().is_some())
}

/// A status of a replica that is in this view.
fn status(net: &Net, view: u64, wishes: bool) -> Message {
    let status = net.node(2).pbft.status_message();
    Message::Status(Status { view: View(view), active: true, wishes, ..status })
}

/// The view in which a replica promised a batch at 1 last.
fn promised(pbft: &Pbft, digest: &Digest) -> Option<View> {
    pbft.pre_prepared.get(&Seq(1))?.get(digest).copied()
}

#[test]
fn who_leaves_a_view_in_the_step_in_which_it_enters_it_names_what_it_started_with() {
    covers!("PBFT-V19");
    let (mut net, digest) = amid_a_view_change();
    // With the one that is beyond, f+1 would have each of them leave the view as soon as it is in it.
    for replica in [1, 3] {
        net.node_mut(replica).pbft.wished_by.insert(r(0));
    }
    arrives(&mut net, 3, 1);
    assert_eq!(net.sent(1, is_new_view), 0);
    arrives(&mut net, 0, 1);
    assert_eq!(net.sent(1, is_new_view), 3, "its vote is on its way");
    arrives(&mut net, 1, 3);
    let named = Entry { seq: Seq(1), digest, view: View(1) };
    for replica in [1, 3] {
        let pbft = &net.node(replica).pbft;
        assert_eq!((pbft.view, pbft.active), (View(2), false), "replica {replica}");
        let change = pbft.changes[&r(replica)].view_change().expect("it left by one");
        assert_eq!(change.pre_prepared, [named], "replica {replica}");
    }
}

#[test]
fn a_wish_for_the_next_view_counts_once_the_view_has_begun_here() {
    covers!("PBFT-V19");
    let (mut net, digest) = amid_a_view_change();
    let wish = status(&net, 1, true);
    net.tell(0, 1, wish.clone());
    arrives(&mut net, 3, 1);
    arrives(&mut net, 0, 1);
    let pbft = &net.node(1).pbft;
    assert_eq!((pbft.view, pbft.active), (View(1), true), "one has left it, and nobody wishes to yet");
    assert_eq!(promised(pbft, &digest), Some(View(1)));
    net.tell(0, 1, wish);
    assert_eq!(net.node(1).view(), View(2), "now f+1 have enough of it");
}

/// The log of the primary of view 1, to which others showed all that the view starts with; with the batch and its frame.
fn log_of_a_primary_that_was_left_out() -> (Net, Digest, troth_core::VerifiedFrame) {
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, [0, 2, 3]);
    net.run_where(|flight| flight.to != r(1) && flight.from != r(1));
    let digest = net.node(2).pbft.prepared[&Seq(1)].digest;
    net.node_mut(0).down = true;
    (1..4).for_each(|replica| net.leave(replica));
    net.run();
    net.fire(1, Timer::Fetch);
    net.run_where(|flight| flight.to == r(1) || flight.from == r(1));
    net.step(r(1), |pbft, cx| pbft.on_known_frames(cx, vec![one.clone()]));
    assert_eq!(promised(&net.node(1).pbft, &digest), Some(View(1)));
    net.wire.clear();
    (net, digest, one)
}

/// How often the restarted primary shows its NEW-VIEW to one that is behind.
fn shows(net: &mut Net) -> usize {
    net.wire.clear();
    net.now += SMALL.status_interval;
    let behind = status(net, 0, false);
    net.tell(2, 1, behind);
    net.sent(1, is_new_view)
}

#[test]
fn a_log_that_is_cut_anywhere_has_the_promise_where_it_has_the_view() {
    covers!("PBFT-V19");
    let (mut net, digest, _) = log_of_a_primary_that_was_left_out();
    let log = net.node(1).records.clone();
    let entered = log.iter().position(|record| matches!(record, Record::NewView(_)));
    let entered = entered.expect("view 1 began");
    for cut in 0..=log.len() {
        net.node_mut(1).records = log[..cut].to_vec();
        net.restart(1);
        let pbft = &net.node(1).pbft;
        let works = (pbft.view, pbft.active) == (View(1), true);
        assert_eq!(works, cut > entered, "cut at {cut}");
        assert_eq!(promised(pbft, &digest), works.then_some(View(1)), "cut at {cut}");
        assert_eq!(shows(&mut net), usize::from(works), "cut at {cut}");
    }
}

#[test]
fn a_primary_shows_no_new_view_of_its_own_that_it_has_yet_to_promise() {
    covers!("PBFT-V19");
    let (mut net, digest, one) = log_of_a_primary_that_was_left_out();
    net.node_mut(1)
        .records
        .retain(|record| !matches!(record, Record::Frame(_) | Record::PrePrepared(..) | Record::Prepared(_)));
    net.restart(1);
    assert!(net.node(1).pbft.active);
    assert_eq!((promised(&net.node(1).pbft, &digest), shows(&mut net)), (None, 0));
    // Nor once it has left the view.
    let before = (net.node(1).pbft.clone(), net.node(1).records.clone());
    net.leave(1);
    assert_eq!(shows(&mut net), 0);
    (net.node_mut(1).pbft, net.node_mut(1).records) = before;
    net.step(r(1), |pbft, cx| pbft.on_known_frames(cx, vec![one.clone()]));
    assert_eq!((promised(&net.node(1).pbft, &digest), shows(&mut net)), (Some(View(1)), 1));
    net.leave(1);
    assert_eq!(shows(&mut net), 1);
}

#[test]
fn another_s_new_view_is_shown_by_whoever_has_yet_to_promise_its_start() {
    covers!("PBFT-V19");
    let (mut net, _) = amid_a_view_change();
    arrives(&mut net, 3, 1);
    arrives(&mut net, 0, 1);
    arrives(&mut net, 1, 3);
    assert!(net.node(3).pbft.active);
    // As where it lacks the frames.
    net.node_mut(3).pbft.pre_prepared.clear();
    net.wire.clear();
    let behind = status(&net, 0, false);
    net.tell(0, 3, behind);
    assert_eq!(net.sent(3, is_new_view), 1);
}
