//! USIG and CASH, by the rules of their papers.

use crate::support::{IDENTITY, mac_key, step, volatile_core};
use troth_trusted::cash::{Received, create_mc, create_mc_multi, verify_mc};
use troth_trusted::usig::{create_ui, verify_ui};
use troth_trusted::{COUNTERS, CounterId, CounterValue, Epoch, Identity, Refusal, Resumed, Verifier};

const A: [u8; 32] = [0xa; 32];
const B: [u8; 32] = [0xb; 32];

#[test]
fn usig_identifiers_are_sequential_and_bound_to_their_message() {
    let mut core = volatile_core();
    let verifier = mac_key().verifier();
    for value in 1..=3 {
        let ui = create_ui(&mut core, &A).expect("an identifier");
        assert_eq!(ui.moved(), step(0, value - 1, value));
        assert!(verify_ui(&verifier, &IDENTITY, &ui, &A));
        assert!(!verify_ui(&verifier, &IDENTITY, &ui, &B));
        assert!(!verify_ui(&verifier, &Identity { epoch: Epoch(1), ..IDENTITY }, &ui, &A));
        assert_eq!(core.resume(CounterId(0)), Ok(Resumed::One { certificate: ui, digest: A }));
    }
}

#[test]
fn usig_rejects_jumps_and_other_counters() {
    let mut core = volatile_core();
    let verifier = mac_key().verifier();
    let jump = core.attest(CounterId(0), CounterValue(0), CounterValue(2), &A).expect("a jump");
    let other = core.attest(CounterId(1), CounterValue(0), CounterValue(1), &A).expect("a move");
    assert!(verifier.verify(&IDENTITY, &jump, &A) && verifier.verify(&IDENTITY, &other, &A));
    assert!(!verify_ui(&verifier, &IDENTITY, &jump, &A));
    assert!(!verify_ui(&verifier, &IDENTITY, &other, &A));
}

#[test]
fn a_spent_counter_is_refused() {
    let mut core = volatile_core();
    let end = CounterValue(u128::MAX);
    core.attest(CounterId(0), CounterValue(0), end, &A).expect("a jump to the end");
    let spent = Refusal::NotAhead { counter: CounterId(0), current: end };
    assert_eq!(create_ui(&mut core, &B), Err(spent));
    assert_eq!(create_mc_multi(&mut core, &[CounterId(0), CounterId(1)], &B), Err(spent));
}

#[test]
fn cash_counters_are_independent_and_named() {
    let mut core = volatile_core();
    let verifier = mac_key().verifier();
    let first = create_mc(&mut core, CounterId(1), &A).expect("a certificate");
    let second = create_mc(&mut core, CounterId(4), &A).expect("a certificate");
    assert_eq!(first.moved(), step(1, 0, 1));
    assert_eq!(second.moved(), step(4, 0, 1));
    assert!(verify_mc(&verifier, &IDENTITY, CounterId(1), &first, &A));
    assert!(!verify_mc(&verifier, &IDENTITY, CounterId(4), &first, &A));
    assert!(!verify_mc(&verifier, &IDENTITY, CounterId(1), &first, &B));
    let unknown = Refusal::UnknownCounter(CounterId(8));
    assert_eq!(create_mc(&mut core, CounterId(8), &A), Err(unknown));
    let jump = core.attest(CounterId(1), CounterValue(1), CounterValue(3), &A).expect("a jump");
    assert!(!verify_mc(&verifier, &IDENTITY, CounterId(1), &jump, &A));
}

#[test]
fn cash_moves_several_counters_under_one_certificate() {
    let mut core = volatile_core();
    create_mc(&mut core, CounterId(1), &A).expect("a certificate");
    let mc = create_mc_multi(&mut core, &[CounterId(0), CounterId(1)], &B).expect("a certificate");
    assert_eq!(mc.moves.as_slice(), [step(0, 0, 1), step(1, 1, 2)]);
    assert!(mac_key().verifier().verify_multi(&IDENTITY, &mc, &B));
    let every: Vec<_> = (0..COUNTERS as u16).map(CounterId).collect();
    assert!(create_mc_multi(&mut core, &every, &B).is_ok());
    for bad in [&every[..0], &every[..1], &[CounterId(1), CounterId(0)], &[CounterId(1), CounterId(1)]] {
        assert_eq!(create_mc_multi(&mut core, bad, &B), Err(Refusal::BadMoves));
    }
    assert_eq!(create_mc_multi(&mut core, &[CounterId(0); 9], &B), Err(Refusal::BadMoves));
}

#[test]
fn is_next_accepts_each_certificate_once_and_in_order() {
    let mut core = volatile_core();
    let verifier = mac_key().verifier();
    let counter = CounterId(3);
    let mcs: Vec<_> = (0..3).map(|_| create_mc(&mut core, counter, &A).expect("a certificate")).collect();
    let mut received = Received::new(IDENTITY);
    assert!(!received.check_mc(&verifier, counter, &mcs[1], &A), "a gap");
    assert!(!received.check_mc(&verifier, counter, &mcs[0], &B), "another message");
    assert!(!received.check_mc(&verifier, CounterId(2), &mcs[0], &A), "another counter");
    assert!(!received.check_mc(&verifier, CounterId(8), &mcs[0], &A), "no such counter");
    assert_eq!(received.latest(counter), Some(CounterValue(0)), "a rejected one leaves no trace");
    for (mc, value) in mcs.iter().zip(1..) {
        assert!(received.check_mc(&verifier, counter, mc, &A));
        assert!(!received.check_mc(&verifier, counter, mc, &A), "a replay");
        assert_eq!(received.latest(counter), Some(CounterValue(value)));
    }
    assert_eq!(received.latest(CounterId(2)), Some(CounterValue(0)));
    assert_eq!(received.latest(CounterId(8)), None);
    let mut elsewhere = Received::new(Identity { replica: 9, ..IDENTITY });
    assert!(!elsewhere.check_mc(&verifier, counter, &mcs[0], &A), "another component");
}
