//! An ensemble of ZooKeeper and a local Troth group, each in a directory of its own that goes with it.

use crate::workspace;
use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long servers may take to start.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at that.
const LOOK: Duration = Duration::from_millis(50);

/// Running servers.
pub struct Servers {
    /// Where clients connect.
    pub address: String,
    place: PathBuf,
    processes: Vec<Child>,
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|why| why.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|why| why.to_string())
}

/// Builds `troth` and gives the program.
pub fn built(root: &Path) -> Result<PathBuf, String> {
    let status = workspace::cargo(root)
        .args(["build", "--release", "--quiet", "--locked", "--package", "troth"])
        .status()
        .map_err(|why| format!("cargo does not start: {why}"))?;
    if !status.success() {
        return Err(format!("troth does not build ({status})"));
    }
    Ok(workspace::target(root).join("release").join("troth"))
}

impl Servers {
    fn at(name: &str) -> Result<Self, String> {
        let place = std::env::temp_dir().join(format!("troth-zkcli-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place).map_err(|why| format!("{}: {why}", place.display()))?;
        Ok(Self { address: format!("127.0.0.1:{}", free_port()?), place, processes: Vec::new() })
    }

    /// Three servers of ZooKeeper, with all kinds of nodes, and all that its clients may ask for.
    pub fn zookeeper(classes: &Path) -> Result<Self, String> {
        let mut servers = Self::at("zookeeper")?;
        let first = servers.address.rsplit(':').next().unwrap_or_default().to_owned();
        let mut members = String::new();
        for number in 1..=3 {
            members += &format!("server.{number}=127.0.0.1:{}:{}\n", free_port()?, free_port()?);
        }
        for number in 1..=3 {
            let port = if number == 1 { first.clone() } else { free_port()?.to_string() };
            let data = servers.place.join(format!("data-{number}"));
            let file = servers.place.join(format!("zoo-{number}.cfg"));
            let configuration = format!(
                "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\n\
                 admin.enableServer=false\nextendedTypesEnabled=true\nreconfigEnabled=true\n{members}",
                data.display()
            );
            let written = fs::create_dir_all(&data)
                .and_then(|()| fs::write(data.join("myid"), format!("{number}\n")))
                .and_then(|()| fs::write(&file, configuration));
            written.map_err(|why| format!("{}: {why}", file.display()))?;
            let mut java = Command::new("java");
            java.arg("-cp").arg(format!("{0}/classes:{0}/lib/*", classes.display()));
            java.args(["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "PeerServer"]).arg(file);
            servers.launch(&mut java)?;
        }
        Ok(servers)
    }

    /// A group on this machine, with a gateway.
    pub fn troth(program: &Path) -> Result<Self, String> {
        let mut servers = Self::at("troth")?;
        let dir = servers.place.join("group");
        let mut up = Command::new(program);
        up.args(["up", &format!("--zookeeper={}", servers.address), "--dir"]).arg(dir);
        servers.launch(&mut up)?;
        Ok(servers)
    }

    fn launch(&mut self, program: &mut Command) -> Result<(), String> {
        let path = self.place.join("log");
        let log = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(|why| format!("{}: {why}", path.display()))?;
        let errors = log.try_clone().map_err(|why| why.to_string())?;
        let name = program.get_program().to_string_lossy().into_owned();
        let child = program.stdin(Stdio::piped()).stdout(log).stderr(errors).spawn();
        self.processes.push(child.map_err(|why| format!("'{name}' does not start: {why}"))?);
        Ok(())
    }

    /// Waits until it takes connections.
    pub fn wait(&self) -> Result<(), String> {
        let give_up = Instant::now() + PATIENCE;
        while TcpStream::connect(&self.address).is_err() {
            if Instant::now() > give_up {
                let log = fs::read_to_string(self.place.join("log")).unwrap_or_default();
                return Err(format!("nothing listens on {}:\n{log}", self.address));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // Asked first, so that it ends what it started.
            let asked = Command::new("kill").arg(process.id().to_string()).status();
            let give_up = Instant::now() + Duration::from_secs(10);
            while asked.is_ok() && matches!(process.try_wait(), Ok(None)) && Instant::now() < give_up {
                std::thread::sleep(LOOK);
            }
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = fs::remove_dir_all(&self.place);
    }
}
