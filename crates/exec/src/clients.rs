//! The client table and the outboxes, kept in the map under [`SYSTEM`] keys, so that they are in
//! every checkpoint, transfer and rollback by construction.
//!
//! * A **slot** per (client, number mod window): the newest frame executed there and its results.
//!   A frame executes iff its number is above its slot's: exactly once, whatever was ordered.
//! * A **record** per client: the bounds of its outbox and the bytes of its cached results. Over the
//!   budget the client's lowest-numbered slots keep their number and lose their results.
//! * An **outbox entry** per undelivered event. When the outbox is full its oldest event is dropped
//!   and the next one becomes a marker (an empty payload, which no service emits): "every event up
//!   to and including this index was lost". Indices stay without gaps at the newer end, and a client
//!   that meets the marker knows to read afresh.

use crate::MerkleMap;
use crate::state::SYSTEM;
use bytes::Bytes;
use std::ops::RangeInclusive;
use troth_core::Lookup;
use troth_types::{ClientId, Event, Limits, Malformed, Reader, Reply, ReplyBody, Seq, View, Wire, put_bytes};

/// The most results or result bytes a slot may claim; its writer keeps far below.
const DECODE_BOUND: usize = 1 << 26;

/// The most that [`Limits::client_bytes`] may be: a slot holds more than the results, one mark for each that
/// was too large to show among them.
pub const MAX_CLIENT_BYTES: usize = crate::MAX_VALUE_BYTES - (2 << 20);

/// Where the results of a slot begin that has any: number, place, events, the mark that they are there, how many.
const RESULTS_AT: usize = 8 + 8 + 8 + 1 + 4;

const SLOT: u8 = b's';
const RECORD: u8 = b'c';
const EVENT: u8 = b'e';

fn record_key(client: ClientId) -> [u8; 10] {
    let mut key = [SYSTEM; 10];
    key[1] = RECORD;
    key[2..].copy_from_slice(&client.0.to_be_bytes());
    key
}

fn numbered_key(kind: u8, client: ClientId, number: u64) -> [u8; 18] {
    let mut key = [SYSTEM; 18];
    key[1] = kind;
    key[2..10].copy_from_slice(&client.0.to_be_bytes());
    key[10..].copy_from_slice(&number.to_be_bytes());
    key
}

/// What the table holds of one client beside its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// The oldest event in the outbox; `last_event + 1` where it is empty.
    pub(crate) first_event: u64,
    /// The newest event ever put into the outbox.
    pub(crate) last_event: u64,
    /// Bytes of cached results over all slots.
    pub(crate) result_bytes: u64,
}

impl Default for Record {
    fn default() -> Self {
        Self { first_event: 1, last_event: 0, result_bytes: 0 }
    }
}

impl Wire for Record {
    fn encode(&self, out: &mut Vec<u8>) {
        self.first_event.encode(out);
        self.last_event.encode(out);
        self.result_bytes.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            first_event: Wire::decode(reader)?,
            last_event: Wire::decode(reader)?,
            result_bytes: Wire::decode(reader)?,
        })
    }
}

/// The newest frame executed in one slot of a client's window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    number: u64,
    seq: Seq,
    events_up_to: u64,
    /// Nothing once the byte budget pushed them out.
    results: Option<Vec<Bytes>>,
}

impl Slot {
    fn result_bytes(&self) -> u64 {
        self.results.as_ref().map_or(0, |results| cost(results))
    }
}

fn cost(results: &[Bytes]) -> u64 {
    results.iter().map(|result| result.len() as u64 + 4).sum()
}

fn encode_slot(out: &mut Vec<u8>, number: u64, seq: Seq, events_up_to: u64, results: Option<&[Bytes]>) {
    number.encode(out);
    seq.encode(out);
    events_up_to.encode(out);
    results.is_some().encode(out);
    if let Some(results) = results {
        u32::try_from(results.len()).expect("a frame's operations are bounded").encode(out);
        for result in results {
            put_bytes(out, result);
        }
    }
}

impl Wire for Slot {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_slot(out, self.number, self.seq, self.events_up_to, self.results.as_deref());
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let number = Wire::decode(reader)?;
        let seq = Wire::decode(reader)?;
        let events_up_to = Wire::decode(reader)?;
        let results = if bool::decode(reader)? {
            let count = u32::decode(reader)? as usize;
            let mut results = Vec::with_capacity(count.min(reader.remaining() / 4));
            for _ in 0..count {
                results.push(reader.bytes("a cached result", DECODE_BOUND)?);
            }
            Some(results)
        } else {
            None
        };
        Ok(Self { number, seq, events_up_to, results })
    }
}

/// Reads a system entry. The content of the map was written here or is certified by a quorum; one
/// that does not decode is a bug, never input.
fn read<T: Wire>(map: &MerkleMap, key: &[u8]) -> Option<T> {
    map.get(key).map(|bytes| T::from_wire(&bytes).expect("system entries are written by this module"))
}

/// A client's record.
pub(crate) fn record(map: &MerkleMap, client: ClientId) -> Record {
    read(map, &record_key(client)).unwrap_or_default()
}

/// Writes a client's record.
pub(crate) fn set_record(map: &mut MerkleMap, client: ClientId, record: &Record) {
    map.insert(&record_key(client), record.to_wire());
}

/// A slot as it is written, if it was ever used.
fn written(map: &MerkleMap, limits: &Limits, client: ClientId, number: u64) -> Option<Bytes> {
    map.get(&numbered_key(SLOT, client, number % limits.client_window))
}

fn decoded(slot: &Bytes) -> Slot {
    Slot::from_wire(slot).expect("system entries are written by this module")
}

/// The number of the newest frame of a slot, which stands at its beginning.
fn number_of(slot: &Bytes) -> u64 {
    u64::decode(&mut Reader::new(slot)).expect("system entries are written by this module")
}

/// What the results of a slot cost. They and their lengths are all that is behind the rest, and a slot is overwritten with
/// each frame: a frame's many results are not read for that.
fn written_cost(slot: &Bytes) -> u64 {
    slot.len().saturating_sub(RESULTS_AT) as u64
}

/// What the table knows of a frame number.
pub(crate) fn lookup(map: &MerkleMap, limits: &Limits, client: ClientId, number: u64) -> Lookup {
    let Some(stored) = written(map, limits, client, number).filter(|slot| number_of(slot) >= number) else {
        return if number > 0 { Lookup::New } else { Lookup::TooOld };
    };
    match decoded(&stored) {
        Slot { number: found, seq, events_up_to, results: Some(results) } if found == number => {
            Lookup::Executed(Box::new(Reply {
                client,
                number,
                seq,
                view: View(0),
                events_up_to,
                body: ReplyBody::Full(results),
            }))
        }
        Slot { number: found, seq, .. } if found == number => Lookup::ResultGone(seq),
        _ => Lookup::TooOld,
    }
}

/// Whether a frame may execute: [`Lookup::New`], without building a reply.
pub(crate) fn is_new(map: &MerkleMap, limits: &Limits, client: ClientId, number: u64) -> bool {
    number > written(map, limits, client, number).as_ref().map_or(0, number_of)
}

/// Bytes of the results that are kept of a frame, without reading them.
pub(crate) fn kept_bytes(map: &MerkleMap, limits: &Limits, client: ClientId, number: u64) -> usize {
    let slot = written(map, limits, client, number).filter(|slot| number_of(slot) == number);
    slot.map_or(0, |slot| slot.len().saturating_sub(RESULTS_AT))
}

/// Stores an executed frame's reply in its slot and in the budget of `record`, which the caller
/// writes back.
pub(crate) fn store(map: &mut MerkleMap, limits: &Limits, record: &mut Record, reply: &Reply) {
    let ReplyBody::Full(results) = &reply.body else { unreachable!("execution replies in full") };
    let Reply { client, number, seq, events_up_to, .. } = *reply;
    let before = written(map, limits, client, number).as_ref().map_or(0, written_cost);
    let cost = cost(results);
    record.result_bytes = record.result_bytes - before + cost;
    let mut encoded = Vec::with_capacity(RESULTS_AT + usize::try_from(cost).expect("bounded by the budget"));
    encode_slot(&mut encoded, number, seq, events_up_to, Some(results));
    map.insert(&numbered_key(SLOT, client, number % limits.client_window), Bytes::from(encoded));
    if record.result_bytes > limits.client_bytes as u64 {
        shrink(map, limits, record, client, number);
    }
}

/// Drops results of the client's lowest-numbered slots until the budget holds. The newest reply
/// stays: the executor bounds a frame's results by the same budget.
fn shrink(map: &mut MerkleMap, limits: &Limits, record: &mut Record, client: ClientId, newest: u64) {
    let mut full: Vec<(u64, Slot)> = (0..limits.client_window)
        .filter_map(|index| Some((index, decoded(&written(map, limits, client, index)?))))
        .filter(|(_, slot)| slot.results.is_some() && slot.number != newest)
        .collect();
    full.sort_by_key(|(_, slot)| slot.number);
    for (index, mut slot) in full {
        if record.result_bytes <= limits.client_bytes as u64 {
            break;
        }
        record.result_bytes -= slot.result_bytes();
        slot.results = None;
        map.insert(&numbered_key(SLOT, client, index), slot.to_wire());
    }
}

/// What a result list costs in a client's budget, with one more result.
pub(crate) fn fits(limits: &Limits, so_far: u64, result: &Bytes) -> Option<u64> {
    let total = so_far + result.len() as u64 + 4;
    (result.len() <= limits.result_bytes && total <= limits.client_bytes as u64).then_some(total)
}

/// Drops the events that a client has delivered; whether there were any. A claim beyond the newest
/// event counts as that one.
pub(crate) fn acknowledge(map: &mut MerkleMap, record: &mut Record, client: ClientId, seen: u64) -> bool {
    let before = record.first_event;
    let through = seen.min(record.last_event);
    while record.first_event <= through {
        map.remove(&numbered_key(EVENT, client, record.first_event));
        record.first_event += 1;
    }
    record.first_event > before
}

/// Puts an event into a client's outbox, dropping the oldest where it is full.
pub(crate) fn push_event(
    map: &mut MerkleMap,
    limits: &Limits,
    client: ClientId,
    seq: Seq,
    payload: Bytes,
) -> Event {
    let mut record = record(map, client);
    record.last_event += 1;
    let index = record.last_event;
    map.insert(&numbered_key(EVENT, client, index), encode_event(seq, &payload));
    if index - record.first_event >= limits.outbox_events as u64 {
        map.remove(&numbered_key(EVENT, client, record.first_event));
        record.first_event += 1;
        map.insert(&numbered_key(EVENT, client, record.first_event), encode_event(seq, &[]));
    }
    set_record(map, client, &record);
    Event { client, index, seq, payload }
}

fn encode_event(seq: Seq, payload: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(12 + payload.len());
    seq.encode(&mut out);
    put_bytes(&mut out, payload);
    Bytes::from(out)
}

/// The indices of the events that are in a client's outbox.
pub(crate) fn outbox(map: &MerkleMap, client: ClientId) -> RangeInclusive<u64> {
    let record = record(map, client);
    record.first_event..=record.last_event
}

/// An event that is in the outbox.
pub(crate) fn event(map: &MerkleMap, client: ClientId, index: u64) -> Event {
    let bytes = map.get(&numbered_key(EVENT, client, index)).expect("the record bounds the outbox");
    let mut reader = Reader::new(&bytes);
    let seq = Wire::decode(&mut reader).expect("system entries are written by this module");
    let payload = reader.bytes("an event", DECODE_BOUND).expect("as above");
    Event { client, index, seq, payload }
}
