//! Three replicas as processes, one of them from another build.

use serde_json::Value;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take; far more than it does.
const PATIENCE: Duration = Duration::from_secs(90);
/// Between two looks at something that is waited for.
const LOOK: Duration = Duration::from_millis(50);
/// Replicas of a group.
pub const N: usize = 3;

/// A group in a directory of its own, which goes with it.
pub struct Group {
    place: PathBuf,
    new: PathBuf,
    old: PathBuf,
    /// Which replica is of the old build.
    pub odd: usize,
    replicas: Vec<Option<Child>>,
}

impl Group {
    /// Makes a group and starts all of it. Today's replicas keep everything on disk; the release before could not.
    pub fn start(new: &Path, old: &Path, odd: usize) -> Result<Self, String> {
        let place = std::env::temp_dir().join(format!("troth-upgrade-{odd}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place).map_err(|why| format!("{}: {why}", place.display()))?;
        let mut group = Self {
            place,
            new: new.to_path_buf(),
            old: old.to_path_buf(),
            odd,
            replicas: (0..N).map(|_| None).collect(),
        };
        group.make()?;
        for replica in 0..N {
            group.launch(replica)?;
        }
        group.until("the replicas know each other", |status| {
            status.iter().all(|replica| replica["peers"].as_array().is_some_and(|peers| peers.len() == N - 1))
        })?;
        Ok(group)
    }

    /// Where the files of today's replicas and of clients are.
    pub fn today(&self) -> PathBuf {
        self.place.join("today")
    }

    fn before(&self) -> PathBuf {
        self.place.join("before")
    }

    fn make(&self) -> Result<(), String> {
        let base = free_ports()?.to_string();
        let today = self.today();
        // The release before makes the group, as it made those that are upgraded: what came since, such as an
        // operator, it does not read. Each half has a cluster.toml of its own: durability is no part of the
        // group's name.
        self.run(&self.old, &["init", "--clients", "8", "--base-port", &base])?;
        let copied = Command::new("cp").arg("-a").arg(&today).arg(self.before()).status();
        if !copied.is_ok_and(|status| status.success()) {
            return Err("cannot copy the cluster's files".to_string());
        }
        let file = today.join("cluster.toml");
        let text = fs::read_to_string(&file).map_err(|why| format!("{}: {why}", file.display()))?;
        let text = text.replace("durability = \"memory\"", "durability = \"always\"");
        fs::write(&file, text).map_err(|why| format!("{}: {why}", file.display()))
    }

    /// Starts a replica; its log goes on in the same file.
    pub fn launch(&mut self, replica: usize) -> Result<(), String> {
        let old = replica == self.odd;
        let (program, dir) = if old { (&self.old, self.before()) } else { (&self.new, self.today()) };
        let path = self.log(replica);
        let log = File::options().create(true).append(true).open(&path);
        let log = log.map_err(|why| format!("{}: {why}", path.display()))?;
        let started = Command::new(program)
            .args(["replica", "--until-stdin-ends", "--id", &replica.to_string(), "--dir"])
            .arg(dir)
            // It ends with us, however we end.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.replicas[replica] = Some(started.map_err(|why| format!("{}: {why}", program.display()))?);
        Ok(())
    }

    /// Kills a replica.
    pub fn kill(&mut self, replica: usize) {
        if let Some(mut child) = self.replicas[replica].take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Sends a replica a signal.
    pub fn signal(&self, replica: usize, name: &str) -> Result<(), String> {
        let child =
            self.replicas[replica].as_ref().ok_or_else(|| format!("replica {replica} does not run"))?;
        let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
        if sent.is_ok_and(|status| status.success()) { Ok(()) } else { Err(format!("cannot send {name}")) }
    }

    /// Runs today's command on the group's files and gives what it printed.
    pub fn troth(&self, arguments: &[&str]) -> Result<String, String> {
        self.run(&self.new, arguments)
    }

    fn run(&self, program: &Path, arguments: &[&str]) -> Result<String, String> {
        let output = Command::new(program)
            .args(arguments)
            .env("TROTH_DIR", self.today())
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .output()
            .map_err(|why| format!("{}: {why}", program.display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("troth {} ended with {}: {said}", arguments.join(" "), output.status));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// What each replica says of itself; an object without a pid where one does not answer.
    pub fn status(&self) -> Vec<Value> {
        let output = Command::new(&self.new)
            .args(["status", "--json"])
            .env("TROTH_DIR", self.today())
            .stdin(Stdio::null())
            .output();
        let said = output.map(|output| output.stdout).unwrap_or_default();
        let json: Value = serde_json::from_slice(&said).unwrap_or(Value::Null);
        json["replicas"].as_array().cloned().unwrap_or_default()
    }

    /// Waits for a condition on what the replicas say.
    pub fn until(&self, what: &str, mut holds: impl FnMut(&[Value]) -> bool) -> Result<(), String> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let status = self.status();
            if status.len() == N && holds(&status) {
                return Ok(());
            }
            if Instant::now() > give_up {
                let says = Value::Array(status);
                return Err(format!("waited {} s until {what}; {}{says}", PATIENCE.as_secs(), self.logs()));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The first line in which a replica reports an error, a state that differs from the others' before all.
    pub fn error(&self) -> Option<String> {
        (0..N).find_map(|replica| {
            let log = fs::read_to_string(self.log(replica)).unwrap_or_default();
            let line = log.lines().find(|line| line.contains(" ERROR "))?;
            Some(format!("replica {replica}: {line}"))
        })
    }

    fn log(&self, replica: usize) -> PathBuf {
        self.place.join(format!("replica-{replica}.log"))
    }

    /// The ends of the replicas' logs.
    fn logs(&self) -> String {
        let mut text = String::new();
        for replica in 0..N {
            let log = fs::read_to_string(self.log(replica)).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            text += &format!("replica {replica}: {}\n", lines[lines.len().saturating_sub(5)..].join("\n"));
        }
        text
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        (0..N).for_each(|replica| self.kill(replica));
        let _ = fs::remove_dir_all(&self.place);
    }
}

/// A port from which on three, and three a hundred above, are free now.
fn free_ports() -> Result<u16, String> {
    for attempt in 0..50_u32 {
        let base = 12_000 + (std::process::id() * 13 + attempt * 353) % 18_000;
        let free =
            |port: u32| u16::try_from(port).is_ok_and(|port| TcpListener::bind(("127.0.0.1", port)).is_ok());
        if (0..3).all(|i| free(base + i) && free(base + 100 + i)) {
            return u16::try_from(base).map_err(|why| why.to_string());
        }
    }
    Err("no free ports on 127.0.0.1".to_string())
}
