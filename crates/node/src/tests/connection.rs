//! Callers at a replica that listens, over the loopback interface.

use super::engine::files;
use crate::clock::Clock;
use crate::config::{ClientSecret, Cluster};
use crate::connection::{MOST_HANDSHAKES, Meeting, listen};
use crate::inbox::Inbox;
use crate::runtime::{Shared, engine};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;
use troth_exec::Executor;
use troth_kv::Null;
use troth_link::{Identity, LinkKey, PeerId, Settings, initiate};
use troth_minbft::MinBft;

type Replica = Rc<Shared<MinBft, Executor<Null>>>;

/// Runs `test` beside replica 0 of a fresh group; it gets the replica, where it listens, and client 1's
/// files.
fn beside_a_replica(name: &str, test: impl AsyncFnOnce(Replica, String, Cluster, ClientSecret)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let (cluster, secret, client) = files(name);
        let meeting = Rc::new(Meeting::new(&cluster, &secret));
        let executor = Executor::new(Null::default(), cluster.limits);
        let engine = engine(&cluster, secret, executor, Clock::new()).expect("a fresh replica starts");
        let shared = Rc::new(Shared { engine: RefCell::new(engine), inbox: Inbox::new() });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        tokio::task::spawn_local(listen(Rc::clone(&shared), meeting, listener));
        test(shared, address, cluster, client).await;
    });
}

#[test]
fn silent_callers_lock_nobody_out() {
    beside_a_replica("silent", async |shared, address, cluster, client| {
        let mut silent = Vec::new();
        for _ in 0..2 * MOST_HANDSHAKES {
            silent.push(TcpStream::connect(&address).await.expect("the port is open"));
        }
        // Far less than the time that the silent ones have.
        let settings =
            Settings { handshake_timeout: Duration::from_secs(2), ..Settings::new(cluster.group.id()) };
        let identity = Identity::new(PeerId::Client(client.client), client.link);
        let stream = TcpStream::connect(&address).await.expect("the port is open");
        let key = LinkKey(cluster.replicas[0].link_key);
        let link = initiate(stream, &identity, &key, &settings).await;
        assert!(link.is_ok(), "{:?}", link.err());
        assert!(shared.engine.borrow().counters.connections_refused >= MOST_HANDSHAKES as u64);
    });
}
