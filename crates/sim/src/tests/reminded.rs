//! A replica that shows what one client sent long ago over and over must not keep that client's places taken.

use crate::a2m_pbft_e::A2mPbftEWorld;
use crate::a2m_pbft_ea::A2mPbftEaWorld;
use crate::options::{Faulty, FaultyKind};
use crate::{FaultClass, Options, Overrides, Protocol, World};

/// The longest that a request waits, in microseconds, in a world of this seed where nothing is wrong but that, with clients
/// that use each of their few places again and again.
fn longest_wait<P: Protocol>(seed: u64) -> u64 {
    let overrides = Overrides { without: FaultClass::ALL.into(), ..Overrides::default() };
    let mut options = Options::draw(seed, 1, P::shape(1), &overrides);
    let kind = FaultyKind::Written(P::strategies().len() - 1);
    options.faulty = vec![Faulty { replica: options.n - 1, kind, reforms: true }];
    (options.client_window, options.outstanding, options.clients, options.requests) = (8, 8, 2, 100);
    (options.fault_phase, options.client_deadline) = (1_000, u64::MAX / 2);
    let outcome = World::<P>::run(&options, 0);
    assert_eq!(outcome.violation, None, "{} seed {seed}", P::NAME);
    assert_eq!(outcome.adversaries, ["reminder of what is done"]);
    outcome.waited
}

#[test]
fn a_client_whose_old_frames_are_shown_without_end_is_answered_soon() {
    for seed in 0..8 {
        let waits = [longest_wait::<A2mPbftEWorld>(seed), longest_wait::<A2mPbftEaWorld>(seed)];
        // Where all that it shows was ordered again it was 59 to 554 milliseconds.
        assert!(waits.iter().all(|waited| *waited < 50_000), "seed {seed}: {waits:?}");
    }
}
