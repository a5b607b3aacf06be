//! `troth replica`: one replica in this process.

use crate::cli::Replica;
use crate::failure::Failure;
use troth_node::config::{Cluster, Layout, ReplicaSecret};
use troth_node::{Options, serve};
use troth_types::ReplicaId;

pub(crate) fn run(replica: &Replica) -> Result<(), Failure> {
    let layout = Layout::new(&replica.dir.dir);
    let cluster = Cluster::load(&layout.cluster())?;
    let id = ReplicaId(replica.id);
    if !cluster.group.contains(id) {
        let problem =
            format!("the group has replicas 0 to {}; --id {} is none of them", cluster.group.n() - 1, id.0);
        return Err(Failure::usage(problem));
    }
    let secret_file = layout.replica_secret(id);
    let secret = ReplicaSecret::load(&secret_file, &cluster)?;
    if secret.replica != id {
        let problem =
            format!("{} is replica {}'s, not replica {}'s", secret_file.display(), secret.replica.0, id.0);
        return Err(Failure::usage(problem));
    }
    let options = Options {
        until_stdin_ends: replica.until_stdin_ends,
        #[cfg(feature = "demo-adversary")]
        lie: matches!(replica.adversary, Some(crate::cli::Adversary::Liar)),
    };
    serve(cluster, secret, &layout, options)?;
    Ok(())
}
