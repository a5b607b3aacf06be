//! Gateways as child processes. They end with this process, however it ends: each watches its standard input, whose other end
//! only we hold.

use crate::Failure;
use crate::machines::Machines;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The gateways of a run.
pub(crate) struct Gateways {
    program: PathBuf,
    directory: PathBuf,
    scratch: PathBuf,
    addresses: Vec<SocketAddr>,
    children: Vec<Option<Child>>,
}

impl Gateways {
    /// None runs yet.
    pub(crate) fn new(program: &Path, machines: &Machines, addresses: &[SocketAddr]) -> Self {
        Self {
            program: program.to_path_buf(),
            directory: machines.clients().to_path_buf(),
            scratch: machines.scratch().to_path_buf(),
            addresses: addresses.to_vec(),
            children: addresses.iter().map(|_| None).collect(),
        }
    }

    fn log(&self, number: usize) -> PathBuf {
        self.scratch.join(format!("gateway-{number}.log"))
    }

    /// Starts what does not run: each is the same client of the group every time.
    pub(crate) fn begin(&mut self) -> Result<(), Failure> {
        for number in 0..self.children.len() {
            if self.children[number].is_none() {
                let log = File::options().create(true).append(true).open(self.log(number))?;
                let child = Command::new(&self.program)
                    .args(["gateway", "zookeeper", "--until-stdin-ends", "--client"])
                    .arg((number + 1).to_string())
                    .args(["--listen", &self.addresses[number].to_string(), "--dir"])
                    .arg(&self.directory)
                    .stdin(Stdio::piped())
                    .stdout(log.try_clone()?)
                    .stderr(log)
                    .spawn()
                    .map_err(|why| format!("{} does not start: {why}", self.program.display()))?;
                self.children[number] = Some(child);
            }
        }
        Ok(())
    }

    /// Kills with SIGKILL, every signal before the first wait.
    pub(crate) fn kill(&mut self, victims: &[usize]) -> Result<(), Failure> {
        let mut dying: Vec<Child> =
            victims.iter().filter_map(|victim| self.children[*victim].take()).collect();
        for child in &mut dying {
            child.kill()?;
        }
        for mut child in dying {
            child.wait()?;
        }
        Ok(())
    }

    /// One that ended though nobody ended it, in words.
    pub(crate) fn ended(&mut self) -> Option<String> {
        for number in 0..self.children.len() {
            let status = self.children[number].as_mut().and_then(|child| child.try_wait().ok().flatten());
            if let Some(status) = status {
                self.children[number] = None;
                let log = self.log(number);
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                let lines: Vec<&str> = said.lines().collect();
                let said = lines[lines.len().saturating_sub(5)..].join("\n");
                return Some(format!(
                    "gateway {number} ended by itself ({status}); {}:\n{said}",
                    log.display()
                ));
            }
        }
        None
    }
}

impl Drop for Gateways {
    fn drop(&mut self) {
        let all: Vec<usize> = (0..self.children.len()).collect();
        // It fails only where the process has ended meanwhile.
        let _ = self.kill(&all);
    }
}
