//! Events: indices without gaps, acknowledgement, overflow.

use super::support::{SMALL, Script, events_after, frame, frame_seen, run};
use crate::Executor;
use bytes::Bytes;
use troth_core::Execution;
use troth_types::{ClientId, Read};

fn executor() -> Executor<Script> {
    Executor::new(Script::default(), SMALL)
}

fn waiting(executor: &Executor<Script>, after: u64) -> Vec<(u64, Bytes)> {
    let events = events_after(executor, 2, after);
    events.into_iter().map(|event| (event.index, event.payload)).collect()
}

fn event(index: u64, payload: &'static str) -> (u64, Bytes) {
    (index, Bytes::from(payload))
}

#[test]
fn events_are_numbered_from_one_and_replies_say_how_far() {
    let mut executor = executor();
    let outcome =
        run(&mut executor, &[frame(1, 1, &["tell 2 a"]), frame(2, 1, &["tell 2 b"]), frame(3, 1, &["x"])]);
    let indices: Vec<_> = outcome.events.iter().map(|event| (event.client.0, event.index)).collect();
    assert_eq!(indices, [(2, 1), (2, 2)]);
    let up_to: Vec<_> = outcome.replies.iter().map(|reply| reply.events_up_to).collect();
    assert_eq!(up_to, [0, 2, 0], "each client's own outbox, after its own frame");
    assert_eq!(waiting(&executor, 0), [event(1, "a"), event(2, "b")]);
    assert_eq!(waiting(&executor, 1), [event(2, "b")]);
    assert!(waiting(&executor, 2).is_empty());
    assert!(waiting(&executor, u64::MAX).is_empty());
    let read = Read { client: ClientId(2), number: 1, nonce: None, least: None, operation: Bytes::new() };
    assert_eq!(executor.query(&read).events_up_to, 2);
}

#[test]
fn what_the_client_has_seen_is_dropped() {
    let mut executor = executor();
    run(&mut executor, &[frame(1, 1, &["tell 2 a", "tell 2 b"])]);
    run(&mut executor, &[frame_seen(2, 1, 1, &["x"])]);
    assert_eq!(waiting(&executor, 0), [event(2, "b")]);
    // A claim to have seen the future acknowledges what there is and nothing that comes.
    run(&mut executor, &[frame_seen(2, 2, u64::MAX, &["x"])]);
    assert!(waiting(&executor, 0).is_empty());
    run(&mut executor, &[frame(1, 2, &["tell 2 c"])]);
    assert_eq!(waiting(&executor, 0), [event(3, "c")]);
    // A frame that does not execute acknowledges nothing.
    run(&mut executor, &[frame_seen(2, 2, 3, &["x"])]);
    assert_eq!(waiting(&executor, 0), [event(3, "c")]);
}

#[test]
fn a_full_outbox_drops_its_oldest_and_marks_the_loss() {
    let mut executor = executor();
    run(&mut executor, &[frame(1, 1, &["tell 2 a", "tell 2 b", "tell 2 c"])]);
    assert_eq!(waiting(&executor, 0), [event(1, "a"), event(2, "b"), event(3, "c")]);
    run(&mut executor, &[frame(1, 2, &["tell 2 d"])]);
    assert_eq!(waiting(&executor, 0), [event(2, ""), event(3, "c"), event(4, "d")]);
    run(&mut executor, &[frame(1, 3, &["tell 2 e", "tell 2 f", "tell 2 g", "tell 2 h"])]);
    assert_eq!(waiting(&executor, 0), [event(6, ""), event(7, "g"), event(8, "h")]);
    // Acknowledged and refilled, it starts without a marker.
    run(&mut executor, &[frame_seen(2, 1, 8, &["tell 2 i"])]);
    assert_eq!(waiting(&executor, 0), [event(9, "i")]);
}

#[test]
fn an_acknowledgement_makes_room_for_the_events_of_its_own_frame() {
    let mut executor = executor();
    run(&mut executor, &[frame(1, 1, &["tell 2 a", "tell 2 b", "tell 2 c"])]);
    run(&mut executor, &[frame_seen(2, 1, 2, &["tell 2 d", "tell 2 e"])]);
    assert_eq!(waiting(&executor, 0), [event(3, "c"), event(4, "d"), event(5, "e")]);
}

#[test]
fn events_that_are_gone_leave_nothing_behind() {
    let entries = |executor: &Executor<Script>| {
        let mut executor = executor.clone();
        executor.checkpoint();
        while executor.poll_checkpoint(1000).is_none() {}
        let snapshot = executor.snapshot(executor.executed()).expect("kept").encode();
        u64::from_le_bytes(snapshot[18..26].try_into().expect("the count of entries"))
    };
    let mut executor = executor();
    run(&mut executor, &[frame(1, 1, &["x"]), frame_seen(2, 1, 0, &["x"])]);
    let before = entries(&executor);
    run(&mut executor, &[frame(1, 5, &["tell 2 a", "tell 2 b"])]);
    assert_eq!(entries(&executor), before + 2);
    run(&mut executor, &[frame(1, 9, &["tell 2 c", "tell 2 d", "tell 2 e", "tell 2 f"])]);
    assert_eq!(entries(&executor), before + 3, "as many as the outbox holds");
    run(&mut executor, &[frame_seen(2, 5, 5, &["x"])]);
    assert_eq!(entries(&executor), before + 1);
    run(&mut executor, &[frame_seen(2, 9, 6, &["x"])]);
    assert_eq!(entries(&executor), before);
}
