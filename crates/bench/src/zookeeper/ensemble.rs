//! What is measured: three servers of Apache ZooKeeper, or a Troth group with the gateway through which its clients reach
//! it.

use crate::Failure;
use crate::marks::{cpu, family};
use crate::null::start_replicas;
use crate::peers::zookeeper_servers;
use crate::processes::{Scratch, Server};
use crate::protocol::Agreed;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use troth_node::config::{Cluster, Durability, Service, free_ports};

/// How long servers may take until they give sessions.
const START: Duration = Duration::from_secs(60);
/// Between two looks at that.
const LOOK: Duration = Duration::from_millis(50);

/// Servers that speak ZooKeeper's protocol.
pub(super) struct Ensemble {
    pub(super) name: String,
    /// Where clients connect, one after the other.
    pub(super) addresses: Vec<String>,
    pub(super) servers: Vec<Server>,
    /// Of a group's servers, those that stand where its clients do.
    gateways: Vec<Server>,
    _scratch: Option<Scratch>,
}

impl Ensemble {
    /// Three servers with the configuration that ZooKeeper ships, or with one that does not sync.
    pub(super) async fn zookeeper(classes: &Path, scratch: &Path, syncs: bool) -> Result<Self, Failure> {
        let (servers, addresses) = zookeeper_servers(classes, scratch, syncs)?;
        let name = "ZooKeeper".to_owned();
        Self { name, addresses, servers, gateways: Vec::new(), _scratch: None }.ready().await
    }

    /// A group, and one gateway.
    pub(super) async fn troth(agreed: Agreed, durability: Durability) -> Result<Self, Failure> {
        let scratch = Scratch::serving(Service::ZooKeeper, agreed, 1, durability)?;
        let cluster = Cluster::load(&scratch.layout.cluster())?;
        let servers = start_replicas(&scratch, &cluster).await?;
        let address = format!("127.0.0.1:{}", free_ports(1)?[0]);
        let directory = scratch.layout.root().join("gateway");
        std::fs::create_dir_all(&directory)?;
        let program = std::env::current_exe()?.with_file_name("troth");
        let mut gateway = Command::new(program);
        gateway.args(["gateway", "zookeeper", "--until-stdin-ends", "--listen", &address, "--dir"]);
        gateway.arg(scratch.layout.root());
        let gateways = vec![Server::run(&mut gateway, &directory, "")?];
        let name = format!("Troth, {}", agreed.protocol.name());
        Self { name, addresses: vec![address], servers, gateways, _scratch: Some(scratch) }.ready().await
    }

    /// Waits until every address takes connections and sessions.
    async fn ready(mut self) -> Result<Self, Failure> {
        let give_up = Instant::now() + START;
        for number in 0..self.addresses.len() {
            while !self.serves(number).await {
                for server in self.servers.iter_mut().chain(&mut self.gateways) {
                    server.check()?;
                }
                if Instant::now() > give_up {
                    return Err(format!("{} gives no sessions after {} s", self.name, START.as_secs()).into());
                }
                tokio::time::sleep(LOOK).await;
            }
        }
        Ok(self)
    }

    async fn serves(&self, number: usize) -> bool {
        let address = &self.addresses[number];
        TcpStream::connect(address).await.is_ok() && super::load::Connection::open(address).await.is_ok()
    }

    /// Microseconds of processor time of all servers, gateways among them.
    pub(super) fn cpu(&self) -> Result<u64, Failure> {
        let mut all = 0;
        for server in self.servers.iter().chain(&self.gateways) {
            for pid in family(server.pid())? {
                all += cpu(pid)?;
            }
        }
        Ok(all)
    }
}
