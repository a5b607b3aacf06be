//! The async front against a small cluster of fake replicas over real links on the loopback
//! interface: some honest, some lying, some dead.

mod cluster;

use bytes::Bytes;
use cluster::{Behaviour, Cluster};
use std::time::Duration;
use troth_client::front::{Client, ConnectError};
use troth_client::{ClientError, Timing};

fn text(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

#[tokio::test]
async fn operations_are_executed_and_read_among_honest_replicas() {
    let cluster = Cluster::start(&[Behaviour::Honest; 3]).await;
    let client = Client::connect(cluster.config()).await.unwrap();
    assert_eq!(client.execute(text("add a")).await, Ok(text("1")));
    let both = client.execute_all(vec![text("add b"), text("add c")]).await;
    assert_eq!(both, Ok(vec![text("2"), text("3")]));
    assert_eq!(client.execute_all(Vec::new()).await, Ok(Vec::new()));
    assert_eq!(client.read(text("list")).await, Ok(text("a,b,c")));
    let status = client.status().await.unwrap();
    assert_eq!((status.view.0, status.outstanding), (1, 0));
    assert_eq!(status.unreachable, []);
}

#[tokio::test]
async fn a_liar_changes_nothing() {
    for liar in 0..3 {
        let mut behaviours = [Behaviour::Honest; 3];
        behaviours[liar] = Behaviour::Lying;
        let cluster = Cluster::start(&behaviours).await;
        let client = Client::connect(cluster.config()).await.unwrap();
        for number in 1..=6 {
            assert_eq!(client.execute(text("add x")).await, Ok(text(&number.to_string())));
            assert_eq!(client.read(text("list")).await, Ok(text(&["x"; 6][..number].join(","))));
        }
    }
}

#[tokio::test]
async fn an_operator_is_told_who_lies() {
    use Behaviour::{Honest, Lying};
    let cluster = Cluster::start(&[Honest, Lying, Honest]).await;
    let client = Client::connect(cluster.config()).await.unwrap();
    let told = async {
        loop {
            client.execute(text("add x")).await.unwrap();
            let replicas = client.status().await.unwrap().replicas;
            if replicas[1].mismatching > 0 {
                return replicas;
            }
        }
    };
    let replicas = tokio::time::timeout(std::time::Duration::from_secs(20), told).await.expect("soon");
    assert_eq!([0, 1, 2].map(|one| replicas[one].mismatching > 0), [false, true, false]);
    assert!(replicas[0].matching > 0 && replicas[2].matching > 0 && replicas[1].matching == 0);
    client.read(text("list")).await.unwrap();
    let status = client.status().await.unwrap();
    assert_eq!((status.fast_reads, status.fallen_back), (0, 1), "not all answer it alike");
}

#[tokio::test]
async fn two_silent_or_lying_of_five_change_nothing() {
    use Behaviour::{Honest, Lying, Silent};
    let cluster = Cluster::start(&[Silent, Honest, Honest, Lying, Honest]).await;
    let client = Client::connect(cluster.config()).await.unwrap();
    for number in 1..=4 {
        assert_eq!(client.execute(text("add x")).await, Ok(text(&number.to_string())));
    }
    assert_eq!(client.read(text("list")).await, Ok(text("x,x,x,x")), "ordered, as not all answer alike");
}

#[tokio::test]
async fn many_calls_are_outstanding_at_once_and_share_frames() {
    let cluster = Cluster::start(&[Behaviour::Honest; 3]).await;
    let client = Client::connect(cluster.config()).await.unwrap();
    // The session's first frame goes alone.
    client.execute(text("add x")).await.unwrap();
    let calls: Vec<_> = (0..5_000)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.execute(text("add x")).await.unwrap() })
        })
        .collect();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(String::from_utf8(call.await.unwrap().to_vec()).unwrap().parse::<u32>().unwrap());
    }
    answers.sort_unstable();
    assert_eq!(answers, (2..=5_001).collect::<Vec<_>>(), "each executed exactly once");
    assert!(cluster.frames() < 2_000, "{} frames for 5001 operations", cluster.frames());
}

#[tokio::test]
async fn calls_apart_share_no_frame() {
    let cluster = Cluster::start(&[Behaviour::Honest; 3]).await;
    let client = Client::connect(cluster.config()).await.unwrap();
    client.execute(text("add x")).await.unwrap();
    let before = cluster.frames();
    let calls: Vec<_> = (0..200)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.execute_apart_noting(vec![text("add x")]).await.0.unwrap() })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().len(), 1);
    }
    assert_eq!(cluster.frames() - before, 200);
}

#[tokio::test]
async fn events_come_before_the_reply_that_reveals_them() {
    let cluster = Cluster::start(&[Behaviour::Honest, Behaviour::Honest, Behaviour::Lying]).await;
    let client = Client::connect(cluster.config()).await.unwrap();
    client.execute(text("add x")).await.unwrap();
    let mut events = client.events().await.unwrap();
    for number in 1..=20 {
        client.execute(text("tell news")).await.unwrap();
        let event = events.try_recv().expect("the event is there when the reply is");
        assert_eq!((event.index, event.payload), (number, text("news")));
    }
}

#[tokio::test]
async fn slow_takers_of_events_meet_a_marker() {
    let cluster = Cluster::start(&[Behaviour::Honest; 3]).await;
    let mut config = cluster.config();
    config.limits.outbox_events = 4;
    let client = Client::connect(config).await.unwrap();
    client.execute(text("add x")).await.unwrap();
    let mut events = client.events().await.unwrap();
    for _ in 0..10 {
        client.execute(text("tell news")).await.unwrap();
    }
    for index in 1..=4 {
        assert_eq!(events.recv().await.unwrap().index, index);
    }
    let marker = events.recv().await.unwrap();
    assert_eq!((marker.index, marker.payload.len()), (5, 0), "from 5 on they are lost");
    client.execute(text("tell more")).await.unwrap();
    let next = events.recv().await.unwrap();
    assert_eq!((next.index, next.payload), (11, text("more")));
}

#[tokio::test]
async fn the_marker_is_there_before_the_result_that_reveals_what_is_lost() {
    let cluster = Cluster::start(&[Behaviour::Honest; 3]).await;
    let mut config = cluster.config();
    config.limits.outbox_events = 4;
    let client = Client::connect(config).await.unwrap();
    client.execute(text("add x")).await.unwrap();
    let mut events = client.events().await.unwrap();
    let mut index = 0;
    for more in 1..10 {
        for _ in 0..4 + more {
            client.execute(text("tell news")).await.unwrap();
        }
        let kept = (1..=4).map(|kept| (index + kept, text("news")));
        let expected: Vec<_> = kept.chain([(index + 5, Bytes::new())]).collect();
        let told: Vec<_> =
            std::iter::from_fn(|| events.try_recv().ok()).map(|event| (event.index, event.payload)).collect();
        assert_eq!(told, expected);
        index += 4 + more;
        // Some are taken and others come behind the marker: it has a place again, and so has the next.
        for _ in 0..6 {
            client.execute(text("tell news")).await.unwrap();
        }
        let first: Vec<_> = (0..2).map(|_| events.try_recv().unwrap().index).collect();
        assert_eq!(first, [index + 1, index + 2]);
        for _ in 0..2 {
            client.execute(text("tell news")).await.unwrap();
        }
        let told: Vec<_> = std::iter::from_fn(|| events.try_recv().ok())
            .map(|event| (event.index - index, event.payload.is_empty()))
            .collect();
        assert_eq!(told, [(3, false), (4, false), (5, true), (7, false), (8, true)]);
        index += 8;
    }
}

#[tokio::test]
async fn a_replica_that_comes_back_is_found_again() {
    let mut cluster = Cluster::start(&[Behaviour::Honest, Behaviour::Honest, Behaviour::Dead]).await;
    let client = Client::connect(cluster.config()).await.unwrap();
    client.execute(text("add x")).await.unwrap();
    cluster.stop(0);
    cluster.revive(2).await;
    assert_eq!(client.execute(text("add y")).await, Ok(text("2")));
    assert_eq!(client.status().await.unwrap().unreachable, [troth_types::ReplicaId(0)]);
}

#[tokio::test]
async fn errors_say_what_is_known() {
    let short =
        Timing { deadline: 400_000, unavailable_after: 300_000, resend_first: 50_000, ..Timing::DEFAULT };
    // Nobody there.
    let cluster = Cluster::start(&[Behaviour::Dead, Behaviour::Honest, Behaviour::Dead]).await;
    let mut config = cluster.config();
    config.timing = short;
    let refused = Client::connect(config.clone()).await.err();
    let missing = vec![troth_types::ReplicaId(0), troth_types::ReplicaId(2)];
    assert_eq!(refused, Some(ConnectError::Unavailable { unreachable: missing }));
    config.replicas.pop();
    assert!(matches!(Client::connect(config).await, Err(ConnectError::Replicas { expected: 3, listed: 2 })));
    // There, but silent.
    let cluster = Cluster::start(&[Behaviour::Silent, Behaviour::Honest, Behaviour::Silent]).await;
    let mut config = cluster.config();
    config.timing = short;
    let client = Client::connect(config).await.unwrap();
    let lost = client.execute(text("add x")).await.unwrap_err();
    assert_eq!(lost, ClientError::TimedOut);
    assert!(lost.outcome_unknown());
    // Over the limits, and closed.
    let cluster = Cluster::start(&[Behaviour::Honest; 3]).await;
    let client = Client::connect(cluster.config()).await.unwrap();
    let large = Bytes::from(vec![0; 2 << 20]);
    assert_eq!(client.execute(large).await, Err(ClientError::TooLarge));
    let other = client.clone();
    client.close().await;
    assert!(matches!(other.execute(text("add x")).await, Err(ClientError::Closed { .. })));
}

#[tokio::test]
async fn a_client_that_loses_its_replicas_reports_it() {
    let mut cluster = Cluster::start(&[Behaviour::Honest; 3]).await;
    let mut config = cluster.config();
    config.timing = Timing { unavailable_after: 200_000, ..Timing::DEFAULT };
    let client = Client::connect(config).await.unwrap();
    client.execute(text("add x")).await.unwrap();
    cluster.stop(0);
    cluster.stop(1);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let lost = client.execute(text("add y")).await.unwrap_err();
    assert!(matches!(lost, ClientError::Unavailable { sent: false, .. }), "{lost:?}");
}

#[tokio::test]
async fn a_large_operation_and_result_pass() {
    let cluster = Cluster::start(&[Behaviour::Honest; 3]).await;
    let client = Client::connect(cluster.config()).await.unwrap();
    let large = "y".repeat(900_000);
    client.execute(text(&format!("add {large}"))).await.unwrap();
    assert_eq!(client.read(text("list")).await.unwrap().len(), 900_000);
}
