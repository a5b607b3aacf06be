//! The group of replicas that stands in for an ensemble: made once, by whichever of its servers starts first.
//!
//! Each server has its replica's files below its own data directory, so that they go where somebody wipes that. What all
//! have alike is made in a directory of the ensemble's, which the ports of its servers name. A server that has nothing
//! where it was before, or whose peers have not, is one of a new ensemble on the same ports. A protocol with 3f+1 replicas
//! has more of them than there are servers; the last servers run two each.

use super::given::Given;
use crate::process;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a server's replica, and the gateway beside it, have their files.
const OWN: &str = "troth";
/// Below that: which group it is of.
const MARK: &str = "group";
/// Who is of the present group: a line with the server's data directory for each.
const MEMBERS: &str = "members";
/// The present group's files.
const MADE: &str = "made";

/// The group to make.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Its protocol.
    pub protocol: String,
    /// How many of its replicas lie: the last ones.
    pub liars: usize,
}

impl Wanted {
    /// As many replicas as the protocol needs to bear what so many servers bear.
    pub fn replicas(&self, servers: usize) -> usize {
        match self.protocol.as_str() {
            "pbft" | "a2m-pbft-e" => servers / 2 * 3 + 1,
            _ => servers,
        }
    }

    /// The replicas that the server in this place runs.
    pub fn hosted(&self, servers: usize, place: usize) -> Vec<usize> {
        let beyond = servers..self.replicas(servers);
        [place].into_iter().chain(beyond.filter(|replica| 2 * servers - 1 - replica == place)).collect()
    }

    /// Whether a replica lies.
    pub fn lies(&self, servers: usize, replica: usize) -> bool {
        replica + self.liars >= self.replicas(servers)
    }
}

/// The server's own directory with the files of its replicas and its gateway, made where there is none.
///
/// # Errors
/// Where the group cannot be made.
pub fn join(given: &Given, wanted: &Wanted, home: &Path, troth: &Path) -> Result<PathBuf, String> {
    let (id, own) = (given.id()?, given.data.join(OWN));
    let names: Vec<String> = given.peers.iter().map(|peer| peer.leader.to_string()).collect();
    let ensemble = home.join(format!("ensemble-{}", names.join("-")));
    directory(&ensemble)?;
    let lock = ensemble.join("lock");
    let held = File::create(&lock).map_err(failed(&lock))?;
    held.lock().map_err(failed(&lock))?;

    let made = ensemble.join(MADE);
    let group = || read(&made.join("cluster.toml")).ok();
    let mine = read(&own.join(MARK)).ok();
    if mine.is_some() && mine == group() {
        return Ok(own);
    }
    let members = read(&ensemble.join(MEMBERS)).unwrap_or_default();
    let gone = |data: &str| read(&Path::new(data).join(OWN).join(MARK)).ok() != group();
    let data = given.data.to_string_lossy().into_owned();
    // Who was of it and has nothing any more was wiped, and so were the others, or will be.
    let stale = members.lines().any(|member| member == data || gone(member));
    if stale || group().is_none() {
        make(given, wanted, &made, troth)?;
    }
    let members = if stale { String::new() } else { members };

    remove(&own)?;
    directory(&own.join("clients"))?;
    copy(&made.join("cluster.toml"), &own.join("cluster.toml"))?;
    for replica in wanted.hosted(given.peers.len(), id) {
        let replica = format!("replica-{replica}");
        directory(&own.join(&replica))?;
        copy(&made.join(&replica).join("secret.toml"), &own.join(&replica).join("secret.toml"))?;
    }
    let client = format!("clients/client-{}.toml", id + 1);
    copy(&made.join(&client), &own.join(&client))?;
    // Last: without it what is there counts for nothing.
    copy(&made.join("cluster.toml"), &own.join(MARK))?;
    write(&ensemble.join(MEMBERS), &format!("{members}{data}\n"))?;
    Ok(own)
}

/// Makes a group that bears as much as so many servers do.
fn make(given: &Given, wanted: &Wanted, made: &Path, troth: &Path) -> Result<(), String> {
    let servers = given.peers.len();
    if servers < 3 || servers.is_multiple_of(2) {
        return Err(format!("there are {servers} servers, and it takes 3, 5, 7, …"));
    }
    remove(made)?;
    let tick: u64 = given.number("tickTime")?.unwrap_or(3000);
    let least: u64 = given.number("minSessionTimeout")?.unwrap_or(2 * tick);
    let most: u64 = given.number("maxSessionTimeout")?.unwrap_or(20 * tick);
    // Ports for the file to be checked with; those of the servers are put in their place.
    let base = 4700;
    let mut words: Vec<String> =
        ["init", "--service", "zookeeper", "--protocol", &wanted.protocol].map(str::to_string).to_vec();
    let numbers = [
        ("--f", servers as u64 / 2),
        ("--clients", servers as u64),
        ("--base-port", base),
        ("--min-session-timeout", least),
        ("--max-session-timeout", most),
    ];
    words.extend(numbers.iter().flat_map(|(name, number)| [name.to_string(), number.to_string()]));
    if let Some(superuser) = &given.superuser {
        words.extend(["--superuser".to_string(), superuser.clone()]);
    }
    if given.properties.get("enforceQuota").is_some_and(|on| on == "true") {
        words.push("--enforce-quotas".to_string());
    }
    let mut init = Command::new(troth);
    process::output(init.args(words).arg("--dir").arg(made))?;

    let file = made.join("cluster.toml");
    let mut text = read(&file)?;
    let own = given.peers.iter().map(|peer| (peer.leader, peer.election));
    // A server has ten ports in a row, and ZooKeeper needs the first five of them.
    let second = given.peers.iter().rev().map(|peer| (peer.leader + 3, peer.leader + 4));
    let all = own.chain(second).take(wanted.replicas(servers));
    for (number, (address, http)) in (0u64..).zip(all) {
        for (from, to) in [(base + number, address), (base + 100 + number, http)] {
            let old = format!("\"127.0.0.1:{from}\"");
            if !text.contains(&old) {
                return Err(format!("{} has no address {old}", file.display()));
            }
            text = text.replace(&old, &format!("\"127.0.0.1:{to}\""));
        }
    }
    write(&file, &text)
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> String + '_ {
    move |why| format!("{}: {why}", path.display())
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(failed(path))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(failed(path))
}

fn directory(path: &Path) -> Result<(), String> {
    std::fs::create_dir_all(path).map_err(failed(path))
}

/// With the mode of the file, which its reader checks.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    std::fs::copy(from, to).map(drop).map_err(failed(from))
}

fn remove(path: &Path) -> Result<(), String> {
    match std::fs::remove_dir_all(path) {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => Err(failed(path)(why)),
        _ => Ok(()),
    }
}
