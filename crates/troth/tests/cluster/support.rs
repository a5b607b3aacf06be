//! A cluster of processes in a directory of its own, and the command to use it.

use std::io::{BufRead, BufReader, Lines, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long anything may take; far more than it does.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A directory of one test alone, removed at its end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("troth-test-{name}-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process that is killed where the test leaves it. `troth up` killed takes its replicas along.
pub struct Running(pub Child);

impl Running {
    pub fn signal(&self, name: &str) {
        signal(self.0.id(), name);
    }

    /// Waits for the end and gives the exit code.
    pub fn ends(&mut self) -> Option<i32> {
        until("the process ends", || self.0.try_wait().expect("our own child")).code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn troth(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_troth"));
    command.env("TROTH_DIR", dir).env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

/// Puts a copy of the command where any user can start it. Another process writes it: a test that starts one at
/// that moment would hand our own open file on to it, and what is open for writing cannot be started.
pub fn copy_of_troth(to: &Path) {
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_troth")).arg(to).status().expect("cp runs");
    assert!(copied.success(), "a copy at {}", to.display());
    std::fs::set_permissions(to, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("our own file");
}

/// Runs the command to its end.
pub fn run(dir: &Path, arguments: &[&str]) -> Output {
    troth(dir).args(arguments).output().expect("the command runs")
}

/// Runs the command, demands success and gives what it printed.
pub fn good(dir: &Path, arguments: &[&str]) -> String {
    let output = run(dir, arguments);
    assert!(
        output.status.success(),
        "troth {arguments:?} failed with {:?}: {}",
        output.status.code(),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

/// Makes a cluster whose replicas keep nothing, on ports that are free now; gives the first.
pub fn init(dir: &Path) -> u16 {
    init_with(dir, &["--durability", "memory"])
}

/// As [`init`], with further arguments.
pub fn init_with(dir: &Path, arguments: &[&str]) -> u16 {
    made_by("init", dir, arguments)
}

/// Makes a cluster by `troth init` or `troth restore`, on ports that are free now; gives the first.
pub fn made_by(command: &str, dir: &Path, arguments: &[&str]) -> u16 {
    made_by_saying(command, dir, arguments).0
}

/// As [`made_by`], and gives what the command printed.
pub fn made_by_saying(command: &str, dir: &Path, arguments: &[&str]) -> (u16, String) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Tests of this process never want the same ports, as none are held until the replicas start; those of
    // others rarely do.
    for _ in 0..50 {
        let attempt = NEXT.fetch_add(1, Ordering::Relaxed);
        let base = 10_000 + (std::process::id() * 7 + attempt * 331) % 20_000;
        let free = (0..4).all(|i| {
            let port = |offset| u16::try_from(base + i + offset).expect("below 32000");
            [port(0), port(100)].iter().all(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok())
        });
        if free {
            let said = good(dir, &[&[command, "--base-port", &base.to_string()], arguments].concat());
            return (u16::try_from(base).expect("below 32000"), said);
        }
    }
    panic!("no free ports");
}

/// Starts `troth up` and waits until it says that the cluster serves.
pub fn up(dir: &Path, arguments: &[&str]) -> Running {
    let (running, lines) = up_printing(dir, arguments);
    // What it says later is not read; a pipe holds far more than it says.
    std::thread::spawn(move || lines.for_each(drop));
    running
}

/// As [`up`], and gives what it says after that.
pub fn up_printing(dir: &Path, arguments: &[&str]) -> (Running, Lines<BufReader<ChildStdout>>) {
    serving(troth(dir).arg("up").args(arguments))
}

/// Starts a `troth up` and waits until it serves.
pub fn serving(command: &mut Command) -> (Running, Lines<BufReader<ChildStdout>>) {
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let first = lines.next();
    let mut running = Running(child);
    if !first.as_ref().is_some_and(|line| line.as_ref().is_ok_and(|line| line.contains("replicas serve"))) {
        let mut why = String::new();
        let _ = running.0.stderr.take().expect("piped").read_to_string(&mut why);
        panic!("the cluster does not serve: {first:?} {why}");
    }
    (running, lines)
}

/// What `troth status --json` says of the replicas.
pub fn status(dir: &Path) -> Vec<serde_json::Value> {
    let output = run(dir, &["status", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    json["replicas"].as_array().expect("a list").clone()
}

/// The other end of a pipe that nobody reads.
pub fn unread() -> std::io::PipeWriter {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer
}

/// The process that a replica says it is.
pub fn pid(replica: &serde_json::Value) -> u32 {
    u32::try_from(replica["pid"].as_u64().expect("a reachable replica says its pid")).expect("a pid")
}

/// Waits for a condition.
pub fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let give_up = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(Instant::now() < give_up, "waited too long until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn signal(pid: u32, name: &str) {
    let sent =
        Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().expect("kill runs");
    assert!(sent.success(), "process {pid} was there");
}

/// Whether a process exists and is not merely waiting to be noticed as ended.
pub fn lives(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}
