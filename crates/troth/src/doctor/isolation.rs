//! What the trusted component's home protects from.

use super::Finding;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use troth_node::config::{Cluster, Layout, TrustedHome};
use troth_types::ReplicaId;

pub(super) fn look(layout: &Layout, cluster: &Cluster, here: &[ReplicaId]) -> Vec<Finding> {
    let owner = |path: &Path| std::fs::metadata(path).map(|data| data.uid()).ok();
    if cluster.trusted_home == TrustedHome::Nowhere {
        let said = format!("protocol {} has no trusted components to isolate", cluster.protocol.name());
        return vec![Finding::ok("isolation", said)];
    }
    if cluster.trusted_home == TrustedHome::InProcess {
        return vec![judge(TrustedHome::InProcess, 0, None, None)];
    }
    here.iter()
        .map(|id| {
            let replica = owner(&layout.replica(*id));
            judge(TrustedHome::Process, id.0, replica, owner(&layout.trusted(*id)))
        })
        .collect()
}

/// `replica` and `trusted` own the directories of the two.
pub(crate) fn judge(home: TrustedHome, id: u16, replica: Option<u32>, trusted: Option<u32>) -> Finding {
    const SUBJECT: &str = "isolation";
    const MEND: &str = "docs/operating/trusted-process.md: a user of its own for the trusted process";
    if home == TrustedHome::InProcess {
        return Finding::warn(
            SUBJECT,
            "no isolation: the trusted components live in their replicas' processes, and whoever takes over one has its key and counters",
            "make a cluster with `troth init --trusted-home process`",
        );
    }
    match (replica, trusted) {
        (Some(replica), Some(trusted)) if replica == trusted => Finding::warn(
            SUBJECT,
            format!("no isolation: replica {id} and its trusted component are both user {replica}'s"),
            MEND,
        ),
        (Some(0), Some(_)) => Finding::warn(
            SUBJECT,
            format!("no isolation: replica {id} is root's, who reaches everything"),
            "give the replica a user of its own",
        ),
        (Some(replica), Some(0)) => Finding::warn(
            SUBJECT,
            format!(
                "replica {id} is user {replica}'s, and its trusted component has no user of its own yet (root)"
            ),
            MEND,
        ),
        (Some(replica), Some(trusted)) => Finding::ok(
            SUBJECT,
            format!(
                "replica {id} is user {replica}'s and its trusted component user {trusted}'s; the log of `troth trusted` says which walls stand"
            ),
        ),
        _ => Finding::warn(
            SUBJECT,
            format!("whose the directories of replica {id} and its trusted component are cannot be seen"),
            "run `troth doctor` as root",
        ),
    }
}
