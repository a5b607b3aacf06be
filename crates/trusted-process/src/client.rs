//! The replica's side: a trusted component behind a socket.

mod logs;

use crate::batch::frames;
use crate::socket::{Inbox, Received, send_all, wait};
use crate::wire::{
    MAX_BLOB, Malformed, Reply, TurnedAway, VERSION, decode_answers, decode_blobs, decode_done, decode_reply,
    encode_beside, encode_blobs_from, encode_calls, encode_hello,
};
use rustix::event::PollFlags;
use rustix::net::RecvFlags;
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use troth_trusted::{Identity, Refusal, Resumed};
use troth_trusted_host::{Answer, Call, TrustedComponent};

/// How long the client waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// For the answer to one frame. A disk that stalls for longer halts the replica.
    pub answer: Duration,
    /// For the answer to a move with a blob: many syncs of a healthy disk, and short enough for a loop that
    /// does nothing else meanwhile. Then the move is asked for without its blob.
    pub beside: Duration,
    /// For a lost process to be reachable again, so that its supervisor can start it.
    pub reconnect: Duration,
}

impl Default for Patience {
    /// Five seconds for an answer and for the process to come back, 50 ms for a move with a blob.
    fn default() -> Self {
        let (long, short) = (Duration::from_secs(5), Duration::from_millis(50));
        Self { answer: long, beside: short, reconnect: long }
    }
}

/// The trusted process cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// There is no way to it.
    #[error(
        "cannot reach the trusted process at {path}: {error}; mend: start it, and run this replica as the user it serves"
    )]
    Unreachable {
        /// Its socket.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It does not serve this process.
    #[error("the trusted process turned this replica away: {0}")]
    TurnedAway(#[from] TurnedAway),
    /// It speaks in another way.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// Why the component answers nothing but [`Refusal::Halted`] any more.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// The connection was lost, and lost again when the calls were repeated.
    #[error("the connection to the trusted process was lost twice: {0}; mend: see its log")]
    Connection(io::Error),
    /// The connection was lost, and there was no new one.
    #[error("the connection to the trusted process was lost: {0}")]
    NotReconnected(ConnectError),
    /// Another component answers now: its counters are not those that this replica has counted on.
    #[error("the trusted process came back as replica {} in epoch {}; mend: stop the replica, and have the component serve there that is its own", .0.replica, .0.epoch.0)]
    OtherIdentity(Identity),
    /// An answer does not fit its call.
    #[error(
        "the trusted process answered something else than it was asked; mend: run the same release of troth on both sides"
    )]
    Unfitting,
    /// The connection was lost during a call to the logs that was done and cannot be answered any more.
    #[error(
        "the answers to a call to the trusted logs are lost, as it asked before it changed; mend: start the replica again"
    )]
    LogAnswers,
    /// It said so itself.
    #[error("the trusted process halted, as its store failed; mend: see to its disk, then start both again")]
    Halted,
}

/// A trusted component in a process of its own.
///
/// Answers come one frame at a time. A frame whose answer is lost is sent once more on a new connection,
/// which [`batch`](crate::batch) makes safe whatever part of it was done. When that fails too, the
/// component halts for good: this call and all later ones are answered [`Refusal::Halted`], and
/// [`RemoteComponent::lost`] says why.
pub struct RemoteComponent {
    path: PathBuf,
    patience: Patience,
    identity: Identity,
    connection: Option<Connection>,
    out: Vec<u8>,
    lost: Option<Lost>,
}

struct Connection {
    socket: UnixStream,
    inbox: Inbox,
}

impl RemoteComponent {
    /// Connects to the process that listens at `path`. The caller compares
    /// [`identity`](TrustedComponent::identity) with its configuration.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect(path: &Path, patience: Patience) -> Result<Self, ConnectError> {
        let (connection, identity) = Connection::open(path, patience.answer)?;
        Ok(Self {
            path: path.to_path_buf(),
            patience,
            identity,
            connection: Some(connection),
            out: Vec::new(),
            lost: None,
        })
    }

    /// Why the component halted, if it did.
    pub fn lost(&self) -> Option<&Lost> {
        self.lost.as_ref()
    }

    /// The answers to one frame, asked again once if the connection is lost.
    fn ask(&mut self, calls: &[Call]) -> Result<Vec<Answer>, Lost> {
        self.out.clear();
        encode_calls(calls.iter(), &mut self.out);
        let answers = self.exchange_or_repeat(decode_answers)?;
        if answers.contains(&Answer::Refused(Refusal::Halted)) {
            self.lost = Some(Lost::Halted);
        }
        let fitting = answers.len() == calls.len()
            && calls.iter().zip(&answers).all(|(call, answer)| fits(&self.identity, call, answer));
        if fitting { Ok(answers) } else { Err(Lost::Unfitting) }
    }

    /// The answer to a move with a blob, if it comes soon. Nobody waits for a process that is lost or stalls:
    /// it may have made the move or not, and the caller asks for it without the blob, which is the last call
    /// repeated or the first.
    fn ask_beside(&mut self, call: &Call, blob: &[u8]) -> Result<Option<Answer>, Lost> {
        self.out.clear();
        encode_beside(call, blob, &mut self.out);
        let Ok(answer) = self.exchange(self.patience.beside, decode_done) else { return Ok(None) };
        match &answer {
            Some(Answer::Refused(Refusal::Halted)) => Err(Lost::Halted),
            Some(given) if !fits(&self.identity, call, given) => Err(Lost::Unfitting),
            _ => Ok(answer),
        }
    }

    /// The answer to a move, if it comes soon, as [`RemoteComponent::ask_beside`] waits for one.
    fn ask_soon(&mut self, call: &Call) -> Result<Option<Answer>, Lost> {
        self.out.clear();
        encode_calls(core::iter::once(call), &mut self.out);
        let Ok(mut answers) = self.exchange(self.patience.beside, decode_answers) else { return Ok(None) };
        match (answers.pop(), answers.is_empty()) {
            (Some(Answer::Refused(Refusal::Halted)), true) => Err(Lost::Halted),
            (Some(given), true) if fits(&self.identity, call, &given) => Ok(Some(given)),
            _ => Err(Lost::Unfitting),
        }
    }

    /// All blobs that are kept, frame by frame. Asking changes none of them, nor does a start in between.
    fn ask_blobs(&mut self) -> Result<Vec<Vec<u8>>, Lost> {
        let mut blobs = Vec::new();
        loop {
            let from = u16::try_from(blobs.len()).map_err(|_| Lost::Unfitting)?;
            self.out.clear();
            encode_blobs_from(from, &mut self.out);
            let part = self.exchange_or_repeat(decode_blobs)?;
            blobs.extend(part.blobs);
            if !part.more {
                return Ok(blobs);
            }
        }
    }

    /// What is answered to the frame in `out`, asked once more if the connection is lost.
    fn exchange_or_repeat<T>(&mut self, decode: fn(&[u8]) -> Result<T, Malformed>) -> Result<T, Lost> {
        match self.exchange(self.patience.answer, decode) {
            Ok(answer) => Ok(answer),
            Err(_) => {
                self.reconnect()?;
                self.exchange(self.patience.answer, decode).map_err(Lost::Connection)
            }
        }
    }

    /// What a question gives; that the component has halted where it is lost, or is found to be.
    fn unless_lost(&mut self, ask: impl FnOnce(&mut Self) -> Result<Option<Answer>, Lost>) -> Option<Answer> {
        if self.lost.is_none() {
            match ask(self) {
                Ok(answer) => return answer,
                Err(why) => self.lose(why),
            }
        }
        Some(Answer::Refused(Refusal::Halted))
    }

    /// Ends the use of a component that is lost.
    fn lose(&mut self, why: Lost) {
        self.lost = Some(why);
        self.connection = None;
    }

    fn exchange<T>(
        &mut self,
        patience: Duration,
        decode: fn(&[u8]) -> Result<T, Malformed>,
    ) -> io::Result<T> {
        let mut connection = self.connection.take().ok_or(io::ErrorKind::NotConnected)?;
        let deadline = Instant::now() + patience;
        send_all(connection.socket.as_fd(), &self.out, deadline)?;
        if patience < self.patience.answer {
            // The socket itself waits longer. Answers are short, so their rest is there with their beginning.
            wait(connection.socket.as_fd(), PollFlags::IN, deadline)?;
        }
        let answer = decode(connection.receive(deadline)?).map_err(invalid)?;
        self.connection = Some(connection);
        Ok(answer)
    }

    /// Tries again until the process is there: it may be about to be started, or about to notice that the
    /// old connection has ended.
    fn reconnect(&mut self) -> Result<(), Lost> {
        self.connection = None;
        let until = Instant::now() + self.patience.reconnect;
        let (connection, identity) = loop {
            match Connection::open(&self.path, self.patience.answer) {
                Ok(open) => break open,
                Err(
                    why @ (ConnectError::Unreachable { .. } | ConnectError::TurnedAway(TurnedAway::Busy)),
                ) => {
                    if Instant::now() >= until {
                        return Err(Lost::NotReconnected(why));
                    }
                    std::thread::sleep(BETWEEN_TRIES);
                }
                Err(why) => return Err(Lost::NotReconnected(why)),
            }
        };
        if identity != self.identity {
            return Err(Lost::OtherIdentity(identity));
        }
        self.connection = Some(connection);
        Ok(())
    }
}

/// Short beside a process's start, long beside a try.
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

impl TrustedComponent for RemoteComponent {
    fn identity(&self) -> Identity {
        self.identity
    }

    fn call(&mut self, calls: &[Call]) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(calls.len());
        for frame in frames(calls) {
            if self.lost.is_some() {
                break;
            }
            match self.ask(frame) {
                Ok(given) => answers.extend(given),
                Err(why) => self.lost = Some(why),
            }
        }
        if self.lost.is_some() {
            self.connection = None;
        }
        answers.resize(calls.len(), Answer::Refused(Refusal::Halted));
        answers
    }

    fn call_soon(&mut self, call: &Call) -> Option<Answer> {
        self.unless_lost(|component| component.ask_soon(call))
    }

    fn attest_beside(&mut self, call: &Call, blob: &[u8]) -> Option<Answer> {
        let moves = matches!(call, Call::Attest { .. } | Call::AttestMulti { .. });
        // What the other side would not take either is not worth a round trip.
        if blob.len() > MAX_BLOB || !moves {
            return None;
        }
        self.unless_lost(|component| component.ask_beside(call, blob))
    }

    /// None from a component that is lost, or lost meanwhile: it certifies nothing more either, and
    /// [`RemoteComponent::lost`] says so.
    fn blobs(&mut self) -> Vec<Vec<u8>> {
        if self.lost.is_some() {
            return Vec::new();
        }
        self.ask_blobs().unwrap_or_else(|why| {
            self.lose(why);
            Vec::new()
        })
    }
}

impl fmt::Debug for RemoteComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RemoteComponent");
        shown.field("path", &self.path).field("identity", &self.identity).field("lost", &self.lost).finish()
    }
}

impl Connection {
    /// Connects and says hello.
    fn open(path: &Path, patience: Duration) -> Result<(Self, Identity), ConnectError> {
        let unreachable = |error| ConnectError::Unreachable { path: path.to_path_buf(), error };
        let socket = UnixStream::connect(path).map_err(unreachable)?;
        // So that a read waits by itself: one system call for an answer that comes in time.
        socket.set_read_timeout(Some(patience)).map_err(unreachable)?;
        let mut connection = Self { socket, inbox: Inbox::new() };
        let deadline = Instant::now() + patience;
        let mut hello = Vec::new();
        encode_hello(VERSION, &mut hello);
        // A process that turns this one away may have done so, and closed, before it reads the greeting;
        // what it said can be read all the same.
        let greeted = send_all(connection.socket.as_fd(), &hello, deadline);
        let reply =
            connection.receive(deadline).map_err(|error| unreachable(greeted.err().unwrap_or(error)))?;
        match decode_reply(reply)? {
            Reply::Welcome(identity) => Ok((connection, identity)),
            Reply::TurnedAway(why) => Err(why.into()),
        }
    }

    /// The next frame. One read where the frame came as a whole.
    fn receive(&mut self, deadline: Instant) -> io::Result<&[u8]> {
        loop {
            // Asked twice, as the borrow of a frame that is handed out cannot end in the loop.
            if self.inbox.has_frame().map_err(invalid)? {
                break;
            }
            if Instant::now() >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match self.inbox.receive(self.socket.as_fd(), RecvFlags::empty())? {
                Received::Bytes => {}
                Received::Nothing => return Err(io::ErrorKind::TimedOut.into()),
                Received::End => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        self.inbox.frame().map_err(invalid)?.ok_or(io::ErrorKind::UnexpectedEof.into())
    }
}

fn invalid(why: Malformed) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Whether an answer can be one to this call. A component that is what it should be gives no other; this
/// keeps a mistake on the socket from becoming a certificate under the wrong message.
fn fits(identity: &Identity, call: &Call, answer: &Answer) -> bool {
    match (call, answer) {
        (_, Answer::Refused(_)) | (Call::Read { .. }, Answer::Value(_)) => true,
        (Call::Attest { counter, previous, new, .. }, Answer::Attested(made)) => {
            made.epoch == identity.epoch
                && (made.counter, made.previous, made.new) == (*counter, *previous, *new)
        }
        (Call::AttestMulti { moves, .. }, Answer::AttestedMulti(made)) => {
            made.epoch == identity.epoch && made.moves == **moves
        }
        (Call::Resume { counter }, Answer::Resumed(last)) => match &**last {
            Resumed::Unmoved | Resumed::Superseded => true,
            Resumed::One { certificate, .. } => certificate.counter == *counter,
            Resumed::Multi { certificate, .. } => certificate.moves.get(*counter).is_some(),
        },
        _ => false,
    }
}
