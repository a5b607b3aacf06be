//! The write-ahead log's records, and how a machine's own messages are rebuilt from them.
//!
//! Bodies are durable before the counter that certifies them, so a crash leaves at
//! most the last run without its certificate in the log; the component gives that one again.

use crate::{Machine, Resume, Voucher};
use bytes::Bytes;
use std::collections::BTreeMap;
use troth_auth::{Seal, Ui, decode_attestation, decode_certificate, encode_attestation, encode_certificate};
use troth_trusted::a2m::{Attestation, LogId, Slot};
use troth_trusted::{Certificate, CounterId, CounterValue, Resumed, run};
use troth_types::{Digest, GroupId, Malformed, Reader, ReplicaId, Wire, put_bytes};

const MAX_RECORD: usize = 1 << 26;

/// One record of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogRecord {
    /// A body about to be certified. A later record for the same value replaces it: the earlier one
    /// never was.
    Own {
        /// The counter.
        counter: CounterId,
        /// The value before.
        previous: CounterValue,
        /// The value it will hold.
        new: CounterValue,
        /// The body.
        body: Bytes,
    },
    /// The certificate of the bodies whose values it covers.
    Certified(Certificate),
    /// A certified message carried over from an earlier segment.
    Sealed(Bytes),
    /// A record of the machine.
    Machine(Bytes),
    /// This many records before this one say of the machine's own messages all that still matters; what
    /// stands before those, the machine has let go.
    CarriedOver(u64),
    /// A body about to fill a slot. A later record for the same slot replaces it.
    OwnInLog {
        /// The log.
        log: LogId,
        /// The slot.
        slot: Slot,
        /// The body.
        body: Bytes,
    },
    /// The attestation of the slot that a body fills.
    Attested(Attestation),
}

const SEALED: u8 = 2;
const MACHINE: u8 = 3;

/// Makes records of what they hold, without a copy of that in between: a segment begins with thousands.
#[derive(Default)]
pub(crate) struct Encoder(Vec<u8>);

impl Encoder {
    /// As [`LogRecord::Sealed`] of the message.
    pub(crate) fn sealed(&mut self, message: &impl Wire) -> Bytes {
        self.record(SEALED, message)
    }

    /// As [`LogRecord::Machine`] of the record.
    pub(crate) fn machine(&mut self, record: &impl Wire) -> Bytes {
        self.record(MACHINE, record)
    }

    fn record(&mut self, tag: u8, content: &impl Wire) -> Bytes {
        let start = 1 + size_of::<u32>();
        self.0.clear();
        self.0.resize(start, tag);
        content.encode(&mut self.0);
        let length = u32::try_from(self.0.len() - start).expect("our own byte strings fit a u32 length");
        self.0[1..start].copy_from_slice(&length.to_le_bytes());
        Bytes::copy_from_slice(&self.0)
    }
}

impl Wire for LogRecord {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Own { counter, previous, new, body } => {
                out.push(0);
                counter.0.encode(out);
                previous.0.encode(out);
                new.0.encode(out);
                put_bytes(out, body);
            }
            Self::Certified(certificate) => {
                out.push(1);
                encode_certificate(certificate, out);
            }
            Self::Sealed(message) => {
                out.push(SEALED);
                put_bytes(out, message);
            }
            Self::Machine(record) => {
                out.push(MACHINE);
                put_bytes(out, record);
            }
            Self::CarriedOver(records) => {
                out.push(4);
                records.encode(out);
            }
            Self::OwnInLog { log, slot, body } => {
                out.push(5);
                log.0.encode(out);
                slot.0.encode(out);
                put_bytes(out, body);
            }
            Self::Attested(attestation) => {
                out.push(6);
                encode_attestation(attestation, out);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match u8::decode(reader)? {
            0 => Self::Own {
                counter: CounterId(Wire::decode(reader)?),
                previous: CounterValue(Wire::decode(reader)?),
                new: CounterValue(Wire::decode(reader)?),
                body: reader.bytes("a logged body", MAX_RECORD)?,
            },
            1 => Self::Certified(decode_certificate(reader)?),
            SEALED => Self::Sealed(reader.bytes("a logged message", MAX_RECORD)?),
            MACHINE => Self::Machine(reader.bytes("a logged record", MAX_RECORD)?),
            4 => Self::CarriedOver(Wire::decode(reader)?),
            5 => Self::OwnInLog {
                log: LogId(Wire::decode(reader)?),
                slot: CounterValue(Wire::decode(reader)?),
                body: reader.bytes("a logged body", MAX_RECORD)?,
            },
            6 => Self::Attested(decode_attestation(reader)?),
            other => return Err(Malformed::Tag("a log record", u64::from(other))),
        })
    }
}

/// Why a log cannot be continued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecoveryError {
    /// A record does not decode.
    Malformed(Malformed),
    /// The component certified a value whose body the log does not hold: the log is older than the
    /// component. Such a replica must not vote; it needs readmission.
    BodyMissing(CounterId, CounterValue),
    /// The machine found a contradiction.
    Machine(&'static str),
}

impl core::fmt::Display for RecoveryError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Malformed(why) => write!(f, "a log record does not decode: {why}"),
            Self::BodyMissing(counter, value) => write!(
                f,
                "the trusted component certified value {:x} of counter {} and the log does not hold it: \
                 the log is older than the component, so this replica must not vote",
                value.0, counter.0
            ),
            Self::Machine(why) => write!(f, "the log contradicts itself: {why}"),
        }
    }
}

impl std::error::Error for RecoveryError {}

impl From<Malformed> for RecoveryError {
    fn from(why: Malformed) -> Self {
        Self::Malformed(why)
    }
}

/// A run's messages, built from its bodies, their digests and the certificate over them.
pub(crate) fn seal_run<M: Machine>(
    certificate: &Certificate,
    bodies: Vec<(M::Body, Digest)>,
    tree: &run::Tree,
    me: ReplicaId,
) -> Vec<M::Message> {
    let single = bodies.len() == 1;
    bodies
        .into_iter()
        .enumerate()
        .map(|(index, (body, digest))| {
            let index = u16::try_from(index).expect("a run is at most 256 long");
            let run = if single { None } else { tree.proof(index).map(Box::new) };
            M::seal(body, digest, me, Seal::Ui(Ui { certificate: certificate.clone(), run }))
        })
        .collect()
}

/// The machine's own messages and records that a log holds.
pub(crate) struct Recovered<M: Machine> {
    pub(crate) own: Vec<M::Message>,
    pub(crate) records: Vec<M::Record>,
    /// Attestations of own messages that the log lacked.
    pub(crate) attested: Vec<Attestation>,
}

/// Reads a log. `resumed` is what the component says of itself.
pub(crate) fn recover<M: Machine>(
    log: &[Bytes],
    resumed: Resume<'_>,
    me: ReplicaId,
    group: GroupId,
) -> Result<Recovered<M>, RecoveryError> {
    let mut sealed = BTreeMap::new();
    let mut own = Vec::new();
    let mut records = Vec::new();
    let mut bodies: BTreeMap<(CounterId, CounterValue), (CounterValue, M::Body)> = BTreeMap::new();
    let mut certificates: BTreeMap<(CounterId, CounterValue), Certificate> = BTreeMap::new();
    let mut slots = Slots::<M>::default();
    let decoded = log.iter().map(LogRecord::from_wire).collect::<Result<Vec<_>, _>>()?;
    let own_from = own_from(&decoded);
    for (index, record) in decoded.into_iter().enumerate() {
        let let_go = index < own_from;
        match record {
            LogRecord::Machine(bytes) => records.push(M::Record::from_wire(&bytes)?),
            LogRecord::CarriedOver(_) => {}
            _ if let_go => {}
            LogRecord::Own { counter, previous, new, body } => {
                bodies.insert((counter, new), (previous, own_body::<M>(&body, Voucher::Counter)?));
            }
            LogRecord::Certified(certificate) => {
                certificates.insert((certificate.counter, certificate.new), certificate);
            }
            LogRecord::Sealed(bytes) => {
                let message = M::Message::from_wire(&bytes)?;
                // Where a segment was torn before its mark, what it carried over stands here twice.
                match (M::position(&message), M::slot(&message)) {
                    (Some(position), _) => drop(sealed.insert(position, message)),
                    (None, Some(slot)) => drop(slots.sealed.insert(slot, message)),
                    (None, None) => own.push(message),
                }
            }
            LogRecord::OwnInLog { log, slot, body } => {
                slots.bodies.insert((log, slot), own_body::<M>(&body, Voucher::Slot)?);
            }
            LogRecord::Attested(attestation) => slots.take(attestation, me, group),
        }
    }
    let newest_sealed: BTreeMap<CounterId, CounterValue> =
        sealed.keys().map(|(counter, value): &(CounterId, CounterValue)| (*counter, *value)).collect();
    let singles: Vec<_> = resumed
        .counters
        .iter()
        .filter_map(|last| match last {
            Resumed::One { certificate, digest } => Some((certificate, digest)),
            _ => None,
        })
        .collect();
    for (certificate, _) in &singles {
        certificates.entry((certificate.counter, certificate.new)).or_insert_with(|| (*certificate).clone());
    }
    let mut tree = run::Tree::default();
    for ((counter, new), certificate) in certificates {
        let last = singles.iter().find(|(last, _)| (last.counter, last.new) == (counter, new));
        let root = last.map(|(_, digest)| **digest);
        match rebuild::<M>(&certificate, root, &bodies, &mut tree, me, group) {
            Ok(messages) => sealed.extend(
                messages.into_iter().filter_map(|message| M::position(&message).map(|at| (at, message))),
            ),
            // Its messages were carried over, or let go with what stood before those.
            Err(_) if newest_sealed.get(&counter).is_some_and(|newest| *newest >= new) => {}
            Err(why) => return Err(why),
        }
    }
    own.extend(sealed.into_values());
    own.sort_by_key(|message| M::position(message));
    let mut attested = Vec::new();
    for attestation in resumed.logs {
        let known = slots.sealed.len();
        slots.take(attestation.clone(), me, group);
        if slots.sealed.len() > known {
            attested.push(attestation.clone());
        }
    }
    own.extend(slots.sealed.into_values());
    Ok(Recovered { own, records, attested })
}

/// The body of an own message. One for which something else vouches, no replica of this protocol has logged so.
fn own_body<M: Machine>(bytes: &Bytes, voucher: Voucher) -> Result<M::Body, Malformed> {
    let body = M::Body::from_wire(bytes)?;
    let is_its = M::voucher(&body) == voucher;
    is_its.then_some(body).ok_or(Malformed::Invalid("a logged body that is not vouched for so"))
}

/// Where what a log says of own messages begins to matter: what stands before, the machine has let go.
fn own_from(records: &[LogRecord]) -> usize {
    let carried = records.iter().enumerate().rev().find_map(|(index, record)| match record {
        LogRecord::CarriedOver(records) => {
            Some(index.saturating_sub(usize::try_from(*records).unwrap_or(index)))
        }
        _ => None,
    });
    carried.unwrap_or(0)
}

/// The messages that a certificate covers, from the logged bodies. `root` is what the component says it
/// covers, where that is known.
fn rebuild<M: Machine>(
    certificate: &Certificate,
    root: Option<[u8; 32]>,
    bodies: &BTreeMap<(CounterId, CounterValue), (CounterValue, M::Body)>,
    tree: &mut run::Tree,
    me: ReplicaId,
    group: GroupId,
) -> Result<Vec<M::Message>, RecoveryError> {
    let (counter, new) = (certificate.counter, certificate.new);
    let missing = |value| RecoveryError::BodyMissing(counter, value);
    let alone = bodies.get(&(counter, new)).is_some_and(|(previous, _)| *previous == certificate.previous);
    let mut value = if alone { new } else { certificate.previous.plus(1).unwrap_or(new) };
    let mut covered = Vec::new();
    loop {
        let (_, body) = bodies.get(&(counter, value)).ok_or_else(|| missing(value))?.clone();
        let digest = M::digest(&body, group, me);
        covered.push((body, digest));
        if value == new || covered.len() > run::MAX_RUN {
            break;
        }
        value = value.next().ok_or_else(|| missing(new))?;
    }
    let digests: Vec<[u8; 32]> = covered.iter().map(|(_, digest)| digest.0).collect();
    let built = tree.build(&digests).ok_or_else(|| missing(new))?;
    if root.is_some_and(|root| root != built) {
        return Err(missing(new));
    }
    Ok(seal_run::<M>(certificate, covered, tree, me))
}

mod slots;
#[cfg(test)]
mod tests;

use slots::Slots;
pub use slots::{Unsettled, settle_slots};
