//! A cluster's replicas as child processes. They end with this process, however it ends: each child
//! watches its standard input, whose other end only we hold.

use crate::ask;
use crate::failure::{Failure, MUST_NOT_START, NOT_DONE};
use std::fs::File;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use troth_node::Snapshot;
use troth_node::backup::is_backup;
use troth_node::config::{Cluster, Layout};
use troth_types::ReplicaId;

/// How long a stopped replica may take to end before it is killed.
const FAREWELL: Duration = Duration::from_secs(3);
/// Between two looks at something that is waited for.
const LOOK: Duration = Duration::from_millis(20);

/// The running replicas of one cluster.
pub(crate) struct Processes {
    children: Vec<Option<Child>>,
    /// Bytes that each one's log had before.
    logged: Vec<u64>,
    /// Those that must not start and are done without, and what they said.
    refused: Vec<(ReplicaId, String)>,
}

/// The exit code of a child that has ended, and that of a failure where a signal ended it.
pub(crate) fn code_of(status: ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(NOT_DONE)
}

/// Starts one replica; its output goes to `replica.log` in its directory.
fn spawn(layout: &Layout, replica: ReplicaId, extra: Vec<String>) -> Result<Child, Failure> {
    if is_backup(layout.root()) {
        return Err(Failure::of_a_backup(layout.root()));
    }
    if !layout.replica(replica).is_dir() {
        return Err(Failure::usage(format!(
            "{} is not here: this directory does not have the files of all replicas\n  mend: start those whose files are here, each \
             with `troth replica --id N`",
            layout.replica(replica).display()
        )));
    }
    let program = std::env::current_exe().map_err(|why| Failure::system("cannot find this program", &why))?;
    let log = layout.replica(replica).join("replica.log");
    let open = || {
        let opened = File::options().create(true).append(true).open(&log);
        opened.map_err(|why| Failure::place("cannot write", &log, &why))
    };
    let (to, also_to) = (open()?, open()?);
    let spawn = || {
        Command::new(&program)
            .args(["replica", "--until-stdin-ends", "--dir"])
            .arg(layout.root())
            .args(["--id", &replica.0.to_string()])
            .args(extra)
            .stdin(Stdio::piped())
            .stdout(to)
            .stderr(also_to)
            .spawn()
    };
    spawn().map_err(|why| Failure::system(&format!("cannot start replica {replica}"), &why))
}

impl Processes {
    /// Starts every replica of the cluster; `extra` gives further arguments per replica. Their
    /// output goes to `replica.log` in their directories.
    pub(crate) fn start(
        layout: &Layout,
        cluster: &Cluster,
        extra: impl Fn(ReplicaId) -> Vec<String>,
    ) -> Result<Self, Failure> {
        let mut processes = Self { children: Vec::new(), logged: Vec::new(), refused: Vec::new() };
        for replica in cluster.group.all() {
            let log = std::fs::metadata(layout.replica(replica).join("replica.log"));
            processes.logged.push(log.map_or(0, |data| data.len()));
            let child = spawn(layout, replica, extra(replica))?;
            processes.children.push(Some(child));
        }
        Ok(processes)
    }

    /// Waits until every replica answers and is connected to every other: true. Between two looks it
    /// calls `pause`, which waits so long and tells whether to stop: false. Up to `spare` replicas that must not start
    /// are done without: the others would not have waited for them either.
    pub(crate) fn wait_until_serving(
        &mut self,
        layout: &Layout,
        cluster: &Cluster,
        patience: Duration,
        spare: usize,
        pause: impl Fn(Duration) -> bool,
    ) -> Result<bool, Failure> {
        let give_up = Instant::now() + patience;
        loop {
            if let Some((replica, code)) = self.ended() {
                // Ctrl-C reaches the replicas as it does us, and they may be quicker.
                if code == 0 && pause(LOOK) {
                    return Ok(false);
                }
                // It ended cleanly; but the cluster does not serve, and that is no success.
                let code = if code == 0 { NOT_DONE } else { code };
                let before = usize::try_from(self.logged[usize::from(replica.0)]).unwrap_or(usize::MAX);
                let log = std::fs::read(layout.replica(replica).join("replica.log")).unwrap_or_default();
                let log = String::from_utf8_lossy(log.get(before..).unwrap_or_default());
                let said = match log.trim_end() {
                    "" => " and said nothing".to_owned(),
                    log => format!(":\n{log}"),
                };
                if code == MUST_NOT_START && self.refused.len() < spare {
                    self.forget(replica);
                    self.refused.push((replica, said));
                    continue;
                }
                // Where it is one too many, the first tells as much as any.
                let (replica, said) = self.refused.pop().unwrap_or((replica, said));
                return Err(Failure::new(code, format!("replica {} ended at once{said}", replica.0)));
            }
            let others = cluster.group.n() - 1 - self.refused.len();
            // Another process that answers in its place is about to have this one end.
            let ready = |(answer, child): (&Result<Snapshot, _>, &Option<Child>)| {
                let Some(child) = child else { return true };
                answer.as_ref().is_ok_and(|says| says.peers.len() >= others && says.pid == child.id())
            };
            if ask::all(cluster).iter().zip(&self.children).all(ready) {
                return Ok(true);
            }
            if Instant::now() > give_up {
                let problem = format!(
                    "not every replica serves after {} s\n  mend: look at {}/replica-N/replica.log",
                    patience.as_secs(),
                    layout.root().display()
                );
                return Err(Failure::new(NOT_DONE, problem));
            }
            if pause(LOOK) {
                return Ok(false);
            }
        }
    }

    /// Those that must not start and are done without, and what they said.
    pub(crate) fn refused(&self) -> &[(ReplicaId, String)] {
        &self.refused
    }

    /// A replica that has ended by itself, with its exit code.
    pub(crate) fn ended(&mut self) -> Option<(ReplicaId, u8)> {
        for (index, child) in (0u16..).zip(&mut self.children) {
            if let Some(status) = child.as_mut().and_then(|child| child.try_wait().ok().flatten()) {
                return Some((ReplicaId(index), code_of(status)));
            }
        }
        None
    }

    /// Kills one replica with SIGKILL and waits for its end.
    #[cfg(feature = "demo-adversary")]
    pub(crate) fn kill(&mut self, replica: ReplicaId) -> std::io::Result<()> {
        if let Some(mut child) = self.children[usize::from(replica.0)].take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Starts one replica again that was killed.
    #[cfg(feature = "demo-adversary")]
    pub(crate) fn restart(
        &mut self,
        layout: &Layout,
        replica: ReplicaId,
        extra: Vec<String>,
    ) -> Result<(), Failure> {
        self.children[usize::from(replica.0)] = Some(spawn(layout, replica, extra)?);
        Ok(())
    }

    /// Notes a replica that ended by itself, so that it is not waited for.
    pub(crate) fn forget(&mut self, replica: ReplicaId) {
        self.children[usize::from(replica.0)] = None;
    }

    /// How many run.
    pub(crate) fn running(&self) -> usize {
        self.children.iter().flatten().count()
    }

    /// Stops all: closes their input, then kills whoever does not end.
    pub(crate) fn stop(&mut self) {
        for child in self.children.iter_mut().flatten() {
            drop(child.stdin.take());
        }
        let give_up = Instant::now() + FAREWELL;
        for mut child in self.children.iter_mut().filter_map(Option::take) {
            while !matches!(child.try_wait(), Ok(Some(_))) {
                if Instant::now() > give_up {
                    // Either may fail only where the child has ended meanwhile.
                    let _ = child.kill();
                    let _ = child.wait();
                    break;
                }
                std::thread::sleep(LOOK);
            }
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.stop();
    }
}
