//! Who holds which key: configuration, never learned from traffic (protocols.md F-M8).

use crate::PublicKey;
use std::collections::BTreeMap;
use troth_types::{ClientId, GroupId, ReplicaId};

/// The public keys of a group's replicas and clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// The group.
    pub group: GroupId,
    /// The key with which each replica's host signs (REQ-VIEW-CHANGE and the like), by number.
    pub replicas: Vec<PublicKey>,
    /// The clients that may have operations ordered.
    pub clients: BTreeMap<ClientId, PublicKey>,
}

impl Directory {
    /// The host key of a replica.
    #[must_use]
    pub fn replica(&self, replica: ReplicaId) -> Option<PublicKey> {
        self.replicas.get(usize::from(replica.0)).copied()
    }

    /// The key of a client.
    #[must_use]
    pub fn client(&self, client: ClientId) -> Option<PublicKey> {
        self.clients.get(&client).copied()
    }
}
