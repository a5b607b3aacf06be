//! What `troth admin` says where the protocol does not let it do what was asked for.

use crate::admin::{Action, no_replacements};
use crate::tests::cluster;
use troth_node::config::{Cluster, Durability, Protocol};

#[test]
fn who_wants_a_replica_back_hears_how_it_starts_again() {
    let said = |cluster: &Cluster, replica| no_replacements(cluster, &Action::Readmit { replica }).message;
    let always = cluster("readmit-pbft", Protocol::Pbft);
    let starts = "mend: `troth replica --id 1` starts it again";
    let mended = said(&always, 1);
    assert!(
        mended.contains(&format!("{starts}. One that ends with exit code 3 has lost its log")),
        "{mended}"
    );
    assert!(mended.contains("leave it stopped. The group bears one replica that is gone"), "{mended}");
    let memory = Cluster { durability: Durability::Memory, ..always.clone() };
    let mended = said(&memory, 1);
    assert!(mended.contains(&format!("{starts}, unless the machine starts anew before that.")), "{mended}");
    assert!(said(&always, 4).contains("replicas 0 to 3; --replica 4 is none of them"));
    let forgets =
        Cluster { durability: Durability::Memory, ..cluster("readmit-attested", Protocol::A2mPbftEa) };
    let mended = said(&forgets, 1);
    assert!(
        mended.contains("cannot be started again. The group") && !mended.contains("`troth replica"),
        "{mended}"
    );
    // A host that is to be another, or to have other keys, is not helped by a start.
    let rekey = Action::Rekey { replica: 1, address: None, http: None };
    let mended = no_replacements(&always, &rekey).message;
    assert!(mended.contains("mend: the group bears") && !mended.contains("`troth replica"), "{mended}");
}
