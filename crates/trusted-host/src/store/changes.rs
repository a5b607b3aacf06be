//! The bytes of what a call changed, as they stand beside its record.
//!
//! One operation after the other: 1 and log, slot and value for an append; 2 and log, slot, previous digest and
//! value for an advance; 3 and log and slot for a truncation. A log has two bytes, a slot sixteen, a digest 32.
//! What changes nothing is left out, and so are nonces, as the answers are no part of the state.

use super::format::Decoder;
use troth_trusted::CounterValue;
use troth_trusted::a2m::{LogId, Operation, Slot};

const APPEND: u8 = 1;
const ADVANCE: u8 = 2;
const TRUNCATE: u8 = 3;

/// The changes among these operations as bytes; none of them where nothing changes.
pub(super) fn encode(operations: &[Operation]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |tag: u8, log: LogId, slot: Slot, digests: &[&[u8; 32]]| {
        out.push(tag);
        out.extend(log.0.to_be_bytes());
        out.extend(slot.0.to_be_bytes());
        digests.iter().for_each(|digest| out.extend(*digest));
    };
    for operation in operations {
        match operation {
            Operation::Append { log, slot, value, .. } => put(APPEND, *log, *slot, &[value]),
            Operation::Advance { log, slot, previous, value, .. } => {
                put(ADVANCE, *log, *slot, &[previous, value])
            }
            Operation::Truncate { log, slot } => put(TRUNCATE, *log, *slot, &[]),
            Operation::Lookup { .. } | Operation::LookupFor { .. } | Operation::End { .. } => {}
        }
    }
    out
}

/// The changes that [`encode`] wrote, or `None` for other bytes.
pub(super) fn decode(bytes: &[u8]) -> Option<Vec<Operation>> {
    let mut rest = Decoder(bytes);
    let mut operations = Vec::new();
    while !rest.0.is_empty() {
        let [tag] = rest.take()?;
        let log = LogId(rest.take().map(u16::from_be_bytes)?);
        let slot = CounterValue(rest.take().map(u128::from_be_bytes)?);
        operations.push(match tag {
            APPEND => Operation::Append { log, slot, value: rest.take()?, nonce: None },
            ADVANCE => {
                Operation::Advance { log, slot, previous: rest.take()?, value: rest.take()?, nonce: None }
            }
            TRUNCATE => Operation::Truncate { log, slot },
            _ => return None,
        });
    }
    Some(operations)
}
