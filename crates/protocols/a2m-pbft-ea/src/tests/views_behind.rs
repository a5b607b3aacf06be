//! A replica that was cut off while the others passed more views than may be left at once.

use super::craft::Bench;
use super::harness::{Net, covers, frame, r, signature};
use super::view_change::kind;
use crate::Timer;
use crate::evidence::MOST_ABANDONED;
use crate::message::{Message, WantViewChange, Wanted};
use std::sync::Arc;
use troth_core::Agreement;
use troth_types::View;

/// Replica 0 alone compares notes, and hears what comes of it.
fn compare_notes_of_0(net: &mut Net) {
    net.now += net.config.status_interval;
    net.fire(0, Timer::Status);
    net.run();
}

/// Replica 0 is shown the VIEWCHANGE with which replica 1 left the view `last`, and stays where it is.
fn show_last_change(net: &mut Net, last: View) {
    let shown = net.node(1).replica.changes.get(&r(1)).cloned().expect("it left the view");
    let left = shown.view_change().map(|change| (change.left, change.to));
    assert_eq!(left, Some((last, last.next())));
    net.tell(1, 0, Message::Attested(shown));
    let behind = &net.node(0).replica;
    let stands = (behind.entered, behind.view, behind.active);
    assert_eq!(stands, (View(0), View(0), true), "a VIEWCHANGE of its own would leave too many views");
    assert_eq!(behind.brought_further(), None, "nobody is charged for what it is shown");
}

/// A request is executed by replicas 0 and 1.
fn orders_without_2(net: &mut Net) {
    (0..2).for_each(|_| net.compare_notes());
    let one = frame(1, 1);
    net.request(&one, 0..2);
    net.run();
    for replica in 0..2 {
        assert_eq!(net.node(replica).history(), [one.digest()], "{}", net.node(replica).replica.describe());
    }
}

#[test]
fn who_missed_more_views_than_it_may_leave_at_once_enters_the_last_that_began() {
    covers!("A2MPBFTEA-V20");
    let mut net = Net::new(1);
    net.node_mut(0).down = true;
    let want_next = |net: &mut Net| {
        for replica in [1, 2] {
            net.step(r(replica), |replica, cx| replica.suspect(cx, "a test"));
        }
    };
    while net.node(1).replica.entered.0 <= MOST_ABANDONED as u64 {
        want_next(&mut net);
        net.run();
    }
    let last = net.node(1).replica.entered;
    // Replica 2 has replica 1 leave once more, shows it no VIEWCHANGE, and falls silent.
    want_next(&mut net);
    net.run_where(|flight| kind(&flight.message) == "WANTVIEWCHANGE");
    net.node_mut(2).down = true;
    net.node_mut(0).down = false;
    show_last_change(&mut net, last);
    // Idle as it is, it asks with its next STATUS.
    (0..3).for_each(|_| compare_notes_of_0(&mut net));
    assert_eq!(net.node(0).replica.entered, last.next(), "{}", net.node(0).replica.describe());
    orders_without_2(&mut net);
}

#[test]
fn so_it_does_where_none_of_the_starts_has_f_plus_1_commitments() {
    covers!("A2MPBFTEA-V20");
    let (mut net, mut bench) = (Net::new(1), Bench::new(1));
    net.node_mut(0).down = true;
    net.node_mut(2).down = true;
    // Replica 2 says of each view that it has not left view 0, and so commits to the start of none.
    let last = View(MOST_ABANDONED as u64);
    for to in (1..=last.0).filter(|to| !to.is_multiple_of(3)) {
        let start = net.node(1).replica.started.by.clone();
        let change = bench.view_change(2, 0, to, None, Vec::new());
        net.tell(2, 1, Message::Attested(change.clone()));
        net.wire.clear();
        if bench.group.primary(View(to)) == r(2) {
            let mine = net.node(1).replica.changes.get(&r(1)).cloned().expect("it follows");
            let start = bench.new_view(vec![mine, change], start.as_deref());
            net.tell(2, 1, Message::Attested(start));
        }
        assert_eq!(net.node(1).replica.entered, View(to));
    }
    net.step(r(1), |replica, cx| replica.suspect(cx, "a test"));
    let want = WantViewChange { to: last.next(), nonce: [7; 32] };
    let digest = want.digest(net.group.id(), r(2));
    let wanted = Wanted { from: r(2), want, digest, signature: signature(r(2)) };
    net.tell(2, 1, Message::Want(Arc::new(wanted)));
    net.wire.clear();
    net.node_mut(0).down = false;
    show_last_change(&mut net, last);
    // The starts are shown one by one, back to the first, and it keeps fewer than there are: it enters a view on the way.
    let until = |net: &mut Net, done: fn(&Net) -> bool| {
        for _ in 0..4 * MOST_ABANDONED {
            if done(net) {
                return;
            }
            compare_notes_of_0(net);
        }
        panic!("{}", net.node(0).replica.describe());
    };
    until(&mut net, |net| net.node(0).replica.entered > View(0));
    (0..2).for_each(|_| net.compare_notes());
    assert_eq!((net.node(0).view(), net.node(1).view()), (last.next(), last.next()));
    // That view's primary is silent, too. The next one is replica 0.
    (0..2).for_each(|replica| net.fire(replica, Timer::NewView));
    net.run();
    until(&mut net, |net| net.node(0).replica.active);
    orders_without_2(&mut net);
}
