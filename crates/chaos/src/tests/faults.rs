//! The schedule: what a seed chooses.

use crate::faults::{Fault, KINDS, Kind, Schedule};
use std::collections::BTreeSet;
use std::time::Duration;

fn faults(seed: u64, f: u16, count: usize) -> Vec<Fault> {
    let mut schedule = Schedule::new(seed, f);
    (0..count).map(|_| schedule.next()).collect()
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
            if fault.kind == Kind::Everything {
                assert_eq!(victims.len(), usize::from(2 * f + 1));
            } else {
                most = most.max(victims.len());
            }
        }
        assert_eq!(most, usize::from(f), "f at a time do happen");
    }
}

#[test]
fn a_reset_breaks_again_and_again_and_ends() {
    let fault = faults(1, 1, KINDS.len()).into_iter().find(|fault| fault.kind == Kind::Reset).unwrap();
    assert!(fault.breaks_clients(Duration::ZERO));
    assert!(!fault.breaks_clients(Duration::from_millis(100)));
    assert!(!fault.breaks_clients(fault.lasts));
}
