//! Who holds which key: configuration, never learned from traffic (guide.md F-M8).

use crate::PublicKey;
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_types::{ClientEntry, ClientId, Configuration, GroupId, ReplicaId};

/// The public keys of a group's replicas and clients, as one configuration of it has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// The group.
    pub group: GroupId,
    configuration: Arc<Configuration>,
}

impl Directory {
    /// The keys of this configuration.
    #[must_use]
    pub fn new(group: GroupId, configuration: Arc<Configuration>) -> Self {
        Self { group, configuration }
    }

    /// The keys of clients alone: for those who check frames and nothing else.
    #[must_use]
    pub fn of_clients(group: GroupId, clients: impl IntoIterator<Item = (ClientId, PublicKey)>) -> Self {
        let entry = |key: PublicKey| ClientEntry { key: key.0, link: [0; 32], removed: false };
        let clients: BTreeMap<ClientId, ClientEntry> =
            clients.into_iter().map(|(client, key)| (client, entry(key))).collect();
        Self::new(group, Arc::new(Configuration::new(Vec::new(), clients)))
    }

    /// The configuration.
    #[must_use]
    pub fn configuration(&self) -> &Arc<Configuration> {
        &self.configuration
    }

    /// The keys with which a replica's host signs (REQ-VIEW-CHANGE and the like), or signed before it was
    /// replaced, the present one first.
    #[must_use]
    pub fn replica(&self, replica: ReplicaId) -> Option<impl Iterator<Item = PublicKey> + '_> {
        let hosts = self.configuration.member(replica)?.hosts();
        Some(hosts.iter().rev().map(|host| PublicKey(host.signing)))
    }

    /// The key of a client, removed or not: what was ordered must be checkable by everybody, and a removed
    /// client's frames do nothing where they are executed.
    #[must_use]
    pub fn client(&self, client: ClientId) -> Option<PublicKey> {
        self.configuration.client(client).map(|entry| PublicKey(entry.key))
    }

    /// The key of a client's connections, by which its authenticators are checked.
    #[must_use]
    pub fn client_link(&self, client: ClientId) -> Option<[u8; 32]> {
        self.configuration.client(client).map(|entry| entry.link)
    }
}
