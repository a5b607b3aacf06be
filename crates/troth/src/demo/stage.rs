//! What the demonstration stands on: a cluster of processes in a directory of its own, and clients.

use super::model::Model;
use crate::ask;
use crate::failure::{Failure, NOT_DONE};
use crate::init::give;
use crate::print::say;
use crate::processes::Processes;
use crate::session::{Patience, Session};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use troth_client::front::Client;
use troth_node::Snapshot;
use troth_node::config::{
    Auth, Cluster, Durability, Layout, Plan, Protocol, Service, TrustedHome, TrustedKind, ZooKeeper,
    free_ports, make,
};
use troth_trusted_process::User;
use troth_types::{ClientId, ReplicaId};

/// Faulty replicas that the group bears.
const FAULTS: u16 = 1;
/// Clients with keys; the last is for asking replicas one by one.
const CLIENTS: u16 = 4;
/// The user of the trusted components where the demonstration runs as root.
const COMPONENTS: u32 = 64_101;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory that goes with its owner.
struct Scratch {
    path: PathBuf,
    keep: bool,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.keep {
            say!("Kept: {}", self.path.display());
        } else {
            // Nothing is left to do where it fails.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Cluster, clients and model. Fields are dropped in order: sessions, processes, directory.
pub(crate) struct Stage {
    sessions: Vec<Session>,
    processes: Processes,
    down: Vec<ReplicaId>,
    /// The replica that an adversary runs.
    pub(crate) liar: Option<ReplicaId>,
    pub(crate) cluster: Cluster,
    pub(crate) layout: Layout,
    pub(crate) model: Model,
    _scratch: Scratch,
}

impl Stage {
    /// Makes the cluster, starts it and connects two clients.
    pub(crate) async fn set(protocol: Protocol, auth: Auth, keep: bool) -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("troth-demo-{}", std::process::id()));
        let scratch = Scratch { path: path.clone(), keep };
        let layout = Layout::new(path);
        let replicas = protocol.replicas(FAULTS);
        let ports = free_ports(2 * usize::from(replicas))?;
        let (trusted, trusted_home) = protocol.components(TrustedKind::Ed25519, TrustedHome::Process);
        let address = |port: u16| format!("127.0.0.1:{port}");
        let plan = Plan {
            protocol,
            auth,
            faults: FAULTS,
            service: Service::Kv,
            zookeeper: ZooKeeper::default(),
            trusted,
            trusted_home,
            durability: Durability::Always,
            clients: CLIENTS,
            addresses: ports.chunks_exact(2).map(|pair| (address(pair[0]), address(pair[1]))).collect(),
            timing: String::new(),
        };
        make(&layout, &plan)?;
        let apart = trusted_home == TrustedHome::Process;
        if apart && std::fs::metadata(layout.root()).is_ok_and(|root| root.uid() == 0) {
            // As root a component lives under a user of its own, which has no other files.
            let owner = User { uid: COMPONENTS, gid: COMPONENTS };
            (0..replicas).try_for_each(|replica| give(&layout, ReplicaId(replica), owner))?;
        }
        let cluster = Cluster::load(&layout.cluster())?;
        let mut processes = Processes::start(&layout, &cluster, |_| Vec::new())?;
        processes.wait_until_serving(&layout, &cluster, PATIENCE, 0, |pause| {
            std::thread::sleep(pause);
            false
        })?;
        let model = Model::default();
        let (sessions, down) = (Vec::new(), Vec::new());
        let mut stage =
            Self { sessions, processes, down, liar: None, cluster, layout, model, _scratch: scratch };
        stage.connect().await?;
        Ok(stage)
    }

    /// Where the files are.
    pub(crate) fn place(&self) -> String {
        self.layout.root().display().to_string()
    }

    /// One of the two clients.
    pub(crate) fn client(&self, index: usize) -> Client {
        self.sessions[index].client.clone()
    }

    /// Connects the two clients.
    async fn connect(&mut self) -> Result<(), Failure> {
        let patience = Patience::for_answers(PATIENCE);
        for number in 1..=2 {
            let session =
                Session::open(&self.layout, &self.cluster, Some(ClientId(number)), patience).await?;
            self.sessions.push(session);
        }
        Ok(())
    }

    /// The replicas that run and do not lie.
    pub(crate) fn correct(&self) -> Vec<ReplicaId> {
        let group = self.cluster.group.all();
        group.filter(|replica| self.liar != Some(*replica) && !self.down.contains(replica)).collect()
    }

    /// What the correct replicas say of themselves.
    pub(crate) async fn look(&self) -> Result<Vec<Snapshot>, Failure> {
        let (cluster, correct) = (self.cluster.clone(), self.correct());
        let answers = tokio::task::spawn_blocking(move || ask::all(&cluster))
            .await
            .map_err(|_| Failure::new(NOT_DONE, "asking the replicas failed"))?;
        correct
            .into_iter()
            .map(|replica| {
                let answer = answers[usize::from(replica.0)].clone();
                answer.map_err(|why| Failure::new(NOT_DONE, format!("replica {} {why}", replica.0)))
            })
            .collect()
    }

    /// A replica that was killed and is still down.
    pub(crate) fn gone(&self) -> Option<ReplicaId> {
        self.down.last().copied()
    }

    /// Kills a replica with SIGKILL.
    pub(crate) fn kill(&mut self, replica: ReplicaId) -> Result<(), Failure> {
        self.processes.kill(replica).map_err(|why| Failure::system("cannot kill a replica", &why))?;
        self.down.push(replica);
        Ok(())
    }

    /// Starts a replica again that was killed; as an adversary, if it is to lie.
    pub(crate) fn restart(&mut self, replica: ReplicaId, lies: bool) -> Result<(), Failure> {
        let extra = if lies { vec!["--adversary".to_owned(), "liar".to_owned()] } else { Vec::new() };
        self.processes.restart(&self.layout, replica, extra)?;
        self.down.retain(|down| *down != replica);
        match lies {
            true => self.liar = Some(replica),
            false if self.liar == Some(replica) => self.liar = None,
            false => {}
        }
        Ok(())
    }

    /// Kills every replica, starts them all again and connects the clients anew. Returns how long it took from
    /// the start until all served, in seconds.
    pub(crate) async fn power_off_and_on(&mut self) -> Result<f64, Failure> {
        self.sessions.clear();
        let all: Vec<ReplicaId> = self.cluster.group.all().collect();
        for replica in &all {
            self.kill(*replica)?;
        }
        let began = Instant::now();
        for replica in &all {
            self.restart(*replica, false)?;
        }
        self.processes.wait_until_serving(&self.layout, &self.cluster, PATIENCE, 0, |pause| {
            std::thread::sleep(pause);
            false
        })?;
        self.connect().await?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// Waits until the correct replicas' state is as wanted.
    pub(crate) async fn until(
        &self,
        what: &str,
        wanted: impl Fn(&[Snapshot]) -> bool,
    ) -> Result<Vec<Snapshot>, Failure> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let now = self.look().await;
            if now.as_ref().is_ok_and(|now| wanted(now)) {
                return now;
            }
            if Instant::now() > give_up {
                // One that was started just now may not listen yet; one that never does is no success.
                now?;
                return Err(Failure::new(
                    NOT_DONE,
                    format!("waited {} s in vain until {what}", PATIENCE.as_secs()),
                ));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
