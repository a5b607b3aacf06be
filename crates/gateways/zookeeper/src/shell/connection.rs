//! The task of one connection: packets out of its bytes, and bytes into it.

use super::counts::Counts;
use super::hub::Inbound;
use crate::machine::{ConnectionId, Frame, Frames};
use crate::settings::REQUEST;
use crate::{Settings, TooLong};
use bytes::{Bytes, BytesMut};
use core::cell::RefCell;
use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Poll, ready};
use core::time::Duration;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// Room for what is read at once.
const READ: usize = 64 << 10;
/// So many bytes more of a packet that has not come whole the gateway is told of.
const PART: usize = 16 << 10;
/// What goes together into one write.
const WRITE: usize = 64 << 10;
/// Room for what is read and not wanted.
const THROWN_AWAY: usize = 4 << 10;
/// How long what was written may take to go out when a connection is closed.
const LINGER: Duration = Duration::from_secs(2);

/// What a packet takes of the bytes that there is room for.
fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes + REQUEST).unwrap_or(u32::MAX)
}

/// What a connection may have outstanding: its reader takes, and waits where there is none; the machine gives back.
#[derive(Debug)]
pub(super) struct Room {
    requests: Semaphore,
    bytes: Semaphore,
}

impl Room {
    fn new(settings: &Settings) -> Self {
        Self {
            requests: Semaphore::new(settings.outstanding_requests.min(Semaphore::MAX_PERMITS)),
            bytes: Semaphore::new(settings.most_outstanding_bytes().min(Semaphore::MAX_PERMITS)),
        }
    }

    /// Whether there is room for a packet now; then it is taken.
    fn try_take(&self, bytes: usize) -> bool {
        let Ok(request) = self.requests.try_acquire() else { return false };
        let Ok(room) = self.bytes.try_acquire_many(permits(bytes)) else { return false };
        request.forget();
        room.forget();
        true
    }

    async fn take(&self, bytes: usize) {
        // Nobody closes them.
        if let Ok(request) = self.requests.acquire().await
            && let Ok(room) = self.bytes.acquire_many(permits(bytes)).await
        {
            request.forget();
            room.forget();
        }
    }

    fn give_back(&self, bytes: usize) {
        self.requests.add_permits(1);
        self.bytes.add_permits(bytes + REQUEST);
    }
}

/// The machine's end of a connection.
#[derive(Debug)]
pub(super) struct Handle {
    /// Bounded by [`Settings::unwritten_bytes`].
    outgoing: mpsc::UnboundedSender<Bytes>,
    room: Arc<Room>,
    over: oneshot::Sender<bool>,
}

impl Handle {
    pub(super) fn write(&self, bytes: Bytes) {
        // To a connection that has ended just now nothing can be said.
        let _ = self.outgoing.send(bytes);
    }

    pub(super) fn done(&self, bytes: usize) {
        self.room.give_back(bytes);
    }

    pub(super) fn close(self, flush: bool) {
        let _ = self.over.send(flush);
    }
}

/// The other end.
pub(super) struct Task {
    id: ConnectionId,
    inbound: mpsc::Sender<Inbound>,
    outgoing: mpsc::UnboundedReceiver<Bytes>,
    room: Arc<Room>,
    over: oneshot::Receiver<bool>,
    frames: Frames,
    counts: Arc<Counts>,
}

/// Both ends of a connection.
pub(super) fn prepare(
    id: ConnectionId,
    settings: &Settings,
    inbound: mpsc::Sender<Inbound>,
    counts: Arc<Counts>,
) -> (Handle, Task) {
    let (outgoing, received) = mpsc::unbounded_channel();
    let (over, is_over) = oneshot::channel();
    let room = Arc::new(Room::new(settings));
    let frames = Frames::new(settings.packet_bytes);
    let task =
        Task { id, inbound, outgoing: received, room: Arc::clone(&room), over: is_over, frames, counts };
    (Handle { outgoing, room, over }, task)
}

impl Task {
    /// Until either side ends it.
    pub(super) async fn run(self, mut reader: impl AsyncRead + Unpin, writer: impl AsyncWrite + Unpin) {
        let Self { id, inbound, outgoing, room, over, frames, counts } = self;
        let writes = async {
            if write_all(id, &inbound, outgoing, writer).await.is_err() {
                // The client reads no more; what it sent before is read yet.
                tokio::time::sleep(LINGER).await;
            }
        };
        tokio::pin!(writes);
        let flush = tokio::select! {
            _ = read_all(id, (&inbound, &counts), &room, frames, &mut reader) => false,
            () = &mut writes => false,
            flush = over => flush.unwrap_or(false),
        };
        if flush {
            // Nothing of what comes is kept, not even what has come of a packet.
            let rest = async {
                tokio::select! {
                    () = writes => {}
                    () = throw_away(reader) => {}
                }
            };
            let _ = tokio::time::timeout(LINGER, rest).await;
        }
        // The gateway is going down where nobody takes it.
        let _ = inbound.send(Inbound::Closed(id)).await;
    }
}

/// Until the client closes: what it has sent and nobody read would have it lose what it is sent.
async fn throw_away(mut reader: impl AsyncRead + Unpin) {
    let mut some = vec![0; THROWN_AWAY];
    while let Ok(1..) = reader.read(&mut some).await {}
}

/// Until the client closes, or sends what is no packet.
async fn read_all(
    id: ConnectionId,
    (inbound, counts): (&mpsc::Sender<Inbound>, &Counts),
    room: &Room,
    mut frames: Frames,
    mut reader: impl AsyncRead + Unpin,
) -> io::Result<()> {
    // Bytes of a packet that has not come whole, as the gateway was told of them.
    let mut told = 0;
    loop {
        let (mut packets, mut cut) = (Vec::new(), false);
        let next = loop {
            match frames.take_next() {
                Ok(Some(Frame::Packet(packet))) => {
                    (told, cut) = (0, true);
                    if !room.try_take(packet.len()) {
                        // What came before it may be what has to be done with first.
                        hand_over(id, inbound, &mut packets).await?;
                        room.take(packet.len()).await;
                    }
                    packets.push(packet);
                }
                other => break other,
            }
        };
        hand_over(id, inbound, &mut packets).await?;
        match next {
            Ok(Some(Frame::Word(word))) => {
                inbound.send(Inbound::Word(id, word)).await.map_err(io::Error::other)?;
                // Nothing that comes behind it counts.
                return core::future::pending().await;
            }
            Err(TooLong) => {
                counts.too_long.add(1);
                return Ok(());
            }
            Ok(_) => {}
        }
        let buffer = frames.buffer();
        if buffer.len() >= told + PART {
            told = buffer.len();
            inbound.send(Inbound::Part(id, told)).await.map_err(io::Error::other)?;
        }
        if cut {
            // It is a part of what packets were cut from, and would keep all of that.
            *buffer = BytesMut::from(&buffer[..]);
        }
        if read_some(&mut reader, buffer).await? == 0 {
            return Ok(());
        }
    }
}

thread_local! {
    /// What connections of one thread are read into: one that rests has no buffer of its own.
    static SHARED: RefCell<Vec<u8>> = RefCell::new(vec![0; READ]);
}

/// Puts what there is behind what is in the buffer already; how many bytes that is, 0 at the end.
async fn read_some(reader: &mut (impl AsyncRead + Unpin), buffer: &mut BytesMut) -> io::Result<usize> {
    poll_fn(|cx| {
        SHARED.with_borrow_mut(|shared| {
            let mut some = ReadBuf::new(shared);
            ready!(Pin::new(&mut *reader).poll_read(cx, &mut some))?;
            buffer.extend_from_slice(some.filled());
            Poll::Ready(Ok(some.filled().len()))
        })
    })
    .await
}

async fn hand_over(
    id: ConnectionId,
    inbound: &mpsc::Sender<Inbound>,
    packets: &mut Vec<Bytes>,
) -> io::Result<()> {
    if packets.is_empty() {
        return Ok(());
    }
    inbound.send(Inbound::Packets(id, core::mem::take(packets))).await.map_err(io::Error::other)
}

/// Until all is written that there will be.
async fn write_all(
    id: ConnectionId,
    inbound: &mpsc::Sender<Inbound>,
    mut outgoing: mpsc::UnboundedReceiver<Bytes>,
    mut writer: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut together = Vec::new();
    // What has been taken out and did not fit.
    let mut left = None;
    loop {
        let there = left.take().or_else(|| outgoing.try_recv().ok());
        let Some(mut next) = (match there {
            Some(next) => Some(next),
            None => {
                // Many connections rest, each for long.
                together = Vec::new();
                outgoing.recv().await
            }
        }) else {
            break;
        };
        together.clear();
        let mut packets = 1;
        // Many small ones go as one; a large one as it is, for this buffer lasts as long as there is more.
        while together.len() + next.len() <= WRITE
            && let Ok(more) = outgoing.try_recv()
        {
            together.extend_from_slice(&next);
            next = more;
            packets += 1;
        }
        let bytes = if together.is_empty() {
            writer.write_all(&next).await?;
            next.len()
        } else {
            if together.len() + next.len() <= WRITE {
                together.extend_from_slice(&next);
            } else {
                packets -= 1;
                left = Some(next);
            }
            writer.write_all(&together).await?;
            together.len()
        };
        writer.flush().await?;
        // The gateway is going down where nobody takes it; what there is still goes out.
        let _ = inbound.send(Inbound::Written(id, packets, bytes)).await;
    }
    writer.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::task::Context;

    /// How long what was written at a time was.
    struct Lengths(Vec<usize>);

    impl AsyncWrite for Lengths {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.0.push(bytes.len());
            Poll::Ready(Ok(bytes.len()))
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    // ZKG-B5: what is read into is in no count.
    #[tokio::test]
    async fn a_connection_that_rests_has_no_buffer() {
        let (mut far, mut near) = tokio::io::duplex(1 << 20);
        let mut buffer = BytesMut::new();
        {
            let mut reading = core::pin::pin!(read_some(&mut near, &mut buffer));
            let pending = poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx).is_pending()));
            assert!(pending.await, "nothing has come");
        }
        assert_eq!(buffer.capacity(), 0);
        far.write_all(&[7; 100]).await.expect("there is room");
        assert_eq!(read_some(&mut near, &mut buffer).await.expect("it is open"), 100);
        assert!(buffer[..] == [7; 100] && buffer.capacity() < 1_000, "as much as has come");
        far.write_all(&[8; 100_000]).await.expect("there is room");
        assert_eq!(read_some(&mut near, &mut buffer).await.expect("it is open"), READ);
        assert!(buffer.len() == READ + 100 && buffer[99..=100] == [7, 8]);
    }

    // ZKG-B5: what they are put together in lasts as long as there is more, and is in no count.
    #[tokio::test]
    async fn small_packets_go_as_one_and_large_ones_by_themselves() {
        let (inbound, mut told) = mpsc::channel(16);
        let (packets, outgoing) = mpsc::unbounded_channel();
        for length in [10, 100_000, 40_000, 40_000, 20_000, 10] {
            packets.send(Bytes::from(vec![0; length])).expect("it is taken");
        }
        drop(packets);
        let mut lengths = Lengths(Vec::new());
        write_all(ConnectionId(1), &inbound, outgoing, &mut lengths).await.expect("it is written");
        assert_eq!(lengths.0, [10, 100_000, 40_000, 60_010]);
        drop(inbound);
        let mut gone = (0, 0);
        while let Some(Inbound::Written(_, packets, bytes)) = told.recv().await {
            gone = (gone.0 + packets, gone.1 + bytes);
        }
        assert_eq!(gone, (6, 200_020), "each is given back");
    }
}
