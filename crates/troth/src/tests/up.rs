//! What `troth up` says of replicas that have ended.

use crate::tests::cluster;
use crate::up::mourned;
use troth_node::config::{Cluster, Durability, Layout, Protocol, TrustedHome};
use troth_types::ReplicaId;

fn said(cluster: &Cluster, running: usize) -> String {
    mourned(&Layout::new("there"), cluster, ReplicaId(1), running)
}

#[test]
fn of_others_than_its_own_replicas_it_says_only_who_knows_them() {
    let cluster = cluster("mourned", Protocol::Pbft);
    let enough = said(&cluster, 3);
    assert!(
        enough.contains("4 replicas that were started here 3 still run, and the group needs 3"),
        "{enough}"
    );
    assert!(enough.contains("there/replica-1/replica.log"), "{enough}");
    let few = said(&cluster, 1);
    assert!(few.contains("1 still runs") && few.contains("unless others were started elsewhere"), "{few}");
    for said in [&enough, &few] {
        assert!(said.ends_with("`troth status` shows who serves."), "{said}");
    }
    assert!(!enough.contains("unless"), "{enough}");
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
