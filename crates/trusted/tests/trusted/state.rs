//! The stored form of a state.

use crate::support::IDENTITY;
use sha2::{Digest as _, Sha256};
use troth_trusted::{CounterState, CounterValue, Epoch, Identity, State};

fn busy() -> State {
    let mut state = State::new(IDENTITY);
    for (index, counter) in (1..).zip(&mut state.counters) {
        *counter = CounterState {
            value: CounterValue(u128::MAX - u128::from(index)),
            previous: CounterValue(u128::from(index) << 70),
            digest: [index; 32],
            together: 1 << (index - 1),
        };
    }
    state
}

#[test]
fn a_state_is_stored_in_this_layout() {
    let mut expected = b"troth-state/v1".to_vec();
    expected.extend(IDENTITY.group);
    expected.extend(IDENTITY.replica.to_be_bytes());
    expected.extend(IDENTITY.epoch.0.to_be_bytes());
    for counter in busy().counters {
        expected.extend(counter.value.0.to_be_bytes());
        expected.extend(counter.previous.0.to_be_bytes());
        expected.extend(counter.digest);
        expected.push(counter.together);
    }
    expected.extend(Sha256::digest(&expected));
    assert_eq!(busy().to_bytes().as_slice(), expected);
    assert_eq!(State::LEN, 592);
}

#[test]
fn a_stored_state_comes_back() {
    for state in [State::new(IDENTITY), busy()] {
        assert_eq!(State::from_bytes(&state.to_bytes()), Some(state));
    }
}

#[test]
fn a_damaged_state_does_not() {
    let good = busy().to_bytes();
    for bit in 0..8 * State::LEN {
        let mut bytes = good;
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(State::from_bytes(&bytes), None, "bit {bit} is not covered");
    }
    assert_eq!(State::from_bytes(&[0; State::LEN]), None);
}

#[test]
fn another_format_is_refused_even_with_a_good_checksum() {
    let mut bytes = busy().to_bytes();
    bytes[13] = b'2';
    let checksum = Sha256::digest(&bytes[..State::LEN - 32]);
    bytes[State::LEN - 32..].copy_from_slice(&checksum);
    assert_eq!(State::from_bytes(&bytes), None);
}

#[test]
fn a_new_state_stands_at_zero() {
    let identity = Identity { epoch: Epoch(5), ..IDENTITY };
    let state = State::new(identity);
    assert_eq!(state.identity, identity);
    let unmoved =
        CounterState { value: CounterValue(0), previous: CounterValue(0), digest: [0; 32], together: 0 };
    assert_eq!(state.counters, [unmoved; 8]);
}
