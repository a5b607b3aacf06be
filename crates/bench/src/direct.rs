//! The unreplicated service: one process with the replicas' codec, links, signature checks and
//! executor, which executes a frame as soon as it is checked and answers itself.
//!
//! It is built lean on purpose, without the replicas' machine and lanes, and seals no checkpoints:
//! what it leaves out counts as the price of replication. With durability `always` it writes the frames of a
//! turn into a file that was filled before, and syncs them once before it answers.

use crate::Failure;
use crate::cli::Server;
use crate::hub::{Hub, RETRY, flush};
use bytes::Bytes;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
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
    links: Vec<Link>,
    by_client: BTreeMap<ClientId, usize>,
    dirty: Vec<usize>,
    counters: Counters,
}

/// Bytes of the log, which begins again at its start when it is full: as much as is needed to restart from is not
/// what is measured.
const LOG: usize = 64 << 20;

/// What is durable before it is answered.
struct Log {
    file: File,
    at: usize,
    turn: Vec<u8>,
}

impl Log {
    fn new(path: &Path) -> Result<Self, Failure> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        let zeros = vec![0; 1 << 20];
        for part in 0..LOG / zeros.len() {
            file.write_all_at(&zeros, (part * zeros.len()) as u64)?;
        }
        file.sync_all()?;
        Ok(Self { file, at: 0, turn: Vec::new() })
    }

    /// Writes what the turn appended, and syncs it.
    fn sync(&mut self) -> std::io::Result<()> {
        if self.at + self.turn.len() > LOG {
            self.at = 0;
        }
        self.file.write_all_at(&self.turn, self.at as u64)?;
        self.at += self.turn.len();
        self.turn.clear();
        self.file.sync_data()
    }
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
    loop {
        tokio::select! {
            () = hub.woken() => {}
            () = tokio::time::sleep(RETRY), if behind => {}
        }
        // Whoever has bytes to read reads them now, so that one turn takes them together.
        tokio::task::yield_now().await;
        hub.swap(&mut arrived);
        let mut direct = direct.borrow_mut();
        for some in arrived.chunks(CHECKS) {
            direct.turn(some)?;
            direct.flush();
        }
        behind = !direct.dirty.is_empty();
        arrived.clear();
    }
}

impl<A: Application> Direct<A> {
    /// Checks what came, executes it as one batch and queues the answers.
    fn turn(&mut self, arrived: &[(usize, Bytes)]) -> Result<(), Failure> {
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
                Lookup::Executed(reply) => self.answer(&ToClient::Reply(*reply)),
                Lookup::ResultGone(_) | Lookup::TooOld => {}
            }
        }
        if frames.is_empty() {
            return Ok(());
        }
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = Time(u64::try_from(wall.as_micros()).unwrap_or(u64::MAX));
        let seq = self.executor.executed().next();
        if let Some(log) = &mut self.log {
            for frame in &frames {
                log.turn.extend_from_slice(&frame.to_wire());
            }
            log.sync()?;
            self.counters.syncs += 1;
        }
        let outcome = self.executor.execute(&Ordered { seq, time, seed: Digest::ZERO, frames });
        for reply in outcome.replies {
            self.answer(&ToClient::Reply(reply));
        }
        Ok(())
    }

    fn answer(&mut self, message: &ToClient) {
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
