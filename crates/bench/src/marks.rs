//! What is read at the beginning and at the end of what a round measures.

use crate::Failure;
use crate::load::{Controls, Progress};
use crate::processes::Server;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use troth_node::Snapshot;

/// Ticks per second of the processor times in `/proc/<pid>/stat`: Linux shows them in this unit on
/// every machine (`USER_HZ`, proc(5)).
const TICKS: u64 = 100;
/// How long a server may take to tell its counters.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of its answer.
const MOST: u64 = 1 << 20;

/// One reading of everything.
pub(crate) struct Mark {
    pub(crate) at: Instant,
    pub(crate) progress: Progress,
    /// Microseconds of processor time of all servers together, with the trusted processes that they started.
    pub(crate) servers_cpu: u64,
    /// The same of this process, which is all clients.
    pub(crate) client_cpu: u64,
    /// How often all servers together asked for memory; what trusted processes did is not in it.
    pub(crate) allocations: u64,
    pub(crate) snapshots: Vec<Snapshot>,
}

impl Mark {
    /// Reads everything, while the load runs on.
    pub(crate) async fn take(servers: &[Server], controls: &Controls) -> Result<Self, Failure> {
        let mut snapshots = Vec::new();
        for server in servers {
            snapshots.push(ask(&server.http).await?);
        }
        let (mut servers_cpu, mut allocations) = (0, 0);
        for server in servers {
            allocations += server.allocations().await?;
            for pid in family(server.pid())? {
                servers_cpu += cpu(pid)?;
            }
        }
        let client_cpu = cpu(std::process::id())?;
        let (at, progress) = (Instant::now(), controls.progress.get());
        Ok(Self { at, progress, servers_cpu, client_cpu, allocations, snapshots })
    }
}

/// A process and all that it started and that still run: of a replica, its trusted component's too.
pub(crate) fn family(pid: u32) -> Result<Vec<u32>, Failure> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        if let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) {
            // One that has ended meanwhile is nobody's child.
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            parents.extend(parent_of(&stat).map(|parent| (id, parent)));
        }
    }
    let (mut family, mut next) = (vec![pid], 0);
    while let Some(&one) = family.get(next) {
        family.extend(parents.iter().filter(|(_, parent)| *parent == one).map(|(id, _)| *id));
        next += 1;
    }
    Ok(family)
}

/// Microseconds of processor time that a process has used, in its own code and in the kernel.
pub(crate) fn cpu(pid: u32) -> Result<u64, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    Ok(cpu_of(&stat).ok_or("what /proc says of a process has another form than proc(5) gives it")?)
}

/// The parent in a line of `/proc/<pid>/stat`.
pub(crate) fn parent_of(stat: &str) -> Option<u32> {
    // The name in parentheses may hold anything; the parent is the second field after it.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// The processor time in a line of `/proc/<pid>/stat`.
pub(crate) fn cpu_of(stat: &str) -> Option<u64> {
    // The name in parentheses may hold anything; user and system time are the 12th and 13th after it.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) * (1_000_000 / TICKS))
}

/// A server's counters.
pub(crate) async fn ask(address: &str) -> Result<Snapshot, Failure> {
    let answer = tokio::time::timeout(PATIENCE, async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"GET /status HTTP/1.1\r\nConnection: close\r\n\r\n").await?;
        let mut answer = String::new();
        stream.take(MOST).read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    });
    let answer = answer.await??;
    let (_, body) = answer.split_once("\r\n\r\n").ok_or("a server's answer is no HTTP")?;
    Ok(serde_json::from_str(body)?)
}
