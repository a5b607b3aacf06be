//! PBFT's worlds: batches are undone and reads answered there, and its published read rule is found out.

use crate::pbft::PbftWorld;
use crate::report::Report;
use crate::shrink::run;
use crate::{FaultClass, FaultyKind, Options, Overrides, Protocol};

#[test]
fn twenty_seeds_hold_and_undo_batches_and_answer_reads() {
    let mut report = Report::default();
    for seed in 0..20 {
        let outcome = run::<PbftWorld>(seed, 1, &Overrides::default(), 0);
        assert_eq!(outcome.violation, None, "seed {seed}");
        report.add(seed, &outcome);
    }
    assert_eq!(report.vacuous_seed, None);
    assert!(report.seeds_with_undone >= 10, "batches are undone in {} of 20", report.seeds_with_undone);
    assert!(report.fast_reads * 4 > report.reads, "{} of {} reads", report.fast_reads, report.reads);
}

#[test]
fn the_published_read_rule_is_found_out() {
    let overrides = Overrides { literal: Some("READ-EXECUTED".to_owned()), ..Overrides::default() };
    let mut violations = (0..400).filter_map(|seed| run::<PbftWorld>(seed, 1, &overrides, 0).violation);
    assert!(violations.any(|violation| violation.property == "linearizability"));
}

#[test]
fn a_world_of_faces_falls_into_parts_and_shows_each_something_else() {
    let draw = |seed| Options::draw(seed, 1, PbftWorld::shape(1), &Overrides::default());
    let worlds: Vec<u64> = (0..400).filter(|seed| draw(*seed).faces).collect();
    assert!(worlds.len() > 10, "{} of 400", worlds.len());
    let mut left = 0;
    for seed in worlds.into_iter().take(5) {
        let world = draw(seed);
        assert!(world.bridges && world.has(FaultClass::Partitions));
        assert!(world.faulty.iter().all(|it| it.kind == FaultyKind::Janus));
        let outcome = run::<PbftWorld>(seed, 1, &Overrides::default(), 0);
        assert_eq!(outcome.violation, None, "seed {seed}");
        assert!(outcome.effective > 100, "seed {seed}");
        left += usize::from(outcome.view_changes > 0);
    }
    assert!(left >= 3, "a view is left in {left} of 5");
}

#[test]
fn parrots_and_bridges_are_drawn_where_a_literal_rule_is_in_force_and_else() {
    for literal in [None, Some("NULL-RULE".to_owned())] {
        let overrides = Overrides { literal, ..Overrides::default() };
        let draw = |seed| Options::draw(seed, 1, PbftWorld::shape(1), &overrides);
        let worlds: Vec<Options> = (0..200).map(draw).collect();
        let parrots =
            worlds.iter().flat_map(|world| &world.faulty).filter(|it| it.kind == FaultyKind::Parrot);
        assert!(parrots.count() > 5);
        assert!(worlds.iter().filter(|world| world.bridges).count() > 40);
    }
}
