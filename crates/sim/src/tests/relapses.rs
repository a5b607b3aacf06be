//! Worlds of A2M-PBFT-EA in which the colluders go back together to what they were: the fixed rules bear them, and one
//! number of evidence for all views does not.

use crate::a2m_pbft_ea::A2mPbftEaWorld;
use crate::shrink::run;
use crate::world::World;
use crate::{FaultClass, FaultyKind, Options, Overrides, Protocol};
use troth_types::ReplicaId;

fn draw(seed: u64, overrides: &Overrides) -> Options {
    Options::draw(seed, 1, A2mPbftEaWorld::shape(1), overrides)
}

#[test]
fn the_parts_of_a_world_leave_views_and_the_rules_bear_it() {
    let usual = Overrides::default();
    let worlds: Vec<u64> = (0..400).filter(|seed| draw(*seed, &usual).relapses).collect();
    assert!(worlds.len() > 5, "{} of 400", worlds.len());
    let mut left = 0;
    for seed in worlds.into_iter().take(5) {
        let world = draw(seed, &usual);
        assert!(world.bridges && !world.faces && world.has(FaultClass::Partitions));
        assert!(world.faulty.iter().all(|it| it.kind == FaultyKind::Relapse));
        let outcome = run::<A2mPbftEaWorld>(seed, 1, &usual, 0);
        assert_eq!(outcome.violation, None, "seed {seed}");
        assert!(outcome.effective > 100, "seed {seed}");
        left += usize::from(outcome.view_changes > 1);
    }
    assert!(left >= 3, "views are left in {left} of 5");
}

#[test]
fn one_number_of_evidence_for_all_views_is_found_out() {
    let overrides = Overrides { literal: Some("F-A2".to_owned()), ..Overrides::default() };
    // One seed in some hundreds finds it, and which does depends on all that clients and replicas do.
    let mut violations =
        (680..720).filter_map(|seed| run::<A2mPbftEaWorld>(seed, 2, &overrides, 0).violation);
    assert!(violations.any(|violation| violation.property == "agreement"));
}

/// One that is about to amid a call to its component would wait for the answer without end, and do no more harm.
#[test]
fn correct_replicas_are_about_to_crash_and_faulty_ones_never_are() {
    let worlds: Vec<Options> = (0..100).map(|seed| draw(seed, &Overrides::default())).collect();
    let crashing = |world: &&Options| world.has(FaultClass::Crashes) && world.crash_per_command > 0;
    let crashing: Vec<&Options> = worlds.iter().filter(crashing).collect();
    assert!(crashing.len() > 10, "{} of 100", crashing.len());
    let mut correct = 0;
    for options in crashing {
        let mut world = World::<A2mPbftEaWorld>::new(options, 0);
        world.start();
        let about = world.about_to_crash();
        let faulty = |replica: &ReplicaId| options.faulty(replica.0).is_some();
        assert!(!about.iter().any(faulty), "seed {}", options.seed);
        correct += about.len();
    }
    assert!(correct > 10, "{correct}");
}
