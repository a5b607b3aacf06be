//! The replicas as child processes, killed, paused and started again. They end with this process,
//! however it ends: each watches its standard input, whose other end only we hold, and a paused one has
//! a guard that resumes it.

use crate::Failure;
use crate::machines::Machines;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Seconds after which a paused replica's guard resumes it; above the longest pause.
const GUARD_SECONDS: &str = "30";

/// The replicas of a cluster.
pub(crate) struct Processes {
    program: PathBuf,
    directories: Vec<PathBuf>,
    children: Vec<Option<Child>>,
    /// Of the paused replicas.
    guards: Vec<Option<Child>>,
}

impl Processes {
    /// Starts all.
    pub(crate) fn start(program: &std::path::Path, machines: &Machines) -> Result<Self, Failure> {
        let replicas = machines.cluster.group.n();
        let directories = (0u16..).take(replicas).map(|replica| machines.of(replica)).collect();
        let none = || std::iter::repeat_with(|| None).take(replicas).collect();
        let program = program.to_path_buf();
        let mut processes = Self { program, directories, children: none(), guards: none() };
        for replica in (0u16..).take(replicas) {
            processes.begin(replica)?;
        }
        Ok(processes)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u16 {
        u16::try_from(self.children.len()).expect("a group counts in u16")
    }

    /// Starts one that does not run. Its output goes to `replica.log` in its machine's directory.
    pub(crate) fn begin(&mut self, replica: u16) -> Result<(), Failure> {
        let directory = &self.directories[usize::from(replica)];
        let log = File::options().create(true).append(true).open(directory.join("replica.log"))?;
        let child = Command::new(&self.program)
            .args(["replica", "--until-stdin-ends", "--dir"])
            .arg(directory)
            .args(["--id", &replica.to_string()])
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .map_err(|why| format!("{} does not start: {why}", self.program.display()))?;
        self.children[usize::from(replica)] = Some(child);
        Ok(())
    }

    /// Kills one with SIGKILL. What it had not synced stays in the page cache; what it had not written
    /// is gone.
    pub(crate) fn kill(&mut self, replica: u16) -> Result<(), Failure> {
        if let Some(mut child) = self.children[usize::from(replica)].take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Kills all, as close together as can be: every signal before the first wait.
    pub(crate) fn kill_all(&mut self) -> Result<(), Failure> {
        for child in self.children.iter_mut().flatten() {
            child.kill()?;
        }
        for mut child in self.children.iter_mut().filter_map(Option::take) {
            child.wait()?;
        }
        Ok(())
    }

    /// Stops one where it is (SIGSTOP).
    pub(crate) fn pause(&mut self, replica: u16) -> Result<(), Failure> {
        let Some(child) = &self.children[usize::from(replica)] else { return Ok(()) };
        let guard = Command::new("sh")
            .args(["-c", "sleep \"$1\"; kill -CONT \"$0\"", &child.id().to_string(), GUARD_SECONDS])
            // Ctrl-C in a terminal must not end the guard with us.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        self.guards[usize::from(replica)] = Some(guard);
        kill_process(id(child)?, Signal::STOP)?;
        Ok(())
    }

    /// Lets a paused one go on (SIGCONT).
    pub(crate) fn resume(&mut self, replica: u16) -> Result<(), Failure> {
        if let Some(child) = &self.children[usize::from(replica)] {
            kill_process(id(child)?, Signal::CONT)?;
        }
        self.dismiss(replica)
    }

    fn dismiss(&mut self, replica: u16) -> Result<(), Failure> {
        if let Some(mut guard) = self.guards[usize::from(replica)].take() {
            kill_process_group(id(&guard)?, Signal::KILL)?;
            guard.wait()?;
        }
        Ok(())
    }

    /// One that ended though nobody ended it, in words.
    pub(crate) fn ended(&mut self) -> Option<String> {
        for (replica, child) in self.children.iter_mut().enumerate() {
            if let Some(status) = child.as_mut().and_then(|child| child.try_wait().ok().flatten()) {
                *child = None;
                let log = self.directories[replica].join("replica.log");
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                let last: Vec<&str> = said.lines().rev().take(5).collect();
                let last: Vec<&str> = last.into_iter().rev().collect();
                let log = log.display();
                return Some(format!(
                    "replica {replica} ended by itself ({status}); {log}:\n{}",
                    last.join("\n")
                ));
            }
        }
        None
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        // Each may fail only where the process has ended meanwhile.
        let _ = self.kill_all();
        for replica in 0..self.count() {
            let _ = self.dismiss(replica);
        }
    }
}

fn id(child: &Child) -> Result<Pid, Failure> {
    Ok(Pid::from_raw(i32::try_from(child.id())?).ok_or("a process without an id")?)
}
