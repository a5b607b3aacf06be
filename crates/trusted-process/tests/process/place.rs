//! A place for one trusted process, with its users and directories, and the process itself.

use crate::child::{COUNTERS, LOG_FILES, ROLE, Task};
use crate::support::Scratch;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};
use std::fs::{Permissions, create_dir, set_permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use troth_trusted_process::{Patience, RemoteComponent};

/// Users of the tests as root; nobody else has these numbers.
pub const TRUSTED: u32 = 64_101;
pub const REPLICA: u32 = 64_102;
pub const STRANGER: u32 = 64_103;

/// Long enough for a slow machine, short enough for a test that fails.
pub const SOON: Duration = Duration::from_secs(30);
pub const PATIENCE: Patience = Patience { answer: SOON, beside: SOON, reconnect: SOON };

pub fn is_root() -> bool {
    Uid::effective().is_root()
}

/// Directories: `state` for the component alone, `run` for the socket, and a copy of this program that
/// other users can start.
pub struct Place {
    pub scratch: Scratch,
}

impl Place {
    pub fn new() -> Self {
        let scratch = Scratch::new();
        let state = scratch.path("state");
        for (directory, mode) in [(&scratch.0, 0o755), (&scratch.path("run"), 0o755), (&state, 0o700)] {
            if !directory.exists() {
                create_dir(directory).expect("a directory");
            }
            set_permissions(directory, Permissions::from_mode(mode)).expect("its mode");
        }
        for store in [COUNTERS, LOG_FILES] {
            create_dir(state.join(store)).expect("a directory");
            if is_root() {
                chown(state.join(store), Some(TRUSTED), Some(TRUSTED)).expect("its owner");
            }
        }
        if is_root() {
            chown(&state, Some(TRUSTED), Some(TRUSTED)).expect("its owner");
        }
        Self { scratch }
    }

    pub fn state(&self) -> PathBuf {
        self.scratch.path("state")
    }

    pub fn socket(&self) -> PathBuf {
        self.scratch.path("run").join("socket")
    }

    /// The task of a child here: as root with the users of these tests, else all as this user. The tests
    /// speak to it themselves, so they are its client.
    pub fn task(&self) -> Task {
        let own = Uid::effective().as_raw();
        Task {
            state: self.state(),
            socket: self.socket(),
            user: is_root().then_some(TRUSTED),
            client: own,
            ..Task::default()
        }
    }

    /// Starts a trusted process and waits until it serves.
    pub fn start(&self, task: &Task) -> Trusted {
        let trusted = self.spawn(task);
        trusted.wait_for("ready");
        trusted
    }

    pub fn spawn(&self, task: &Task) -> Trusted {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.arg(ROLE).args(task.to_arguments());
        Trusted::spawn(command)
    }

    pub fn connect(&self) -> RemoteComponent {
        RemoteComponent::connect(&self.socket(), PATIENCE).expect("a trusted process")
    }

    /// This program where any user can start it.
    pub fn program(&self) -> PathBuf {
        let copy = self.scratch.path("program");
        if !copy.exists() {
            std::fs::copy(std::env::current_exe().expect("this program"), &copy).expect("a copy");
            set_permissions(&copy, Permissions::from_mode(0o755)).expect("its mode");
        }
        copy
    }
}

/// A running trusted process. It ends with its standard input, so it never outlives the test.
pub struct Trusted {
    process: Child,
    lines: Receiver<String>,
}

impl Trusted {
    pub fn spawn(mut command: Command) -> Self {
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a child process");
        let output = process.stdout.take().expect("piped");
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        Self { process, lines }
    }

    pub fn pid(&self) -> i32 {
        self.process.id() as i32
    }

    /// The lines it says up to the one that starts so.
    pub fn wait_for(&self, start: &str) -> Vec<String> {
        let mut said = Vec::new();
        loop {
            match self.lines.recv_timeout(SOON) {
                Ok(line) => {
                    let found = line.starts_with(start);
                    said.push(line);
                    if found {
                        return said;
                    }
                }
                Err(why) => panic!("the child never said '{start}' ({why}), but {said:?}"),
            }
        }
    }

    /// The first line that it says of those that start so.
    pub fn says_first(&self, starts: &[&str]) -> String {
        loop {
            let line = self.lines.recv_timeout(SOON).expect("the child says what it does");
            if starts.iter().any(|start| line.starts_with(start)) {
                return line;
            }
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("a living child");
    }

    /// Closes its standard input, as the end of its supervisor does.
    pub fn close_input(&mut self) {
        drop(self.process.stdin.take());
    }

    pub fn kill(mut self) {
        self.process.kill().expect("a living child");
        self.process.wait().expect("a child");
    }

    /// Waits for a child that ends by itself.
    pub fn end(mut self) -> ExitStatus {
        // Taken, so that waiting does not close the input, which would end it in another way.
        let input = self.process.stdin.take();
        let status = self.process.wait().expect("a child");
        drop(input);
        status
    }
}

impl Drop for Trusted {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
