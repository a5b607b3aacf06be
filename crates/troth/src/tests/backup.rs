//! What a backup is said to be.

use crate::backup::certified;
use crate::tests::cluster;
use troth_node::config::Protocol;

#[test]
fn a_backup_is_said_to_be_certified_by_as_many_as_certify_it() {
    let said = Protocol::ALL.map(|protocol| certified(&cluster("certified", protocol)));
    let [hybrid, general] =
        ["certified by 2 of the group's 3 replicas (f+1)", "certified by 3 of the group's 4 replicas (2f+1)"];
    assert_eq!(Protocol::ALL, [Protocol::MinBft, Protocol::Pbft, Protocol::A2mPbftE, Protocol::A2mPbftEa]);
    assert_eq!(said, [hybrid, general, general, hybrid]);
}
