//! What the replicas say of themselves, asked beside the relay: for whoever looks into a slow recovery
//! or a failure.

use crate::machines::Machines;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use troth_node::Snapshot;

/// How long a replica may take to tell.
const PATIENCE: Duration = Duration::from_millis(500);
/// The most bytes of an answer.
const MOST: u64 = 1 << 20;

/// A line about every replica.
pub(crate) async fn lines(addresses: &[String]) -> Vec<String> {
    let told = all(addresses).await.into_iter().enumerate();
    told.map(|(number, told)| match told {
        Ok(told) => format!("replica {number}: {}", describe(&told)),
        Err(why) => format!("replica {number}: {why}"),
    })
    .collect()
}

/// What every replica says.
pub(crate) async fn all(addresses: &[String]) -> Vec<io::Result<Snapshot>> {
    let mut all = Vec::new();
    for address in addresses {
        let told = tokio::time::timeout(PATIENCE, ask(address)).await;
        all.push(told.unwrap_or_else(|_| Err(io::Error::other("says nothing"))));
    }
    all
}

/// The primary of the newest view that a replica works in.
pub(crate) async fn primary(addresses: &[String]) -> Option<u16> {
    let told = all(addresses).await;
    let active = told.iter().flatten().filter(|told| told.active);
    active.max_by_key(|told| told.view).map(|told| told.primary)
}

/// The last batch that any replica has executed.
pub(crate) async fn reached(addresses: &[String]) -> u64 {
    all(addresses).await.iter().flatten().map(|told| told.executed).max().unwrap_or(0)
}

/// Where the replicas are asked.
pub(crate) fn addresses(machines: &Machines) -> Vec<String> {
    machines.cluster.replicas.iter().map(|replica| replica.http.clone().unwrap_or_default()).collect()
}

async fn ask(address: &str) -> io::Result<Snapshot> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET /status HTTP/1.1\r\nConnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    stream.take(MOST).read_to_string(&mut answer).await?;
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str(body).map_err(io::Error::other)
}

fn describe(told: &Snapshot) -> String {
    format!(
        "view {} {}, {}, executed {}, stable {}, {} pending, {} suspicions, replicas {:?} and {} clients connected, \
         up for {} ms",
        told.view,
        if told.active { "active" } else { "waiting for its primary" },
        told.waits_for.as_ref().map_or("votes".to_owned(), |what| format!("no vote (waits for {what})")),
        told.executed,
        told.stable,
        told.pending,
        told.suspicions,
        told.peers,
        told.clients,
        told.uptime_ms
    )
}
