//! What a durable replica writes down, as its loop asks for it.

use bytes::Bytes;
use troth_types::Seq;

/// Keeps a replica's log and snapshots. Nothing here blocks for long: what was asked for is reported to the desk.
pub(crate) trait Journal<S> {
    /// Appends a record to the log.
    fn append(&mut self, record: Bytes);
    /// Whether a fresh segment would be welcome.
    fn wants_segment(&self) -> bool;
    /// Starts a fresh segment and the writing of its snapshot, as
    /// [`Command::NewSegment`](troth_core::Command::NewSegment) says.
    fn new_segment(&mut self, snapshot: S, needed: bool);
    /// The number of the snapshot that the log stands on, or is about to: that of the newest segment.
    fn base(&self) -> Seq;
    /// Writes down everything so far before it returns, where that is all that keeping it takes, and little.
    /// Whether it did; else nothing has happened, and it is asked for by [`Journal::sync`].
    fn write_now(&mut self) -> bool {
        false
    }
    /// Asks that everything so far be kept; [`Done::Synced`](crate::beside::Done::Synced) says that it is.
    fn sync(&mut self);
    /// The snapshot that was being written is durable.
    fn snapshot_done(&mut self, seq: Seq);
}
