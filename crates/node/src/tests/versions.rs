//! A replica of another release at the other end of a connection.

use super::config::{Scratch, plan};
use crate::assembly::engine;
use crate::clock::Clock;
use crate::config::{Cluster, Layout, ReplicaSecret, TrustedKind, make};
use crate::connection::{Meeting, listen};
use crate::delayed::TrustedDelay;
use crate::durable::Footing;
use crate::inbox::Inbox;
use crate::runtime::Shared;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;
use troth_exec::Executor;
use troth_kv::Null;
use troth_link::{Identity, LinkKey, LinkReader, LinkWriter, PeerId, Settings, Versions, initiate};
use troth_minbft::MinBft;
use troth_types::ReplicaId;

type Replica = Rc<Shared<MinBft, Executor<Null>>>;

/// How long anything may take; far more than it does.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs `test` beside replica 0, which speaks `ours`, with a connection of replica 1 to it.
fn with_a_caller(name: &str, ours: Versions, test: impl AsyncFnOnce(Replica, LinkReader, LinkWriter)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let scratch = Scratch::new(name);
        let layout = Layout::new(&scratch.0);
        make(&layout, &plan(TrustedKind::Hmac)).expect("a fresh directory");
        let cluster = Cluster::load(&layout.cluster()).expect("just made");
        let secret = |id| ReplicaSecret::load(&layout.replica_secret(ReplicaId(id)), &cluster).expect("made");
        let mut meeting = Meeting::new(&cluster, &secret(0), &cluster.configuration());
        meeting.versions = ours;
        let executor = crate::assembly::executor(&cluster, Null::default());
        let engine =
            engine(&cluster, secret(0), executor, Clock::new(), Footing::Volatile(TrustedDelay::default()))
                .expect("a fresh replica starts");
        let shared = Rc::new(Shared { engine: RefCell::new(engine), inbox: Inbox::new() });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        tokio::task::spawn_local(listen(Rc::clone(&shared), Rc::new(meeting), listener));
        let identity = Identity::new(PeerId::Replica(ReplicaId(1)), secret(1).link);
        let stream = TcpStream::connect(address).await.expect("the port is open");
        let key = LinkKey(cluster.replicas[0].link_key);
        let settings = Settings::new(cluster.group.id());
        let (reader, writer) = initiate(stream, &identity, &key, &settings).await.expect("it is known");
        test(shared, reader, writer).await;
    });
}

async fn say(writer: &mut LinkWriter, message: &[u8]) {
    writer.queue(message).expect("it is small");
    writer.flush().await.expect("the replica reads");
}

/// Waits for a condition.
async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let give_up = tokio::time::Instant::now() + PATIENCE;
    while !condition() {
        assert!(tokio::time::Instant::now() < give_up, "waited too long until {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn hangs_up(mut reader: LinkReader) {
    let ended = async { while matches!(reader.next().await, Ok(Some(_))) {} };
    tokio::time::timeout(PATIENCE, ended).await.expect("the replica hangs up");
}

#[test]
fn the_newest_common_version_is_spoken() {
    with_a_caller("versions-newer", Versions::SPOKEN, async |shared, mut reader, mut writer| {
        let said = reader.next().await.expect("a connection").expect("a message");
        assert_eq!(Versions::of_first_message(&said), Some(Versions::SPOKEN), "it says what it speaks first");
        say(&mut writer, &Versions { oldest: 1, newest: 9 }.first_message()).await;
        until("it has heard", || !shared.engine.borrow().links.versions().is_empty()).await;
        assert_eq!(shared.engine.borrow().links.versions(), [(1, Versions::SPOKEN.newest)].into());
        drop((reader, writer));
        until("it is gone", || shared.engine.borrow().links.versions().is_empty()).await;
    });
}

#[test]
fn a_replica_that_says_no_versions_is_of_the_release_before_this() {
    with_a_caller("versions-older", Versions::SPOKEN, async |shared, _reader, mut writer| {
        say(&mut writer, b"an ordinary message").await;
        until("it has heard", || !shared.engine.borrow().links.versions().is_empty()).await;
        assert_eq!(shared.engine.borrow().links.versions(), [(1, 1)].into());
        until("the message has come", || !shared.inbox.is_empty()).await;
        shared.inbox.take_replicas(
            |_| None,
            |_, message| {
                assert_eq!(&message[..], b"an ordinary message", "which is not lost");
                true
            },
        );
    });
}

#[test]
fn without_a_common_version_there_is_no_connection() {
    let newer = Versions { oldest: 7, newest: 9 };
    let dropped = Versions { oldest: 2, newest: 3 };
    let first: [(&str, Versions, Vec<u8>); 2] = [
        ("versions-none", Versions::SPOKEN, newer.first_message()),
        ("versions-dropped", dropped, b"an ordinary message of version 1".to_vec()),
    ];
    for (name, ours, first) in first {
        with_a_caller(name, ours, async |shared, reader, mut writer| {
            say(&mut writer, &first).await;
            hangs_up(reader).await;
            assert_eq!(shared.engine.borrow().counters.connections_refused, 1, "{name}");
            assert!(shared.inbox.is_empty(), "{name}: nothing of it is taken");
            let why = troth_link::LinkError::NoCommonVersion { theirs: newer, ours };
            assert!(why.to_string().contains("upgrade the older of the two"), "{why}");
            let now = std::time::Instant::now();
            let first_time = shared.engine.borrow_mut().links.speaks_nothing(ReplicaId(1), &why, now);
            assert!(!first_time, "{name}: it has been said, once");
        });
    }
}

#[test]
fn messages_of_unknown_kinds_are_ignored_and_counted() {
    with_a_caller("versions-unknown", Versions::SPOKEN, async |shared, _reader, mut writer| {
        say(&mut writer, &Versions::SPOKEN.first_message()).await;
        // A replica's message, a protocol's message, a second first message: of kinds that are not known.
        for unknown in [&[200, 1, 2][..], &[0, 99, 1], &Versions::SPOKEN.first_message()] {
            say(&mut writer, unknown).await;
        }
        // Known kinds that are cut short or empty.
        for malformed in [&[1][..], &[0, 2], &[]] {
            say(&mut writer, malformed).await;
        }
        until("all are taken", || {
            let mut engine = shared.engine.borrow_mut();
            engine.turn(&shared.inbox).expect("it goes on");
            engine.counters.peer_messages_in == 6
        })
        .await;
        let engine = shared.engine.borrow();
        assert_eq!((engine.counters.unknown, engine.counters.malformed), (3, 3));
        assert_eq!(engine.links.replicas_up(), [1], "the connection stands");
    });
}
