//! §4.4: view changes.

use super::harness::{Flight, Net, SMALL, WALL, batch, covers, frame, r};
use crate::Timer;
use crate::message::{Body, Entry, Message, NewView, PrePrepare, Record, StableProof, ViewChange};
use troth_core::Agreement;
use troth_types::{Digest, Seq, Time, View};

fn is_view_change(message: &Message) -> bool {
    matches!(message, Message::Signed(signed) if signed.view_change().is_some())
}

fn is_new_view(message: &Message) -> bool {
    matches!(message, Message::Signed(signed) if signed.new_view().is_some())
}

fn to_view(view: u64) -> ViewChange {
    let (prepared, pre_prepared) = (Vec::new(), Vec::new());
    ViewChange { to: View(view), stable: StableProof::default(), prepared, pre_prepared }
}

fn moves(net: &Net, from: u16, view: u64) -> Message {
    net.signed(from, Body::ViewChange(to_view(view)))
}

/// A primary that is down, and everybody's patience at its end.
fn change_of_view(net: &mut Net) {
    for replica in 1..net.group.n() as u16 {
        net.fire(replica, Timer::Request);
    }
    net.run();
}

#[test]
fn a_silent_primary_is_replaced_and_the_request_executed() {
    covers!("PBFT-V1");
    covers!("PBFT-V2");
    covers!("PBFT-V10");
    covers!("PBFT-V12");
    let mut net = Net::new(1);
    net.node_mut(0).down = true;
    let one = frame(1, 1);
    net.request(&one, 1..4);
    change_of_view(&mut net);
    for replica in 1..4 {
        assert_eq!(net.node(replica).view(), View(1));
        assert_eq!(net.node(replica).history(), [one.digest()]);
        assert!(!net.node(replica).timers.contains_key(&Timer::Request), "nothing waits any more");
    }
}

#[test]
fn the_timer_runs_for_the_oldest_request_and_starts_anew_for_nothing_else() {
    covers!("PBFT-V1");
    let mut net = Net::new(1);
    net.request(&frame(1, 1), [1]);
    let first = net.node(1).timers[&Timer::Request];
    net.now += 500_000;
    net.request(&frame(2, 1), 0..4);
    net.run();
    assert_eq!(net.node(1).executed.len(), 1, "another client's was executed");
    assert_eq!(net.node(1).timers[&Timer::Request], first);
}

#[test]
fn a_client_whose_executed_requests_give_way_takes_no_wish_back() {
    covers!("PBFT-V1");
    let mut net = Net::new(1);
    let window = SMALL.limits.client_window;
    net.order(&frame(1, 1));
    net.step(r(1), |pbft, cx| pbft.order_again(cx, vec![frame(1, 1)]));
    net.request(&frame(2, 1), [1]);
    net.fire(1, Timer::Request);
    assert!(net.node(1).pbft.wishes());
    net.request(&frame(1, 1 + window), [1]);
    assert!(net.node(1).pbft.wishes(), "another one waits, and as long");
    assert!(!net.node(1).timers.contains_key(&Timer::Request));
    net.order(&frame(2, 1));
    assert!(!net.node(1).pbft.wishes() && net.node(1).timers.contains_key(&Timer::Request));
}

#[test]
fn what_gives_way_while_its_replica_is_behind_leaves_the_next_one_its_own_time() {
    covers!("PBFT-V1");
    for over in [false, true] {
        let mut net = Net::new(1);
        net.order(&frame(1, 1));
        net.step(r(1), |pbft, cx| pbft.order_again(cx, vec![frame(1, 1)]));
        let first = net.node(1).timers[&Timer::Request];
        net.now += if over { 0 } else { SMALL.request_timeout / 4 };
        net.request(&frame(2, 1), [1]);
        net.step(r(1), |pbft, _| pbft.repairing = true);
        if over {
            net.fire(1, Timer::Request);
        }
        net.now += SMALL.request_timeout / 4;
        net.request(&frame(1, 1 + SMALL.limits.client_window), [1]);
        net.step(r(1), |pbft, cx| {
            pbft.repairing = false;
            pbft.progress(cx);
        });
        let due = net.node(1).timers[&Timer::Request];
        if over {
            assert!(due.0 <= net.now, "it came as early, and as long ago");
        } else {
            assert_eq!(due, first.after(SMALL.request_timeout / 4), "since it came");
        }
    }
}

#[test]
fn what_committed_anywhere_keeps_its_number() {
    covers!("PBFT-V12");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, 0..4);
    // Only replica 3 hears that it committed.
    let quiet = |flight: &Flight| matches!(flight.message, Message::Commit(_)) && flight.to != r(3);
    net.run_where(|flight| !quiet(flight));
    assert_eq!(net.node(3).executed.len(), 1);
    net.node_mut(0).down = true;
    for replica in 1..3 {
        net.fire(replica, Timer::Request);
    }
    net.run();
    assert_eq!(net.node(3).view(), View(1), "f+1 have left, so it follows");
    for replica in 1..4 {
        assert_eq!(net.node(replica).history(), [one.digest()]);
        assert_eq!(net.node(replica).executed_up_to(), Seq(1));
    }
}

#[test]
fn nothing_of_a_view_counts_for_one_that_left_it() {
    covers!("PBFT-V2");
    covers!("PBFT-R3");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, [1]);
    net.node_mut(1).trail.clear();
    net.leave(1);
    assert_eq!(net.node(1).trail, ["persist", "sign"]);
    assert!(net.node(1).records.contains(&Record::Leaving(to_view(1))));
    let proposal = PrePrepare { view: View(0), seq: Seq(1), batch: batch(&[&one]) };
    net.tell(0, 1, Message::PrePrepare(proposal));
    assert!(net.node(1).pbft.slots.is_empty());
}

#[test]
fn a_view_change_tells_what_prepared_and_what_was_pre_prepared() {
    covers!("PBFT-V2");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, 0..4);
    net.run_where(|flight| !matches!(flight.message, Message::Commit(_)));
    net.leave(2);
    let entry = Entry { seq: Seq(1), digest: batch_at(&net, 2, 1), view: View(0) };
    let mine = net.node(2).pbft.changes[&r(2)].view_change().cloned();
    let expected = ViewChange { prepared: vec![entry], pre_prepared: vec![entry], ..to_view(1) };
    assert_eq!(mine, Some(expected));
}

fn batch_at(net: &Net, replica: u16, seq: u64) -> Digest {
    net.node(replica).pbft.prepared[&Seq(seq)].digest
}

#[test]
fn q_keeps_a_bounded_number_of_batches_for_a_number() {
    covers!("PBFT-V3");
    let mut net = Net::new(1);
    let pbft = &mut net.node_mut(1).pbft;
    let digest = |view: u64| Digest([view as u8; 32]);
    pbft.prepared.insert(Seq(1), Entry { seq: Seq(1), digest: digest(1), view: View(1) });
    for view in 1..=40 {
        pbft.enter_pre_prepared(View(view), Seq(1), digest(view));
    }
    let kept: Vec<View> = pbft.pre_prepared[&Seq(1)].values().copied().collect();
    assert_eq!(kept.len(), 16);
    assert!(kept.contains(&View(1)), "what prepared here stays");
    assert!(kept.contains(&View(40)) && !kept.contains(&View(2)), "else the oldest goes");
}

#[test]
fn f_plus_1_that_left_are_followed_to_the_smallest_of_their_views() {
    covers!("PBFT-V4");
    let mut net = Net::new(1);
    let far = moves(&net, 3, u64::MAX);
    net.tell(3, 1, far);
    assert_eq!(net.node(1).view(), View(0), "one alone moves nobody");
    let near = moves(&net, 2, 5);
    net.tell(2, 1, near);
    assert_eq!(net.node(1).view(), View(5));
    assert_eq!(net.sent(1, is_view_change), 3);
}

#[test]
fn a_view_change_with_impossible_sets_convicts_its_sender() {
    covers!("PBFT-V5");
    let mut net = Net::new(1);
    let entry = Entry { seq: Seq(1), digest: Digest([1; 32]), view: View(1) };
    let bad = Body::ViewChange(ViewChange { prepared: vec![entry], ..to_view(1) });
    let bad = net.signed(3, bad);
    net.tell(3, 1, bad);
    assert_eq!(net.node(1).accused(), [r(3)]);
    assert!(net.node(1).pbft.changes.is_empty());
}

#[test]
fn a_primary_without_a_batch_that_it_must_carry_over_asks_for_it() {
    covers!("PBFT-V10");
    covers!("PBFT-R8");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    net.request(&one, [0, 2, 3]);
    // The next primary hears nothing of it.
    net.run_where(|flight| flight.to != r(1) && flight.from != r(1));
    net.node_mut(0).down = true;
    assert_eq!(net.node(2).executed.len(), 1, "three suffice");
    for replica in 1..4 {
        let next = View(1);
        net.step(r(replica), |pbft, cx| pbft.leave_view(cx, next));
    }
    net.run_where(|flight| !matches!(flight.message, Message::Batches(_)));
    assert!(!net.node(1).pbft.active, "it has no such batch");
    assert_eq!(net.node(1).pbft.lacking.len(), 1);
    net.fire(1, Timer::Fetch);
    net.run();
    assert!(!net.node(1).pbft.active, "it has the batch and not its frame");
    net.step(r(1), |pbft, cx| troth_core::Agreement::on_known_frames(pbft, cx, vec![one.clone()]));
    net.run();
    for replica in 1..4 {
        assert_eq!(net.node(replica).view(), View(1));
        assert_eq!(net.node(replica).history(), [one.digest()]);
    }
}

#[test]
fn a_new_view_that_does_not_follow_convicts_its_primary() {
    covers!("PBFT-V11");
    let changes = |net: &Net, from: &[u16], view: u64| -> Vec<_> {
        from.iter()
            .map(|from| match moves(net, *from, view) {
                Message::Signed(message) => message,
                _ => unreachable!("a body becomes a signed message"),
            })
            .collect()
    };
    let base = (Seq(0), Digest::ZERO);
    let invented = batch(&[&frame(1, 1)]);
    let cases: Vec<(u16, &[u16], u64, Vec<troth_types::Batch>)> = vec![
        (2, &[0, 1, 2], 1, Vec::new()),
        (1, &[0, 1], 1, Vec::new()),
        (1, &[0, 1, 1], 1, Vec::new()),
        (1, &[0, 1, 2], 2, Vec::new()),
        (1, &[0, 1, 2], 1, vec![invented]),
    ];
    for (from, senders, of, chosen) in cases {
        let mut net = Net::new(1);
        let changes = changes(&net, senders, of);
        let bad = Body::NewView(NewView { view: View(1), changes, base, chosen });
        let bad = net.signed(from, bad);
        net.tell(from, 3, bad);
        assert_eq!(net.node(3).accused(), [r(from)]);
        assert_eq!(net.node(3).view(), View(0));
    }
    let mut net = Net::new(1);
    let changes = changes(&net, &[0, 1, 2], 1);
    let good = net.signed(1, Body::NewView(NewView { view: View(1), changes, base, chosen: Vec::new() }));
    // It convinces whoever passes it on, and one that has not left its view.
    net.tell(2, 3, good);
    assert_eq!((net.node(3).view(), net.node(3).pbft.active), (View(1), true));
}

#[test]
fn a_new_view_is_durable_before_anybody_hears_of_a_vote_in_it() {
    covers!("PBFT-R4");
    let mut net = Net::new(1);
    net.node_mut(0).down = true;
    net.request(&frame(1, 1), 1..4);
    net.node_mut(2).trail.clear();
    change_of_view(&mut net);
    let entered = net.node(2).records.iter().position(|record| matches!(record, Record::NewView(_)));
    let voted = net
        .node(2)
        .records
        .iter()
        .position(|record| matches!(record, Record::PrePrepared(view, ..) if *view == View(1)));
    assert!(entered.is_some() && entered < voted);
}

#[test]
fn a_primary_that_lets_no_agreed_time_pass_is_left() {
    covers!("PBFT-V13");
    let mut net = Net::new(1);
    net.node_mut(1).deadline = Some(Time(WALL + 10_000));
    net.order(&frame(1, 1));
    assert!(net.node(1).timers.contains_key(&Timer::Deadline));
    net.now += 2_000_000;
    net.fire(1, Timer::Overdue);
    assert_eq!((net.node(1).pbft.wishes(), net.node(1).view()), (true, View(0)));
    net.node_mut(2).pbft.overdue = true;
    net.fire(2, Timer::Status);
    net.run();
    assert_eq!(net.node(1).view(), View(1), "f+1 wish it");
}

#[test]
fn the_wait_for_a_new_view_begins_when_a_quorum_has_left() {
    covers!("PBFT-V14");
    let mut net = Net::new(1);
    net.step(r(3), |pbft, cx| pbft.leave_view(cx, View(1)));
    let two = moves(&net, 2, 1);
    net.tell(2, 3, two);
    assert!(!net.node(3).timers.contains_key(&Timer::NewView), "two are waiting");
    // One that is beyond will not come back to wait here.
    let beyond = moves(&net, 0, 2);
    net.tell(0, 3, beyond);
    assert!(net.node(3).timers.contains_key(&Timer::NewView));
    net.fire(3, Timer::NewView);
    assert_eq!(net.node(3).view(), View(2));
}

#[test]
fn a_view_change_is_sent_until_it_has_come() {
    covers!("PBFT-V15");
    let mut net = Net::new(1);
    net.request(&frame(1, 1), 1..4);
    net.node_mut(0).down = true;
    for replica in 1..4 {
        net.leave(replica);
    }
    net.run_where(|_| false);
    for _ in 0..2 {
        net.now += SMALL.status_interval;
        for replica in 1..4 {
            net.fire(replica, Timer::Status);
        }
        net.run();
    }
    for replica in 1..4 {
        assert_eq!(net.node(replica).executed.len(), 1);
    }
    net.fire(1, Timer::Status);
    net.wire.retain(|flight| is_view_change(&flight.message) || is_new_view(&flight.message));
    assert!(net.wire.is_empty(), "whoever has it is not sent it");
}

#[test]
fn one_that_is_behind_waits_for_itself_and_leaves_no_view() {
    covers!("PBFT-V1");
    let mut net = Net::new(1);
    net.node_mut(3).down = true;
    for number in 1..=SMALL.interval {
        net.order(&frame(number, 1));
    }
    net.node_mut(3).down = false;
    // It hears of a request that the others executed long ago, and only then that it is behind.
    net.request(&frame(1, 1), [3]);
    assert!(net.node(3).timers.contains_key(&Timer::Request));
    let proof = Message::Stable(net.node(0).pbft.stable_proof.clone());
    net.tell(0, 3, proof);
    net.fire(3, Timer::Request);
    assert!(!net.node(3).pbft.wishes(), "what it waits for may be in what it lacks");
    assert!(!net.node(3).timers.contains_key(&Timer::Request));
    // With the state that it lacked its time is over.
    let (seq, digest) = net.node(0).pbft.stable;
    net.install(3, seq, digest);
    net.fire(3, Timer::Request);
    assert!(net.node(3).pbft.wishes());
    // So it is where it wished before it fell behind.
    net.step(r(3), |pbft, _| pbft.repairing = true);
    assert!(!net.node(3).pbft.wishes());
    net.step(r(3), |pbft, cx| {
        pbft.repairing = false;
        pbft.progress(cx);
    });
    assert!(net.node(3).pbft.wishes());
}

// "… begun anew after each lag it would never end …"
#[test]
fn who_has_a_replica_behind_again_and_again_does_not_have_its_time_begin_anew() {
    covers!("PBFT-V1");
    let mut net = Net::new(1);
    net.request(&frame(1, 1), [3]);
    let due = net.node(3).timers[&Timer::Request];
    for _ in 0..3 {
        net.now += SMALL.request_timeout / 4;
        for repairing in [true, false] {
            net.step(r(3), |pbft, cx| {
                pbft.repairing = repairing;
                pbft.progress(cx);
            });
        }
    }
    assert_eq!(net.node(3).timers[&Timer::Request], due);
    // Nothing begins to be waited for meanwhile.
    net.step(r(3), |pbft, _| pbft.repairing = true);
    net.fire(3, Timer::Request);
    net.request(&frame(2, 1), [2]);
    net.step(r(2), |pbft, cx| {
        (pbft.repairing, pbft.timed) = (true, None);
        cx.cancel_timer(Timer::Request);
        pbft.progress(cx);
    });
    assert!(!net.node(2).timers.contains_key(&Timer::Request));
}

#[test]
fn what_can_bring_nothing_is_passed_over_before_it_is_checked() {
    covers!("PBFT-R14");
    let mut net = Net::new(1);
    let worth = |net: &Net, message: &Message| net.node(3).pbft.is_worth_checking(message);
    let [first, second] = [1, 2].map(|view| moves(&net, 2, view));
    assert!(worth(&net, &first));
    net.tell(2, 3, first.clone());
    assert!(!worth(&net, &first), "it is known");
    assert!(worth(&net, &second));
    net.node_mut(0).down = true;
    net.request(&frame(1, 1), 1..4);
    change_of_view(&mut net);
    let start = net.node(3).pbft.started.by.clone().expect("view 1 began with a NEW-VIEW");
    assert!(!worth(&net, &Message::Signed(start)), "the view has begun");
    let new_view = |view| NewView {
        view: View(view),
        changes: Vec::new(),
        base: (Seq(0), Digest::ZERO),
        chosen: Vec::new(),
    };
    assert!(worth(&net, &net.signed(2, Body::NewView(new_view(2)))));
    assert!(!worth(&net, &net.signed(0, Body::NewView(new_view(0)))), "it is over");
    // What breaks a rule is counted, each time.
    let broken = net.signed(2, Body::NewView(new_view(2)));
    for count in 1..=2 {
        net.tell(2, 3, broken.clone());
        assert_eq!(net.node(3).pbft.broken(), count);
    }
}

#[test]
fn the_primary_of_a_view_says_nothing_again_of_what_the_view_started_with_but_its_new_view() {
    covers!("PBFT-R7");
    let is_prepare = |message: &Message| matches!(message, Message::Prepare(_));
    let mut net = Net::new(1);
    net.request(&frame(1, 1), 0..4);
    net.run_where(|flight| flight.from == flight.to || !matches!(flight.message, Message::Commit(_)));
    net.node_mut(0).down = true;
    (1..4).for_each(|replica| net.leave(replica));
    net.run_where(|flight| flight.from == flight.to || !is_prepare(&flight.message));
    assert_eq!(net.node(1).pbft.started.end, Seq(1));
    net.now += SMALL.status_interval;
    (1..4).for_each(|replica| net.fire(replica, Timer::Status));
    let (by_primary, by_backups) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    net.run_where(|flight| {
        let count = if flight.from == r(1) { &by_primary } else { &by_backups };
        count.set(count.get() + u64::from(is_prepare(&flight.message)));
        true
    });
    assert_eq!(by_primary.get(), 0);
    assert!(by_backups.get() > 0);
    assert_eq!(net.node(3).history().len(), 1);
}

#[test]
fn one_that_is_behind_shows_nothing_of_what_may_be_executed_there() {
    covers!("PBFT-P3");
    let mut net = Net::new(1);
    net.node_mut(3).down = true;
    for number in 1..=SMALL.interval {
        net.order(&frame(number, 1));
    }
    net.node_mut(3).down = false;
    net.request(&frame(1, 1), [3]);
    let shown = |net: &Net| net.node(3).frames_shown.len();
    net.fire(3, Timer::Forward);
    net.fire(3, Timer::Overtaken);
    assert_eq!(shown(&net), 2);
    net.tell(0, 3, Message::Stable(net.node(0).pbft.stable_proof.clone()));
    net.step(r(3), |pbft, cx| pbft.show_oldest(cx));
    assert_eq!((shown(&net), net.node(3).timers.contains_key(&Timer::Forward)), (2, true));
    net.fire(3, Timer::Overtaken);
    assert_eq!((shown(&net), net.node(3).timers.contains_key(&Timer::Overtaken)), (2, true));
    // Here it was another's after all.
    let (seq, digest) = net.node(0).pbft.stable;
    net.install(3, seq, digest);
    net.fire(3, Timer::Overtaken);
    assert_eq!(shown(&net), 3);
}

#[test]
fn one_that_waits_in_vain_says_so_and_goes_on_until_it_is_served() {
    covers!("PBFT-V16");
    let mut net = Net::new(1);
    let one = frame(1, 1);
    // Its clock went on while it stood still: what it waits for was ordered meanwhile.
    net.request(&one, 0..4);
    let late: Vec<Flight> = net.wire.iter().filter(|flight| flight.to == r(3)).cloned().collect();
    net.run_where(|flight| flight.to != r(3));
    net.fire(3, Timer::Request);
    assert!(net.node(3).pbft.wishes());
    let told = |net: &Net| {
        let says = |message: &Message| matches!(message, Message::Status(status) if status.wishes);
        net.sent(3, says)
    };
    assert_eq!(told(&net), 3);
    net.run();
    assert!(net.node(0).pbft.active, "one alone moves nobody");
    for flight in late {
        net.tell(flight.from.0, 3, flight.message);
    }
    for _ in 0..3 {
        net.now += SMALL.status_interval;
        for replica in 0..4 {
            net.fire(replica, Timer::Status);
        }
        net.run();
    }
    assert_eq!(net.node(3).history(), [one.digest()], "it takes part");
    assert_eq!((net.node(3).pbft.wishes(), net.node(3).view()), (false, View(0)));
    assert!(!net.node(0).pbft.wished_by.contains(r(3)), "and takes its word back");
}
