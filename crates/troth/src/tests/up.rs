//! What `troth up` says of replicas that have ended.

use crate::tests::cluster;
use crate::up::mourned;
use crate::up_place::{outlive, run_already};
use troth_node::config::{Cluster, Durability, Layout, Protocol, TrustedHome};
use troth_types::ReplicaId;

fn said(cluster: &Cluster, running: usize) -> String {
    mourned(&Layout::new("there"), cluster, ReplicaId(1), running, running)
}

#[test]
fn one_that_was_brought_back_by_hand_counts_among_those_that_are_left() {
    let memory = Cluster { durability: Durability::Memory, ..cluster("by-hand", Protocol::MinBft) };
    let said = |running, serving| mourned(&Layout::new("there"), &memory, ReplicaId(1), running, serving);
    let back = said(1, 2);
    assert!(back.contains("of the group 2 answer, and it needs 2"), "{back}");
    assert!(back.contains("readmit") && !back.contains("too few") && !back.contains("nothing"), "{back}");
    let gone = said(1, 1);
    assert!(gone.contains("of the group 1 answers") && gone.contains("too few are left"), "{gone}");
    assert!(gone.contains("answers nothing any more"), "{gone}");
    assert!(!said(2, 0).contains("too few"), "those that it runs are there, also where they are busy");
}

#[test]
fn who_outlives_it_is_named_with_what_stops_it() {
    let there = Layout::new("there");
    assert_eq!(outlive(&there, &[]), None);
    let said = outlive(&there, &[(ReplicaId(1), 70), (ReplicaId(2), 71)]).expect("two are left");
    assert!(said.contains("replicas 1 and 2 were not started here and still run"), "{said}");
    assert!(said.ends_with("the files in there stay. To stop them: kill 70 71"), "{said}");
}

#[test]
fn what_outlived_its_group_is_to_be_stopped_before_all_else() {
    let (there, cluster) = (Layout::new("there"), cluster("outlived", Protocol::MinBft));
    let mend = |is_left| {
        let said = run_already(&there, &cluster, &[(ReplicaId(1), 70)], is_left).message;
        let mend = said.split("mend: ").nth(1).expect("what to do").to_owned();
        assert!(mend.contains("kill 70") && mend.contains("start only the others"), "{said}");
        mend
    };
    assert!(
        mend(true).starts_with("stop it (kill 70), and `troth up` makes another group here"),
        "{}",
        mend(true)
    );
    assert!(mend(false).starts_with("start only the others"), "{}", mend(false));
}

#[test]
fn of_others_than_its_own_replicas_it_says_only_who_knows_them() {
    let cluster = cluster("mourned", Protocol::Pbft);
    let enough = said(&cluster, 3);
    assert!(
        enough
            .contains("4 replicas that were started here 3 still run; of the group 3 answer, and it needs 3"),
        "{enough}"
    );
    assert!(enough.contains("there/replica-1/replica.log"), "{enough}");
    let few = said(&cluster, 1);
    assert!(few.contains("1 still runs") && few.contains("answers nothing any more"), "{few}");
    for said in [&enough, &few] {
        assert!(said.ends_with("`troth status` shows who serves."), "{said}");
    }
    assert!(!enough.contains("nothing any more"), "{enough}");
}

#[test]
fn it_says_who_can_be_started_again() {
    let again = |protocol, durability, trusted_home| {
        said(&Cluster { durability, trusted_home, ..cluster("again", protocol) }, 2)
    };
    let (here, apart) = (TrustedHome::InProcess, TrustedHome::Process);
    let starts = "`troth replica --id 1` starts it again";
    let always = again(Protocol::MinBft, Durability::Always, here);
    assert!(always.contains(&format!("{starts}.")), "{always}");
    let interval = again(Protocol::MinBft, Durability::interval(), here);
    assert!(interval.contains(&format!("{starts}, unless the machine")), "{interval}");
    let apart = again(Protocol::MinBft, Durability::Memory, apart);
    assert!(apart.contains(&format!("{starts} where its `troth trusted`")), "{apart}");
    let pbft = again(Protocol::Pbft, Durability::Memory, TrustedHome::Nowhere);
    assert!(pbft.contains(&format!("{starts}, unless the machine")), "{pbft}");
    let attested = again(Protocol::A2mPbftE, Durability::Memory, here);
    assert!(attested.contains("cannot be started again") && !attested.contains(starts), "{attested}");
    let memory = again(Protocol::MinBft, Durability::Memory, here);
    assert!(memory.contains("`troth admin readmit --replica 1` and then `troth replica --id 1`"), "{memory}");
    // Admitting it is ordered, too, by as many as anything.
    let memory = Cluster { durability: Durability::Memory, ..cluster("again", Protocol::MinBft) };
    let too_few = said(&memory, 1);
    assert!(!too_few.contains("readmit") && too_few.contains("too few are left to admit it"), "{too_few}");
}
