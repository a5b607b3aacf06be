//! The schedule: what a seed chooses.

use crate::faults::{Breakable, Fault, KINDS, Kind, Schedule};
use crate::processes::Part;
use std::collections::BTreeSet;
use std::time::Duration;

/// 2f+1 replicas with trusted processes, which are readmitted.
fn hybrid(f: u16) -> Breakable {
    Breakable { replicas: 2 * f + 1, faults: f, apart: true, readmits: true }
}

/// 3f+1 replicas, and nothing else.
fn general(f: u16) -> Breakable {
    Breakable { replicas: 3 * f + 1, faults: f, apart: false, readmits: false }
}

fn of(group: Breakable, seed: u64, count: usize) -> Vec<Fault> {
    let mut schedule = Schedule::new(seed, group);
    (0..count).map(|_| schedule.next()).collect()
}

fn faults(seed: u64, f: u16, count: usize) -> Vec<Fault> {
    of(hybrid(f), seed, count)
}

#[test]
fn a_seed_chooses_the_same_faults_again_and_another_seed_others() {
    assert_eq!(faults(5, 2, 50), faults(5, 2, 50));
    assert_ne!(faults(5, 2, 50), faults(6, 2, 50));
}

#[test]
fn every_round_has_every_kind() {
    for round in faults(3, 1, 5 * KINDS.len()).chunks(KINDS.len()) {
        let kinds: BTreeSet<Kind> = round.iter().map(|fault| fault.kind).collect();
        assert_eq!(kinds, KINDS.into());
    }
}

#[test]
fn at_most_f_distinct_replicas_are_broken_but_when_everything_is() {
    for f in 1..=3 {
        let mut most = 0;
        for fault in faults(11, f, 500) {
            let victims: BTreeSet<u16> = fault.victims.iter().copied().collect();
            assert_eq!(victims.len(), fault.victims.len(), "{fault:?}");
            assert!(victims.iter().all(|victim| *victim < 2 * f + 1), "{fault:?}");
            let liars: BTreeSet<u16> = fault.liars.iter().copied().collect();
            assert!(liars.is_disjoint(&victims) && liars.len() == fault.liars.len(), "{fault:?}");
            if fault.kind.hits_all() {
                assert_eq!((victims.len(), liars.len()), (usize::from(2 * f + 1), 0));
            } else {
                most = most.max(victims.len() + liars.len());
            }
        }
        assert_eq!(most, usize::from(f), "f at a time do happen");
    }
}

#[test]
fn liars_are_at_most_f_different_ones_in_a_whole_run_and_lie_beside_other_faults_too() {
    for f in 1..=3 {
        let all = faults(17, f, 600);
        let ever: BTreeSet<u16> = all.iter().flat_map(|fault| fault.liars.iter().copied()).collect();
        assert_eq!(ever.len(), usize::from(f));
        assert!(all.iter().all(|fault| fault.kind != Kind::Lie || !fault.liars.is_empty()));
        let beside = all.iter().filter(|fault| !fault.liars.is_empty() && !fault.victims.is_empty());
        assert_eq!(beside.count() > 0, f > 1, "with f = 1 the liar is the one");
    }
}

#[test]
fn only_faults_that_a_primary_can_have_aim_at_it_and_each_of_them_does() {
    let aimed: BTreeSet<Kind> =
        faults(23, 1, 600).into_iter().filter(|fault| fault.aims).map(|fault| fault.kind).collect();
    let aimable = [Kind::Kill, Kind::KillTrusted, Kind::Lose, Kind::Wipe, Kind::Full, Kind::Clock];
    assert_eq!(aimed, aimable.into());
}

#[test]
fn a_loss_and_a_wipe_hit_either_process_and_both() {
    for kind in [Kind::Lose, Kind::Wipe] {
        let of_kind = faults(29, 1, 600).into_iter().filter(|fault| fault.kind == kind);
        let parts: BTreeSet<Vec<Part>> = of_kind.map(|fault| fault.parts).collect();
        assert_eq!(parts.len(), 3, "{kind:?} {parts:?}");
    }
}

#[test]
fn a_wipe_leaves_a_quorum_that_can_readmit() {
    for f in 1..=3 {
        let wipes: Vec<Fault> =
            faults(31, f, 600).into_iter().filter(|fault| fault.kind == Kind::Wipe).collect();
        let gone = wipes.iter().map(|fault| fault.victims.len() + fault.liars.len());
        assert_eq!(gone.max(), Some(usize::from(f)));
        assert!(wipes.iter().all(|fault| !fault.victims.is_empty()));
    }
}

#[test]
fn a_reset_breaks_again_and_again_and_ends() {
    let fault = faults(1, 1, KINDS.len()).into_iter().find(|fault| fault.kind == Kind::Reset).unwrap();
    assert!(fault.breaks_clients(Duration::ZERO));
    assert!(!fault.breaks_clients(Duration::from_millis(100)));
    assert!(!fault.breaks_clients(fault.lasts));
}

#[test]
fn a_group_without_components_gets_every_fault_that_it_can_come_back_from() {
    let group = general(1);
    let without = [Kind::KillTrusted, Kind::KillBoth, Kind::Wipe];
    assert!(without.iter().all(|kind| group.spared(*kind).is_some() && hybrid(1).spared(*kind).is_none()));
    let kinds = group.kinds();
    assert_eq!(kinds.len(), KINDS.len() - without.len());
    for round in of(group, 3, 5 * kinds.len()).chunks(kinds.len()) {
        let struck: BTreeSet<Kind> = round.iter().map(|fault| fault.kind).collect();
        assert_eq!(struck, kinds.iter().copied().collect());
    }
    let said = group.describe();
    assert!(said.contains("lose") && said.contains("without kill-trusted (no trusted process)"), "{said}");
}

#[test]
fn of_3f_plus_1_at_most_f_are_broken_and_any_of_them() {
    for f in 1..=3 {
        let all = of(general(f), 11, 600);
        let single = all.iter().filter(|fault| !fault.kind.hits_all());
        let broken = single.map(|fault| fault.victims.len() + fault.liars.len());
        assert_eq!(broken.max(), Some(usize::from(f)));
        let ever: BTreeSet<u16> = all.iter().flat_map(|fault| fault.victims.iter().copied()).collect();
        assert_eq!(ever, (0..3 * f + 1).collect());
        // There is one process of each.
        assert!(all.iter().all(|fault| fault.parts == [Part::Replica]), "parts");
    }
}
