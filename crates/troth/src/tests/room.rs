//! Whose vote is waited for before room is made for another admission.

use crate::admin::room::awaited;
use std::collections::BTreeMap;
use troth_types::{Change, ComponentKey, Configuration, HostKeys, Member, Refused, ReplicaId, Seq};

const SETTLING: u64 = 100;

fn admit(replica: u16) -> Change {
    Change::Admit { replica: ReplicaId(replica), epoch: 2, component: ComponentKey::Group, host: None }
}

#[test]
fn those_who_settle_by_then_must_vote_and_no_others() {
    let members = (0..5).map(|_| Member::new(1, ComponentKey::Group, HostKeys::default())).collect();
    let mut group = Configuration::new(members, BTreeMap::new());
    group.apply(&admit(1), Seq(10), SETTLING, 2).expect("there is room");
    group.apply(&admit(2), Seq(50), SETTLING, 2).expect("there is room");
    let full = group.clone().apply(&admit(3), Seq(60), SETTLING, 2);
    assert_eq!(full, Err(Refused::TooMany { until: Seq(110) }), "as soon as replica 1 has settled");
    let who = |wanted, now, until| awaited(&group, ReplicaId(wanted), Seq(now), Seq(until), SETTLING);
    assert_eq!(who(3, 60, 110), [ReplicaId(1)], "replica 2 may go on settling: two may fail");
    assert_eq!(who(3, 60, 150), [ReplicaId(1), ReplicaId(2)]);
    assert_eq!(who(1, 60, 150), [ReplicaId(2)], "whoever is readmitted need not vote");
    assert_eq!(who(3, 120, 150), [ReplicaId(2)], "who has settled is not waited for");
}
