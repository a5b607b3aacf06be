//! Own messages that fill slots of the component's logs, before a host starts again.

use super::{LogRecord, own_body, own_from};
use crate::{Machine, Voucher};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use troth_auth::Seal;
use troth_trusted::a2m::{
    Answer, Attestation, Content, LogId, LogRefusal, MOST_OPERATIONS, Operation, Request, Slot, slot_nonce,
};
use troth_types::{GroupId, Malformed, ReplicaId, Wire};

/// Own messages that fill slots.
pub(super) struct Slots<M: Machine> {
    /// Bodies that are about to, or do.
    pub(super) bodies: BTreeMap<(LogId, Slot), M::Body>,
    /// Those that do.
    pub(super) sealed: BTreeMap<(LogId, Slot), M::Message>,
}

impl<M: Machine> Default for Slots<M> {
    fn default() -> Self {
        Self { bodies: BTreeMap::new(), sealed: BTreeMap::new() }
    }
}

impl<M: Machine> Slots<M> {
    /// Takes an attestation of this replica's own component; one that says that a body fills its slot makes that a message.
    /// Of a slot that something else fills, or nothing, the body was never certified: nobody has seen it.
    pub(super) fn take(&mut self, attestation: Attestation, me: ReplicaId, group: GroupId) {
        let at = (attestation.claim.log, attestation.claim.slot);
        let Content::Assigned { value, .. } = attestation.claim.content else { return };
        let Some(body) = self.bodies.get(&at) else { return };
        let digest = M::digest(body, group, me);
        if attestation.claim.request == Request::Lookup && digest.0 == value {
            let body = self.bodies.remove(&at).expect("looked at just now");
            self.sealed.insert(at, M::seal(body, digest, me, Seal::Slot(attestation)));
        }
    }
}

/// Why the slots of a log's bodies are not settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsettled {
    /// A record does not decode.
    Malformed(Malformed),
    /// The component does not do what it is asked.
    Refused(LogRefusal),
}

impl From<Malformed> for Unsettled {
    fn from(why: Malformed) -> Self {
        Self::Malformed(why)
    }
}

/// Settles, before a host starts again from this log, what became of the slots that bodies in it were to fill, where the
/// log does not say: the component is asked, and fills those that nothing fills yet. The host was about to have that
/// done, or its component has been set back by a call whose messages have left. The two cannot be told apart, so what
/// stands in the log is attested, now or again, and nothing else in its place. What it returns goes into
/// [`Resume::logs`](crate::Resume::logs).
///
/// # Errors
/// Where a record does not decode, or the component refuses.
pub fn settle_slots<M: Machine>(
    log: &[Bytes],
    me: ReplicaId,
    group: GroupId,
    mut ask: impl FnMut(&[Operation]) -> Result<Vec<Answer>, LogRefusal>,
) -> Result<Vec<Attestation>, Unsettled> {
    let records = log.iter().map(LogRecord::from_wire).collect::<Result<Vec<_>, _>>()?;
    let mut lookups = Vec::new();
    for (log, slot) in open(&records) {
        lookups.push(Operation::Lookup { log, slot, nonce: slot_nonce(slot) });
    }
    let mut settled = Vec::new();
    let mut all = |operations: &[Operation], settled: &mut Vec<Attestation>| {
        for some in operations.chunks(MOST_OPERATIONS) {
            let answers = ask(some).map_err(Unsettled::Refused)?;
            settled.extend(answers.into_iter().filter_map(|answer| match answer {
                Answer::Attested(attestation) => Some(attestation),
                Answer::Done => None,
            }));
        }
        Ok::<(), Unsettled>(())
    };
    all(&lookups, &mut settled)?;
    let fills = unfilled::<M>(&records, &settled, me, group)?;
    all(&fills, &mut settled)?;
    Ok(settled)
}

/// The slots of bodies without an attestation.
fn open(records: &[LogRecord]) -> BTreeSet<(LogId, Slot)> {
    let mut open = BTreeSet::new();
    for record in records {
        match record {
            LogRecord::OwnInLog { log, slot, .. } => drop(open.insert((*log, *slot))),
            LogRecord::Attested(attestation) => {
                open.remove(&(attestation.claim.log, attestation.claim.slot));
            }
            LogRecord::Own { .. }
            | LogRecord::Certified(_)
            | LogRecord::Sealed(_)
            | LogRecord::Machine(_)
            | LogRecord::CarriedOver(_) => {}
        }
    }
    open
}

/// What fills the slots that the component found empty, in the order of the slots.
fn unfilled<M: Machine>(
    records: &[LogRecord],
    found: &[Attestation],
    me: ReplicaId,
    group: GroupId,
) -> Result<Vec<Operation>, Malformed> {
    let empty: BTreeSet<(LogId, Slot)> = found
        .iter()
        .filter(|found| matches!(found.claim.content, Content::Unassigned { .. }))
        .map(|found| (found.claim.log, found.claim.slot))
        .collect();
    let mut bodies = BTreeMap::new();
    for record in &records[own_from(records)..] {
        match record {
            LogRecord::OwnInLog { log, slot, body } if empty.contains(&(*log, *slot)) => {
                bodies.insert((*log, *slot), own_body::<M>(body, Voucher::Slot)?);
            }
            _ => {}
        }
    }
    let advance = |((log, slot), body): ((LogId, Slot), M::Body)| Operation::Advance {
        log,
        slot,
        previous: [0; 32],
        value: M::digest(&body, group, me).0,
        nonce: Some(slot_nonce(slot)),
    };
    Ok(bodies.into_iter().map(advance).collect())
}
