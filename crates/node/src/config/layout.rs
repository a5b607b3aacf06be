//! Where the files of a cluster are.

use super::TrustedHome;
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

    /// Whether nothing stands in the directory, or it is not there: where something does, `troth up` makes no cluster.
    #[must_use]
    pub fn is_free(&self) -> bool {
        std::fs::read_dir(&self.root).map_or(true, |mut entries| entries.next().is_none())
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

    /// Where a replica's trusted component keeps its counters; of no use where it has none.
    #[must_use]
    pub fn counters(&self, replica: ReplicaId, home: TrustedHome) -> PathBuf {
        match home {
            TrustedHome::InProcess | TrustedHome::Nowhere => self.replica(replica).join("counters"),
            TrustedHome::Process => self.trusted(replica).join("counters"),
        }
    }

    /// Where a replica's trusted component keeps its attested logs; of use where the protocol asks them.
    #[must_use]
    pub fn component_logs(&self, replica: ReplicaId, home: TrustedHome) -> PathBuf {
        match home {
            TrustedHome::InProcess | TrustedHome::Nowhere => self.replica(replica).join("logs"),
            TrustedHome::Process => self.trusted(replica).join("logs"),
        }
    }

    /// The directories that a replica's trusted component keeps what it is in, those that are there.
    #[must_use]
    pub fn component(&self, replica: ReplicaId, home: TrustedHome) -> Vec<PathBuf> {
        let mut places = vec![self.counters(replica, home), self.component_logs(replica, home)];
        places.retain(|place| place.exists());
        places
    }

    /// The directory of a trusted component in a process of its own, which only its user may enter.
    #[must_use]
    pub fn trusted(&self, replica: ReplicaId) -> PathBuf {
        self.root.join(format!("trusted-{}", replica.0))
    }

    /// The secret key of a trusted component in a process of its own.
    #[must_use]
    pub fn trusted_secret(&self, replica: ReplicaId) -> PathBuf {
        self.trusted(replica).join("secret.toml")
    }

    /// Says which epoch a trusted component in a process of its own has started, apart from its counters: so
    /// counters that are gone, or not mounted, do not look like ones that never were.
    #[must_use]
    pub fn trusted_started(&self, replica: ReplicaId) -> PathBuf {
        self.trusted(replica).join("started")
    }

    /// Where a trusted component in a process of its own is asked. Its directory is neither the component's,
    /// which the replica must not enter, nor the replica's, in which a process that starts as root would
    /// change the mode of whatever the replica puts in the socket's place.
    #[must_use]
    pub fn trusted_socket(&self, replica: ReplicaId) -> PathBuf {
        self.root.join(format!("socket-{}", replica.0)).join("trusted.sock")
    }

    /// The mark that a replica leaves when it first starts.
    #[must_use]
    pub fn started(&self, replica: ReplicaId) -> PathBuf {
        self.replica(replica).join("started")
    }

    /// The first state of a replica whose group was restored from a backup.
    #[must_use]
    pub fn genesis(&self, replica: ReplicaId) -> PathBuf {
        self.replica(replica).join("genesis")
    }

    /// Where a running replica serves backups to its own user and to root.
    #[must_use]
    pub fn backup_socket(&self, replica: ReplicaId) -> PathBuf {
        self.replica(replica).join("backup.sock")
    }

    /// The newest configuration of the group that `troth admin` was shown here; public.
    #[must_use]
    pub fn known(&self) -> PathBuf {
        self.root.join("configuration.toml")
    }

    /// The operator's secret keys.
    #[must_use]
    pub fn operator_secret(&self) -> PathBuf {
        self.root.join("clients").join("operator.toml")
    }

    /// A client's secret keys.
    #[must_use]
    pub fn client_secret(&self, client: ClientId) -> PathBuf {
        self.root.join("clients").join(format!("client-{}.toml", client.0))
    }
}
