//! What is ordered, and in which order, to give a replica another trusted component.

use crate::admin::renewal::{in_force, renew};
use crate::failure::{Failure, NO, UNKNOWN};
use std::collections::BTreeMap;
use troth_types::{Change, ComponentKey, Configuration, HostKeys, Member, Refused, ReplicaId, Seq};

const SETTLING: u64 = 100;
const KEY: ComponentKey = ComponentKey::Ed25519([9; 32]);

/// The rule stands in this crate, whose marks are not counted.
macro_rules! about {
    ($label:literal) => {};
}

fn group() -> Configuration {
    let members = (0..4).map(|_| Member::new(1, ComponentKey::Group, HostKeys::default())).collect();
    Configuration::new(members, BTreeMap::new())
}

/// A group that executes what is ordered, a batch for each.
struct Ordered {
    configuration: Configuration,
    at: u64,
    changes: Vec<Change>,
}

impl Ordered {
    fn order(&mut self, change: &Change) -> Result<(Seq, Configuration), Failure> {
        self.changes.push(change.clone());
        self.at += 1;
        self.configuration
            .apply(change, Seq(self.at), SETTLING, 1)
            .map_err(|why| Failure::new(NO, why.to_string()))?;
        Ok((Seq(self.at), self.configuration.clone()))
    }
}

#[test]
fn a_renewal_of_unknown_outcome_is_void_before_the_next_one_is_signed() {
    about!("A2MPBFTE-N5");
    let mut group = Ordered { configuration: group(), at: 0, changes: Vec::new() };
    let mut withheld = None;
    let unknown = renew(
        &mut |change| {
            if matches!(change, Change::Renew { .. }) {
                withheld = Some(change.clone());
                return Err(Failure::new(UNKNOWN, "nobody answers".to_owned()));
            }
            group.order(change)
        },
        ReplicaId(0),
        2,
        KEY,
    );
    assert_eq!(unknown.map_err(|why| why.code).expect_err("nobody answered"), UNKNOWN);
    let withheld = withheld.expect("it was signed");
    renew(&mut |change| group.order(change), ReplicaId(1), 2, KEY).expect("there is room");
    let announced = [ReplicaId(0), ReplicaId(1)].map(|replica| Change::Announce { replica });
    assert_eq!(group.changes[..2], announced);
    let Change::Renew { shown, .. } = group.changes[2] else { panic!("{:?}", group.changes) };
    let Change::Renew { shown: before, .. } = withheld else { panic!("{withheld:?}") };
    assert_ne!(shown, before);
    // It arrives where the second announcement was executed, and the second renewal was not yet.
    let mut between = self::group();
    for (change, at) in announced.iter().zip(1..) {
        between.apply(change, Seq(at), SETTLING, 1).expect("nothing is against it");
    }
    assert_eq!(between.digest(), shown);
    assert_eq!(between.apply(&withheld, Seq(3), SETTLING, 1), Err(Refused::Changed));
}

#[test]
fn a_renewal_names_what_was_proven_by_the_components_that_count() {
    about!("A2MPBFTE-N5");
    let mut group = Ordered { configuration: group(), at: 0, changes: Vec::new() };
    renew(&mut |change| group.order(change), ReplicaId(1), 2, KEY).expect("there is room");
    // The first answer is of the batch that has the admission, too.
    group.at -= 1;
    group.changes.clear();
    renew(&mut |change| group.order(change), ReplicaId(1), 3, KEY).expect("there is room");
    let announcement = Change::Announce { replica: ReplicaId(1) };
    assert_eq!(group.changes[..2], [announcement.clone(), announcement]);
    assert_eq!(group.changes.len(), 3);
}

#[test]
fn admissions_are_in_force_by_an_answer_from_above_them() {
    about!("A2MPBFTE-N5");
    let mut group = group();
    assert!(in_force(&group, Seq(1)));
    let admit = Change::Admit { replica: ReplicaId(1), epoch: 2, component: KEY, host: None };
    group.apply(&admit, Seq(10), SETTLING, 1).expect("there is room");
    // What answers the admission itself is proven by the components before it.
    assert!(!in_force(&group, Seq(10)));
    assert!(in_force(&group, Seq(11)));
}
