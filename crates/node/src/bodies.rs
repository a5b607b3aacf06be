//! What a run appends to the log, as a trusted component keeps it beside its own record: bodies and counter
//! are then durable by one sync instead of two (ADR 2), and the log follows later.
//!
//! The component keeps these blobs until it is asked without one, which says that the log is durable up to
//! there. A start puts what they hold behind the log, where the log lacks it.

use bytes::Bytes;
use troth_core::LogRecord;
use troth_types::{Malformed, Reader, Seq, Wire, put_bytes};

/// The longest blob that is worth a try: what a component's block has room for.
const MOST_BYTES: usize = 1_344;
/// Runs whose bodies only the component keeps. What is written down again at a start, and held in memory
/// until then, is bounded by it.
const MOST_RUNS: u32 = 64;

/// The records of the phase that is being appended, and how far the log is behind.
#[derive(Debug)]
pub(crate) struct Bodies {
    /// Whether there is a component that keeps any.
    kept: bool,
    /// The base of the log that they follow, then the records so far, each behind its length. Empty before
    /// the first.
    blob: Vec<u8>,
    /// The run that comes next is made durable by the log's own sync.
    needs_log: bool,
    /// Runs since the component was last asked without a blob.
    runs: u32,
}

impl Bodies {
    /// Before anything was appended. The first run is made durable in the log: what a start found in the
    /// component is then durable there too.
    pub(crate) fn new(kept: bool) -> Self {
        Self { kept, blob: Vec::new(), needs_log: true, runs: 0 }
    }

    /// A record is appended to the log, which stands on the snapshot of this number or is about to.
    pub(crate) fn append(&mut self, base: Seq, record: &Bytes) {
        if !self.kept || self.needs_log {
            return;
        }
        if self.blob.is_empty() {
            base.encode(&mut self.blob);
        }
        if self.runs >= MOST_RUNS || self.blob.len() + record.len() + size_of::<u32>() > MOST_BYTES {
            self.need_log();
        } else {
            put_bytes(&mut self.blob, record);
        }
    }

    /// Something is asked of the log that only its sync does.
    pub(crate) fn need_log(&mut self) {
        self.needs_log = true;
        self.blob.clear();
    }

    /// What was appended in this phase, where a component may keep it.
    pub(crate) fn blob(&self) -> Option<&[u8]> {
        (!self.needs_log && !self.blob.is_empty()).then_some(&self.blob[..])
    }

    /// The component keeps this phase.
    pub(crate) fn are_beside(&mut self) {
        self.blob.clear();
        self.runs += 1;
    }

    /// The log is synced with this phase.
    pub(crate) fn are_in_the_log(&mut self) {
        self.blob.clear();
    }

    /// The component is asked without a blob: it lets go what it kept, all of which the log has.
    pub(crate) fn let_go(&mut self) {
        (self.needs_log, self.runs) = (false, 0);
    }
}

/// The records that these blobs hold, oldest first, and the log lacks. A blob from before the snapshot that
/// the log stands on is of no use any more. One whose bodies the log holds, it holds whole: they come last.
///
/// # Errors
/// [`Malformed`] for what this module did not make.
pub(crate) fn behind(base: Seq, log: &[Bytes], blobs: Vec<Vec<u8>>) -> Result<Vec<Bytes>, Malformed> {
    let mut missing = Vec::new();
    for blob in blobs {
        let blob = Bytes::from(blob);
        let mut reader = Reader::new(&blob);
        if Seq::decode(&mut reader)? < base {
            continue;
        }
        let mut records = records(&mut reader)?;
        let bodies =
            records.last().filter(|last| matches!(LogRecord::from_wire(last), Ok(LogRecord::Own { .. })));
        let bodies = bodies.ok_or(Malformed::Invalid("what is beside a counter ends in no body"))?;
        if !log.contains(bodies) {
            missing.append(&mut records);
        }
    }
    Ok(missing)
}

fn records(reader: &mut Reader<'_>) -> Result<Vec<Bytes>, Malformed> {
    let mut records = Vec::new();
    while reader.remaining() > 0 {
        records.push(reader.bytes("a record beside a counter", MOST_BYTES)?);
    }
    Ok(records)
}
