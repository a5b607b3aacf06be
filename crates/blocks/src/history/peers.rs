//! Clients that are shown the places of their requests by MACs, each by its own (paper 000 §3.3): a component makes forty of
//! them in the time of one signature, and a client checks none of those.

use super::slot;
use std::sync::Arc;
use troth_auth::HISTORY_LOG;
use troth_trusted::a2m::peers::PEERS;
use troth_trusted::a2m::{Operation, Peer, slot_nonce};
use troth_types::{ClientId, Configuration, Seq};

/// The most clients of one batch that are shown it by MACs: beyond, one signature for all costs the component less.
const MOST: usize = 32;

/// Whose keys are known.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Peers(Option<Arc<Configuration>>);

impl Peers {
    /// The clients of a group; nobody where it has more than a component keeps the keys of.
    pub(super) fn of(configuration: &Arc<Configuration>) -> Self {
        let few = configuration.clients().count() <= PEERS;
        Self(few.then(|| Arc::clone(configuration)))
    }

    /// The clients of a batch, each once with its key; `None` where they are shown it by a signature.
    pub(super) fn of_batch(&self, done: &[(ClientId, u64)]) -> Option<Vec<(ClientId, Peer)>> {
        let configuration = self.0.as_ref()?;
        let mut peers: Vec<(ClientId, Peer)> = Vec::new();
        for (client, _) in done {
            if peers.iter().all(|(known, _)| known != client) {
                peers.push((*client, configuration.client(*client)?.link));
            }
            if peers.len() > MOST {
                return None;
            }
        }
        (!peers.is_empty()).then_some(peers)
    }
}

/// The lookup of a number for one client.
pub(super) fn lookup_for(at: Seq, peer: Peer) -> Operation {
    Operation::LookupFor { log: HISTORY_LOG, slot: slot(at), nonce: slot_nonce(slot(at)), peer }
}
