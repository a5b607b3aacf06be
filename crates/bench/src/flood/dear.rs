//! A client that breaks no rule: its frames are good and within its window, and each takes long to execute.

use crate::Failure;
use crate::caller::{Belief, Replicated};
use crate::load::{Controls, Load, Operations};
use crate::null::{authenticators, links};
use bytes::Bytes;
use troth_kv::Operation;
use troth_node::config::{ClientSecret, Cluster};
use troth_types::{ReplicaId, Wire};

/// Keys that it writes first, so that there is something to scan.
const KEYS: u64 = 4_000;
/// Entries of one scan.
const ENTRIES: u32 = 1_000;
/// Operations that it has outstanding: more than its window takes, so that a frame waits whenever one has its result.
const OUTSTANDING: u32 = 4_096;

/// Writes, then scans all it has written again and again, for ever.
pub(super) async fn run(
    cluster: &Cluster,
    secret: &ClientSecret,
    servers: &[(String, ReplicaId)],
) -> Result<(), Failure> {
    let mut load = Load::of(operations());
    let caller = Replicated::with(&Belief::of(cluster), secret, authenticators(cluster, secret));
    load.add(caller, links(cluster, secret, servers).await?, OUTSTANDING);
    let controls = Controls::default();
    controls.go_on.set(true);
    load.run(&controls).await
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
