//! The log of the unreplicated service: one sync at a time, beside the loop.

use crate::Failure;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::Notify;

/// Bytes of the log, which begins again at its start when it is full: as much as is needed to restart from is not
/// what is measured.
const LOG: usize = 64 << 20;

/// What is durable before it is answered.
pub(crate) struct Log {
    file: Arc<File>,
    at: usize,
    /// Appended, and not on its way to the disk yet.
    appended: Vec<u8>,
    /// Whether a sync is under way.
    syncing: bool,
    orders: Sender<(usize, Vec<u8>)>,
    done: Receiver<io::Result<()>>,
    woken: Arc<Notify>,
}

impl Log {
    pub(crate) fn new(path: &Path) -> Result<Self, Failure> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        let zeros = vec![0; 1 << 20];
        for part in 0..LOG / zeros.len() {
            file.write_all_at(&zeros, (part * zeros.len()) as u64)?;
        }
        file.sync_all()?;
        let (file, woken) = (Arc::new(file), Arc::new(Notify::new()));
        let (orders, ordered) = mpsc::channel::<(usize, Vec<u8>)>();
        let (tell, done) = mpsc::channel();
        let (writes, wakes) = (Arc::clone(&file), Arc::clone(&woken));
        std::thread::spawn(move || {
            // It ends with the service.
            while let Ok((at, bytes)) = ordered.recv() {
                if tell.send(sync(&writes, at, &bytes)).is_err() {
                    return;
                }
                wakes.notify_one();
            }
        });
        Ok(Self { file, at: 0, appended: Vec::new(), syncing: false, orders, done, woken })
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.appended.extend_from_slice(bytes);
    }

    /// What wakes when a sync is done.
    pub(crate) fn woken(&self) -> Arc<Notify> {
        Arc::clone(&self.woken)
    }

    /// Whether a sync is under way.
    pub(crate) fn is_syncing(&self) -> bool {
        self.syncing
    }

    /// Whether something is appended that is not on its way to the disk.
    pub(crate) fn has_more(&self) -> bool {
        !self.appended.is_empty()
    }

    /// Syncs what is appended, and waits for it.
    pub(crate) fn sync_now(&mut self) -> io::Result<()> {
        let (at, bytes) = self.next();
        sync(&self.file, at, &bytes)
    }

    /// Has what is appended synced beside the caller.
    pub(crate) fn begin(&mut self) {
        let order = self.next();
        // The thread ends with this.
        self.syncing = self.orders.send(order).is_ok();
    }

    /// Whether the sync that was under way is done.
    pub(crate) fn is_done(&mut self) -> io::Result<bool> {
        match self.done.try_recv() {
            Ok(done) => {
                self.syncing = false;
                done.map(|()| true)
            }
            Err(_) => Ok(false),
        }
    }

    /// Where what is appended goes.
    fn next(&mut self) -> (usize, Vec<u8>) {
        let bytes = std::mem::take(&mut self.appended);
        if self.at + bytes.len() > LOG {
            self.at = 0;
        }
        let at = self.at;
        self.at += bytes.len();
        (at, bytes)
    }
}

fn sync(file: &File, at: usize, bytes: &[u8]) -> io::Result<()> {
    file.write_all_at(bytes, at as u64)?;
    file.sync_data()
}
