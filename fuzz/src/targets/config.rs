//! The files of a cluster: `cluster.toml`, the secrets, `configuration.toml`. What is wrong in one is said of the
//! file, and never by a panic.

use crate::{Bound, Target};
use std::path::PathBuf;
use std::sync::OnceLock;
use troth_node::config::{
    Auth, ClientSecret, Cluster, Durability, Known, Layout, Plan, Protocol, ReplicaKeys, ReplicaSecret,
    Service, TrustedHome, TrustedKind, TrustedSecret, hex, make,
};
use troth_types::{ClientId, ReplicaId};

pub(super) const TARGET: Target = Target {
    name: "config",
    run,
    seeds,
    // The parser keeps every key and value with its place.
    bound: Bound { fixed: 256 << 10, per_byte: 2048 },
    longest: 4096,
};

/// A cluster that is right, in a directory that is there as long as the process runs.
struct Made {
    layout: Layout,
    cluster: Cluster,
    _place: tempfile::TempDir,
}

fn made() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| {
        let place = tempfile::tempdir().expect("a directory for temporary files");
        let layout = Layout::new(place.path().join("cluster"));
        let address = |at: u16| (format!("127.0.0.1:{}", 4700 + at), format!("127.0.0.1:{}", 4800 + at));
        let plan = Plan {
            protocol: Protocol::MinBft,
            auth: Auth::Signed,
            faults: 1,
            service: Service::Kv,
            trusted: TrustedKind::Ed25519,
            trusted_home: TrustedHome::InProcess,
            durability: Durability::Memory,
            clients: 2,
            addresses: (0..3).map(address).collect(),
            timing: String::new(),
            zookeeper: troth_node::config::ZooKeeper::default(),
        };
        make(&layout, &plan).expect("a fresh directory");
        let cluster = Cluster::load(&layout.cluster()).expect("just written");
        let known = Known {
            configuration: cluster.configuration(),
            http: [(ReplicaId(1), "127.0.0.1:1".into())].into(),
        };
        known.save(&layout, &cluster).expect("our own directory");
        Made { layout, cluster, _place: place }
    })
}

/// The kinds of files, by the number that an input begins with, each with one that is right.
fn files() -> Vec<PathBuf> {
    let layout = &made().layout;
    let replica = ReplicaId(1);
    vec![
        layout.cluster(),
        layout.replica_secret(replica),
        layout.client_secret(ClientId(1)),
        layout.operator_secret(),
        layout.known(),
    ]
}

fn run(input: &[u8]) {
    let Some((which, text)) = input.split_first() else { return };
    let Made { layout, cluster, .. } = made();
    let thread = format!("fuzzed-{:?}", std::thread::current().id());
    let place = Layout::new(layout.root().join(thread));
    std::fs::create_dir_all(place.root()).expect("our own directory");
    let file = match which % 7 {
        4 => place.known(),
        _ => place.root().join("file.toml"),
    };
    std::fs::write(&file, text).expect("our own directory");
    match which % 7 {
        0 => {
            if let Ok(cluster) = Cluster::load(&file) {
                let _ = (cluster.configuration(), cluster.directory(), cluster.settling(), cluster.minbft());
            }
        }
        1 => drop(ReplicaSecret::load(&file, cluster)),
        2 => {
            drop(ClientSecret::load(&file, cluster));
            drop(ClientSecret::load_new(&file, cluster));
        }
        3 => drop(ClientSecret::load_operator(&file, cluster)),
        4 => {
            if let Ok(known) = Known::load(&place, cluster) {
                let _ = known.present(cluster);
                known.save(&place, cluster).expect("our own directory");
                assert_eq!(Known::load(&place, cluster).expect("just written"), known);
            }
        }
        5 => {
            drop(TrustedSecret::load(&file, cluster));
            drop(ReplicaKeys::shared_in(&file, cluster));
        }
        _ => hexadecimal(text),
    }
    let _ = std::fs::remove_file(&file);
}

fn hexadecimal(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    if let Some(bytes) = hex::decode_all(text) {
        assert!(hex::encode(&bytes).eq_ignore_ascii_case(text), "other digits than were read");
    }
    if let Some(bytes) = hex::decode::<16>(text) {
        assert!(hex::encode(&bytes).eq_ignore_ascii_case(text), "other digits than were read");
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let read = |(which, file): (u8, &PathBuf)| {
        let text = std::fs::read(file).expect("just made");
        [&[which], &text[..]].concat()
    };
    let mut seeds: Vec<Vec<u8>> = (0..).zip(&files()).map(read).collect();
    seeds.push([&[6][..], b"00112233445566778899aabbccddeeff"].concat());
    seeds
}
