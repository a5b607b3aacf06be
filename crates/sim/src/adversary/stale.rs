//! Stale answers to reads: beside the host that goes on with the others there is one that stands still now and then, and what
//! that one answers clients are told, with an END that its component gave earlier, with a lookup of the slot where it
//! stands, or with the END that is true now. Colluders do the same to the same read, and leave other replicas behind
//! meanwhile, who then answer with them.

use super::{Hand, Strategy};
use crate::{Message, Protocol};
use bytes::Bytes;
use std::collections::BTreeMap;
use troth_auth::decode_attestation;
use troth_core::PeerMessage;
use troth_trusted::Proof;
use troth_trusted::a2m::{Attestation, Slot};
use troth_types::{AttestedRead, AttestedReply, ClientId, HistoryEnd, Reader, ReplicaId, ToClient};

/// Microseconds for which the second host goes with the others, and for which it then stands still.
const PHASE: u64 = 60_000;
/// What is remembered of each kind.
const REMEMBERED: usize = 256;

/// The host that goes on, and the one that stands still.
const PRESENT: usize = 0;

/// Answers reads from the past.
#[derive(Debug, Default)]
pub struct Stale {
    /// What the component said of its end, by the slot.
    ends: BTreeMap<Slot, HistoryEnd>,
    /// What it said of single slots.
    slots: BTreeMap<Slot, Bytes>,
    /// What it said of its end under the nonces of these reads.
    present: BTreeMap<(ClientId, u64), HistoryEnd>,
}

fn remember<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: V) {
    map.insert(key, value);
    if map.len() > REMEMBERED {
        map.pop_first();
    }
}

/// What the component really said, with its slot.
fn genuine(bytes: &Bytes) -> Option<(Slot, Attestation)> {
    let attestation = decode_attestation(&mut Reader::new(bytes)).ok()?;
    (attestation.proof != Proof::Mac([0; 32])).then_some((attestation.claim.slot, attestation))
}

fn stands_still(now: u64) -> bool {
    now / PHASE % 2 == 1
}

impl Stale {
    /// Tells an answer of the host that stands still, with some proof.
    fn tell<P: Protocol>(&mut self, hand: &mut Hand<'_, P>, read: AttestedRead) {
        let AttestedRead { reply, end, renewed } = read;
        let Ok(own) = decode_attestation(&mut Reader::new(&end.attestation)) else { return };
        let slot = own.claim.slot;
        let other = match (reply.client.0 + reply.number) % 3 {
            0 => self.ends.get(&slot).cloned(),
            1 => {
                let lookup = self.slots.get(&slot).cloned();
                lookup.map(|attestation| HistoryEnd { attestation, ..end.clone() })
            }
            _ => self.present.get(&(reply.client, reply.number)).cloned(),
        };
        let end = other.unwrap_or(end);
        hand.client_evil(ToClient::AttestedRead(AttestedRead { reply, end, renewed }));
    }
}

impl<P: Protocol> Strategy<P> for Stale {
    fn name(&self) -> &'static str {
        "stale answers"
    }

    fn hosts(&self) -> usize {
        2
    }

    fn send(&mut self, hand: &mut Hand<'_, P>, host: usize, to: ReplicaId, message: PeerMessage<Message<P>>) {
        let left_behind = stands_still(hand.now) && (host != PRESENT || !hand.in_audience(to));
        if left_behind { hand.acted() } else { hand.send(to, message) }
    }

    fn hears(
        &mut self,
        hand: &mut Hand<'_, P>,
        host: usize,
        _: ReplicaId,
        _: &PeerMessage<Message<P>>,
    ) -> bool {
        host == PRESENT || !stands_still(hand.now)
    }

    fn client(&mut self, hand: &mut Hand<'_, P>, host: usize, message: ToClient) {
        match message {
            ToClient::AttestedRead(read) => {
                if let Some((slot, _)) = genuine(&read.end.attestation) {
                    remember(&mut self.ends, slot, read.end.clone());
                    if host == PRESENT {
                        let asked = (read.reply.client, read.reply.number);
                        remember(&mut self.present, asked, read.end.clone());
                    }
                }
                match (stands_still(hand.now), host == PRESENT) {
                    (false, true) => hand.client(ToClient::AttestedRead(read)),
                    (true, false) => self.tell(hand, read),
                    _ => hand.acted(),
                }
            }
            ToClient::Attested(AttestedReply { reply, place, renewed }) => {
                if let Some((slot, _)) = genuine(&place.attestation) {
                    remember(&mut self.slots, slot, place.attestation.clone());
                }
                if host == PRESENT {
                    hand.client(ToClient::Attested(AttestedReply { reply, place, renewed }));
                }
            }
            other if host == PRESENT => hand.client(other),
            _ => {}
        }
    }
}
