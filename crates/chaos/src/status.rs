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
    let mut lines = Vec::new();
    for (number, address) in addresses.iter().enumerate() {
        let told = tokio::time::timeout(PATIENCE, ask(address)).await;
        lines.push(match told {
            Ok(Ok(told)) => format!("replica {number}: {}", describe(&told)),
            Ok(Err(why)) => format!("replica {number}: {why}"),
            Err(_) => format!("replica {number}: says nothing"),
        });
    }
    lines
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
        "view {} {}, executed {}, stable {}, {} pending, {} suspicions, replicas {:?} and {} clients connected, \
         up for {} ms",
        told.view,
        if told.active { "active" } else { "waiting for its primary" },
        told.executed,
        told.stable,
        told.pending,
        told.suspicions,
        told.peers,
        told.clients,
        told.uptime_ms
    )
}
