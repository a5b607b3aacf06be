//! The trusted store on a disk that loses what was not synced and runs out of space when it is told to, and
//! the bug that may be planted in it. Only in builds with the feature `faults`.

use crate::cli::{Misfortune, PlantName};
use crate::failure::Failure;
use crate::trusted::{OpenedStores, Stores};
use std::cell::RefCell;
use std::io;
use std::path::Path;
use troth_disk::{Disk, DiskError, DiskFile, FaultyDisk, FaultyFile, OrdersFile, RealDisk};
use troth_node::{Faults, Plant};
use troth_trusted_host::store::directory::{BootId, Directory, StoreFile};
use troth_trusted_host::store::{Both, DiskStore, Policy, RealDirectory, SLOTS, StoreError, open_both_in};

/// What goes wrong, opened before the sandbox closes.
pub(crate) struct Prepared {
    orders: Option<OrdersFile>,
    policy: Policy,
}

/// What a replica is told, where it is told anything.
pub(crate) fn of_replica(misfortune: &Misfortune) -> Result<Faults, Failure> {
    let plant = misfortune.plant.map(|plant| match plant {
        PlantName::SkipLogSync => Plant::SkipLogSync,
        PlantName::SkipTrustedSync => Plant::SkipTrustedSync,
        PlantName::CertifyBeforeBody => Plant::CertifyBeforeBody,
    });
    Faults::new(misfortune.orders.as_deref(), plant).map_err(|why| unreadable(misfortune, &why))
}

/// What a trusted process is told.
pub(crate) fn prepare(misfortune: &Misfortune) -> Result<Prepared, Failure> {
    let orders = misfortune.orders.as_deref().map(OrdersFile::open).transpose();
    // To store without a sync is what another policy does, and here a bug.
    let skips = matches!(misfortune.plant, Some(PlantName::SkipTrustedSync));
    Ok(Prepared {
        orders: orders.map_err(|why| unreadable(misfortune, &why))?,
        policy: if skips { Policy::Interval } else { Policy::Always },
    })
}

fn unreadable(misfortune: &Misfortune, why: &io::Error) -> Failure {
    let path = misfortune.orders.as_deref().unwrap_or(Path::new("")).display().to_string();
    Failure::usage(format!("cannot read the orders in {path}: {why}; mend: make the file first"))
}

/// Opens a component's store on such a disk.
pub(crate) fn open(stores: &Stores<'_>, prepared: Prepared) -> Result<OpenedStores, StoreError> {
    let Stores { identity, counters, logs } = *stores;
    let Prepared { mut orders, policy } = prepared;
    let Some((logs, room)) = logs else {
        return Ok((DiskStore::open_in(faulty(counters, orders)?, identity, policy, SLOTS)?, None));
    };
    let unreadable = |source| StoreError::Io { doing: "read again", file: "the orders".to_owned(), source };
    let again = orders.as_mut().map(|orders| orders.again()).transpose().map_err(unreadable)?;
    let (counters, logs) = (faulty(counters, orders)?, faulty(logs, again)?);
    let (counters, logs) = open_both_in(counters, logs, Both { identity, policy, room, slots: SLOTS })?;
    Ok((counters, Some(logs)))
}

/// A directory on such a disk.
fn faulty(directory: &Path, orders: Option<OrdersFile>) -> Result<FaultyDirectory, StoreError> {
    let here = |source| StoreError::NoDirectory { path: directory.to_path_buf(), source };
    let real = RealDirectory::new(directory).map_err(here)?;
    let disk = match RealDisk::open(directory).and_then(FaultyDisk::new) {
        Err(DiskError::Locked(_)) => return Err(StoreError::Locked),
        opened => opened.map_err(|why| here(error(why)))?,
    };
    if let Some(orders) = orders {
        disk.obey(orders);
    }
    Ok(FaultyDirectory { disk, real })
}

/// The directory of a store.
pub(crate) struct FaultyDirectory {
    /// Whose lock is the store's.
    disk: FaultyDisk<RealDisk>,
    /// Knows the boot.
    real: RealDirectory,
}

/// An open file of it.
pub(crate) struct FaultyStoreFile(RefCell<FaultyFile<RealDisk>>);

fn error(why: DiskError) -> io::Error {
    match why {
        DiskError::Io { source, .. } => source,
        DiskError::Full { .. } => io::Error::from(io::ErrorKind::StorageFull),
        other => io::Error::other(other),
    }
}

impl Directory for FaultyDirectory {
    type File = FaultyStoreFile;

    fn lock(&mut self) -> io::Result<bool> {
        Ok(true)
    }

    fn boot(&self) -> io::Result<BootId> {
        self.real.boot()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.disk.list().map_err(error)
    }

    fn open(&self, name: &str) -> io::Result<FaultyStoreFile> {
        Ok(FaultyStoreFile(RefCell::new(self.disk.open(name).map_err(error)?)))
    }

    fn create(&self, name: &str) -> io::Result<FaultyStoreFile> {
        Ok(FaultyStoreFile(RefCell::new(self.disk.create(name).map_err(error)?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to).map_err(error)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name).map_err(error)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.sync_directory().map_err(error)
    }
}

impl StoreFile for FaultyStoreFile {
    fn size(&self) -> io::Result<u64> {
        self.0.borrow().len().map_err(error)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let read = self.0.borrow().read_at(offset, buffer).map_err(error)?;
        if read == buffer.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.borrow_mut().write_at(offset, bytes).map_err(error)
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        self.0.borrow_mut().reserve(0, size).map_err(error)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.borrow_mut().sync_data().map_err(error)
    }
}
