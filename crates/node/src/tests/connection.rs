//! Callers at a replica that listens, over the loopback interface.

use super::engine::files;
use crate::assembly::{engine, executor};
use crate::clock::Clock;
use crate::config::{ClientSecret, Cluster};
use crate::connection::{CLIENTS_UNSENT, MOST_HANDSHAKES, Outgoing, listen};
use crate::counters::Counters;
use crate::delayed::TrustedDelay;
use crate::durable::Footing;
use crate::inbox::{Inbox, Party};
use crate::links::Links;
use crate::runtime::Shared;
use crate::served::largest_message;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;
use troth_exec::Executor;
use troth_kv::Null;
use troth_link::{
    Identity, LinkError, LinkKey, LinkReader, LinkWriter, PeerId, Settings, Versions, accept, initiate,
};
use troth_minbft::MinBft;
use troth_types::{Change, ClientId, ReplicaId, Seq, Time};

type Replica = Rc<Shared<MinBft, Executor<Null>>>;

/// Runs `test` beside replica 0 of a fresh group; it gets the replica, where it listens, and client 1's
/// files.
fn beside_a_replica(name: &str, test: impl AsyncFnOnce(Replica, String, Cluster, ClientSecret)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let (cluster, secret, client) = files(name);
        let executor = executor(&cluster, Null::default());
        let engine =
            engine(&cluster, secret, executor, Clock::new(), Footing::Volatile(TrustedDelay::default()))
                .expect("a fresh replica starts");
        let meeting = Rc::clone(&engine.meeting);
        let shared = Rc::new(Shared { engine: RefCell::new(engine), inbox: Inbox::new() });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        tokio::task::spawn_local(listen(Rc::clone(&shared), meeting, listener));
        test(shared, address, cluster, client).await;
    });
}

/// Client 1's connection to the replica at `address`.
async fn call(address: &str, cluster: &Cluster, client: &ClientSecret) -> (LinkReader, LinkWriter) {
    // Far less than the time that silent callers have.
    let settings =
        Settings { handshake_timeout: Duration::from_secs(2), ..Settings::new(cluster.group.id()) };
    let identity = Identity::new(PeerId::Client(client.client), client.link);
    let stream = TcpStream::connect(address).await.expect("the port is open");
    let key = LinkKey(cluster.replicas[0].link_key);
    initiate(stream, &identity, &key, &settings).await.expect("a caller that the configuration knows")
}

#[test]
fn a_client_s_messages_are_limited_by_the_client_s_limits() {
    beside_a_replica("client-message", async |shared, address, cluster, client| {
        let largest = cluster.limits.frame_bytes;
        let (_, mut writer) = call(&address, &cluster, &client).await;
        writer.queue(&vec![0; largest]).expect("within the link's own limit");
        writer.flush().await.expect("the replica reads");
        shared.inbox.woken().await;
        assert!(!shared.inbox.is_empty(), "a frame of the largest size passes");
        shared.inbox.take_clients(
            |_| None,
            |_, message| {
                assert_eq!(message.len(), largest);
                true
            },
        );
        let (mut reader, mut writer) = call(&address, &cluster, &client).await;
        writer.queue(&vec![0; largest + (64 << 10) + 1]).expect("within the link's own limit");
        // The replica may hang up before it has read all.
        let _ = writer.flush().await;
        let ended = tokio::time::timeout(Duration::from_secs(2), reader.next()).await;
        assert!(!matches!(ended, Err(_) | Ok(Ok(Some(_)))), "the replica hangs up");
        assert!(shared.inbox.is_empty(), "and takes nothing");
    });
}

#[test]
fn the_largest_message_holds_an_honest_log_of_every_configuration() {
    let (mut cluster, ..) = files("largest");
    for (interval, window) in [(1, 2), (64, 256), (100, 200), (1024, 2048)] {
        cluster.timing.checkpoint_interval = interval;
        cluster.timing.window = window;
        let digests = 32 * cluster.limits.batch_frames as u64;
        let commitments = 2 * window + interval;
        let least = commitments * (1024 + digests) + commitments / interval * 512;
        let bound = largest_message(&cluster) as u64;
        assert!(bound >= 2 * least, "interval {interval}, window {window}: {bound} for two logs of {least}");
    }
}

#[test]
fn a_message_between_replicas_that_is_too_large_is_named_once_per_replica() {
    let (cluster, ..) = files("too-large");
    let mut links = Links::new(ReplicaId(0), &cluster.group);
    let why = LinkError::TooLarge { bytes: 2, limit: 1 };
    let first: Vec<bool> = [1, 1, 2, 1, 2].map(|other| links.too_large(ReplicaId(other), &why)).to_vec();
    assert_eq!(first, [true, false, true, false, false]);
}

#[test]
fn one_who_takes_turns_between_versions_is_named_once_in_a_while() {
    let (cluster, ..) = files("takes-turns");
    let mut links = Links::new(ReplicaId(0), &cluster.group);
    let (theirs, ours) = (Versions { oldest: 7, newest: 9 }, Versions::SPOKEN);
    let why = LinkError::NoCommonVersion { theirs, ours };
    let (replica, began) = (ReplicaId(1), Instant::now());
    let mut nothing_at = |second, first_a_word| {
        if first_a_word {
            links.speaks(replica, 2);
        }
        links.speaks_nothing(replica, &why, began + Duration::from_secs(second))
    };
    assert!(nothing_at(0, false), "the first time");
    assert!(!nothing_at(1, true) && !nothing_at(9, true), "it takes turns");
    assert!(nothing_at(11, false), "what holds is said in the end");
    assert!(!nothing_at(60, false), "and not again while it holds");
    assert!(nothing_at(90, true));
}

#[test]
fn silent_callers_lock_nobody_out() {
    beside_a_replica("silent", async |shared, address, cluster, client| {
        let mut silent = Vec::new();
        for _ in 0..2 * MOST_HANDSHAKES {
            silent.push(TcpStream::connect(&address).await.expect("the port is open"));
        }
        let _link = call(&address, &cluster, &client).await;
        assert!(shared.engine.borrow().counters.connections_refused >= MOST_HANDSHAKES as u64);
    });
}

#[test]
fn who_is_shut_out_is_disconnected_and_not_let_in_again() {
    beside_a_replica("shut-out", async |shared, address, cluster, client| {
        let (mut reader, mut writer) = call(&address, &cluster, &client).await;
        writer.queue(b"hello").expect("within every limit");
        writer.flush().await.expect("the replica reads");
        shared.inbox.woken().await;
        assert_eq!(shared.engine.borrow().links.clients_up(), 1);
        let first = cluster.configuration();
        let mut next = (*first).clone();
        next.apply(&Change::RemoveClient(client.client), Seq(1), 1, 1).expect("the group has it");
        shared.engine.borrow_mut().configured(&Arc::new(next));
        let ended = tokio::time::timeout(Duration::from_secs(5), reader.next()).await;
        assert!(!matches!(ended, Err(_) | Ok(Ok(Some(_)))), "the replica hangs up");
        assert_eq!(shared.engine.borrow().links.clients_up(), 0);
        // An older configuration changes nothing: the replica may execute its way to the later one.
        shared.engine.borrow_mut().configured(&first);
        let settings =
            Settings { handshake_timeout: Duration::from_secs(2), ..Settings::new(cluster.group.id()) };
        let identity = Identity::new(PeerId::Client(client.client), client.link);
        let stream = TcpStream::connect(&address).await.expect("the port is open");
        let key = LinkKey(cluster.replicas[0].link_key);
        assert!(initiate(stream, &identity, &key, &settings).await.is_err(), "it is not let in");
    });
}

#[test]
fn more_clients_than_there_are_descriptors_for_are_refused_and_replicas_are_not() {
    beside_a_replica("descriptors", async |shared, address, cluster, client| {
        let (mut first, _writer) = call(&address, &cluster, &client).await;
        while shared.engine.borrow().links.clients_up() == 0 {
            tokio::task::yield_now().await;
        }
        shared.engine.borrow_mut().links.allow_clients(1);
        let _again = call(&address, &cluster, &client).await;
        let ended = tokio::time::timeout(Duration::from_secs(5), first.next()).await;
        assert!(!matches!(ended, Err(_) | Ok(Ok(Some(_)))), "the older one is closed");
        {
            let links = &mut shared.engine.borrow_mut().links;
            assert_eq!(links.clients_up(), 1, "a newer connection in the place of an older one");
            assert!(links.has_room_for(Party::Client(client.client)));
            assert!(!links.has_room_for(Party::Client(ClientId(7))));
            assert!(links.has_room_for(Party::Replica(ReplicaId(1))));
        }
        shared.engine.borrow_mut().links.allow_clients(0);
        let before = shared.engine.borrow().counters.connections_refused;
        shared.engine.borrow_mut().links.close_strangers(|_, _| false);
        while shared.engine.borrow().links.clients_up() > 0 {
            tokio::task::yield_now().await;
        }
        let (mut reader, _writer) = call(&address, &cluster, &client).await;
        let ended = tokio::time::timeout(Duration::from_secs(5), reader.next()).await;
        assert!(!matches!(ended, Err(_) | Ok(Ok(Some(_)))), "the replica hangs up");
        assert_eq!(shared.engine.borrow().counters.connections_refused, before + 1);
    });
}

#[test]
fn what_waits_for_all_clients_is_counted_and_given_back() {
    beside_a_replica("unsent", async |shared, address, cluster, client| {
        let (_reader, _writer) = call(&address, &cluster, &client).await;
        while shared.engine.borrow().links.clients_up() == 0 {
            tokio::task::yield_now().await;
        }
        let unsent = |shared: &Replica| shared.engine.borrow().links.clients_unsent.get();
        assert_eq!(unsent(&shared), 0);
        // Nobody reads: what the sockets do not take waits here.
        let message = vec![0; 1 << 20];
        let mut taken = 0;
        while shared.engine.borrow_mut().links.tell_client(client.client, &message) {
            shared.engine.borrow_mut().flush();
            taken += 1;
            assert!(taken < 64, "a client's bound");
        }
        assert!(unsent(&shared) > 8 << 20);
        let waits = CLIENTS_UNSENT + 1 + unsent(&shared);
        shared.engine.borrow_mut().links.clients_unsent.set(waits);
        assert!(!shared.engine.borrow_mut().links.tell_client(client.client, &[0]), "too much waits for all");
        shared.engine.borrow_mut().links.close_strangers(|_, _| false);
        while shared.engine.borrow().links.clients_up() > 0 {
            tokio::task::yield_now().await;
        }
        tokio::task::yield_now().await;
        assert!(unsent(&shared) <= waits - (8 << 20), "what waited for it is gone with it");
    });
}

#[test]
fn what_can_wait_goes_with_what_follows_or_when_it_has_waited() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let (cluster, ..) = files("later");
        let settings = Settings::new(cluster.group.id());
        let [me, other] = [0, 1].map(|id| Identity::new(PeerId::Replica(ReplicaId(id)), [7; 32]));
        let key = me.public_key();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let called = async {
            let stream = TcpStream::connect(address).await.expect("the port is open");
            initiate(stream, &other, &key, &settings).await.expect("it is known")
        };
        let heard = async {
            let (stream, _) = listener.accept().await.expect("somebody calls");
            accept(stream, &me, &settings, |_| Some(key)).await.expect("it is known")
        };
        let ((mut reader, _), (_, _, writer)) = tokio::join!(called, heard);
        let mut links = Links::new(ReplicaId(0), &cluster.group);
        let link = Outgoing::new(writer, Party::Replica(ReplicaId(1)), key, &Rc::default());
        links.replica_up(ReplicaId(1), link);
        let (mut counters, to) = (Counters::default(), ReplicaId(1));

        assert!(links.tell_replica_later(to, b"one", Time(500)));
        assert_eq!(links.next_due(), Some(Time(1_500)));
        links.flush(&mut counters, Time(1_499));
        assert_eq!(counters.writes, 0, "it can wait");
        links.flush(&mut counters, Time(1_500));
        assert_eq!((counters.writes, links.next_due()), (1, None), "it has waited");

        assert!(links.tell_replica_later(to, b"two", Time(3_000)));
        assert!(links.tell_replica(to, b"three"));
        links.flush(&mut counters, Time(3_001));
        assert_eq!(counters.writes, 2, "together");
        assert!(links.tell_replica_later(to, b"four", Time(4_000)));
        links.flush(&mut counters, Time(4_000));
        assert_eq!((counters.writes, links.next_due()), (3, None), "no later than what was said first");
        assert!(links.tell_replica_later(to, b"five", Time(6_000)));
        links.flush_all();
        for said in ["one", "two", "three", "four", "five"] {
            let next = reader.next().await.expect("the link is good").expect("a message");
            assert_eq!(next, said.as_bytes());
        }
    });
}
