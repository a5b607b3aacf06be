//! Tests of what needs no process.

mod admin;
mod backup;
mod doctor;
mod gateway;
mod help;
mod how_to_start;
mod import;
mod mistakes;
mod places;
mod print;
mod reach;
mod renewal;
mod restore;
mod room;
mod status;
mod suggest;
mod units;
mod up;
mod users;
mod words;

use troth_node::config::{
    Auth, Cluster, Durability, Layout, Plan, Protocol, Service, TrustedHome, TrustedKind, ZooKeeper, make,
};

/// The configuration of a new group that bears one faulty replica, of the test of this name.
fn cluster(name: &str, protocol: Protocol) -> Cluster {
    let root = std::env::temp_dir().join(format!("troth-unit-{name}-{protocol}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&root);
    let layout = Layout::new(&root);
    let address = |i: u16| (format!("127.0.0.1:{}", 4700 + i), format!("127.0.0.1:{}", 4800 + i));
    let kind = if protocol == Protocol::MinBft { TrustedKind::Hmac } else { TrustedKind::Ed25519 };
    let (trusted, trusted_home) = protocol.components(kind, TrustedHome::InProcess);
    let plan = Plan {
        protocol,
        auth: Auth::Signed,
        faults: 1,
        service: Service::Kv,
        zookeeper: ZooKeeper::default(),
        trusted,
        trusted_home,
        durability: Durability::Always,
        clients: 1,
        addresses: (0..protocol.replicas(1)).map(address).collect(),
        timing: String::new(),
    };
    make(&layout, &plan).expect("a fresh directory");
    let cluster = Cluster::load(&layout.cluster()).expect("just made");
    std::fs::remove_dir_all(&root).expect("our own");
    cluster
}
