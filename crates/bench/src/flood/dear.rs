//! A client that breaks no rule: its frames are good and within its window, and take long to execute, each or all together.

use crate::Failure;
use crate::caller::{Belief, Replicated};
use crate::cli::FloodKind;
use crate::load::{Controls, Load, Operations};
use crate::null::{authenticators, links};
use bytes::Bytes;
use std::time::Duration;
use troth_kv::Operation;
use troth_node::config::{ClientSecret, Cluster};
use troth_types::{ReplicaId, Wire};

/// Keys that it writes first, so that there is something to scan.
const KEYS: u64 = 4_000;
/// Entries of one scan.
const ENTRIES: u32 = 1_000;
/// Scans of a frame: as many as are executed of one before it has made as much as all results together may have, and few.
const LONG: usize = 33;
const SHORT: usize = 3;
/// How often it says how much it has done.
const SAY: Duration = Duration::from_millis(200);

/// Writes, then scans all it has written again and again, for ever.
pub(super) async fn run(
    cluster: &Cluster,
    secret: &ClientSecret,
    servers: &[(String, ReplicaId)],
    kind: FloodKind,
) -> Result<(), Failure> {
    let scans = if kind == FloodKind::Dear { LONG } else { SHORT };
    // Twice what its window takes, so that a frame waits whenever one has its result.
    let outstanding = 2 * cluster.limits.client_window * scans as u64;
    let mut load = Load::of(operations());
    let belief = Belief::of(cluster).with_frame_operations(scans);
    let caller = Replicated::with(&belief, secret, authenticators(cluster, secret)).careless();
    load.add(caller, links(cluster, secret, servers).await?, u32::try_from(outstanding)?);
    let controls = Controls::default();
    controls.go_on.set(true);
    let say = async {
        loop {
            tokio::time::sleep(SAY).await;
            println!("{}", controls.progress.get().done.saturating_sub(KEYS));
        }
    };
    tokio::select! {
        ended = load.run(&controls) => ended,
        () = say => Ok(()),
    }
}

fn operations() -> Operations {
    let mut made = 0_u64;
    Box::new(move || {
        made += 1;
        let operation = match made {
            ..=KEYS => Operation::Put {
                key: Bytes::from(format!("dear-{made:08}")),
                value: Bytes::from_static(b"what is scanned"),
            },
            _ => Operation::Scan { start: Bytes::new(), end: None, limit: ENTRIES },
        };
        operation.to_wire()
    })
}
