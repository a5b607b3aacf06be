//! What the service counts, and keeps once.

use crate::keys;
use crate::store::{Changes, Look};
use troth_types::{Malformed, Reader, Wire};

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
}

impl Counters {
    pub(crate) fn of(store: &mut impl Look) -> Option<Self> {
        store.entry(keys::COUNTERS)
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
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            zxid: u64::decode(reader)?.cast_signed(),
            attachments: Wire::decode(reader)?,
            quotas: Wire::decode(reader)?,
            recursive: Wire::decode(reader)?,
            stood_still: Wire::decode(reader)?,
            ticked: Wire::decode(reader)?,
        })
    }
}
