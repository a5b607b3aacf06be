//! Batches that are executed before their place is final: what is undone leaves nothing behind.

use super::support::{SMALL, Script, checkpoint, events_after, frame, run, transfer};
use crate::{Executor, MerkleMap};
use bytes::Bytes;
use troth_core::{Execution, Lookup, Ordered, Outcome, VerifiedFrame};
use troth_types::{ClientId, Digest, Read, Seq};

fn executor() -> Executor<Script> {
    Executor::new(Script::default(), SMALL)
}

fn tentatively(executor: &mut Executor<Script>, frames: &[VerifiedFrame]) -> Outcome {
    let (seq, time) = (executor.executed().next(), executor.last_time().after(1000));
    executor.execute_tentatively(&Ordered { seq, time, seed: Digest([9; 32]), frames: frames.to_vec() })
}

/// The batch of a number: it writes, removes, tells and sets the alarm, over what others wrote.
fn batch(number: u64) -> Vec<VerifiedFrame> {
    let one = format!("set k{} {number}", number % 3);
    let two = format!("del k{}", (number + 1) % 3);
    let three = format!("wake {}", 1_000 * number + 1_500);
    vec![frame(1, number, &[&one, "add sum 1", "tell 2 changed"]), frame(2, number, &[&two, &three])]
}

/// All that anybody can see of an executor.
fn face(executor: &Executor<Script>) -> impl PartialEq + core::fmt::Debug + use<> {
    let numbers = (1..12).flat_map(|number| [(1, number), (2, number)]);
    let slots: Vec<Lookup> =
        numbers.map(|(client, number)| executor.lookup(ClientId(client), number)).collect();
    let events = [2, 7].map(|client| events_after(executor, client, 0));
    let keys: Vec<_> = executor.state().scan(b"").map(|(key, value)| (key.to_vec(), value)).collect();
    let read = Read {
        client: ClientId(2),
        number: 1,
        nonce: None,
        least: None,
        operation: Bytes::from_static(b"sum"),
    };
    (
        (executor.executed(), executor.last_time(), executor.next_deadline()),
        (slots, events, keys, executor.query(&read)),
        executor.digest_now(),
    )
}

#[test]
fn what_is_undone_leaves_nothing_behind() {
    for (last, committed) in (1..=4).flat_map(|last| (0..=last).map(move |committed| (last, committed))) {
        // The same with and without batches that were undone, from a state that is partly sealed.
        let (mut there, mut straight) = (executor(), executor());
        for executor in [&mut there, &mut straight] {
            run(executor, &batch(1));
            executor.checkpoint();
            run(executor, &batch(2));
        }
        let outcomes: Vec<Outcome> =
            (3..3 + last).map(|number| tentatively(&mut there, &batch(number))).collect();
        assert_eq!((there.committed(), there.executed()), (Seq(2), Seq(2 + last)));
        for number in 3..3 + committed {
            there.commit(Seq(number));
            let outcome = run(&mut straight, &batch(number));
            assert_eq!(outcome, outcomes[number as usize - 3], "it is executed in the same way");
        }
        there.roll_back(Seq(2 + committed));
        assert_eq!(face(&there), face(&straight), "{last} executed, {committed} committed");
        assert_eq!(there.committed(), there.executed());
        // It goes on with something else, and its checkpoints are the same.
        for executor in [&mut there, &mut straight] {
            run(executor, &[frame(1, 11, &["set k0 other", "add sum 5"])]);
            while executor.hashing() {
                executor.poll_checkpoint(1000);
            }
        }
        assert_eq!(checkpoint(&mut there), checkpoint(&mut straight));
        assert_eq!(face(&there), face(&straight));
    }
}

#[test]
fn one_after_the_other_is_committed_and_only_the_rest_is_undone() {
    let (mut there, mut straight) = (executor(), executor());
    for number in 1..=9 {
        run(&mut straight, &batch(number));
        tentatively(&mut there, &batch(number));
        if number > 2 {
            there.commit(Seq(number - 2));
        }
    }
    assert_eq!(there.committed(), Seq(7));
    there.roll_back(Seq(8));
    assert_eq!((there.committed(), there.executed()), (Seq(7), Seq(8)), "as far as is asked for");
    tentatively(&mut there, &batch(9));
    there.commit(Seq(9));
    assert_eq!(face(&there), face(&straight));
}

#[test]
fn a_state_from_others_takes_the_place_of_what_is_tentative() {
    let mut from = executor();
    for number in 1..=3 {
        run(&mut from, &batch(number));
    }
    let goal = checkpoint(&mut from);
    let mut to = executor();
    run(&mut to, &batch(1));
    for number in 5..=8 {
        tentatively(&mut to, &[frame(1, number, &["set k1 wrong"])]);
    }
    transfer(&from, &mut to, goal, |_| None);
    assert_eq!((to.committed(), face(&to)), (Seq(3), face(&from)));
    run(&mut to, &batch(4));
    run(&mut from, &batch(4));
    assert_eq!(face(&to), face(&from));
}

#[test]
#[should_panic(expected = "a checkpoint holds what is final")]
fn no_checkpoint_holds_what_is_tentative() {
    let mut executor = executor();
    tentatively(&mut executor, &batch(1));
    executor.checkpoint();
}

#[test]
fn marks_are_forgotten_from_the_oldest() {
    let mut map = MerkleMap::new();
    let value = |text: &'static str| Bytes::from_static(text.as_bytes());
    map.mark();
    map.insert(b"a", value("1"));
    let second = map.mark();
    map.insert(b"a", value("2"));
    map.forget_before(second);
    let third = map.mark();
    map.insert(b"a", value("3"));
    map.insert(b"b", value("3"));
    map.rollback(third);
    assert_eq!((map.get(b"a"), map.get(b"b")), (Some(value("2")), None));
    map.rollback(second);
    assert_eq!(map.get(b"a"), Some(value("1")));
}
