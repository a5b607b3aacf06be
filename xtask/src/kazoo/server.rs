//! The program that stands in for `java`: started as ZooKeeper's server it is a replica of a Troth group, or two, and a
//! gateway beside it, for as long as it runs itself.
//!
//! Whoever kills it, with whatever signal, closes the pipe at which all of them wait for its end. A later start waits until they
//! have ended: they hold the lock of the file that they log to.

use super::ensemble::{self, Wanted};
use super::given::Given;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

/// The name that this program has then.
pub const NAME: &str = "java";
/// Names the directory for ensembles and logs in the environment.
pub const HOME: &str = "TROTH_KAZOO_HOME";
/// Names the troth program there.
pub const TROTH: &str = "TROTH_KAZOO_TROTH";
/// Names the protocol there.
pub const PROTOCOL: &str = "TROTH_KAZOO_PROTOCOL";
/// Says there how many replicas lie.
pub const LIARS: &str = "TROTH_KAZOO_LIARS";
/// How often it looks whether they, and whoever started it, still run.
const PAUSE: Duration = Duration::from_millis(50);

/// Runs until it is killed, one of them ends, or who started it does.
pub fn run(arguments: &[String]) -> ExitCode {
    match serve(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(1)
        }
    }
}

fn serve(arguments: &[String]) -> Result<(), String> {
    let parent = std::os::unix::process::parent_id();
    let named = |name: &str| std::env::var(name).map_err(|why| format!("{name}: {why}"));
    let (home, troth) = (PathBuf::from(named(HOME)?), PathBuf::from(named(TROTH)?));
    let liars = named(LIARS)?.parse().map_err(|_| format!("{LIARS} is no number"))?;
    let wanted = Wanted { protocol: named(PROTOCOL)?, liars };
    let given = Given::read(arguments)?;
    let id = given.id()?;
    let logs = home.join("logs");
    std::fs::create_dir_all(&logs).map_err(|why| format!("{}: {why}", logs.display()))?;
    // One lock for a data directory, and one file for each that ever was.
    let name = given.data.to_string_lossy().replace('/', "-");
    let log = logs.join(format!("server-{}{name}.log", given.peers[id].id));
    let locked = |why| format!("{}: {why}", log.display());
    let shared = OpenOptions::new().create(true).append(true).open(&log).map_err(locked)?;
    shared.lock().map_err(locked)?;

    let own = ensemble::join(&given, &wanted, &home, &troth)?;
    let mut running = Processes::default();
    let servers = given.peers.len();
    for replica in wanted.hosted(servers, id) {
        let lies = wanted.lies(servers, replica);
        let replica = replica.to_string();
        let mut words = vec!["replica", "--id", &replica];
        words.extend(lies.then_some(["--adversary", "liar"]).into_iter().flatten());
        running.start(&troth, &own, &words, &shared)?;
    }
    let words = gateway(&given, &own)?;
    running.start(&troth, &own, &words.iter().map(String::as_str).collect::<Vec<_>>(), &shared)?;
    while std::os::unix::process::parent_id() == parent {
        if let Some(ended) = running.ended()? {
            return Err(format!("{ended}; see {}", log.display()));
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// What the gateway is told. It gets no port for TLS: the certificates of the suite are of X.509's version 1, in which nothing
/// says what they may be used for, and which the gateway takes from nobody.
fn gateway(given: &Given, own: &Path) -> Result<Vec<String>, String> {
    let port: u16 = given.number("clientPort")?.ok_or("the file has no clientPort")?;
    let mut words: Vec<String> = ["gateway", "zookeeper", "--client"].map(str::to_string).to_vec();
    words.push((given.id()? + 1).to_string());
    words.extend(["--listen".to_string(), format!("127.0.0.1:{port}")]);
    if let Some(port) = given.number::<u16>("admin.serverPort")? {
        words.extend(["--admin".to_string(), format!("127.0.0.1:{port}")]);
    }
    if let Some(most) = given.number::<u32>("maxClientCnxns")? {
        words.extend(["--connections-per-address".to_string(), most.to_string()]);
    }
    if let Some(known) = given.properties.get("4lw.commands.whitelist") {
        words.extend(["--words".to_string(), known.clone()]);
    }
    if !given.users.is_empty() {
        let file = own.join("users");
        let failed = |why| format!("{}: {why}", file.display());
        let lines: String =
            given.users.iter().map(|(name, password)| format!("{name}:{password}\n")).collect();
        let mut open = OpenOptions::new();
        let mut users =
            open.create(true).truncate(true).write(true).mode(0o600).open(&file).map_err(failed)?;
        users.write_all(lines.as_bytes()).map_err(failed)?;
        words.extend(["--users".to_string(), file.to_string_lossy().into_owned()]);
    }
    Ok(words)
}

/// The processes, killed where this one gives up.
#[derive(Default)]
struct Processes(Vec<(String, Child)>);

impl Processes {
    fn start(&mut self, troth: &Path, own: &Path, words: &[&str], log: &File) -> Result<(), String> {
        let failed = |why: std::io::Error| format!("troth {}: {why}", words[0]);
        let child = Command::new(troth)
            .args(words)
            .args(["--until-stdin-ends", "--dir"])
            .arg(own)
            .env_remove("RUST_LOG")
            .stdin(Stdio::piped())
            .stdout(log.try_clone().map_err(failed)?)
            .stderr(log.try_clone().map_err(failed)?)
            .spawn()
            .map_err(failed)?;
        self.0.push((words[0].to_string(), child));
        Ok(())
    }

    /// Which of them ended, and how.
    fn ended(&mut self) -> Result<Option<String>, String> {
        for (name, child) in &mut self.0 {
            if let Some(status) = child.try_wait().map_err(|why| format!("{name}: {why}"))? {
                return Ok(Some(format!("the {name} has ended ({status})")));
            }
        }
        Ok(None)
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for (_, child) in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
