//! What the tests share: an identity, keys and short names for moves.

use troth_trusted::{
    Certifier, CounterId, CounterValue, Epoch, Identity, MacKey, Move, Moves, TrustedCore, VolatileStore,
};

/// The component under test.
pub const IDENTITY: Identity =
    Identity { group: *b"a group of three", replica: 0x0102, epoch: Epoch(0x0304_0506_0708_090a) };

/// The key of its group.
pub fn mac_key() -> MacKey {
    MacKey::new(&[7; 32])
}

/// A component that starts its epoch and keeps nothing.
pub fn volatile_core() -> TrustedCore<VolatileStore> {
    TrustedCore::start(IDENTITY, Certifier::Mac(mac_key()), VolatileStore)
}

/// A move between plain values.
pub fn step(counter: u16, previous: u128, new: u128) -> Move {
    Move { counter: CounterId(counter), previous: CounterValue(previous), new: CounterValue(new) }
}

/// Well-formed moves.
pub fn moves(of: &[Move]) -> Moves {
    Moves::new(of).expect("the test names well-formed moves")
}
