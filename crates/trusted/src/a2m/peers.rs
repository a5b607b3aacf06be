//! The keys that a component shares with single clients: computed once, as a secret of that kind takes longer to compute
//! than a signature (paper 000 §3.3).

use super::Peer;
use crate::key::{Certifier, MacKey};

/// Keys kept, of 64 bytes a place. Where there are more peers, the key of each that finds no place is computed anew.
pub const PEERS: usize = 256;

/// The keys of peers, each at the place that the peer's own bytes name or at the next free one.
#[derive(Clone)]
pub(super) struct Peers([Option<(Peer, [u8; 32])>; PEERS]);

impl Peers {
    pub(super) const NONE: Self = Self([None; PEERS]);

    /// The key that the component with this certifier shares with this peer.
    pub(super) fn key(&mut self, certifier: &Certifier, peer: &Peer) -> MacKey {
        let first = usize::from(u16::from_le_bytes([peer[0], peer[1]])) % PEERS;
        let mut free = first;
        for place in (first..PEERS).chain(0..first) {
            match &self.0[place] {
                Some((known, secret)) if known == peer => return MacKey::new(secret),
                Some(_) => {}
                None => {
                    free = place;
                    break;
                }
            }
        }
        let secret = certifier.shared_with(peer);
        self.0[free] = Some((*peer, secret));
        MacKey::new(&secret)
    }
}

impl core::fmt::Debug for Peers {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Peers(secret)")
    }
}
