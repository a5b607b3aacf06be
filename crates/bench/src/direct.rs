//! The unreplicated service: one process with the replicas' codec, links, signature checks and
//! executor, which executes a frame as soon as it is checked and answers itself.
//!
//! It is built lean on purpose, without the replicas' machine and lanes, and seals no checkpoints:
//! what it leaves out counts as the price of replication.

use crate::Failure;
use crate::cli::Server;
use crate::hub::{Hub, RETRY, flush};
use bytes::Bytes;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::LocalSet;
use troth_auth::{Ed25519, FrameVerifier};
use troth_core::{Execution, Lookup, Ordered};
use troth_exec::Executor;
use troth_kv::Null;
use troth_link::{Identity, LinkKey, LinkReader, LinkWriter, PeerId, Settings, accept};
use troth_node::config::{Cluster, Layout, ReplicaSecret};
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

struct Direct {
    frames: FrameVerifier,
    executor: Executor<Null>,
    links: Vec<Link>,
    counters: Counters,
}

/// Serves until standard input ends.
pub(crate) fn run(server: &Server) -> Result<(), Failure> {
    let layout = Layout::new(&server.dir);
    let cluster = Cluster::load(&layout.cluster())?;
    let secret = ReplicaSecret::load(&layout.replica_secret(server.id()), &cluster)?;
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
            executor: Executor::new(Null::default(), cluster.limits),
            links: Vec::new(),
            counters: Counters::default(),
        }));
        tokio::task::spawn_local(listen(Rc::clone(&direct), Rc::clone(&hub), clients, cluster, secret));
        tokio::task::spawn_local(tell(Rc::clone(&direct), Rc::clone(&hub), askers));
        tokio::select! {
            () = turns(&direct, &hub) => {}
            _ = parent => {}
        }
        Ok(())
    })
}

async fn listen(
    direct: Rc<RefCell<Direct>>,
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

fn join(direct: &RefCell<Direct>, hub: &Rc<Hub>, client: ClientId, reader: LinkReader, writer: LinkWriter) {
    let links = &mut direct.borrow_mut().links;
    hub.read(links.len(), reader);
    links.push(Link { client, writer, dirty: false });
}

/// Tells the counters to whoever asks, in the form of a replica's `/status`.
async fn tell(direct: Rc<RefCell<Direct>>, hub: Rc<Hub>, listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut head = [0; 1024];
        let snapshot = direct.borrow().snapshot(&hub);
        let body = serde_json::to_string(&snapshot).expect("a snapshot is plain data");
        // Who hangs up early goes without.
        let _ = stream.read(&mut head).await;
        let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\n\r\n{body}").as_bytes()).await;
    }
}

async fn turns(direct: &RefCell<Direct>, hub: &Hub) {
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
            direct.turn(some);
            direct.flush();
        }
        behind = direct.links.iter().any(|link| link.dirty);
        arrived.clear();
    }
}

impl Direct {
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
                Lookup::Executed(reply) => self.answer(&ToClient::Reply(*reply)),
                Lookup::TooOld => {}
            }
        }
        if frames.is_empty() {
            return;
        }
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = Time(u64::try_from(wall.as_micros()).unwrap_or(u64::MAX));
        let seq = self.executor.executed().next();
        let outcome = self.executor.execute(&Ordered { seq, time, seed: Digest::ZERO, frames });
        for reply in outcome.replies {
            self.answer(&ToClient::Reply(reply));
        }
    }

    fn answer(&mut self, message: &ToClient) {
        let ToClient::Reply(reply) = message else { return };
        let Some(link) = self.links.iter_mut().find(|link| link.client == reply.client) else { return };
        // A client that does not take its answers goes without them.
        if link.writer.queue_value(message).is_ok() {
            link.dirty = true;
            self.counters.client_messages_out += 1;
        }
    }

    /// Writes once per connection. What a socket does not take at once waits for the next turn; a
    /// connection that broke has nothing left to write.
    fn flush(&mut self) {
        for link in self.links.iter_mut().filter(|link| link.dirty) {
            let before = link.writer.counters();
            link.dirty = flush(&mut link.writer).unwrap_or(false);
            let after = link.writer.counters();
            self.counters.bytes_out += after.bytes - before.bytes;
            self.counters.writes += after.calls - before.calls;
        }
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
