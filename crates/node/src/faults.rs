//! What goes wrong on purpose in the builds that `cargo xtask chaos` breaks: the disk and the clock do what a
//! file of orders says, and one bug may be planted. Only in builds with the feature `faults`.

use crate::beside::Done;
use crate::disk_journal::DiskJournal;
use crate::engine::{Blocked, Engine, Stopped};
use bytes::Bytes;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use troth_core::{Agreement, Command, Execution, Replica};
use troth_disk::{Disk, DiskError, FaultyDisk, OrdersFile, RealDisk};

/// A bug that chaos must catch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// The log says that something is durable when it is written.
    SkipLogSync,
    /// The trusted store does.
    SkipTrustedSync,
    /// The component is asked before what it certifies is durable.
    CertifyBeforeBody,
}

/// What goes wrong with a replica.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    pub(crate) orders: Option<SharedOrders>,
    plant: Option<Plant>,
}

impl Faults {
    /// Orders from this file, which is there, and this bug.
    ///
    /// # Errors
    /// As the machine reports them.
    pub fn new(orders: Option<&Path>, plant: Option<Plant>) -> io::Result<Self> {
        let orders = orders.map(OrdersFile::open).transpose()?;
        Ok(Self { orders: orders.map(|orders| SharedOrders(Arc::new(Mutex::new(orders)))), plant })
    }

    /// The disk that obeys; without orders it still loses at the process's end what was not synced.
    pub(crate) fn disk(&self, disk: RealDisk) -> Result<FaultyDisk<RealDisk>, DiskError> {
        let disk = FaultyDisk::new(disk)?;
        if let Some(orders) = self.orders.as_ref().and_then(SharedOrders::again) {
            disk.obey(orders);
        }
        Ok(disk)
    }

    pub(crate) fn plant_in<D: Disk>(&self, mut journal: DiskJournal<D>) -> DiskJournal<D> {
        journal.skips_sync = self.plant == Some(Plant::SkipLogSync);
        journal
    }

    pub(crate) fn early(&self) -> Option<Early> {
        (self.plant == Some(Plant::CertifyBeforeBody)).then(Early::default)
    }
}

/// A file of orders that more than one reads.
#[derive(Clone, Debug)]
pub(crate) struct SharedOrders(Arc<Mutex<OrdersFile>>);

impl SharedOrders {
    fn again(&self) -> Option<OrdersFile> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).again().ok()
    }

    /// What a clock shows that is off, in microseconds.
    pub(crate) fn time_of_day(&self, true_time: u64) -> u64 {
        let ahead = self.0.lock().unwrap_or_else(PoisonError::into_inner).read().clock_ahead_ms;
        true_time.saturating_add_signed(ahead.saturating_mul(1000))
    }
}

/// The bug of certifying before the body is durable: what stands before a question to the component is
/// written down after the answer.
#[derive(Debug, Default)]
pub(crate) struct Early {
    appends: Vec<Bytes>,
    owes_sync: bool,
    /// The answer that waits for the sync that should have come first.
    answer: Option<Done>,
}

impl<A: Agreement, X: Execution> Engine<A, X> {
    /// Takes away what the bug does later; gives back what is done now.
    pub(crate) fn put_off(&mut self, command: Command<Replica<A, X>>) -> Option<Command<Replica<A, X>>> {
        let Some(early) = &mut self.early else { return Some(command) };
        match command {
            Command::Append(record) => early.appends.push(record),
            Command::Sync => early.owes_sync = true,
            other => return Some(other),
        }
        None
    }

    /// Writes down what should have been durable before the question.
    pub(crate) fn answered_early(&mut self, answer: Done) -> Result<(), Stopped> {
        assert_eq!(self.blocked.take(), Some(Blocked::Attest), "the component was asked");
        let early = self.early.as_mut().expect("looked at by the caller");
        early.answer = Some(answer);
        let (appends, owes_sync) = (std::mem::take(&mut early.appends), early.owes_sync);
        early.owes_sync = false;
        appends.into_iter().for_each(|record| self.journal().append(record));
        if owes_sync {
            self.blocked = Some(Blocked::Sync);
            self.journal().sync();
            return Ok(());
        }
        self.synced_late();
        self.commands()
    }

    /// Goes on with the answer that waited.
    pub(crate) fn synced_late(&mut self) {
        if let Some(answer) = self.early.as_mut().and_then(|early| early.answer.take()) {
            self.component_answered(answer);
        }
    }
}
