//! MINBFT-V2, V21: whose requests for a view count, and for which.

use super::harness::{SMALL, World, covers, later_signer, r};
use crate::message::{Message, SignedRequest, StableProof};
use std::sync::Arc;
use troth_auth::Signer as _;
use troth_core::{Agreement as _, Note};
use troth_types::{Change, ClientId, HostKeys, View};

/// The view as high as a request can name it: faulty replicas alone start nothing with it, and choose no target.
#[test]
fn a_request_for_a_view_beyond_all_others_counts_as_one_for_the_view_that_a_correct_replica_wants() {
    covers!("MINBFT-V2");
    let mut world = World::with(5, SMALL, &[4]);
    world.wishes(&[0, 1], 4, u64::MAX);
    assert_eq!((world.minbft(4).view, world.wanted(4)), (View(0), 0), "f replicas move nobody");
    for view in 1..=3 {
        world.wishes(&[2], 4, view);
        assert_eq!((world.minbft(4).view, world.wanted(4)), (View(view), view), "no further than 2 wants");
    }
    assert_eq!(world.minbft(4).requests.len(), 3, "one of each replica is kept");
    assert!(world.accused_nobody(4));
}

/// Replica 1 of three, and what the earlier host of 2 signed before it was replaced.
fn with_another_host() -> (World, Arc<SignedRequest>) {
    let mut world = World::with(3, SMALL, &[1]);
    let signing = later_signer(r(2)).public_key().0;
    let host = HostKeys { signing, ..HostKeys::default() };
    let change = world.operator_frame(1, &Change::Rekey { replica: r(2), host });
    world.request(&[1], &change);
    let old = world.wish(2, 7);
    world.inject(2, 1, Message::RequestViewChange(old.clone()));
    let prepare = world.prepare(0, 1, &[&change]);
    world.say(1, &prepare);
    assert_eq!(world.executed(1), 1);
    (world, old)
}

// MINBFT-V21 (guard) "A request counts that is signed with the key of its sender's present host."
#[test]
fn what_a_replaced_host_asked_for_counts_no_more() {
    covers!("MINBFT-V21");
    let (mut world, old) = with_another_host();
    assert!(!world.minbft(1).requests.contains_key(&r(2)), "what came before");
    assert!(!world.arrive_checked(2, 1, Message::RequestViewChange(old)), "and what comes now");
    world.wishes(&[0], 1, 1);
    assert_eq!(world.minbft(1).view, View(0));
    let new = world.wish_signed(2, 1, &later_signer(r(2)));
    world.inject(2, 1, Message::RequestViewChange(new));
    assert_eq!(world.minbft(1).view, View(1), "the present host and 0 want it");
}

// MINBFT-V21 "One that a VIEW-CHANGE shows may be of an earlier host, and justifies the VIEW-CHANGE; it moves
// nobody who knows that the host was replaced."
#[test]
fn what_a_replaced_host_asked_for_moves_nobody_where_a_view_change_shows_it() {
    covers!("MINBFT-V21");
    let (mut world, old) = with_another_host();
    let mut body = world.change_body(0, 5, StableProof::default());
    body.requests = vec![world.wish(0, 5), old];
    let change = world.certify_change(0, body);
    for message in world.said(0) {
        world.say(1, &message);
    }
    assert_eq!(world.minbft(1).peer(r(0)).view, View(5), "whoever was not told of the host yet may show it");
    assert!(world.accused_nobody(1));
    assert_eq!(world.minbft(1).changes.get(&r(0)).map(|known| known.digest), Some(change.digest));
    assert_eq!(world.minbft(1).view, View(0));
}

/// Frames of a removed client neither wait nor are proposed, but complete a batch that a primary orders them in.
#[test]
fn a_removed_clients_frames_are_ordered_by_a_faulty_primary_alone() {
    let mut world = World::with(3, SMALL, &[1]);
    let frames = world.frames_held(2, &[1]);
    let late = world.frame(1, 3, "op3");
    let change = world.operator_frame(1, &Change::RemoveClient(ClientId(1)));
    world.request(&[1], &change);
    let prepare = world.prepare(0, 1, &[&change]);
    world.say(1, &prepare);
    assert_eq!(world.executed(1), 1);
    assert_eq!(world.minbft(1).status().pending, 0, "what waited goes");
    world.request(&[1], &late);
    world.show(2, 1, &[&late, &frames[0]]);
    assert_eq!(world.minbft(1).status().pending, 0, "and nothing comes, whoever shows it");
    for seq in 2..=4 {
        let prepare = world.prepare(0, seq, &[&frames[0]]);
        world.say(1, &prepare);
        world.show(0, 1, &[&frames[0]]);
        assert_eq!(world.executed(1), seq, "a backup must not stop at a batch that others may execute");
    }
    assert!(world.journal(1).is_empty());
    assert!(world.accused_nobody(1) && world.wanted(1) == 0);
}

fn accused_clients(world: &World, by: u16) -> Vec<(u64, u64)> {
    let of = |note: &Note| match note {
        Note::ClientAccused { client, number } => Some((client.0, *number)),
        _ => None,
    };
    world.node(by).notes.iter().filter_map(of).collect()
}

// MINBFT-N11 "A client that signed two contents under one number is told of by whoever holds both frames."
#[test]
fn a_client_with_two_contents_under_one_number_is_told_of() {
    covers!("MINBFT-N11");
    let mut world = World::with(3, SMALL, &[1]);
    let (one, other) = (world.frame(1, 7, "one"), world.frame(1, 7, "other"));
    world.request(&[1], &one);
    world.request(&[1], &one);
    world.request(&[1], &world.frame(1, 8, "other"));
    world.request(&[1], &world.frame(2, 7, "other"));
    assert_eq!(accused_clients(&world, 1), [], "the same again, another number, another client");
    world.request(&[1], &other);
    assert_eq!(accused_clients(&world, 1), [(1, 7)]);
}

// The same where one was shown to this replica and the other one, through the primary, executed.
#[test]
fn a_client_that_showed_another_content_to_the_primary_is_told_of() {
    covers!("MINBFT-N11");
    let mut world = World::with(3, SMALL, &[1]);
    let (one, other, honest) =
        (world.frame(1, 7, "one"), world.frame(1, 7, "other"), world.frame(2, 7, "one"));
    world.request(&[1], &one);
    world.request(&[1], &honest);
    let prepare = world.prepare(0, 1, &[&honest, &other]);
    world.say(1, &prepare);
    world.show(0, 1, &[&other]);
    assert_eq!(world.executed(1), 1);
    // Shown while the one waits, and executed in its stead.
    assert_eq!(accused_clients(&world, 1), [(1, 7), (1, 7)]);
}

// A number that goes on in the slot of an older one, which nobody waits for any more, contradicts nothing.
#[test]
fn a_client_that_goes_on_before_its_older_number_was_executed_is_not_accused() {
    covers!("MINBFT-N11");
    let mut world = World::with(3, SMALL, &[1]);
    world.request(&[1], &world.frame(1, 7, "one"));
    let later = world.frame(1, 7 + SMALL.limits.client_window, "other");
    let prepare = world.prepare(0, 1, &[&later]);
    world.say(1, &prepare);
    world.show(0, 1, &[&later]);
    assert_eq!((world.executed(1), world.minbft(1).pool.len()), (1, 0));
    assert_eq!(accused_clients(&world, 1), []);
}
