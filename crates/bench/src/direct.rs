//! The unreplicated service: one process with the replicas' codec, links, signature checks and
//! executor, which executes a frame as soon as it is checked and answers itself.
//!
//! It is built lean on purpose, without the replicas' machine and lanes, and seals no checkpoints:
//! what it leaves out counts as the price of replication. With durability `always` it writes frames into a file that was
//! filled before, and answers what is synced. While one sync runs it checks and executes what comes next, for which there
//! is one sync together; where it has a single client, which has nothing to say meanwhile, it syncs itself.

use crate::Failure;
use crate::cli::Server;
use crate::direct_log::Log;
use crate::hub::{Hub, RETRY, flush};
use bytes::Bytes;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::LocalSet;
use troth_auth::{Ed25519, FrameVerifier};
use troth_core::{Execution, Lookup, Ordered};
use troth_exec::{Application, Executor};
use troth_kv::{Kv, Null};
use troth_link::{Identity, LinkKey, LinkReader, LinkWriter, PeerId, Settings, accept};
use troth_node::config::{Cluster, Durability, Layout, ReplicaSecret, Service};
use troth_node::{Counters, Snapshot};
use troth_types::{ClientId, Digest, Frame, Time, ToClient, ToReplica, Wire};

/// Signatures checked in one turn, as in the runtime.
const CHECKS: usize = 96;

/// A client's connection.
struct Link {
    client: ClientId,
    writer: LinkWriter,
    dirty: bool,
}

struct Direct<A> {
    frames: FrameVerifier,
    executor: Executor<A>,
    log: Option<Log>,
    /// Answers to what the sync that is under way covers.
    covered: Vec<ToClient>,
    /// Those to what comes with the next one.
    held: Vec<ToClient>,
    links: Vec<Link>,
    by_client: BTreeMap<ClientId, usize>,
    dirty: Vec<usize>,
    counters: Counters,
}

/// Serves until standard input ends.
pub(crate) fn run(server: &Server) -> Result<(), Failure> {
    let layout = Layout::new(&server.dir);
    let cluster = Cluster::load(&layout.cluster())?;
    crate::allocations::tell(layout.root())?;
    troth_allocator::free_beside()?;
    match cluster.service {
        Service::Null => serve(server, &layout, cluster, Null::default()),
        Service::Kv => serve(server, &layout, cluster, Kv::default()),
        Service::ZooKeeper => {
            let service = cluster.zookeeper.clone();
            serve(server, &layout, cluster, service)
        }
    }
}

fn serve<A: Application + 'static>(
    server: &Server,
    layout: &Layout,
    cluster: Cluster,
    service: A,
) -> Result<(), Failure> {
    let secret = ReplicaSecret::load(&layout.replica_secret(server.id()), &cluster)?;
    let log = match cluster.durability {
        Durability::Memory => None,
        _ => Some(Log::new(&layout.root().join("unreplicated.log"))?),
    };
    let (orphaned, parent) = tokio::sync::oneshot::channel::<()>();
    std::thread::spawn(move || {
        let ended = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        drop((ended, orphaned));
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let clients = TcpListener::bind(&server.address).await?;
        let askers = TcpListener::bind(&server.http).await?;
        let hub = Rc::new(Hub::default());
        let direct = Rc::new(RefCell::new(Direct {
            frames: FrameVerifier::new(cluster.directory(), Arc::new(Ed25519), cluster.limits),
            executor: Executor::new(service, cluster.limits),
            log,
            covered: Vec::new(),
            held: Vec::new(),
            links: Vec::new(),
            by_client: BTreeMap::new(),
            dirty: Vec::new(),
            counters: Counters::default(),
        }));
        tokio::task::spawn_local(listen(Rc::clone(&direct), Rc::clone(&hub), clients, cluster, secret));
        tokio::task::spawn_local(tell(Rc::clone(&direct), Rc::clone(&hub), askers));
        tokio::select! {
            done = turns(&direct, &hub) => done,
            _ = parent => Ok(()),
        }
    })
}

async fn listen<A: Application + 'static>(
    direct: Rc<RefCell<Direct<A>>>,
    hub: Rc<Hub>,
    listener: TcpListener,
    cluster: Cluster,
    secret: ReplicaSecret,
) {
    let identity = Identity::new(PeerId::Replica(secret.replica), secret.link);
    let settings = Settings::new(cluster.group.id());
    let key = |peer| match peer {
        PeerId::Client(client) => cluster.clients.get(&client).map(|entry| LinkKey(entry.link_key)),
        PeerId::Replica(_) => None,
    };
    while let Ok((stream, _)) = listener.accept().await {
        if let Ok((PeerId::Client(client), reader, writer)) = accept(stream, &identity, &settings, key).await
        {
            join(&direct, &hub, client, reader, writer);
        }
    }
}

fn join<A>(
    direct: &RefCell<Direct<A>>,
    hub: &Rc<Hub>,
    client: ClientId,
    reader: LinkReader,
    writer: LinkWriter,
) {
    let mut direct = direct.borrow_mut();
    let number = direct.links.len();
    hub.read(number, reader);
    direct.links.push(Link { client, writer, dirty: false });
    direct.by_client.insert(client, number);
}

/// Tells the counters to whoever asks, in the form of a replica's `/status`.
async fn tell<A: Application + 'static>(direct: Rc<RefCell<Direct<A>>>, hub: Rc<Hub>, listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut head = [0; 1024];
        let snapshot = direct.borrow().snapshot(&hub);
        let body = serde_json::to_string(&snapshot).expect("a snapshot is plain data");
        // Who hangs up early goes without.
        let _ = stream.read(&mut head).await;
        let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\n\r\n{body}").as_bytes()).await;
    }
}

async fn turns<A: Application>(direct: &RefCell<Direct<A>>, hub: &Hub) -> Result<(), Failure> {
    let mut arrived = Vec::new();
    let mut behind = false;
    let synced = direct.borrow().log.as_ref().map(Log::woken);
    loop {
        let synced = async {
            match &synced {
                Some(synced) => synced.notified().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = hub.woken() => {}
            () = synced => {}
            () = tokio::time::sleep(RETRY), if behind => {}
        }
        // Whoever has bytes to read reads them now, so that one turn takes them together.
        tokio::task::yield_now().await;
        hub.swap(&mut arrived);
        let mut direct = direct.borrow_mut();
        for some in arrived.chunks(CHECKS) {
            direct.turn(some);
            direct.go_on_syncing()?;
            direct.flush();
        }
        direct.go_on_syncing()?;
        direct.flush();
        behind = !direct.dirty.is_empty();
        arrived.clear();
    }
}

impl<A: Application> Direct<A> {
    /// Checks what came, executes it as one batch and queues the answers.
    fn turn(&mut self, arrived: &[(usize, Bytes)]) {
        self.counters.turns += 1;
        let mut asked: Vec<Arc<Frame>> = Vec::with_capacity(arrived.len());
        for (connection, bytes) in arrived {
            self.counters.client_messages_in += 1;
            match ToReplica::from_wire(bytes) {
                Ok(ToReplica::Request { frame, .. }) if frame.client() == self.links[*connection].client => {
                    asked.push(frame);
                }
                Ok(_) | Err(_) => self.counters.malformed += 1,
            }
        }
        let verdicts = self.frames.verify_all(asked);
        let mut frames = Vec::with_capacity(verdicts.len());
        for verdict in verdicts {
            let Ok(frame) = verdict else {
                self.counters.frames_refused += 1;
                continue;
            };
            self.counters.frames_verified += 1;
            match self.executor.lookup(frame.client(), frame.number()) {
                Lookup::New => frames.push(frame),
                Lookup::Executed(reply) => self.answer(ToClient::Reply(*reply)),
                Lookup::ResultGone(_) | Lookup::TooOld => {}
            }
        }
        if frames.is_empty() {
            return;
        }
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = Time(u64::try_from(wall.as_micros()).unwrap_or(u64::MAX));
        let seq = self.executor.executed().next();
        if let Some(log) = &mut self.log {
            for frame in &frames {
                log.append(&frame.to_wire());
            }
        }
        let outcome = self.executor.execute(&Ordered { seq, time, seed: Digest::ZERO, frames });
        for reply in outcome.replies {
            self.answer(ToClient::Reply(reply));
        }
    }

    /// Answers what is synced, and has the next synced.
    fn go_on_syncing(&mut self) -> Result<(), Failure> {
        let Some(log) = &mut self.log else { return Ok(()) };
        if log.is_syncing() && log.is_done()? {
            for answer in std::mem::take(&mut self.covered) {
                self.send(&answer);
            }
        }
        let Some(log) = self.log.as_mut().filter(|log| !log.is_syncing() && log.has_more()) else {
            return Ok(());
        };
        self.counters.syncs += 1;
        let held = std::mem::take(&mut self.held);
        if self.links.len() == 1 {
            log.sync_now()?;
            for answer in held {
                self.send(&answer);
            }
        } else {
            log.begin();
            self.covered = held;
        }
        Ok(())
    }

    /// Answers when what the answer rests on is durable.
    fn answer(&mut self, message: ToClient) {
        // What is answered again was executed before what is appended now, at the latest.
        match &self.log {
            Some(log) if log.has_more() || log.is_syncing() => self.held.push(message),
            _ => self.send(&message),
        }
    }

    fn send(&mut self, message: &ToClient) {
        let ToClient::Reply(reply) = message else { return };
        let Some(number) = self.by_client.get(&reply.client) else { return };
        let link = &mut self.links[*number];
        // A client that does not take its answers goes without them.
        if link.writer.queue_value(message).is_ok() {
            if !std::mem::replace(&mut link.dirty, true) {
                self.dirty.push(*number);
            }
            self.counters.client_messages_out += 1;
        }
    }

    /// Writes once per connection. What a socket does not take at once waits for the next turn; a
    /// connection that broke has nothing left to write.
    fn flush(&mut self) {
        let mut behind = Vec::new();
        for number in self.dirty.drain(..) {
            let link = &mut self.links[number];
            let before = link.writer.counters();
            link.dirty = flush(&mut link.writer).unwrap_or(false);
            let after = link.writer.counters();
            self.counters.bytes_out += after.bytes - before.bytes;
            self.counters.writes += after.calls - before.calls;
            if link.dirty {
                behind.push(number);
            }
        }
        self.dirty = behind;
    }

    fn snapshot(&self, hub: &Hub) -> Snapshot {
        let (bytes_in, reads) = hub.counters();
        Snapshot {
            protocol: "unreplicated".to_owned(),
            pid: std::process::id(),
            executed: self.executor.executed().0,
            clients: self.links.len() as u64,
            counters: Counters { bytes_in, reads, ..self.counters.clone() },
            ..Snapshot::default()
        }
    }
}
