//! Whole seeds: deterministic, clean, and not clean where they must not be.

use crate::minbft::MinBftWorld;
use crate::report::{MIN_REQUESTS, Report};
use crate::shrink::{run, shrink};
use crate::{FaultClass, FaultyKind, Options, Outcome, Overrides, Protocol};

fn outcome(seed: u64, f: u16, overrides: &Overrides) -> Outcome {
    run::<MinBftWorld>(seed, f, overrides, 0)
}

fn clean(f: u16, seeds: u64) {
    let mut report = Report::default();
    for seed in 0..seeds {
        let outcome = outcome(seed, f, &Overrides::default());
        assert_eq!(outcome.violation, None, "f = {f}, seed {seed}");
        report.add(seed, &outcome);
    }
    assert_eq!(report.vacuous_seed, None, "every seed orders at least {MIN_REQUESTS} requests");
    assert!(report.seeds_with_view_changes * 5 >= seeds && report.seeds_with_transfers * 5 >= seeds);
    assert!(report.seeds_with_restarts * 5 >= seeds && report.seeds_with_effective * 5 >= seeds);
}

#[test]
fn thirty_seeds_at_f_1_hold() {
    clean(1, 30);
}

#[test]
fn thirty_seeds_at_f_2_hold() {
    clean(2, 30);
}

#[test]
fn thirty_seeds_at_f_3_hold() {
    clean(3, 30);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for (seed, f) in [(3, 1), (4, 2), (5, 3)] {
        let (one, two) = (outcome(seed, f, &Overrides::default()), outcome(seed, f, &Overrides::default()));
        assert_eq!((one.hash, one.steps, one.ordered), (two.hash, two.steps, two.ordered));
    }
    assert_ne!(outcome(3, 1, &Overrides::default()).hash, outcome(4, 1, &Overrides::default()).hash);
}

#[test]
fn a_trace_changes_nothing() {
    let plain = outcome(6, 1, &Overrides::default());
    let traced = run::<MinBftWorld>(6, 1, &Overrides::default(), 50);
    assert_eq!(plain.hash, traced.hash);
    assert_eq!((plain.trace.len(), traced.trace.len()), (0, 50));
}

#[test]
fn a_cloned_component_is_noticed_on_the_wire() {
    let negative = Overrides { negative: true, ..Overrides::default() };
    let found = (0..10).filter(|seed| {
        let outcome = outcome(*seed, 1, &negative);
        outcome.violation.is_some_and(|violation| violation.property == "trusted uniqueness")
    });
    assert!(found.count() >= 8, "clones in use are seen at once");
}

#[test]
fn a_cloned_component_breaks_agreement_where_nobody_looks_at_counters() {
    let negative = Overrides { negative: true, trust_blind: true, ..Overrides::default() };
    let broken = (0..60).any(|seed| {
        outcome(seed, 1, &negative).violation.is_some_and(|violation| violation.property == "agreement")
    });
    assert!(broken);
}

#[test]
fn shrinking_keeps_the_failure_and_takes_something_away() {
    let negative = Overrides { negative: true, ..Overrides::default() };
    let smaller = shrink::<MinBftWorld>(1, 1, &negative, |_| {});
    assert_ne!(smaller, negative);
    let property = |overrides| outcome(1, 1, overrides).violation.map(|violation| violation.property);
    assert_eq!(property(&smaller), property(&negative));
}

#[test]
fn taking_a_fault_class_away_leaves_the_rest_of_the_draw() {
    let shape = MinBftWorld::shape(2);
    for seed in 0..50 {
        let all = Options::draw(seed, 2, shape, &Overrides::default());
        for class in FaultClass::ALL {
            let without = Overrides { without: [class].into(), ..Overrides::default() };
            let less = Options::draw(seed, 2, shape, &without);
            assert!(!less.has(class));
            assert_eq!(
                (all.interval, all.delay_mean, &all.faulty),
                (less.interval, less.delay_mean, &less.faulty)
            );
        }
    }
}

#[test]
fn every_strategy_and_general_adversary_is_drawn_and_never_more_than_f() {
    let shape = MinBftWorld::shape(3);
    let mut kinds = std::collections::BTreeSet::new();
    for seed in 0..400 {
        let options = Options::draw(seed, 3, shape, &Overrides::default());
        assert!(options.faulty.len() <= 3);
        kinds.extend(options.faulty.iter().map(|faulty| faulty.kind));
        let literal = Overrides { literal: Some("F-M1".to_owned()), ..Overrides::default() };
        let general = Options::draw(seed, 3, shape, &literal);
        let written = |kind: FaultyKind| matches!(kind, FaultyKind::Written(_));
        assert!(
            !general.faulty.iter().any(|faulty| written(faulty.kind)),
            "literal rules meet general adversaries"
        );
    }
    assert!(kinds.contains(&FaultyKind::Heir));
    assert_eq!(kinds.len(), 4 + shape.strategies);
}
