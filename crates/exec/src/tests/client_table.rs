//! Exactly once: window slots, duplicates, budgets.

use super::support::{SMALL, Script, checkpoint, frame, run, run_at};
use crate::Executor;
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use troth_core::{Execution, Lookup, Meter};
use troth_types::{ClientId, Read, Reply, ReplyBody, Seq, Time};

fn executor() -> Executor<Script> {
    Executor::new(Script::default(), SMALL)
}

fn results(reply: &Reply) -> Vec<Bytes> {
    match &reply.body {
        ReplyBody::Full(results) => results.clone(),
        ReplyBody::Digest(_) => panic!("execution replies in full"),
    }
}

#[test]
fn a_frame_executes_once_and_its_reply_is_kept() {
    let mut executor = executor();
    let one = frame(5, 1, &["add a 2", "add a 3"]);
    let first = run(&mut executor, std::slice::from_ref(&one));
    assert_eq!(results(&first.replies[0]), [Bytes::from("2"), Bytes::from("5")]);
    assert_eq!(first.names(), [(ClientId(5), 1)]);

    let again = run(&mut executor, &[one]);
    assert!(again.replies.is_empty(), "it was executed before");
    assert_eq!(again.names(), [(ClientId(5), 1)]);
    assert_eq!(executor.state().get(b"a"), Some(Bytes::from("5")));
    assert_eq!(executor.lookup(ClientId(5), 1), Lookup::Executed(Box::new(first.replies[0].clone())));
    assert_eq!(executor.executed(), Seq(2));
}

/// Notes what it is shown.
#[derive(Debug, Default)]
struct Notes(Mutex<Vec<Option<ClientId>>>);

impl Meter for Notes {
    fn begins(&self) {
        self.0.lock().expect("nobody panics").push(None);
    }
    fn executed(&self, client: ClientId) {
        self.0.lock().expect("nobody panics").push(Some(client));
    }
    fn answered(&self, client: ClientId) -> u64 {
        self.executed(client);
        7
    }
}

#[test]
fn who_looks_on_sees_what_is_executed_and_not_what_is_named_again() {
    let (mut executor, notes) = (executor(), Arc::new(Notes::default()));
    executor.metered(Arc::<Notes>::clone(&notes));
    let seen = || std::mem::take(&mut *notes.0.lock().expect("nobody panics"));
    let one = frame(5, 1, &["add a 2"]);
    run(&mut executor, &[one.clone(), frame(6, 1, &["add a 2"])]);
    assert_eq!(seen(), [None, Some(ClientId(5)), None, Some(ClientId(6))]);
    run(&mut executor, &[one, frame(6, 2, &["add a 2"])]);
    assert_eq!(seen(), [None, Some(ClientId(6))], "whoever names it again costs its client nothing");
    let read = Read { client: ClientId(7), number: 1, nonce: None, least: None, operation: "get a".into() };
    let reply = executor.query(&read);
    assert!(seen().is_empty(), "it is charged for its own step");
    assert_eq!(executor.query_in_passing(&read), (reply, 7));
    assert_eq!(seen(), [None, Some(ClientId(7))]);
}

#[test]
fn a_duplicate_inside_a_batch_is_skipped() {
    let mut executor = executor();
    // The second has another digest and the same number: a client that signs two frames with one
    // number gets one of them executed.
    let outcome = run(&mut executor, &[frame(5, 1, &["add a 1"]), frame(5, 1, &["add a 7"])]);
    assert_eq!(outcome.replies.len(), 1);
    assert_eq!(outcome.names(), [(ClientId(5), 1), (ClientId(5), 1)]);
    assert_eq!(executor.state().get(b"a"), Some(Bytes::from("1")));
}

#[test]
fn numbers_share_slots_modulo_the_window() {
    let mut executor = executor();
    run(&mut executor, &[frame(5, 6, &["add a 1"])]);
    assert_eq!(executor.lookup(ClientId(5), 2), Lookup::TooOld, "6 took the slot of 2");
    assert_eq!(executor.lookup(ClientId(5), 10), Lookup::New);
    assert_eq!(executor.lookup(ClientId(5), 5), Lookup::New, "a slot of its own");
    assert_eq!(executor.lookup(ClientId(6), 6), Lookup::New, "another client");

    let outcome = run(&mut executor, &[frame(5, 2, &["add a 1"]), frame(5, 5, &["add a 1"])]);
    assert_eq!(outcome.names(), [(ClientId(5), 2), (ClientId(5), 5)]);
    assert_eq!(outcome.replies.len(), 1);
    assert_eq!(executor.state().get(b"a"), Some(Bytes::from("2")));
    run(&mut executor, &[frame(5, 10, &["add a 1"])]);
    assert_eq!(executor.lookup(ClientId(5), 6), Lookup::TooOld);
}

#[test]
fn over_the_budget_the_oldest_results_go_and_the_numbers_stay() {
    let mut executor = executor();
    for number in 1..=3 {
        run(&mut executor, &[frame(5, number, &["big 90"])]);
    }
    assert_eq!(executor.lookup(ClientId(5), 1), Lookup::ResultGone(Seq(1)), "94 * 3 > 250");
    assert!(matches!(executor.lookup(ClientId(5), 2), Lookup::Executed(_)));
    assert!(matches!(executor.lookup(ClientId(5), 3), Lookup::Executed(_)));
    let outcome = run(&mut executor, &[frame(5, 1, &["add a 1"])]);
    assert!(outcome.replies.is_empty(), "what lost its result does not execute again");

    // A reply that takes the whole budget pushes out everything else and stays itself.
    run(&mut executor, &[frame(5, 4, &["big 90", "big 90", "big 40"])]);
    assert!(matches!(executor.lookup(ClientId(5), 4), Lookup::Executed(_)));
    assert_eq!(executor.lookup(ClientId(5), 3), Lookup::ResultGone(Seq(3)));
    // The budget is released when the slot is taken by a small reply.
    run(&mut executor, &[frame(5, 8, &["x"])]);
    run(&mut executor, &[frame(5, 9, &["big 90"])]);
    run(&mut executor, &[frame(5, 10, &["big 90"])]);
    assert!(matches!(executor.lookup(ClientId(5), 8), Lookup::Executed(_)));
    assert!(matches!(executor.lookup(ClientId(5), 9), Lookup::Executed(_)));
}

#[test]
fn results_over_the_limits_are_replaced() {
    let mut executor = executor();
    let outcome = run(&mut executor, &[frame(5, 1, &["big 101", "big 100", "big 100", "big 100"])]);
    let lengths: Vec<usize> = results(&outcome.replies[0]).iter().map(Bytes::len).collect();
    assert_eq!(lengths, [9, 100, 100, 9], "one over result_bytes, one over client_bytes");
    let read = Read {
        client: ClientId(5),
        number: 1,
        nonce: None,
        least: None,
        operation: Bytes::from_static(b"a"),
    };
    run(&mut executor, &[frame(5, 2, &[&format!("set a {}", "v".repeat(101))])]);
    assert_eq!(executor.query(&read).body, ReplyBody::Full(vec![Bytes::from_static(b"too large")]));
}

#[test]
fn reads_beyond_a_frame_s_results_are_not_executed_and_writes_are() {
    let mut executor = executor();
    // 3 * 90 bytes are over the budget of 250: what only reads is answered without being executed.
    let operations = ["big 90", "big 90", "big 90", "big 90", "add a 1", "big 1", "set b 2"];
    let outcome = run(&mut executor, &[frame(5, 1, &operations)]);
    let too_large = Bytes::from_static(b"too large");
    let shown = [too_large.clone(), too_large.clone(), Bytes::from("1"), too_large, Bytes::from("ok")];
    assert_eq!(results(&outcome.replies[0])[2..], shown);
    assert_eq!(executor.application().reads.load(std::sync::atomic::Ordering::Relaxed), 3);
    assert_eq!(executor.state().get(b"a"), Some(Bytes::from("1")));
    assert_eq!(executor.state().get(b"b"), Some(Bytes::from("2")));
    // Results over the limit of one count with what they cost, and the next frame begins anew.
    run(&mut executor, &[frame(5, 2, &["big 200", "big 200", "big 200"])]);
    assert_eq!(executor.application().reads.load(std::sync::atomic::Ordering::Relaxed), 5);
}

#[test]
fn equal_orders_give_equal_replies_and_digests() {
    let mut one = executor();
    let mut two = executor();
    for number in 1..=20 {
        let batch = [
            frame(1, number, &["add a 1", &format!("set k{} {number}", number % 7), "tell 2 hello"]),
            frame(2, number, &["now", "add a 2"]),
        ];
        let outcome = run(&mut one, &batch);
        assert_eq!(outcome, run(&mut two, &batch));
        // One of the two checkpoints more often, and hashes in other slices.
        if number % 2 == 0 {
            one.checkpoint();
        }
        one.poll_checkpoint(1);
        assert_eq!(one.digest_now(), two.digest_now());
    }
    assert_eq!(checkpoint(&mut two).1, one.digest_now());
}

#[test]
fn a_deadline_is_handled_once_before_the_frames_of_its_batch() {
    let mut executor = executor();
    run_at(&mut executor, Time(1_000), &[frame(1, 1, &["wake 5000"])]);
    assert_eq!(executor.next_deadline(), Some(Time(5_000)));
    assert!(run_at(&mut executor, Time(4_999), &[]).events.is_empty());
    let outcome = run_at(&mut executor, Time(5_000), &[frame(1, 2, &["tell 7 after"])]);
    let payloads: Vec<_> = outcome.events.iter().map(|event| event.payload.clone()).collect();
    assert_eq!(payloads, [Bytes::from("alarm"), Bytes::from("after")]);
    assert_eq!(executor.next_deadline(), None);
    assert!(run_at(&mut executor, Time(6_000), &[]).events.is_empty());
}

#[test]
fn agreed_time_never_goes_back() {
    let mut executor = executor();
    run_at(&mut executor, Time(5_000), &[]);
    let outcome = run_at(&mut executor, Time(0), &[frame(1, 1, &["now"])]);
    assert_eq!(results(&outcome.replies[0]), [Bytes::from("5000")]);
    assert_eq!(executor.last_time(), Time(5_000));
}

#[test]
#[should_panic(expected = "batches execute in order")]
fn a_gap_in_the_order_is_a_bug() {
    let mut executor = executor();
    executor.execute(&troth_core::Ordered {
        seq: Seq(2),
        time: Time(1),
        seed: troth_types::Digest::ZERO,
        frames: Vec::new(),
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Any order of any frames, with duplicates and overtaken numbers: each (client, number)
    /// executes at most once, exactly when it is above its slot, and the cached bytes stay in budget.
    #[test]
    fn the_table_follows_its_model(
        batches in proptest::collection::vec(
            proptest::collection::vec((0_u64..3, 1_u64..20, 0_u64..101), 0..6), 1..20),
    ) {
        let mut executor = executor();
        let mut newest: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        let mut replies: BTreeMap<(u64, u64), Reply> = BTreeMap::new();
        for batch in &batches {
            let frames: Vec<_> =
                batch.iter().map(|(client, number, size)| frame(*client, *number, &[&format!("big {size}")])).collect();
            let outcome = run(&mut executor, &frames);
            let mut executed = Vec::new();
            for (client, number, _) in batch {
                let slot = newest.entry((*client, number % SMALL.client_window)).or_default();
                if *number > *slot {
                    *slot = *number;
                    executed.push((*client, *number));
                }
            }
            let replied: Vec<_> = outcome.replies.iter().map(|reply| (reply.client.0, reply.number)).collect();
            prop_assert_eq!(replied, executed);
            prop_assert_eq!(outcome.done.len(), batch.len());
            replies.extend(outcome.replies.into_iter().map(|reply| ((reply.client.0, reply.number), reply)));
            if batch.len() % 2 == 0 {
                checkpoint(&mut executor);
            }
        }
        for client in 0..3 {
            let mut cached = 0;
            for number in 0..25 {
                let slot = newest.get(&(client, number % SMALL.client_window)).copied().unwrap_or(0);
                match executor.lookup(ClientId(client), number) {
                    Lookup::New => prop_assert!(number > slot),
                    Lookup::ResultGone(seq) => {
                        prop_assert_eq!(number, slot);
                        prop_assert_eq!(seq, replies[&(client, number)].seq);
                    }
                    Lookup::TooOld => prop_assert!(number < slot || number == 0),
                    Lookup::Executed(reply) => {
                        prop_assert_eq!(number, slot);
                        prop_assert_eq!(&*reply, &replies[&(client, number)]);
                        cached += results(&reply).iter().map(|result| result.len() + 4).sum::<usize>();
                    }
                }
            }
            prop_assert!(cached <= SMALL.client_bytes);
        }
    }
}
