//! The first state of a group that was restored from a backup. Every replica has it as a file in its own
//! directory, and cluster.toml has its digest, which is part of the group's name: a replica with another
//! first state is none of this group.

use crate::backup::{BackupError, file};
use crate::config::{Cluster, Layout, hex};
use thiserror::Error;
use troth_exec::Snapshot as State;
use troth_types::ReplicaId;

/// Why a replica has no first state.
#[derive(Debug, Error)]
pub enum GenesisError {
    /// Its file cannot be read, or is damaged.
    #[error(
        "this group was restored from a backup, and the replica's copy of the first state cannot be used: {0}\n  mend: copy the \
         file `genesis` from another replica's directory: cluster.toml says which content it must have"
    )]
    File(#[from] BackupError),
    /// It is another state.
    #[error(
        "the first state in {0} is not the one that cluster.toml names ({1})\n  mend: put the file `genesis` there that the same \
         `troth restore` made; any replica's will do"
    )]
    Another(std::path::PathBuf, String),
}

/// The first state of the group's replicas, where that is not the empty one.
///
/// # Errors
/// [`GenesisError`].
pub(crate) fn load(cluster: &Cluster, layout: &Layout, me: ReplicaId) -> Result<Option<State>, GenesisError> {
    let Some(digest) = cluster.genesis else { return Ok(None) };
    let path = layout.genesis(me);
    let state = file::read(&path)?;
    if state.seq().0 != 0 || state.digest() != digest {
        return Err(GenesisError::Another(path, hex::encode(&digest.0)));
    }
    Ok(Some(state))
}
