//! Which fault comes next.

use crate::processes::Part;
use crate::zookeeper::faults::{Kind, Schedule, Targets};
use std::collections::BTreeSet;

const TARGETS: Targets = Targets { gateways: 3, replicas: 5, faults: 2, apart: true };

#[test]
fn every_kind_comes_in_every_round() {
    let mut schedule = Schedule::new(7, TARGETS);
    for _ in 0..20 {
        let round: BTreeSet<Kind> = Kind::ALL.iter().map(|_| schedule.next().kind).collect();
        assert_eq!(round.len(), Kind::ALL.len());
    }
    let without = Targets { apart: false, ..TARGETS };
    assert!(!without.kinds().contains(&Kind::Trusted));
    assert_eq!(without.kinds().len(), Kind::ALL.len() - 1);
}

#[test]
fn no_more_is_killed_than_may_be() {
    for seed in 0..50 {
        let mut schedule = Schedule::new(seed, TARGETS);
        for _ in 0..30 {
            let fault = schedule.next();
            let (replicas, gateways) = (fault.replicas.len(), fault.gateways.len());
            match fault.kind {
                Kind::Everything => assert_eq!((replicas, gateways), (5, 3)),
                Kind::Gateways => assert_eq!((replicas, gateways), (0, 3)),
                Kind::Gateway => assert_eq!((replicas, gateways), (0, 1)),
                Kind::Together => assert!((1..=2).contains(&replicas) && gateways == 1),
                Kind::Replica | Kind::Trusted => assert!((1..=2).contains(&replicas) && gateways == 0),
            }
            assert_eq!(fault.parts.contains(&Part::Replica), fault.kind != Kind::Trusted);
            assert!(!fault.aims || (replicas > 0 && fault.kind != Kind::Everything));
        }
    }
}

#[test]
fn a_seed_makes_the_same_choices() {
    let faults = |seed| {
        let mut schedule = Schedule::new(seed, TARGETS);
        (0..20).map(|_| schedule.next()).collect::<Vec<_>>()
    };
    assert_eq!(faults(3), faults(3));
    assert_ne!(faults(3), faults(4));
}
