//! Frames that may be repeated: the rule holds, and is needed.

use crate::support::{IDENTITY, attest, attest_multi, mac, read, resume, step};
use proptest::prelude::*;
use troth_trusted::{TrustedCore, VolatileStore};
use troth_trusted_host::{Answer, Call, InProcess, TrustedComponent};
use troth_trusted_process::batch::frames;
use troth_trusted_process::wire::MAX_CALLS;

fn component() -> InProcess<VolatileStore> {
    InProcess::new(TrustedCore::start(IDENTITY, mac(), VolatileStore))
}

fn counters(component: &mut InProcess<VolatileStore>) -> Vec<Answer> {
    component.call(&(0..8).map(read).collect::<Vec<_>>())
}

/// Small values, so that calls often fit where the counters stand, and two digests.
fn call() -> impl Strategy<Value = Call> {
    let one = (0..3u16, 0..3u128, 1..3u128, 0..2u8);
    prop_oneof![
        6 => one.prop_map(|(c, from, by, d)| attest(step(c, from, from + by), [d; 32])),
        3 => (0..2u16, 0..3u128, 1..3u128, 0..3u128, 1..3u128, 0..2u8).prop_map(|(c, from, by, from2, by2, d)| {
            attest_multi(&[step(c, from, from + by), step(c + 1, from2, from2 + by2)], [d; 32])
        }),
        1 => (0..3u16).prop_map(read),
        2 => (0..3u16).prop_map(resume),
        1 => Just(attest(step(9, 0, 1), [0; 32])),
    ]
}

/// Whether doing a first part of `batch` and then the whole answers as doing it once does, for each part.
fn repeatable(start: &InProcess<VolatileStore>, batch: &[Call]) -> bool {
    let mut once = start.clone();
    let expected = (once.call(batch), counters(&mut once));
    (0..=batch.len()).all(|done| {
        let mut again = start.clone();
        again.call(&batch[..done]);
        (again.call(batch), counters(&mut again)) == expected
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn whatever_part_of_a_frame_was_done_repeating_it_gives_the_same(
        before in proptest::collection::vec(call(), 0..6),
        batch in proptest::collection::vec(call(), 0..8),
    ) {
        let mut component = component();
        component.call(&before);
        let mut cut = Vec::new();
        for frame in frames(&batch) {
            prop_assert!(!frame.is_empty() && frame.len() <= MAX_CALLS);
            prop_assert!(repeatable(&component, frame), "{frame:?}");
            component.call(frame);
            cut.extend_from_slice(frame);
        }
        prop_assert_eq!(cut, batch);
    }
}

#[test]
fn a_batch_that_moves_each_counter_once_is_one_frame() {
    let mut batch: Vec<Call> = (0..6).map(|c| attest(step(c, 0, 1), [1; 32])).collect();
    batch.insert(0, read(7));
    batch.push(attest_multi(&[step(6, 0, 1), step(7, 0, 1)], [1; 32]));
    batch.remove(0);
    batch.extend((0..8).map(read));
    batch.extend((0..8).map(resume));
    assert_eq!(frames(&batch).count(), 1);
}

#[test]
fn calls_that_depend_on_each_other_are_cut() {
    let d = [1; 32];
    for (batch, parts) in [
        (vec![attest(step(0, 0, 1), d), attest(step(0, 1, 2), d)], 2),
        (vec![read(0), attest(step(0, 0, 1), d)], 2),
        (vec![read(1), attest(step(0, 0, 1), d)], 1),
        (vec![resume(1), attest(step(0, 0, 1), d)], 2),
        (vec![attest(step(0, 0, 1), d), read(0), resume(0)], 1),
        (vec![attest_multi(&[step(0, 0, 1), step(1, 0, 1)], d), attest(step(1, 1, 2), d)], 2),
        (vec![resume(0), attest(step(9, 0, 1), d)], 1),
        (vec![read(0); MAX_CALLS + 1], 2),
        (vec![], 0),
    ] {
        assert_eq!(frames(&batch).count(), parts, "{batch:?}");
    }
}

/// Why batches are cut at all: repeated as a whole these lose a certificate for good.
#[test]
fn uncut_batches_do_not_survive_a_repetition() {
    let d = [1; 32];
    let mut at_four = component();
    at_four.call(&[attest(step(0, 0, 4), d)]);
    let mut together = component();
    together.call(&[attest_multi(&[step(0, 0, 1), step(1, 0, 1)], d)]);
    for (start, batch) in [
        (component(), vec![attest(step(0, 0, 1), d), attest(step(0, 1, 2), d)]),
        (at_four.clone(), vec![attest(step(0, 5, 6), d), attest(step(0, 4, 5), d)]),
        (at_four, vec![read(0), attest(step(0, 4, 5), d)]),
        (together, vec![resume(0), attest(step(1, 1, 2), d)]),
    ] {
        assert!(!repeatable(&start, &batch), "{batch:?}");
        assert_eq!(frames(&batch).count(), 2, "{batch:?}");
    }
}
