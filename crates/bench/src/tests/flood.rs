//! Where floods go that are discarded.

use crate::cli::FloodKind;
use crate::flood::sockets;

#[test]
fn idle_connections_to_each_replica_are_discarded_by_a_process_of_their_own() {
    let each = sockets("127.0.0.1:4711", FloodKind::Idle, 3);
    assert_eq!(each, ["127.0.0.1:4711", "127.0.0.2:4711", "127.0.0.3:4711"]);
    assert_eq!(sockets("127.0.0.1:4711", FloodKind::Peer, 3), ["127.0.0.1:4711"], "one takes all of it");
}
