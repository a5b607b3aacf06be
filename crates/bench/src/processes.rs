//! The servers as child processes. They end with this process, however it ends: each watches its
//! standard input, whose other end only this process holds.

use crate::Failure;
use crate::protocol::Agreed;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use troth_node::Snapshot;
use troth_node::config::{Durability, Layout, Plan, Service, TrustedHome, ZooKeeper, free_ports, make};
use troth_types::ReplicaId;

/// How long a stopped server may take to end before it is killed.
const FAREWELL: Duration = Duration::from_secs(3);
/// How long the servers may take to find each other.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks at something that is waited for.
const LOOK: Duration = Duration::from_millis(20);

/// What a server prints goes here, in its directory.
const LOG: &str = "bench.log";

/// The user of the components where this runs as root; nobody else has this number.
const TRUSTED: u32 = 64_104;

/// A cluster's files in a directory of their own, removed in the end.
pub(crate) struct Scratch {
    pub(crate) layout: Layout,
    /// Where the unreplicated service listens, for clients and for askers.
    pub(crate) direct: (String, String),
}

impl Scratch {
    /// A new cluster that serves nothing, on free ports of 127.0.0.1.
    pub(crate) fn new(agreed: Agreed, clients: u16, durability: Durability) -> Result<Self, Failure> {
        Self::serving(Service::Null, agreed, clients, durability)
    }

    /// A new cluster of a service, on free ports of 127.0.0.1.
    pub(crate) fn serving(
        service: Service,
        agreed: Agreed,
        clients: u16,
        durability: Durability,
    ) -> Result<Self, Failure> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("troth-bench-{}-{number}", std::process::id()));
        let replicas = usize::from(agreed.replicas());
        let addresses: Vec<String> =
            free_ports(2 * replicas + 2)?.into_iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let mut pairs = addresses.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
        let direct = pairs.next().expect("two ports more than the replicas need");
        let plan = Plan {
            protocol: agreed.protocol,
            auth: agreed.auth,
            faults: agreed.faults,
            service,
            zookeeper: ZooKeeper::default(),
            trusted: agreed.kind(),
            trusted_home: agreed.home,
            durability,
            clients,
            addresses: pairs.collect(),
            timing: String::new(),
        };
        let scratch = Self { layout: Layout::new(root), direct };
        make(&scratch.layout, &plan)?;
        if agreed.home == TrustedHome::Process && std::fs::metadata(scratch.layout.root())?.uid() == 0 {
            for replica in (0..agreed.replicas()).map(ReplicaId) {
                scratch.give(replica)?;
            }
        }
        Ok(scratch)
    }

    /// Gives a component's directory to a user of its own, which root must name.
    fn give(&self, replica: ReplicaId) -> Result<(), Failure> {
        let kept = self.layout.component(replica, TrustedHome::Process);
        for path in
            [self.layout.trusted(replica), self.layout.trusted_secret(replica)].into_iter().chain(kept)
        {
            chown(path, Some(TRUSTED), Some(TRUSTED))?;
        }
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays behind is a few small files below the system's own directory for such.
        let _ = std::fs::remove_dir_all(self.layout.root());
    }
}

/// A running server.
pub(crate) struct Server {
    child: Child,
    directory: PathBuf,
    /// Where it tells its counters.
    pub(crate) http: String,
}

impl Server {
    /// Starts this program again with these words; it writes to a log in `directory`.
    pub(crate) fn start(words: &[&str], directory: &Path, http: &str) -> Result<Self, Failure> {
        Self::run(Command::new(std::env::current_exe()?).args(words), directory, http)
    }

    /// Starts a program that ends with its standard input; it writes to a log in `directory`.
    pub(crate) fn run(program: &mut Command, directory: &Path, http: &str) -> Result<Self, Failure> {
        let file = File::create(directory.join(LOG))?;
        let child =
            program.stdin(Stdio::piped()).stdout(file.try_clone()?).stderr(file).spawn().map_err(|why| {
                format!("'{}' does not start: {why}", program.get_program().to_string_lossy())
            })?;
        Ok(Self { child, directory: directory.to_owned(), http: http.to_owned() })
    }

    /// Ends it at once, with SIGKILL.
    pub(crate) fn kill(mut self) {
        // Either may fail only where it has ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// What it has printed so far.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.directory.join(LOG)).unwrap_or_default()
    }

    /// How often its process asked for memory so far.
    pub(crate) async fn allocations(&self) -> Result<u64, Failure> {
        crate::allocations::ask(&self.directory).await
    }

    /// Gives it a line on its standard input.
    pub(crate) fn tell(&mut self, line: &str) -> Result<(), Failure> {
        let mut to = self.child.stdin.as_ref().expect("it is piped, and closed in the end only");
        Ok(writeln!(to, "{line}")?)
    }

    /// Fails where it has ended.
    pub(crate) fn check(&mut self) -> Result<(), Failure> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(format!("a server ended ({status}):\n{}", self.said().trim_end()).into()),
        }
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it answers and `ready` says that the answer is good.
    pub(crate) async fn wait(&mut self, ready: impl Fn(&Snapshot) -> bool) -> Result<(), Failure> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            self.check()?;
            if crate::marks::ask(&self.http).await.is_ok_and(|snapshot| ready(&snapshot)) {
                return Ok(());
            }
            if Instant::now() > give_up {
                return Err(format!("a server is not ready after {} s", PATIENCE.as_secs()).into());
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let give_up = Instant::now() + FAREWELL;
        while !matches!(self.child.try_wait(), Ok(Some(_))) {
            if Instant::now() > give_up {
                // Either may fail only where it has ended meanwhile.
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(LOOK);
        }
    }
}
