//! When a group is called lost, and when it is called found; and what a client is told that did not get through.

use crate::reach::Reach;
use crate::session::{needed, too_few};
use crate::tests::cluster;
use troth_node::config::{Cluster, Durability, Protocol, TrustedHome};
use troth_types::{ClientId, OPERATOR, ReplicaId};

fn down(count: u16) -> Vec<ReplicaId> {
    (0..count).map(ReplicaId).collect()
}

#[test]
fn a_lost_group_is_told_of_once_and_again_when_it_is_back() {
    for (protocol, borne) in [(Protocol::MinBft, 1), (Protocol::Pbft, 2), (Protocol::A2mPbftE, 1)] {
        let cluster = cluster("lost", protocol);
        let mut reach = Reach::new(&cluster);
        let (n, needed) = (cluster.group.n(), needed(&cluster));
        for count in [0, borne, borne - 1] {
            assert_eq!(reach.news(&down(count)), None, "{protocol}: {count} of {n} may be away");
        }
        let lost = reach.news(&down(borne + 1)).expect("they are too many");
        let up = n - usize::from(borne) - 1;
        assert!(lost.contains(&format!("{up} of its {n}")), "{lost}");
        assert!(lost.contains(&format!("{needed} are needed")), "{lost}");
        assert_eq!(reach.news(&down(borne + 2)), None, "it was said");
        assert_eq!(reach.news(&down(borne + 1)), None, "not enough yet");
        let back = reach.news(&down(borne)).expect("enough again");
        assert!(back.contains("again"), "{back}");
        assert_eq!(reach.news(&down(0)), None);
    }
}

#[test]
fn a_client_needs_as_many_replicas_as_it_believes() {
    // Of PBFT f+1 final replies; where replies prove histories, a quorum.
    let needed = Protocol::ALL.map(|protocol| needed(&cluster("needed", protocol)));
    assert_eq!(needed, [2, 2, 3, 2]);
}

#[test]
fn who_starts_replicas_elsewhere_is_not_sent_to_troth_up() {
    let mut cluster = cluster("elsewhere", Protocol::MinBft);
    let here = too_few(&cluster, ClientId(1), &down(3), &[]);
    assert!(here.contains("`troth up`"), "{here}");
    cluster.replicas[2].address = "10.0.0.3:4700".to_owned();
    let there = too_few(&cluster, ClientId(1), &down(3), &[]);
    assert!(!there.contains("`troth up`") && there.contains("each on its machine"), "{there}");
    let operator = too_few(&cluster, OPERATOR, &down(3), &down(2));
    assert!(operator.contains("the operator") && !operator.contains("removed"), "{operator}");
}

#[test]
fn who_is_sent_to_start_replicas_is_told_where_their_data_is_lost() {
    let said = |durability, trusted_home| {
        let cluster = Cluster { durability, trusted_home, ..cluster("lost-data", Protocol::MinBft) };
        [ClientId(1), OPERATOR].map(|client| too_few(&cluster, client, &down(2), &[]))
    };
    for memory in said(Durability::Memory, TrustedHome::InProcess) {
        assert!(
            memory.contains("more than 1 of its replicas have ended, all that it held is lost"),
            "{memory}"
        );
    }
    let kept =
        [said(Durability::Always, TrustedHome::InProcess), said(Durability::Memory, TrustedHome::Process)];
    for kept in kept.as_flattened() {
        assert!(!kept.contains("lost"), "{kept}");
    }
}

#[test]
fn replicas_refuse_a_client_only_where_somebody_listens() {
    let client = ClientId(7);
    for protocol in Protocol::ALL {
        let cluster = cluster("refused", protocol);
        let (n, needed) = (u16::try_from(cluster.group.n()).expect("few"), needed(&cluster));
        for away in 1..=n {
            let plain = too_few(&cluster, client, &down(away), &[]);
            assert!(!plain.contains("refuse") && plain.contains("troth up"), "{protocol}: {plain}");
            assert!(plain.contains(&format!("{} of {n}, and {needed} are needed", n - away)), "{plain}");
        }
        // As many as are missing listen, or fewer.
        let missing = u16::try_from(needed).expect("few");
        let refused = too_few(&cluster, client, &down(n), &down(missing));
        assert!(
            refused.contains("although somebody listens") && refused.contains("refuses client 7"),
            "{refused}"
        );
        let few = too_few(&cluster, client, &down(n), &down(missing - 1));
        assert!(
            !few.contains("refuses"),
            "{protocol}: with one of them the group would be out of reach: {few}"
        );
        let operator = too_few(&cluster, OPERATOR, &down(n), &down(missing));
        assert!(operator.contains("refuses the operator"), "{operator}");
    }
}
