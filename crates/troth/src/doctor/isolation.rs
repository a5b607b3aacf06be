//! What the trusted component's home protects from.

use super::Finding;
use crate::how_to_start::{SUGGESTED, how_to_give};
use crate::words::replicas;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use troth_node::config::{Cluster, Layout, TrustedHome};
use troth_types::ReplicaId;

pub(super) fn look(layout: &Layout, cluster: &Cluster, here: &[ReplicaId]) -> Vec<Finding> {
    match cluster.trusted_home {
        TrustedHome::Nowhere => {
            let said = format!("protocol {} has no trusted components to isolate", cluster.protocol.name());
            return vec![Finding::ok("isolation", said)];
        }
        TrustedHome::InProcess => return vec![in_process()],
        TrustedHome::Process => {}
    }
    let owner = |path: &Path| std::fs::metadata(path).map(|data| data.uid()).ok();
    let mut alike: BTreeMap<_, Vec<ReplicaId>> = BTreeMap::new();
    for id in here {
        alike.entry((owner(&layout.replica(*id)), owner(&layout.trusted(*id)))).or_default().push(*id);
    }
    let judge = |((replica, trusted), ids): (_, Vec<ReplicaId>)| {
        let places: Vec<_> = ids.iter().map(|id| layout.trusted(*id)).collect();
        judge(&ids, replica, trusted, &places)
    };
    alike.into_iter().map(judge).collect()
}

/// Of a cluster whose components have no processes of their own.
pub(crate) fn in_process() -> Finding {
    Finding::warn(
        "isolation",
        "no isolation: the trusted components live in their replicas' processes, and whoever takes over one has its key and counters",
        "make a cluster with `troth init --trusted-home process`",
    )
}

/// Of replicas whose directories are user `replica`'s, and their components' user `trusted`'s; the latter are at these
/// places.
pub(crate) fn judge(
    ids: &[ReplicaId],
    replica: Option<u32>,
    trusted: Option<u32>,
    places: &[PathBuf],
) -> Finding {
    const SUBJECT: &str = "isolation";
    let whose = replicas(ids);
    match (replica, trusted) {
        (Some(_), Some(0)) => Finding::fail(
            SUBJECT,
            format!(
                "{whose}: the trusted component does not start, as its directory is root's and it does not run as root"
            ),
            how_to_give(places, SUGGESTED),
        ),
        (Some(replica), Some(trusted)) if replica == trusted => Finding::warn(
            SUBJECT,
            format!(
                "{whose}: no isolation, as the replica's directory and its trusted component's are both user {replica}'s"
            ),
            "docs/operating/trusted-process.md: a user of its own for the trusted process",
        ),
        (Some(0), Some(_)) => Finding::warn(
            SUBJECT,
            format!("{whose}: no isolation, as the replica's directory is root's, who reaches everything"),
            "give the replica a user of its own",
        ),
        (Some(replica), Some(trusted)) => Finding::ok(
            SUBJECT,
            format!(
                "{whose}: the replica's directory is user {replica}'s and its trusted component's user {trusted}'s; the log of \
                 `troth trusted` says which walls stand"
            ),
        ),
        _ => Finding::warn(
            SUBJECT,
            format!("{whose}: whose directory the replica's and its trusted component's are cannot be seen"),
            "run `troth doctor` as root",
        ),
    }
}
