//! Where the files of a cluster are.

use std::path::{Path, PathBuf};
use troth_types::{ClientId, ReplicaId};

/// The files below one directory.
#[derive(Clone, Debug)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The layout below a directory.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The public configuration.
    #[must_use]
    pub fn cluster(&self) -> PathBuf {
        self.root.join("cluster.toml")
    }

    /// A replica's own directory.
    #[must_use]
    pub fn replica(&self, replica: ReplicaId) -> PathBuf {
        self.root.join(format!("replica-{}", replica.0))
    }

    /// A replica's secret keys.
    #[must_use]
    pub fn replica_secret(&self, replica: ReplicaId) -> PathBuf {
        self.replica(replica).join("secret.toml")
    }

    /// Where a replica keeps its log and its snapshots.
    #[must_use]
    pub fn data(&self, replica: ReplicaId) -> PathBuf {
        self.replica(replica).join("data")
    }

    /// Where a replica's trusted component keeps its counters.
    #[must_use]
    pub fn counters(&self, replica: ReplicaId) -> PathBuf {
        self.replica(replica).join("counters")
    }

    /// The mark that a replica leaves when it first starts.
    #[must_use]
    pub fn started(&self, replica: ReplicaId) -> PathBuf {
        self.replica(replica).join("started")
    }

    /// A client's secret keys.
    #[must_use]
    pub fn client_secret(&self, client: ClientId) -> PathBuf {
        self.root.join("clients").join(format!("client-{}.toml", client.0))
    }
}
