//! What `troth restore` says is not as it was.

use crate::restore::differences;
use crate::tests::cluster;
use troth_node::config::{Auth, Cluster, Durability, Protocol, TrustedHome, TrustedKind};

#[test]
fn what_the_new_group_has_otherwise_is_said() {
    let before = cluster("differences", Protocol::MinBft);
    assert!(differences(&before, &before.clone()).is_empty());
    let apart = Cluster { trusted_home: TrustedHome::Process, ..before.clone() };
    assert_eq!(differences(&apart, &before), ["--trusted-home in-process (before: process)"]);
    let memory = Cluster { durability: Durability::Memory, ..before.clone() };
    assert_eq!(differences(&memory, &before), ["--durability always (before: memory)"]);
    let pbft = cluster("differences", Protocol::Pbft);
    let said = differences(&pbft, &before);
    assert_eq!(said, ["protocol minbft (before: pbft)"], "components come with the protocol");
    let tagged = Cluster { auth: Auth::Mac, ..pbft.clone() };
    assert_eq!(differences(&tagged, &pbft), ["--auth signed (before: mac)"]);
    let signing = Cluster { trusted: TrustedKind::Ed25519, ..before.clone() };
    assert_eq!(differences(&signing, &before), ["--trusted hmac (before: ed25519)"]);
}
