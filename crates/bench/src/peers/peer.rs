//! A peer: three servers with their defaults, and the program that loads them.

use super::line::{Figures, Line, parse};
use crate::Failure;
use crate::cli::Clients;
use crate::marks::{cpu, family};
use crate::null::WARM_UP;
use crate::processes::Server;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use troth_node::config::free_ports;

/// Servers of each: what bears one crash.
const SERVERS: usize = 3;
/// How long servers and load program may take to start, make the keys and say so; they share the machine.
const START: Duration = Duration::from_secs(120);
/// How long connections and the last answers of a round may take.
const DRAIN: Duration = Duration::from_secs(60);
/// Between two looks at what a load program said.
const LOOK: Duration = Duration::from_millis(5);

/// The heap of a server, as ZooKeeper's own start script sets it.
const HEAP: &str = "-Xmx1000m";
/// The configuration that ZooKeeper ships, in a directory and on ports of our own; its `forceSync` is `yes` by default.
/// The page for administrators would need a port and libraries more.
const ZOOKEEPER: &str = "tickTime=2000\ninitLimit=10\nsyncLimit=5\nadmin.enableServer=false\n\
                         clientPortAddress=127.0.0.1\n";

/// Running servers with their load.
pub(crate) struct Peer {
    /// Name and release, as the load program tells them.
    pub(crate) name: String,
    /// Where clients connect.
    pub(crate) addresses: Vec<String>,
    servers: Vec<Server>,
    load: Server,
    /// Lines of the load program that were heard.
    heard: usize,
}

impl Peer {
    /// Three etcd servers, each with `etcd --listen-…` and nothing else.
    pub(crate) async fn etcd(program: &Path, scratch: &Path) -> Result<Self, Failure> {
        let urls: Vec<String> =
            free_ports(2 * SERVERS)?.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let (clients, peers) = urls.split_at(SERVERS);
        let cluster: Vec<String> =
            peers.iter().enumerate().map(|(number, at)| format!("s{number}=http://{at}")).collect();
        let mut servers = Vec::new();
        for (number, (client, peer)) in clients.iter().zip(peers).enumerate() {
            let directory = made(scratch, &format!("etcd-{number}"))?;
            let mut server = Command::new(program);
            server.args(["server", "--name", &format!("s{number}"), "--initial-cluster", &cluster.join(",")]);
            server.arg("--data-dir").arg(directory.join("data"));
            for (flags, at) in [
                (["listen-client-urls", "advertise-client-urls"], client),
                (["listen-peer-urls", "initial-advertise-peer-urls"], peer),
            ] {
                for flag in flags {
                    server.args([format!("--{flag}"), format!("http://{at}")]);
                }
            }
            servers.push(Server::run(&mut server, &directory, "")?);
        }
        let load =
            Server::run(Command::new(program).arg("load").args(clients), &made(scratch, "etcd-load")?, "")?;
        Self::ready(servers, clients.to_vec(), load).await
    }

    /// Three ZooKeeper servers with the configuration that it ships.
    pub(crate) async fn zookeeper(classes: &Path, scratch: &Path) -> Result<Self, Failure> {
        let (servers, clients) = zookeeper_servers(classes, scratch, true)?;
        let mut load = java(classes);
        load.args(["PeerLoad", &clients.join(",")]);
        let load = Server::run(&mut load, &made(scratch, "zookeeper-load")?, "")?;
        Self::ready(servers, clients, load).await
    }

    async fn ready(servers: Vec<Server>, addresses: Vec<String>, load: Server) -> Result<Self, Failure> {
        let mut peer = Self { name: String::new(), addresses, servers, load, heard: 0 };
        match peer.hear(START).await? {
            Line::Ready(name) => peer.name = name,
            other => return Err(format!("a load program begins with {other:?}").into()),
        }
        Ok(peer)
    }

    /// One warm-up and one measurement.
    pub(crate) async fn round(&mut self, clients: Clients, seconds: u64) -> Result<Figures, Failure> {
        let Clients { connections, outstanding } = clients;
        let (warm_up, measured) = (WARM_UP, Duration::from_secs(seconds));
        self.load.tell(&format!(
            "round {connections} {outstanding} {} {}",
            warm_up.as_millis(),
            measured.as_millis()
        ))?;
        self.expect(&Line::Measuring(true), warm_up + DRAIN).await?;
        let before = self.cpu()?;
        self.expect(&Line::Measuring(false), measured + DRAIN).await?;
        let after = self.cpu()?;
        match self.hear(DRAIN).await? {
            Line::Done(figures) if figures.rate > 0.0 => {
                let per = 1.0 / (figures.rate * seconds as f64);
                let [servers_cpu, clients_cpu] = [0, 1].map(|who| (after[who] - before[who]) as f64 * per);
                Ok(Figures { servers_cpu, clients_cpu, ..figures })
            }
            other => Err(format!("{}: its load program says {other:?} after a round", self.name).into()),
        }
    }

    /// Microseconds of processor time of servers and clients.
    fn cpu(&self) -> Result<[u64; 2], Failure> {
        Ok([self.servers_cpu()?, cpu(self.load.pid())?])
    }

    /// Microseconds of processor time of the servers.
    pub(crate) fn servers_cpu(&self) -> Result<u64, Failure> {
        let mut servers = 0;
        for server in &self.servers {
            for pid in family(server.pid())? {
                servers += cpu(pid)?;
            }
        }
        Ok(servers)
    }

    async fn expect(&mut self, wanted: &Line, limit: Duration) -> Result<(), Failure> {
        match self.hear(limit).await? {
            heard if heard == *wanted => Ok(()),
            heard => Err(format!("{}: its load program says {heard:?}, not {wanted:?}", self.name).into()),
        }
    }

    /// The load program's next line.
    async fn hear(&mut self, limit: Duration) -> Result<Line, Failure> {
        let give_up = Instant::now() + limit;
        loop {
            let said = self.load.said();
            // What does not end with a line's end is still being written.
            let whole = &said[..said.rfind('\n').map_or(0, |end| end + 1)];
            if let Some(line) = whole.lines().filter_map(parse).nth(self.heard) {
                self.heard += 1;
                return Ok(line);
            }
            for server in self.servers.iter_mut().chain([&mut self.load]) {
                server.check()?;
            }
            if Instant::now() > give_up {
                let seconds = limit.as_secs();
                return Err(
                    format!("a load program says nothing for {seconds} s:\n{}", said.trim_end()).into()
                );
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Starts three ZooKeeper servers that sync what they answer, as ZooKeeper ships, or do not; gives where they listen.
pub(crate) fn zookeeper_servers(
    classes: &Path,
    scratch: &Path,
    syncs: bool,
) -> Result<(Vec<Server>, Vec<String>), Failure> {
    let ports = free_ports(3 * SERVERS)?;
    let mut ensemble = String::new();
    for (number, ports) in ports.chunks_exact(3).enumerate() {
        ensemble += &format!("server.{}=127.0.0.1:{}:{}\n", number + 1, ports[1], ports[2]);
    }
    let sync = if syncs { "yes" } else { "no" };
    let mut servers = Vec::new();
    for (number, ports) in ports.chunks_exact(3).enumerate() {
        let directory = made(scratch, &format!("zookeeper-{number}"))?;
        let data = made(&directory, "data")?;
        std::fs::write(data.join("myid"), format!("{}\n", number + 1))?;
        let own = format!("dataDir={}\nclientPort={}\nforceSync={sync}\n", data.display(), ports[0]);
        let configuration = directory.join("zoo.cfg");
        std::fs::write(&configuration, format!("{ZOOKEEPER}{own}{ensemble}"))?;
        let mut server = java(classes);
        server.args([HEAP, "PeerServer"]).arg(configuration);
        servers.push(Server::run(&mut server, &directory, "")?);
    }
    let clients = ports.chunks_exact(3).map(|ports| format!("127.0.0.1:{}", ports[0])).collect();
    Ok((servers, clients))
}

/// A directory of this name.
fn made(below: &Path, name: &str) -> Result<PathBuf, Failure> {
    let directory = below.join(name);
    std::fs::create_dir_all(&directory)?;
    Ok(directory)
}

/// Java with everything that the classes need. The library that logs says what is wrong, as lines on standard error.
fn java(classes: &Path) -> Command {
    let mut java = Command::new("java");
    java.arg("-cp").arg(format!("{0}/classes:{0}/lib/*", classes.display()));
    java.arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn");
    java
}
