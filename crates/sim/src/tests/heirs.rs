//! Worlds of MinBFT in which a faulty replica has the component that it had and the one that took its place.

use crate::minbft::MinBftWorld;
use crate::shrink::run;
use crate::{FaultClass, FaultyKind, Options, Overrides, Protocol};

fn draw(seed: u64) -> Options {
    Options::draw(seed, 1, MinBftWorld::shape(1), &Overrides::default())
}

#[test]
fn an_heir_is_readmitted_and_changes_nothing() {
    let worlds: Vec<u64> = (0..400).filter(|seed| draw(*seed).heirs).collect();
    assert!(worlds.len() > 8, "{} of 400", worlds.len());
    let (mut readmitted, mut accused) = (0, 0);
    for seed in worlds.into_iter().take(8) {
        let world = draw(seed);
        assert!(world.bridges && world.has(FaultClass::Losses) && !world.has(FaultClass::Cuts));
        assert_eq!(world.faulty[0].kind, FaultyKind::Heir);
        let outcome = run::<MinBftWorld>(seed, 1, &Overrides::default(), 0);
        assert_eq!(outcome.violation, None, "seed {seed}");
        readmitted += usize::from(outcome.losses > 0);
        accused += usize::from(outcome.accusations > 0);
    }
    assert!(readmitted >= 6, "{readmitted} of 8 have another component");
    assert!(accused >= 3, "what the heir says is found out in {accused} of 8");
}
