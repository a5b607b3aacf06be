//! Connections of a single-threaded program, read in one place. What all of them hold when the loop
//! wakes is one turn's work, as in the runtime.

use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::mem;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::Notify;
use troth_link::{Counters, LinkError, LinkReader, LinkWriter};

/// How soon to look again for room in a socket that was full.
pub(crate) const RETRY: Duration = Duration::from_millis(1);

/// Messages that have arrived, by connection.
#[derive(Default)]
pub(crate) struct Hub {
    arrived: RefCell<Vec<(usize, Bytes)>>,
    wake: Notify,
    bytes: Cell<u64>,
    calls: Cell<u64>,
    lost: RefCell<Option<String>>,
    /// Whose connections may end: server and servers, connections being numbered through.
    expendable: Cell<Option<(usize, usize)>>,
}

impl Hub {
    /// Reads a connection until it ends.
    pub(crate) fn read(self: &Rc<Self>, connection: usize, reader: LinkReader) {
        let hub = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let why = match hub.take(connection, reader).await {
                Ok(()) => "the other end closed it".to_owned(),
                Err(why) => why.to_string(),
            };
            if hub.expendable.get().is_some_and(|(server, servers)| connection % servers == server) {
                return;
            }
            *hub.lost.borrow_mut() = Some(format!("lost connection {connection}: {why}"));
            hub.wake.notify_one();
        });
    }

    async fn take(&self, connection: usize, mut reader: LinkReader) -> Result<(), LinkError> {
        let mut seen = Counters::default();
        while let Some(message) = reader.next().await? {
            {
                let mut arrived = self.arrived.borrow_mut();
                arrived.push((connection, message));
                while let Some(message) = reader.buffered()? {
                    arrived.push((connection, message));
                }
            }
            let now = reader.counters();
            self.bytes.set(self.bytes.get() + now.bytes - seen.bytes);
            self.calls.set(self.calls.get() + now.calls - seen.calls);
            seen = now;
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Lets the connections of one of so many servers end.
    pub(crate) fn spare(&self, server: usize, servers: usize) {
        self.expendable.set(Some((server, servers)));
    }

    /// Waits until something has arrived or a connection is lost.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Everything that has arrived, in order; `buffer` becomes the next one to fill.
    pub(crate) fn swap(&self, buffer: &mut Vec<(usize, Bytes)>) {
        mem::swap(&mut *self.arrived.borrow_mut(), buffer);
    }

    /// Bytes and calls of all reads so far.
    pub(crate) fn counters(&self) -> (u64, u64) {
        (self.bytes.get(), self.calls.get())
    }

    /// Why a connection ended, if one has.
    pub(crate) fn lost(&self) -> Option<String> {
        self.lost.borrow().clone()
    }
}

/// Writes what is queued as far as the socket takes it; tells whether something is left.
pub(crate) fn flush(writer: &mut LinkWriter) -> Result<bool, LinkError> {
    // A flush may be dropped and begun again: it goes on where it stopped.
    match pin!(writer.flush()).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done.map(|()| false),
        Poll::Pending => Ok(true),
    }
}
