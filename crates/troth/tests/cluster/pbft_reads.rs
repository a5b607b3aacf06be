//! PBFT's short cuts between real processes: replies before the place is final, and reads in one round trip.

use crate::killed::replica;
use crate::support::{Running, Scratch, init_with, status, until};
use bytes::Bytes;
use std::path::Path;
use std::time::Duration;
use troth_client::Acceptance;
use troth_client::front::{Client, ClientConfig, ReplicaAddress};
use troth_kv::{Answer, Operation};
use troth_link::LinkKey;
use troth_node::config::{ClientSecret, Cluster, Layout, Protocol};
use troth_types::{ClientId, Wire};

fn start(dir: &Path) -> Vec<Running> {
    init_with(dir, &["--protocol", "pbft"]);
    let replicas = (0..4).map(|id| replica(dir, id)).collect();
    until("all serve", || {
        let connected = |replica: &serde_json::Value| {
            replica["pid"].is_u64() && replica["peers"].as_array().is_some_and(|peers| peers.len() == 3)
        };
        status(dir).iter().all(connected).then_some(())
    });
    replicas
}

/// A session of client 1 that waits long for answers to its reads: a slow machine must not pass for a stale replica.
pub(crate) async fn session(dir: &Path) -> Client {
    session_of(dir, ClientId(1)).await
}

/// As [`session`], of any client.
pub(crate) async fn session_of(dir: &Path, client: ClientId) -> Client {
    let layout = Layout::new(dir);
    let cluster = Cluster::load(&layout.cluster()).expect("just made");
    let secret = ClientSecret::load(&layout.client_secret(client), &cluster).expect("just made");
    let address = |replica: &troth_node::config::ReplicaEntry| ReplicaAddress {
        address: replica.address.clone(),
        key: LinkKey(replica.link_key),
    };
    let replicas = cluster.replicas.iter().map(address).collect();
    let mut config = ClientConfig::new(secret.client, cluster.group, secret.seed, secret.link, replicas);
    config.limits = cluster.limits;
    if cluster.protocol == Protocol::Pbft {
        config.acceptance = Acceptance::pbft(&cluster.group);
    }
    config.history = cluster.history(&secret.link);
    config.timing.read_wait = 5_000_000;
    Client::connect(config).await.expect("the group serves")
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

pub(crate) async fn put(client: &Client, key: &str, value: &str) {
    let (key, value) = (Bytes::from(key.to_owned()), Bytes::from(value.to_owned()));
    let answer = client.execute(Operation::Put { key, value }.to_wire()).await.expect("it is ordered");
    assert!(matches!(Answer::from_wire(&answer), Ok(Answer::Written { .. })));
}

pub(crate) async fn get(client: &Client, key: &str) -> String {
    let operation = Operation::Get { key: Bytes::from(key.to_owned()) };
    let answer = client.read(operation.to_wire()).await.expect("it is answered");
    match Answer::from_wire(&answer) {
        Ok(Answer::Value { value, .. }) => String::from_utf8_lossy(&value).into_owned(),
        other => panic!("{key}: {other:?}"),
    }
}

/// The highest batch that a replica says it executed.
pub(crate) fn executed(dir: &Path) -> u64 {
    status(dir).iter().filter_map(|replica| replica["executed"].as_u64()).max().expect("somebody runs")
}

#[test]
fn reads_are_answered_in_one_round_trip_and_not_ordered() {
    let scratch = Scratch::new("pbft-reads");
    let dir = scratch.0.as_path();
    let mut replicas = start(dir);
    runtime().block_on(async {
        let client = session(dir).await;
        for number in 0..20 {
            put(&client, "key", &number.to_string()).await;
            assert_eq!(get(&client, "key").await, number.to_string(), "right after it was written");
        }
        let before = executed(dir);
        assert!(before >= 20, "the writes were ordered: {before}");
        assert!(before <= 24, "and the reads were not: {before}");
        // 2f+1 answers are enough.
        replicas[3].signal("KILL");
        replicas[3].ends();
        tokio::time::sleep(Duration::from_millis(300)).await;
        for _ in 0..20 {
            assert_eq!(get(&client, "key").await, "19");
        }
        assert!(executed(dir) <= before + 2, "a replica that is gone makes no read be ordered");
        client.close().await;
    });
}

#[test]
fn what_was_acknowledged_outlives_the_primary_that_is_killed_amidst_it() {
    let scratch = Scratch::new("pbft-amidst");
    let dir = scratch.0.as_path();
    let mut replicas = start(dir);
    runtime().block_on(async {
        let client = session(dir).await;
        let mut number = 0_u64;
        for round in 0..3_u64 {
            let view =
                status(dir).iter().filter_map(|replica| replica["view"].as_u64()).max().expect("it runs");
            let primary = usize::try_from(view % 4).expect("small");
            // Writes go on while it dies: those before and those after are acknowledged alike.
            for step in 0..60 {
                number += 1;
                put(&client, &format!("key{}", number % 5), &number.to_string()).await;
                if step == 30 {
                    replicas[primary].signal("KILL");
                    replicas[primary].ends();
                }
                assert_eq!(
                    get(&client, &format!("key{}", number % 5)).await,
                    number.to_string(),
                    "round {round}"
                );
            }
            for earlier in number - 4..=number {
                assert_eq!(get(&client, &format!("key{}", earlier % 5)).await, earlier.to_string());
            }
            replicas[primary] = replica(dir, u16::try_from(primary).expect("small"));
            until("it serves again", || status(dir)[primary]["pid"].is_u64().then_some(()));
        }
        client.close().await;
    });
    assert!(status(dir).iter().all(|replica| replica["accused"] == serde_json::json!([])));
}
