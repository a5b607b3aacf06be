//! What the service counts, and keeps once.

use crate::keys;
use crate::message::Tally;
use crate::store::{Changes, Look};
use troth_types::{Malformed, Reader, Time, Wire};

/// The one entry that every transaction changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Counters {
    /// The last transaction.
    pub(crate) zxid: i64,
    /// Attachments that there ever were.
    pub(crate) attachments: u64,
    /// Quotas: where there are none, nobody looks for them.
    pub(crate) quotas: u64,
    /// Recursive watches: the same.
    pub(crate) recursive: u64,
    /// Microseconds by which sessions end later than their entries say: for so long the service stood still.
    pub(crate) stood_still: u64,
    /// When time last went on for sessions; of no meaning while there is none.
    pub(crate) ticked: u64,
    /// Nodes.
    pub(crate) nodes: u64,
    /// Those of them that go with a session.
    pub(crate) ephemerals: u64,
    /// Bytes of the paths and data of all nodes.
    pub(crate) bytes: u64,
    /// Paths that sessions watch, of each session those that it does.
    pub(crate) watches: u64,
}

impl Counters {
    pub(crate) fn of(store: &mut impl Look) -> Option<Self> {
        store.entry(keys::COUNTERS)
    }

    /// What a gateway is told of it.
    pub(crate) fn tally(&self, now: u64) -> Tally {
        let Self { nodes, ephemerals, bytes, watches, .. } = *self;
        Tally { time: Time(now), nodes, ephemerals, bytes, watches }
    }

    pub(crate) fn keep(&self, changes: &mut Changes<'_, '_>) {
        changes.put_entry(keys::COUNTERS, self);
    }
}

impl Wire for Counters {
    fn encode(&self, out: &mut Vec<u8>) {
        self.zxid.cast_unsigned().encode(out);
        for number in [self.attachments, self.quotas, self.recursive, self.stood_still, self.ticked] {
            number.encode(out);
        }
        for number in [self.nodes, self.ephemerals, self.bytes, self.watches] {
            number.encode(out);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            zxid: u64::decode(reader)?.cast_signed(),
            attachments: Wire::decode(reader)?,
            quotas: Wire::decode(reader)?,
            recursive: Wire::decode(reader)?,
            stood_still: Wire::decode(reader)?,
            ticked: Wire::decode(reader)?,
            nodes: Wire::decode(reader)?,
            ephemerals: Wire::decode(reader)?,
            bytes: Wire::decode(reader)?,
            watches: Wire::decode(reader)?,
        })
    }
}
