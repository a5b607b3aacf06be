//! Who may be admitted when, and what is remembered of those before.

use crate::{
    Change, ChangeAnswer, ClientEntry, ClientId, ComponentKey, Configuration, HostKeys, Malformed, Member,
    OPERATOR, Refused, ReplicaId, Seq, Wire,
};
use std::collections::BTreeMap;

const SETTLING: u64 = 100;

/// The rule stands in this crate, whose marks are not counted.
macro_rules! about {
    ($label:literal) => {};
}

fn group(n: u8) -> Configuration {
    let host =
        |index| HostKeys { signing: [index; 32], link: [index + 100; 32], address: format!("r{index}:1") };
    Configuration::new(
        (0..n).map(|index| Member::new(1, ComponentKey::Group, host(index))).collect(),
        [(OPERATOR, ClientEntry { key: [8; 32], link: [9; 32], removed: false })].into(),
    )
}

fn admit(replica: u16, epoch: u64) -> Change {
    Change::Admit {
        replica: ReplicaId(replica),
        epoch,
        component: ComponentKey::Ed25519([9; 32]),
        host: None,
    }
}

#[test]
fn an_admission_holds_from_its_batch_on_and_the_earlier_component_is_remembered() {
    let mut configuration = group(3);
    assert_eq!(configuration.apply(&admit(2, 2), Seq(50), SETTLING, 1), Ok(()));
    assert_eq!(configuration.number, 1);
    assert_eq!(configuration.epochs_at(Seq(49)), []);
    assert_eq!(configuration.epochs_at(Seq(50)), [(ReplicaId(2), 2)]);
    let epochs: Vec<u64> =
        configuration.member(ReplicaId(2)).expect("there").admissions().iter().map(|one| one.epoch).collect();
    assert_eq!(epochs, [1, 2]);
    assert_eq!(configuration.admission(ReplicaId(2), 1).map(|one| one.at), Some(Seq(0)));
    assert_eq!(configuration.admission(ReplicaId(2), 3), None);
}

#[test]
fn epochs_never_go_back() {
    let mut configuration = group(3);
    for epoch in [0, 1] {
        assert_eq!(
            configuration.apply(&admit(0, epoch), Seq(5), SETTLING, 1),
            Err(Refused::OldEpoch { present: 1 })
        );
    }
    assert_eq!(configuration, group(3), "a refused change changes nothing");
}

#[test]
fn no_more_replicas_settle_at_a_time_than_may_fail() {
    let mut configuration = group(5);
    assert_eq!(configuration.apply(&admit(0, 2), Seq(10), SETTLING, 2), Ok(()));
    assert_eq!(configuration.apply(&admit(1, 2), Seq(20), SETTLING, 2), Ok(()));
    let refused = configuration.apply(&admit(2, 2), Seq(109), SETTLING, 2);
    assert_eq!(refused, Err(Refused::TooMany { until: Seq(110) }));
    assert_eq!(configuration.apply(&admit(0, 3), Seq(109), SETTLING, 2), Ok(()), "it does not count itself");
    assert_eq!(
        configuration.apply(&admit(2, 2), Seq(110), SETTLING, 2),
        Err(Refused::TooMany { until: Seq(120) }),
        "its second admission began anew"
    );
    assert_eq!(configuration.apply(&admit(2, 2), Seq(120), SETTLING, 2), Ok(()));
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut configuration = group(3);
    for epoch in 2..20 {
        let change = Change::Admit {
            replica: ReplicaId(1),
            epoch,
            component: ComponentKey::Group,
            host: Some(HostKeys::default()),
        };
        assert_eq!(configuration.apply(&change, Seq(epoch * 1000), SETTLING, 1), Ok(()));
    }
    let member = configuration.member(ReplicaId(1)).expect("there");
    assert_eq!((member.admissions().len(), member.hosts().len()), (8, 8));
    assert_eq!(member.admission().epoch, 19);
    let far = HostKeys { address: "x".repeat(257), ..HostKeys::default() };
    let change = Change::Rekey { replica: ReplicaId(1), host: far };
    assert_eq!(configuration.apply(&change, Seq(1), SETTLING, 1), Err(Refused::Address));
    assert_eq!(
        configuration.apply(&admit(3, 2), Seq(1), SETTLING, 1),
        Err(Refused::NoSuchReplica(ReplicaId(3)))
    );
}

#[test]
fn clients_come_and_go_but_the_operator_stays() {
    let mut configuration = group(3);
    let client = ClientId(7);
    assert_eq!(configuration.client(client), None);
    let add = Change::AddClient { client, key: [1; 32], link: [2; 32] };
    assert_eq!(configuration.apply(&add, Seq(1), SETTLING, 1), Ok(()));
    assert_eq!(
        configuration.client(client),
        Some(&ClientEntry { key: [1; 32], link: [2; 32], removed: false })
    );
    assert_eq!(configuration.apply(&Change::RemoveClient(client), Seq(2), SETTLING, 1), Ok(()));
    assert!(configuration.is_removed(client));
    assert_eq!(
        configuration.client(client).map(|entry| entry.key),
        Some([1; 32]),
        "what it signed can be checked"
    );
    let again = configuration.apply(&add, Seq(3), SETTLING, 1);
    assert_eq!(again, Err(Refused::TakenClient(client)), "its number is not given again");
    let remove = Change::RemoveClient(OPERATOR);
    assert_eq!(configuration.apply(&remove, Seq(3), SETTLING, 1), Err(Refused::Operator));
    let remove = Change::RemoveClient(ClientId(8));
    assert_eq!(configuration.apply(&remove, Seq(3), SETTLING, 1), Err(Refused::NoSuchClient(ClientId(8))));
    for number in 2..1 << 14 {
        let change = Change::AddClient { client: ClientId(1000 + number), key: [0; 32], link: [0; 32] };
        assert_eq!(configuration.apply(&change, Seq(4), SETTLING, 1), Ok(()));
    }
    let change = Change::AddClient { client: ClientId(1), key: [0; 32], link: [0; 32] };
    assert_eq!(configuration.apply(&change, Seq(5), SETTLING, 1), Err(Refused::TooManyClients));
}

#[test]
fn configurations_changes_and_answers_survive_the_wire() {
    let mut configuration = group(3);
    let host = HostKeys { address: "elsewhere:9".to_owned(), ..HostKeys::default() };
    let changes = [
        admit(1, 4),
        Change::Rekey { replica: ReplicaId(2), host },
        Change::AddClient { client: ClientId(3), key: [3; 32], link: [4; 32] },
        Change::RemoveClient(ClientId(3)),
        Change::Show,
    ];
    for change in changes {
        assert_eq!(Change::from_wire(&change.to_wire()), Ok(change.clone()));
        configuration.apply(&change, Seq(9), SETTLING, 1).expect("allowed");
    }
    assert_eq!(configuration.number, 4, "to look is no change");
    for answer in [ChangeAnswer::Done(Seq(9), configuration), ChangeAnswer::Refused("no".to_owned())] {
        assert_eq!(ChangeAnswer::from_wire(&answer.to_wire()), Ok(answer));
    }
    let mut unordered = Configuration::new(Vec::new(), BTreeMap::new()).to_wire().to_vec();
    let length = unordered.len();
    unordered.truncate(length - 4);
    unordered.extend([2, 0, 0, 0]);
    for client in [5u64, 5] {
        unordered.extend(client.to_le_bytes());
        unordered.extend([0; 65]);
    }
    assert_eq!(
        Configuration::from_wire(&unordered.into()),
        Err(Malformed::Invalid("a configuration's clients stand in order"))
    );
}

fn renew(replica: u16, epoch: u64, shown: &Configuration) -> Change {
    let (replica, component) = (ReplicaId(replica), ComponentKey::Ed25519([9; 32]));
    Change::Renew { replica, epoch, component, shown: shown.digest() }
}

fn announce(replica: u16) -> Change {
    Change::Announce { replica: ReplicaId(replica) }
}

#[test]
fn a_component_takes_the_place_of_another_in_the_configuration_that_the_operator_was_shown() {
    about!("A2MPBFTE-N5");
    let first = group(4);
    let mut configuration = first.clone();
    assert_eq!(configuration.apply(&renew(2, 2, &first), Seq(50), SETTLING, 9), Ok(()));
    let after = configuration.clone();
    // One that was signed before that one was known to be in force.
    for late in [renew(2, 3, &first), renew(3, 2, &first)] {
        assert_eq!(configuration.apply(&late, Seq(500), SETTLING, 9), Err(Refused::Changed));
    }
    assert_eq!(configuration, after, "a refused change changes nothing");
    assert_eq!(
        configuration.apply(&renew(2, 2, &after), Seq(500), SETTLING, 9),
        Err(Refused::OldEpoch { present: 2 })
    );
    // However many are said to be spared: of four replicas one is.
    let refused = configuration.apply(&renew(3, 2, &after), Seq(149), SETTLING, 9);
    assert_eq!(refused, Err(Refused::TooMany { until: Seq(150) }));
    assert_eq!(configuration.apply(&renew(3, 2, &after), Seq(150), SETTLING, 9), Ok(()));
}

#[test]
fn a_component_counts_above_the_batch_that_names_it() {
    let mut configuration = group(4);
    assert_eq!(configuration.renewed_at(Seq(9)), []);
    for (replica, epoch, at) in [(2, 2, 50), (1, 5, 60), (2, 3, 70)] {
        let change = renew(replica, epoch, &configuration);
        assert_eq!(configuration.apply(&change, Seq(at), 0, 9), Ok(()));
    }
    let counting = |slot| -> Vec<(u16, u64)> {
        configuration.renewed_at(Seq(slot)).iter().map(|one| (one.replica.0, one.epoch)).collect()
    };
    assert_eq!(counting(50), []);
    assert_eq!(counting(51), [(2, 2)]);
    assert_eq!(counting(61), [(1, 5), (2, 2)]);
    assert_eq!(counting(70), [(1, 5), (2, 2)]);
    assert_eq!(counting(71), [(1, 5), (2, 3)]);
}

#[test]
fn what_was_signed_before_an_announcement_is_refused_behind_it() {
    about!("A2MPBFTE-N5");
    let first = group(4);
    // Of unknown outcome: nobody knows whether it was executed before the announcement.
    let withheld = renew(0, 2, &first);
    let mut configuration = first.clone();
    assert_eq!(configuration.apply(&announce(1), Seq(5), SETTLING, 9), Ok(()));
    assert_eq!(configuration.members(), first.members());
    let announced = configuration.clone();
    assert_eq!(configuration.apply(&withheld, Seq(6), SETTLING, 9), Err(Refused::Changed));
    assert_eq!(configuration.apply(&renew(1, 2, &announced), Seq(6), SETTLING, 9), Ok(()));
    // Where it was executed, the announcement does not lead to what the next one names.
    let mut other = first.clone();
    assert_eq!(other.apply(&withheld, Seq(5), SETTLING, 9), Ok(()));
    assert_eq!(other.apply(&announce(1), Seq(500), SETTLING, 9), Ok(()));
    assert_eq!(other.apply(&renew(1, 2, &announced), Seq(501), SETTLING, 9), Err(Refused::Changed));
    assert_eq!(
        configuration.apply(&announce(4), Seq(7), SETTLING, 9),
        Err(Refused::NoSuchReplica(ReplicaId(4)))
    );
}

#[test]
fn a_component_whose_slots_may_still_be_shown_is_not_forgotten() {
    about!("A2MPBFTE-N6");
    let mut configuration = group(4);
    for epoch in 2..=8 {
        let change = renew(2, epoch, &configuration);
        assert_eq!(configuration.apply(&change, Seq(50 + epoch), SETTLING, 9), Ok(()));
    }
    // Eight are remembered: the one that the group began with, and those of the batches 52 to 58.
    let ninth = renew(2, 9, &configuration);
    let refused = configuration.apply(&ninth, Seq(151), SETTLING, 9);
    assert_eq!(refused, Err(Refused::TooMany { until: Seq(152) }));
    assert_eq!(configuration.renewed_at(Seq(52)), [], "the one that the group began with is known");
    assert_eq!(configuration.apply(&ninth, Seq(152), SETTLING, 9), Ok(()));
    let tenth = renew(2, 10, &configuration);
    let refused = configuration.apply(&tenth, Seq(152), SETTLING, 9);
    assert_eq!(refused, Err(Refused::TooMany { until: Seq(153) }));
}
