//! A disk that is wiped: what ran from it must refuse to start, and comes back by the operator's word, under a
//! new epoch and with nothing on its disk. What identifies the machine stays: the secret files, and beside them
//! the marks that it ran, as on a machine whose data stand on disks of their own.

use crate::Failure;
use crate::processes::{Part, Processes};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use troth_node::config::Layout;
use troth_types::ReplicaId;

/// Within which a process must refuse to go on with an empty disk.
const REFUSES_WITHIN: Duration = Duration::from_secs(10);
/// Between two looks at whether it did.
const LOOK: Duration = Duration::from_millis(10);
/// Seconds that one order may take, and the time within which repeating it must succeed.
const ORDER_SECONDS: u64 = 10;
const ORDERED_WITHIN: Duration = Duration::from_secs(30);

impl Processes {
    /// Empties the disks of these parts of a machine: of the replica its log and snapshots, of its trusted
    /// component the counters. Neither may run.
    pub(crate) fn wipe(&self, replica: u16, parts: &[Part]) -> Result<(), Failure> {
        let (layout, me) = (Layout::new(self.directory(replica)), ReplicaId(replica));
        for part in parts {
            let disks = match part {
                Part::Replica => vec![layout.data(me)],
                Part::Trusted => layout.component(me, self.trusted_home()),
            };
            for disk in disks {
                empty(&disk).map_err(|why| format!("cannot wipe {}: {why}", disk.display()))?;
            }
        }
        Ok(())
    }

    /// Starts a machine whose disk was wiped: one of its processes must refuse, or it would promise anew what
    /// it has promised otherwise. Neither runs afterwards.
    pub(crate) async fn must_refuse(&mut self, replica: u16) -> Result<(), Failure> {
        self.begin(replica)?;
        let give_up = Instant::now() + REFUSES_WITHIN;
        let ended = loop {
            match self.ended_of(replica) {
                Some(ended) => break ended,
                None if Instant::now() > give_up => {
                    return Err(format!("replica {replica} started with a wiped disk").into());
                }
                None => tokio::time::sleep(LOOK).await,
            }
        };
        self.kill(&[replica], &[Part::Trusted, Part::Replica])?;
        if ended.refused() { Ok(()) } else { Err(ended.describe().into()) }
    }
}

/// Removes what is in a directory, which keeps its owner and mode.
pub(crate) fn empty(directory: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Whoever may change the group.
pub(crate) struct Operator {
    program: PathBuf,
    key: PathBuf,
}

impl Operator {
    /// With this `troth` and the key at this place.
    pub(crate) fn new(program: &Path, key: PathBuf) -> Self {
        Self { program: program.to_path_buf(), key }
    }

    /// `troth admin readmit` on the replica's machine, as docs/operating/readmission.md has it: the operator's
    /// key is brought and taken away again, and what was not done is repeated. The replica must not run.
    pub(crate) async fn readmit(&self, machine: &Path, replica: u16) -> Result<(), Failure> {
        let brought = Layout::new(machine).operator_secret();
        let clients = brought.parent().ok_or("a file without a directory")?.to_path_buf();
        DirBuilder::new().mode(0o700).create(&clients)?;
        std::fs::copy(&self.key, &brought)?;
        let give_up = Instant::now() + ORDERED_WITHIN;
        let done = loop {
            let ended = self.order(machine, replica).await?;
            let said = String::from_utf8_lossy(&ended.stderr).trim_end().to_owned();
            if ended.status.success() {
                break Ok(());
            }
            if Instant::now() > give_up {
                break Err(format!("`troth admin readmit` failed ({}):\n{said}", ended.status));
            }
            println!("`troth admin readmit` is repeated ({}): {said}", ended.status);
            tokio::time::sleep(Duration::from_secs(1)).await;
        };
        std::fs::remove_dir_all(&clients)?;
        Ok(done?)
    }

    async fn order(&self, machine: &Path, replica: u16) -> Result<Output, Failure> {
        let mut command = Command::new(&self.program);
        command.args(["admin", "--wait", &ORDER_SECONDS.to_string(), "readmit"]);
        command.args(["--replica", &replica.to_string(), "--dir"]).arg(machine).stdin(Stdio::null());
        // The relay runs here and must go on meanwhile.
        Ok(tokio::task::spawn_blocking(move || command.output()).await??)
    }
}
