//! The keys that a client shares with the components of the replicas, by which they prove to it alone what they hold: from
//! the static key of its connections, so that nothing more has to be handed out.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use troth_auth::ComponentPairs;
use troth_trusted::agreement::PeerKey;
use troth_trusted::{MacVerifier, SignatureVerifier};
use troth_types::{ComponentKey, Configuration, ReplicaId};

/// Keys kept of components that took the place of others; whatever replicas claim, there are no more.
pub(crate) const MOST_RENEWED: usize = 64;

/// Computes each key once: a Diffie-Hellman secret takes longer than a signature's check.
pub(crate) struct LinkComponentPairs {
    own: PeerKey,
    first: Vec<Option<MacVerifier>>,
    renewed: Mutex<BTreeMap<[u8; 32], Option<MacVerifier>>>,
}

impl LinkComponentPairs {
    /// Of the client with this static private key, in a group that began so.
    pub(crate) fn new(configuration: &Configuration, secret: &[u8; 32]) -> Self {
        let own = PeerKey::new(secret);
        let first = configuration.members().iter().map(|member| shared(&member.admission().component, &own));
        let first = first.collect();
        Self { own, first, renewed: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<[u8; 32], Option<MacVerifier>>> {
        self.renewed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many keys are kept of components that took the place of others.
    #[cfg(test)]
    pub(crate) fn renewed(&self) -> usize {
        self.known().len()
    }
}

/// The components of a group that share a key prove to its holders alone.
fn shared(component: &ComponentKey, own: &PeerKey) -> Option<MacVerifier> {
    match component {
        ComponentKey::Group => None,
        ComponentKey::Ed25519(key) => SignatureVerifier::from_bytes(key)?.shared_with(own),
    }
}

impl ComponentPairs for LinkComponentPairs {
    fn with(&self, replica: ReplicaId, renewed: Option<&ComponentKey>) -> Option<MacVerifier> {
        let Some(component) = renewed else { return self.first.get(usize::from(replica.0))?.clone() };
        let ComponentKey::Ed25519(key) = component else { return None };
        if let Some(known) = self.known().get(key) {
            return known.clone();
        }
        let pair = shared(component, &self.own);
        let mut known = self.known();
        if known.len() >= MOST_RENEWED {
            known.pop_first();
        }
        known.insert(*key, pair.clone());
        pair
    }
}
