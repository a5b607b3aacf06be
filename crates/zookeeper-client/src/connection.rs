//! A session over one connection.

use crate::Tls;
use crate::wire::{self, Frame, Frames, Packet};
use bytes::{Buf, Bytes, BytesMut};
use core::net::SocketAddr;
use core::time::Duration;
use rustls::pki_types::ServerName;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, OnceLock};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_rustls::TlsConnector;
use troth_zookeeper::MAX_PATH;

/// Milliseconds of silence that a session asks for.
const SESSION: i32 = 30_000;
/// How long it may take to get a session.
const HANDSHAKE: Duration = Duration::from_secs(15);
/// The longest answer to the first packet.
const FIRST: usize = 4096;
/// How long the request whose turn it is may go without an answer, whatever else the server says.
const ANSWER: Duration = Duration::from_secs(60);

/// The connection is no more, or never was.
#[derive(Clone, Debug, Error)]
#[error("{0}")]
pub struct Lost(String);

impl Lost {
    fn new(why: impl core::fmt::Display) -> Self {
        Self(why.to_string())
    }
}

/// Why a request has no record for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The server says so, in ZooKeeper's numbers.
    Error(i32),
    /// The answer has so many bytes, which is more than what is taken.
    TooLong(usize),
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The last transaction that the server knew; 0 where it does not say.
    pub zxid: i64,
    /// The record, or why there is none.
    pub outcome: Result<Bytes, Refusal>,
}

struct Ask {
    code: i32,
    record: Bytes,
    answer: oneshot::Sender<Reply>,
}

/// An answer to come.
#[derive(Debug)]
pub struct Pending {
    answer: oneshot::Receiver<Reply>,
    lost: Arc<OnceLock<Lost>>,
}

impl Pending {
    /// Waits for it.
    ///
    /// # Errors
    /// Where the connection is lost before: whether the request was carried out is unknown.
    pub async fn wait(self) -> Result<Reply, Lost> {
        self.answer.await.map_err(|_| self.lost.get().cloned().unwrap_or_else(|| Lost::new("it was closed")))
    }
}

/// Something happened that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What (`Watcher.Event.EventType`).
    pub kind: i32,
    /// Where; nothing where that is longer than [`MAX_PATH`], which no node of Troth's is.
    pub path: Option<String>,
}

/// A session. Its requests are carried out in the order in which they are sent. It is given up when this is dropped, and
/// ends by itself some time later, unless it was closed.
#[derive(Debug)]
pub struct Connection {
    asks: mpsc::UnboundedSender<Ask>,
    lost: Arc<OnceLock<Lost>>,
    events: mpsc::Receiver<Event>,
}

/// What is read from and written to.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Connection {
    /// Connects to `host:port` and opens a session. An answer has at most `most` bytes; at most `events` of them wait to be
    /// taken, and with one more the connection is lost. So it is where the request whose turn it is has no answer for a
    /// minute.
    ///
    /// # Errors
    /// Where there is no connection, or no session is given.
    pub async fn open(address: &str, tls: Option<&Tls>, most: usize, events: usize) -> Result<Self, Lost> {
        Self::open_over(TcpStream::connect(address), address, tls, most, events).await
    }

    /// The same without TLS, from this socket.
    ///
    /// # Errors
    /// As for [`Connection::open`].
    pub async fn open_from(
        socket: TcpSocket,
        address: SocketAddr,
        most: usize,
        events: usize,
    ) -> Result<Self, Lost> {
        Self::open_over(socket.connect(address), "", None, most, events).await
    }

    async fn open_over(
        connecting: impl Future<Output = io::Result<TcpStream>>,
        address: &str,
        tls: Option<&Tls>,
        most: usize,
        events: usize,
    ) -> Result<Self, Lost> {
        let opening = async {
            let stream = connecting.await?;
            stream.set_nodelay(true)?;
            let mut stream: Box<dyn Stream> = match tls {
                None => Box::new(stream),
                Some(tls) => {
                    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
                    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
                    let name = ServerName::try_from(host).map_err(io::Error::other)?;
                    Box::new(TlsConnector::from(Arc::clone(&tls.0)).connect(name, stream).await?)
                }
            };
            stream.write_all(&wire::connect(0, SESSION, 0, &[0; 16])).await?;
            stream.flush().await?;
            let mut frames = Frames::new(FIRST);
            let packet = loop {
                match frames.take_next().map_err(io::Error::other)? {
                    Some(Frame::Packet(packet)) => break packet,
                    Some(Frame::TooLong(..)) => return Err(io::Error::other("it is no ZooKeeper server")),
                    None if stream.read_buf(frames.buffer()).await? == 0 => {
                        return Err(io::Error::other(
                            "it hangs up (perhaps it expects TLS, or has no quorum)",
                        ));
                    }
                    None => {}
                }
            };
            Ok((stream, wire::read_connected(&packet).map_err(io::Error::other)?))
        };
        let opened = timeout(HANDSHAKE, opening).await;
        let (stream, connected) = opened
            .map_err(|_| Lost::new(format!("no session within {} s", HANDSHAKE.as_secs())))?
            .map_err(Lost::new)?;
        let Ok(millis @ 1..) = u64::try_from(connected.timeout) else {
            return Err(Lost::new("it gives no session"));
        };
        let (asks, asked) = mpsc::unbounded_channel();
        let (told, events) = mpsc::channel(events.max(1));
        let lost = Arc::new(OnceLock::new());
        let task = Task {
            stream,
            asked,
            told,
            frames: Frames::new(most),
            out: BytesMut::new(),
            pending: Requests::default(),
            xid: 0,
            silence: Duration::from_millis(millis),
        };
        let reason = Arc::clone(&lost);
        tokio::spawn(async move {
            let (why, pending) = task.run().await;
            // Said before those that wait find out.
            let _ = reason.set(why);
            drop(pending);
        });
        Ok(Self { asks, lost, events })
    }

    /// Sends a request; what is asked for is one of [`troth_zookeeper::opcode`].
    #[must_use]
    pub fn send(&self, code: i32, record: Bytes) -> Pending {
        let (answer, waits) = oneshot::channel();
        // Where nobody takes it any more, the answer never comes, and says why.
        let _ = self.asks.send(Ask { code, record, answer });
        Pending { answer: waits, lost: Arc::clone(&self.lost) }
    }

    /// Sends one and waits for the answer.
    ///
    /// # Errors
    /// As for [`Pending::wait`].
    pub async fn ask(&self, code: i32, record: Bytes) -> Result<Reply, Lost> {
        self.send(code, record).wait().await
    }

    /// An event that has come. All that happened before a request was answered are there when
    /// that is known.
    pub fn event(&mut self) -> Option<Event> {
        self.events.try_recv().ok()
    }
}

/// Requests without an answer, in their order.
struct Requests {
    waiting: VecDeque<(i32, oneshot::Sender<Reply>)>,
    /// Since when it is the first one's turn.
    since: Instant,
}

impl Default for Requests {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), since: Instant::now() }
    }
}

impl Requests {
    fn push(&mut self, xid: i32, answer: oneshot::Sender<Reply>) {
        if self.waiting.is_empty() {
            self.since = Instant::now();
        }
        self.waiting.push_back((xid, answer));
    }

    /// The first one, if it has this number.
    fn take(&mut self, xid: i32) -> Option<oneshot::Sender<Reply>> {
        self.since = Instant::now();
        self.waiting.pop_front().filter(|(own, _)| *own == xid).map(|(_, answer)| answer)
    }

    /// Whether the server lets the first one wait for too long.
    fn is_late(&self) -> bool {
        !self.waiting.is_empty() && self.since.elapsed() > ANSWER
    }
}

struct Task {
    stream: Box<dyn Stream>,
    asked: mpsc::UnboundedReceiver<Ask>,
    told: mpsc::Sender<Event>,
    frames: Frames,
    out: BytesMut,
    pending: Requests,
    xid: i32,
    silence: Duration,
}

impl Task {
    /// Until the connection ends; why, and whose requests have no answer.
    async fn run(mut self) -> (Lost, impl Sized) {
        let why = self.serve().await;
        (why, (self.pending, self.asked))
    }

    async fn serve(&mut self) -> Lost {
        let mut looks = interval(self.silence / 6);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut heard, mut said) = (Instant::now(), Instant::now());
        let (mut reader, mut writer) = tokio::io::split(&mut self.stream);
        let mut unflushed = false;
        loop {
            tokio::select! {
                ask = self.asked.recv() => {
                    let Some(Ask { code, record, answer }) = ask else { return Lost::new("it was closed") };
                    self.xid = self.xid.wrapping_add(1).max(1);
                    self.out.extend_from_slice(&wire::request(self.xid, code, &record));
                    self.pending.push(self.xid, answer);
                    said = Instant::now();
                }
                pushed = push(&mut writer, &self.out), if unflushed || !self.out.is_empty() => match pushed {
                    Ok(count) => {
                        unflushed = count > 0;
                        self.out.advance(count);
                    }
                    Err(why) => return Lost::new(why),
                },
                read = reader.read_buf(self.frames.buffer()) => {
                    match read {
                        Ok(0) => return Lost::new("the server closed the connection"),
                        Ok(_) => heard = Instant::now(),
                        Err(why) => return Lost::new(why),
                    }
                    if let Err(why) = packets(&mut self.frames, &mut self.pending, &self.told) {
                        return why;
                    }
                }
                _ = looks.tick() => {
                    if self.pending.is_late() {
                        return Lost::new(format!("the server gives no answer for {} s", ANSWER.as_secs()));
                    }
                    if heard.elapsed() > self.silence * 2 / 3 {
                        return Lost::new(format!("the server says nothing for {} s", heard.elapsed().as_secs()));
                    }
                    // Requests are signs of life, but not when they came long ago.
                    if said.elapsed() > self.silence / 4 || heard.elapsed() > self.silence / 4 {
                        said = Instant::now();
                        self.out.extend_from_slice(&wire::ping());
                    }
                }
            }
        }
    }
}

/// Writes some of these bytes; where there are none, lets those go that were written. Given up on, it has done nothing.
async fn push(to: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<usize> {
    if bytes.is_empty() {
        return to.flush().await.map(|()| 0);
    }
    match to.write(bytes).await? {
        0 => Err(io::ErrorKind::WriteZero.into()),
        count => Ok(count),
    }
}

/// Hands on whatever has come whole.
fn packets(frames: &mut Frames, pending: &mut Requests, told: &mpsc::Sender<Event>) -> Result<(), Lost> {
    let strange = |_| Lost::new("the server says what is no packet of ZooKeeper's");
    while let Some(frame) = frames.take_next().map_err(strange)? {
        let (packet, too_long) = match frame {
            Frame::Packet(packet) => (packet, None),
            Frame::TooLong(head, length) => (head, Some(length)),
        };
        let (of, reply) = match wire::read_packet(&packet).map_err(strange)? {
            Packet::Pong => continue,
            Packet::Event { kind, path } => {
                let path = (path.len() <= MAX_PATH).then_some(path);
                told.try_send(Event { kind, path })
                    .map_err(|_| Lost::new("more changes than are waited for"))?;
                continue;
            }
            Packet::Reply { xid, zxid, error, body } => {
                let outcome = match (too_long, error) {
                    (Some(length), _) => Err(Refusal::TooLong(length)),
                    (None, 0) => Ok(body),
                    (None, error) => Err(Refusal::Error(error)),
                };
                (xid, Reply { zxid, outcome })
            }
        };
        let Some(answer) = pending.take(of) else {
            return Err(Lost::new("the server answers what was not asked"));
        };
        // Whoever asked may not want to know any more.
        let _ = answer.send(reply);
    }
    Ok(())
}
