//! What is executed and ordered again.

use super::harness::{Net, SMALL, covers, frame, r};
use troth_core::{Agreement, VerifiedFrame};
use troth_types::ClientId;

/// A replica shows another what is executed there.
fn show(net: &mut Net, from: u16, to: u16, frames: Vec<VerifiedFrame>) {
    net.step(r(to), |replica, cx| replica.on_shown_again(cx, r(from), frames));
}

fn request(net: &mut Net, to: u16, frame: &VerifiedFrame) {
    net.step(r(to), |replica, cx| replica.on_requests(cx, vec![frame.clone()]));
}

fn pending(net: &Net, replica: u16) -> usize {
    net.node(replica).replica.status().pending
}

#[test]
fn a_newer_request_takes_the_place_of_what_waits_to_be_proven_anew() {
    covers!("A2MPBFTE-H5");
    let mut net = Net::new();
    let window = SMALL.limits.client_window;
    let has = |net: &Net, client, number| net.node(1).replica.pbft().is_pending(ClientId(client), number);
    net.order(&frame(1, 1));
    net.step(r(1), |replica, cx| replica.on_requests_again(cx, vec![frame(1, 1)]));
    assert!(has(&net, 1, 1), "its client asks for it");
    request(&mut net, 1, &frame(1, 1 + window));
    assert!(has(&net, 1, 1 + window) && !has(&net, 1, 1));
    assert!(net.node(1).replica.frame(&frame(1, 1 + window).digest()).is_some());
    // What is not executed keeps its place.
    request(&mut net, 1, &frame(2, 1));
    request(&mut net, 1, &frame(2, 1 + window));
    assert!(has(&net, 2, 1) && !has(&net, 2, 1 + window));
}

#[test]
fn the_primary_orders_a_little_again_for_each_of_the_others_and_nobody_else_waits_with_them() {
    covers!("A2MPBFTE-H6");
    let mut net = Net::new();
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
        for backup in 1..4 {
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
