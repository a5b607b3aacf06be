//! PBFT's worlds: batches are undone and reads answered there, and its published read rules are found out.

use crate::Overrides;
use crate::pbft::PbftWorld;
use crate::report::Report;
use crate::shrink::run;

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
fn the_published_read_rules_are_found_out() {
    // Any seed would do that shows it; these do so early.
    for (literal, seeds) in [("READ-EXECUTED", 0..12), ("READ-FINAL", 370..380)] {
        let overrides = Overrides { literal: Some(literal.to_owned()), ..Overrides::default() };
        let found = seeds
            .filter_map(|seed| run::<PbftWorld>(seed, 1, &overrides, 0).violation)
            .find(|violation| violation.property == "linearizability");
        assert!(found.is_some(), "{literal}");
    }
}
