//! All logs of a component: several operations at once, and the stored form.

use super::log::{Entry, Log, Marks, Storage};
use super::operation::{LogRefusal, Operation, Unfit};
use super::{LOGS, LogId, rule};
use crate::state::Reader;
use crate::value::{CounterValue, Epoch, Identity};
use sha2::{Digest as _, Sha256};

/// Everything that a component must remember of its logs. It holds no secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Logs<E: Storage> {
    identity: Identity,
    logs: [Log<E>; LOGS],
}

const TAG: &[u8; 14] = b"troth-a2m-logs";
const VERSION: u8 = 1;
/// Length in bytes of the part that is the same for every state, without the checksum.
const HEAD: usize = TAG.len() + 1 + 16 + 2 + 8;
const LOG_HEAD: usize = 16 + 4;
const ENTRY: usize = 16 + 32 + 32;
const CHECKSUM: usize = 32;

/// Why bytes are no state of logs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unreadable {
    /// They are not as they were written.
    Damaged,
    /// They are of another version of the format.
    Version(u8),
    /// The log holds more entries than its storage.
    NoRoom(LogId),
}

impl<E: Storage> Logs<E> {
    /// Empty logs, each with its storage; one without room can still be asked, and refuses every entry.
    pub fn new(identity: Identity, storage: [E; LOGS]) -> Self {
        Self { identity, logs: storage.map(Log::new) }
    }

    /// Whose logs they are.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// One of them.
    pub fn get(&self, log: LogId) -> Option<&Log<E>> {
        self.logs.get(usize::from(log.0))
    }

    /// Whether all of the operations can be done, one after the other.
    ///
    /// # Errors
    /// [`LogRefusal::Operation`] for the first that cannot.
    pub fn check(&self, operations: &[Operation]) -> Result<(), LogRefusal> {
        rule!("A2M-C2");
        let mut marks: [Marks; LOGS] = core::array::from_fn(|log| self.logs[log].marks());
        for (index, operation) in operations.iter().enumerate() {
            let log = marks.get_mut(usize::from(operation.log().0)).ok_or(Unfit::NoSuchLog);
            let fits = log.and_then(|marks| operation.mark(marks));
            fits.map_err(|why| LogRefusal::Operation { index, why })?;
        }
        Ok(())
    }

    /// Does one of the operations that [`Logs::check`] has accepted, and returns the log as it is then.
    pub(super) fn apply(&mut self, operation: &Operation) -> &Log<E> {
        let log = &mut self.logs[usize::from(operation.log().0)];
        operation.apply(log).expect("the same was done to its marks before");
        log
    }

    /// Does operations again, of one call or many, that were stored after this state, in their order.
    ///
    /// # Errors
    /// [`Unfit`] for the first that does not follow what was before it.
    pub fn replay(mut self, operations: &[Operation]) -> Result<Self, Unfit> {
        for operation in operations {
            let log = self.logs.get_mut(usize::from(operation.log().0)).ok_or(Unfit::NoSuchLog)?;
            operation.apply(log)?;
        }
        Ok(self)
    }

    /// Length in bytes of what [`Logs::write`] writes now.
    pub fn written_len(&self) -> usize {
        let entries: usize = self.logs.iter().map(|log| log.entries().len()).sum();
        HEAD + LOGS * LOG_HEAD + entries * ENTRY + CHECKSUM
    }

    /// Writes the logs piece by piece: `tag ‖ version ‖ group ‖ replica ‖ epoch`, for each log
    /// `low ‖ number of entries` and the entries `slot ‖ value ‖ digest`, at last the SHA-256 of it all.
    /// Numbers are big-endian. The checksum finds torn and damaged records; it does not stop a host that
    /// rewrites or restores them (guide.md §7.4).
    pub fn write(&self, mut out: impl FnMut(&[u8])) {
        rule!("A2M-S2");
        let mut hasher = Sha256::new();
        let mut put = |part: &[u8]| {
            hasher.update(part);
            out(part);
        };
        put(TAG);
        put(&[VERSION]);
        put(&self.identity.group);
        put(&self.identity.replica.to_be_bytes());
        put(&self.identity.epoch.0.to_be_bytes());
        for log in &self.logs {
            put(&log.low().0.to_be_bytes());
            put(&(log.entries().len() as u32).to_be_bytes());
            for entry in log.entries() {
                put(&entry.slot.0.to_be_bytes());
                put(&entry.value);
                put(&entry.digest);
            }
        }
        out(&hasher.finalize());
    }

    /// The logs that [`Logs::write`] wrote.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn read(bytes: &[u8], storage: [E; LOGS]) -> Result<Self, Unreadable> {
        let (body, checksum) = bytes.split_last_chunk::<CHECKSUM>().ok_or(Unreadable::Damaged)?;
        if Sha256::digest(body)[..] != checksum[..] {
            return Err(Unreadable::Damaged);
        }
        let mut rest = Reader(body);
        if rest.take() != Some(*TAG) {
            return Err(Unreadable::Damaged);
        }
        match rest.take() {
            Some([VERSION]) => Self::read_body(&mut rest, storage),
            Some([other]) => Err(Unreadable::Version(other)),
            None => Err(Unreadable::Damaged),
        }
    }

    fn read_body(rest: &mut Reader<'_>, storage: [E; LOGS]) -> Result<Self, Unreadable> {
        let identity = read_identity(rest).ok_or(Unreadable::Damaged)?;
        let mut logs = Self::new(identity, storage);
        for (log, id) in logs.logs.iter_mut().zip(0..) {
            let (low, count) = read_log_head(rest).ok_or(Unreadable::Damaged)?;
            for _ in 0..count {
                let entry = read_entry(rest).ok_or(Unreadable::Damaged)?;
                log.restore(entry).map_err(|why| match why {
                    Unfit::Full => Unreadable::NoRoom(LogId(id)),
                    _ => Unreadable::Damaged,
                })?;
            }
            if low.0 > 0 {
                log.truncate(low).map_err(|_| Unreadable::Damaged)?;
            }
            if log.entries().len() != count as usize {
                return Err(Unreadable::Damaged);
            }
        }
        if rest.0.is_empty() { Ok(logs) } else { Err(Unreadable::Damaged) }
    }
}

fn read_identity(rest: &mut Reader<'_>) -> Option<Identity> {
    Some(Identity {
        group: rest.take()?,
        replica: u16::from_be_bytes(rest.take()?),
        epoch: Epoch(u64::from_be_bytes(rest.take()?)),
    })
}

fn read_log_head(rest: &mut Reader<'_>) -> Option<(CounterValue, u32)> {
    Some((CounterValue(u128::from_be_bytes(rest.take()?)), u32::from_be_bytes(rest.take()?)))
}

fn read_entry(rest: &mut Reader<'_>) -> Option<Entry> {
    let slot = CounterValue(u128::from_be_bytes(rest.take()?));
    Some(Entry { slot, value: rest.take()?, digest: rest.take()? })
}
