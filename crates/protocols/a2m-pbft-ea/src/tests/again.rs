//! What is executed and ordered again.

use super::harness::{Net, SMALL, WALL, covers, frame, group, r};
use crate::{A2mPbftEa, Config, Timer};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_auth::Verified;
use troth_core::{Agreement, Cx, VerifiedFrame};
use troth_types::{ClientEntry, ClientId, Configuration, FrameDraft, Limits, Seq, Signature, Time};

/// A replica shows another what is executed there.
fn show(net: &mut Net, from: u16, to: u16, frames: Vec<VerifiedFrame>) {
    net.step(r(to), |replica, cx| replica.on_shown_again(cx, r(from), frames));
}

fn pending(net: &Net, replica: u16) -> usize {
    net.node(replica).replica.pool.len()
}

#[test]
fn a_newer_request_takes_the_place_of_what_waits_to_be_proven_anew() {
    covers!("A2MPBFTEA-H5");
    let mut net = Net::new(1);
    let window = SMALL.limits.client_window;
    let has = |net: &Net, client, number| net.node(1).replica.pool.has(ClientId(client), number);
    net.order(&frame(1, 1));
    net.step(r(1), |replica, cx| replica.on_requests_again(cx, vec![frame(1, 1)]));
    assert!(has(&net, 1, 1), "its client asks for it");
    net.request(&frame(1, 1 + window), [1]);
    assert!(has(&net, 1, 1 + window) && !has(&net, 1, 1));
    assert!(net.node(1).replica.frame(&frame(1, 1 + window).digest()).is_some());
    // What is not executed keeps its place.
    net.request(&frame(2, 1), [1]);
    net.request(&frame(2, 1 + window), [1]);
    assert!(has(&net, 2, 1) && !has(&net, 2, 1 + window));
}

#[test]
fn a_client_that_has_its_requests_give_way_one_after_the_other_puts_off_no_timer() {
    covers!("A2MPBFTEA-V1");
    let mut net = Net::new(1);
    let window = SMALL.limits.client_window;
    // What is due to be shown is due now.
    let due = |net: &Net| {
        let timers = &net.node(1).timers;
        (timers[&Timer::Request], timers[&Timer::Forward].max(Time(net.now)))
    };
    (1..=3).for_each(|number| net.order(&frame(1, number)));
    net.step(r(1), |replica, cx| {
        replica.on_requests_again(cx, (1..=3).map(|number| frame(1, number)).collect())
    });
    net.request(&frame(2, 1), [1]);
    let first = due(&net);
    for number in 1..=3 {
        net.now += SMALL.request_timeout / 8;
        net.request(&frame(1, number + window), [1]);
        assert_eq!(due(&net), (first.0, Time(net.now)), "they run on");
    }
    net.order(&frame(2, 1));
    assert!(due(&net) > first, "what is executed starts them anew, as ever");
}

#[test]
fn requests_that_give_way_one_after_the_other_end_no_view_before_their_time() {
    covers!("A2MPBFTEA-V1");
    let mut net = Net::new(1);
    let window = SMALL.limits.client_window;
    let due = |net: &Net| net.node(1).timers[&Timer::Request];
    let again = |net: &mut Net, number| {
        net.step(r(1), |replica, cx| replica.on_requests_again(cx, vec![frame(1, number)]));
    };
    (1..=2).for_each(|number| net.order(&frame(1, number)));
    again(&mut net, 1);
    let first = due(&net);
    net.now += SMALL.request_timeout / 2;
    again(&mut net, 2);
    assert_eq!(due(&net), first);
    net.now += SMALL.request_timeout / 4;
    net.request(&frame(1, 1 + window), [1]);
    assert_eq!(due(&net), first.after(SMALL.request_timeout / 2), "the second came so much later");
}

#[test]
fn what_gives_way_while_its_replica_is_behind_leaves_the_next_one_its_own_time() {
    covers!("A2MPBFTEA-V1");
    let mut net = Net::new(1);
    net.order(&frame(1, 1));
    net.step(r(1), |replica, cx| replica.on_requests_again(cx, vec![frame(1, 1)]));
    net.request(&frame(2, 1), [1]);
    net.step(r(1), |replica, _| replica.repairing = true);
    net.fire(1, Timer::Request);
    net.request(&frame(1, 1 + SMALL.limits.client_window), [1]);
    net.step(r(1), |replica, cx| {
        replica.repairing = false;
        replica.progress(cx);
    });
    assert!(net.node(1).timers[&Timer::Request].0 <= net.now, "it came as early, and as long ago");
}

#[test]
fn many_executed_ones_keep_no_new_one_from_being_shown() {
    covers!("A2MPBFTEA-H7");
    let mut net = Net::new(1);
    let (frames, new): (Vec<VerifiedFrame>, _) =
        ((1..=100).map(|client| frame(client, 1)).collect(), frame(199, 1));
    frames.iter().for_each(|frame| net.order(frame));
    net.step(r(1), |replica, cx| replica.on_requests_again(cx, frames));
    net.request(&new, [1]);
    net.fire(1, Timer::Forward);
    assert!(net.node(1).shown.contains(&new));
}

#[test]
fn the_primary_orders_a_little_again_for_each_of_the_others_and_nobody_else_waits_with_them() {
    covers!("A2MPBFTEA-H6");
    let mut net = Net::new(1);
    let frames: Vec<VerifiedFrame> = (1..=20).map(|client| frame(client, 1)).collect();
    frames.iter().for_each(|frame| net.order(frame));
    let before = net.node(0).executed_up_to();
    show(&mut net, 2, 1, frames.clone());
    assert_eq!(pending(&net, 1), 0, "a backup does not wait for it");
    show(&mut net, 2, 0, frames.clone());
    assert_eq!(pending(&net, 0), 16);
    show(&mut net, 1, 0, frames.clone());
    assert_eq!(pending(&net, 0), 20, "another one has its own share");
    // The others fetch what the proposals name.
    for _ in 0..20 {
        net.run();
        for backup in 1..3 {
            net.step(r(backup), |replica, cx| replica.on_known_frames(cx, frames.clone()));
        }
    }
    assert!(net.node(0).executed_up_to() > before && pending(&net, 0) == 0);
    for _ in 0..3 {
        show(&mut net, 2, 0, frames.clone());
        assert_eq!(pending(&net, 0), 0, "it has had it");
    }
    net.now += SMALL.request_timeout / 8;
    show(&mut net, 2, 0, frames.clone());
    assert_eq!(pending(&net, 0), 16);
}

/// A frame of this many bytes, and a few.
fn large(client: u64, bytes: usize) -> VerifiedFrame {
    let operations = vec![Bytes::from(vec![7; bytes])];
    let draft =
        FrameDraft { group: group(1).id(), client: ClientId(client), number: 1, events_seen: 0, operations };
    Verified::made_here(Arc::new(draft.sign(Signature([1; 64]))))
}

#[test]
fn large_frames_are_fewer_and_the_first_is_ordered_however_large_it_is() {
    covers!("A2MPBFTEA-H6");
    // Batches of at most 32 KiB.
    let limits = Limits { frame_bytes: 1 << 10, ..SMALL.limits };
    let config = Config { window: 1 << 13, limits, ..SMALL };
    for (sizes, taken) in [(vec![9_000; 5], 3), (vec![100_000, 10, 10], 1), (vec![10, 100_000, 10], 2)] {
        let mut replica = A2mPbftEa::new(r(0), group(1), config);
        let frames = (1..).zip(&sizes).map(|(client, bytes)| large(client, *bytes)).collect();
        let mut effects = Vec::new();
        replica.on_shown_again(
            &mut Cx::new(Time(1_000), Time(WALL), r(0), &group(1), &mut effects),
            r(1),
            frames,
        );
        assert_eq!(replica.status().pending, taken, "{sizes:?}");
    }
}

#[test]
fn a_backup_shows_no_more_executed_frames_than_its_primary_takes() {
    covers!("A2MPBFTEA-H7");
    let mut net = Net::new(1);
    let (frames, new): (Vec<VerifiedFrame>, _) =
        ((1..=40).map(|client| frame(client, 1)).collect(), frame(99, 1));
    frames.iter().for_each(|frame| net.order(frame));
    net.step(r(1), |replica, cx| replica.on_requests_again(cx, frames.clone()));
    net.request(&new, [1]);
    let mut most = 0;
    for _ in 0..1_000 {
        let timers = &net.node(1).timers;
        let Some((_, timer)) = [Timer::Forward, Timer::Overtaken]
            .iter()
            .filter_map(|timer| Some((timers.get(timer)?, *timer)))
            .min()
        else {
            break;
        };
        net.fire(1, timer);
        let (first, again) =
            std::mem::take(&mut net.node_mut(1).shown).into_iter().partition(|frame| *frame == new);
        let again: Vec<VerifiedFrame> = again;
        most = most.max(again.len());
        net.step(r(0), |replica, cx| replica.on_requests(cx, first));
        show(&mut net, 1, 0, again.clone());
        for frame in again {
            // Whoever runs the primary charges backups for what it does not keep.
            assert!(net.node(0).replica.frame(&frame.digest()).is_some(), "{}", frame.client());
        }
        // The others fetch what the proposals name.
        for _ in 0..8 {
            net.run();
            for backup in 1..3 {
                net.step(r(backup), |replica, cx| replica.on_known_frames(cx, frames.clone()));
                net.step(r(backup), |replica, cx| replica.on_known_frames(cx, vec![new.clone()]));
            }
        }
        if pending(&net, 1) == 0 {
            break;
        }
    }
    assert_eq!((pending(&net, 1), most), (0, 16), "all of them are ordered, as many at a time as may be");
}

#[test]
fn what_waits_of_a_removed_client_waits_no_longer_and_completes_batches() {
    covers!("A2MPBFTEA-N12");
    let mut net = Net::new(1);
    let entry = |removed| ClientEntry { key: [1; 32], link: [1; 32], removed };
    let clients = BTreeMap::from([(ClientId(1), entry(true)), (ClientId(2), entry(false))]);
    let configuration = Arc::new(Configuration::new(Vec::new(), clients));
    let named = frame(1, 2);
    net.request(&named, 0..3);
    net.request(&frame(1, 1), [1]);
    net.request(&frame(2, 1), [1]);
    net.run_where(|flight| super::view_change::kind(&flight.message) == "PREPREPARE");
    assert!(net.node(1).replica.slots[&Seq(1)].proposed().is_some());
    net.step(r(1), |replica, cx| replica.on_configured(cx, &configuration));
    assert!(!net.node(1).replica.pool.has(ClientId(1), 1) && !net.node(1).replica.pool.has(ClientId(1), 2));
    assert!(net.node(1).replica.pool.has(ClientId(2), 1), "another client");
    assert!(net.node(1).replica.frame(&named.digest()).is_some(), "a batch that others may execute names it");
    assert!(net.node(1).replica.frame(&frame(1, 1).digest()).is_none());
}
