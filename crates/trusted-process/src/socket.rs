//! Reading and writing frames on a Unix socket, without waiting for ever.

use crate::wire::{Malformed, PREFIX, frame_length};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Bytes received and not yet taken as frames.
pub struct Inbox {
    bytes: Vec<u8>,
    taken: usize,
}

impl Inbox {
    pub fn new() -> Self {
        Self { bytes: Vec::with_capacity(CHUNK), taken: 0 }
    }

    /// Whether the beginning of a frame waits for its end.
    pub fn has_part(&self) -> bool {
        self.taken < self.bytes.len()
    }

    /// Whether a whole frame is there.
    pub fn has_frame(&self) -> Result<bool, Malformed> {
        let waiting = &self.bytes[self.taken..];
        Ok(frame_length(waiting)?.is_some_and(|length| length <= waiting.len()))
    }

    /// The next whole frame, without its length; `None` until more is received.
    pub fn frame(&mut self) -> Result<Option<&[u8]>, Malformed> {
        let waiting = &self.bytes[self.taken..];
        let whole = frame_length(waiting)?.and_then(|length| waiting.get(PREFIX..length));
        self.taken += whole.map_or(0, |frame| PREFIX + frame.len());
        Ok(whole)
    }

    /// Receives what is there, at most [`CHUNK`] bytes, so that the buffer never holds more than one
    /// frame and a chunk.
    pub fn receive(&mut self, socket: BorrowedFd<'_>, flags: RecvFlags) -> io::Result<Received> {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        let held = self.bytes.len();
        self.bytes.resize(held + CHUNK, 0);
        let received = retry(|| recv(socket, &mut self.bytes[held..], flags).map(|(_, length)| length));
        self.bytes.truncate(held + received.as_ref().map_or(0, |length| *length));
        match received {
            Ok(0) => Ok(Received::End),
            Ok(_) => Ok(Received::Bytes),
            Err(Errno::AGAIN) => Ok(Received::Nothing),
            Err(error) => Err(error.into()),
        }
    }
}

/// The most bytes taken from the kernel at once: most batches in one call.
const CHUNK: usize = 16 * 1024;

/// What a reading found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// Bytes.
    Bytes,
    /// Nothing for now.
    Nothing,
    /// The other side has closed.
    End,
}

/// Writes all the bytes, waiting for room until the deadline.
pub fn send_all(socket: BorrowedFd<'_>, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        match retry(|| send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(Errno::AGAIN) => wait(socket, PollFlags::OUT, deadline)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Waits until a socket is ready or its other side has gone.
pub fn wait(socket: BorrowedFd<'_>, ready: PollFlags, deadline: Instant) -> io::Result<()> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if poll_for(&mut [PollFd::from_borrowed_fd(socket, ready)], Some(left))? > 0 {
            return Ok(());
        }
    }
}

/// Polls; `None` waits for ever. An interruption counts as nothing ready.
pub fn poll_for(sockets: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<usize> {
    let timeout = timeout.map(|left| Timespec {
        tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: left.subsec_nanos().into(),
    });
    match poll(sockets, timeout.as_ref()) {
        Ok(ready) => Ok(ready),
        Err(Errno::INTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Whether the other side of a connection has closed it.
pub fn has_ended(socket: impl AsFd) -> bool {
    let mut one = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::RDHUP)];
    let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
    poll_for(&mut one, Some(Duration::ZERO)).is_ok_and(|_| one[0].revents().intersects(gone))
}

fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}
