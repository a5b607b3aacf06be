//! The component's side: one client at a time, checked by its user, and nothing but calls.

use crate::socket::{Inbox, Received, has_ended, poll_for, send_all};
use crate::wire::{
    Malformed, Reply, Request, TurnedAway, VERSION, decode_hello, decode_request, encode_answers,
    encode_blobs, encode_done, encode_log_answers, encode_reply,
};
use rustix::event::{PollFd, PollFlags};
use rustix::net::RecvFlags;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};
use troth_trusted::a2m::{A2m, LogRefusal, LogStore, Unfit};
use troth_trusted::{Refusal, Store, TrustedCore};
use troth_trusted_host::{Answer, InProcess, InProcessLogs, LogRoom, TrustedComponent, TrustedLogs};

/// Whom the process serves and how long it waits for it.
#[derive(Debug)]
pub struct Limits {
    /// The user that may ask, by the kernel's word for the connection (`SO_PEERCRED`).
    pub client_uid: u32,
    /// How long a client may take for its greeting, for the rest of a frame it began, and to take an
    /// answer. Between frames it may be silent for ever.
    pub frame_within: Duration,
    /// When this can be read or its other side closes, serving ends: a pipe from the supervisor, so that
    /// no component outlives it unnoticed.
    pub until: Option<OwnedFd>,
}

impl Limits {
    /// Serves this user, with five seconds for a frame and without an end.
    pub fn new(client_uid: u32) -> Self {
        Self { client_uid, frame_within: Duration::from_secs(5), until: None }
    }
}

/// What happened, for the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A client is being served.
    Connected {
        /// Its process.
        pid: i32,
    },
    /// A second client was told that the process is busy.
    Busy {
        /// Its process.
        pid: i32,
    },
    /// Somebody else tried to connect.
    NotPermitted {
        /// The user.
        uid: u32,
        /// The process.
        pid: i32,
    },
    /// The client has gone.
    Disconnected,
    /// The client was dropped: it did not finish its greeting or frame, or did not take its answer in time.
    Late,
    /// The client was dropped: it speaks another version.
    OtherVersion(u16),
    /// The client was dropped: it sent no frame.
    Malformed(Malformed),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected { pid } => write!(f, "serving process {pid}"),
            Self::Busy { pid } => write!(f, "told process {pid} that another one is being served"),
            Self::NotPermitted { uid, pid } => write!(f, "refused process {pid} of user {uid}"),
            Self::Disconnected => f.write_str("the client has gone"),
            Self::Late => f.write_str("dropped the client: it was too slow with a frame"),
            Self::OtherVersion(version) => write!(f, "dropped the client: it speaks version {version}"),
            Self::Malformed(why) => write!(f, "dropped the client: {why}"),
        }
    }
}

/// Serving is over, and the process ends with an exit code that is not zero.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// What the store holds is unknown. Started again, the component goes on from what the disk has.
    #[error("the trusted store failed; mend: see to its disk, then start the trusted process again")]
    StoreFailed,
    /// The socket failed.
    #[error("the trusted process's socket failed: {0}; mend: start the trusted process again")]
    Socket(#[from] io::Error),
}

/// The one client.
struct Session {
    socket: OwnedFd,
    inbox: Inbox,
    greeted: bool,
    /// When what it owes must be there: its greeting, or the rest of a frame.
    owes_by: Option<Instant>,
}

/// Why a session ends.
struct Ended(Event);

/// Serves calls until `limits.until` says stop. What happens is told to `observe`, which must not block.
///
/// # Errors
/// [`ServeError`]. After a store failure the client has been answered [`Refusal::Halted`].
pub fn serve<S: Store + Send>(
    listener: &UnixListener,
    core: TrustedCore<S>,
    limits: &Limits,
    observe: &mut dyn FnMut(Event),
) -> Result<(), ServeError> {
    serve_home(listener, Home { counters: InProcess::new(core), logs: None }, limits, observe)
}

/// Serves calls to counters and logs of one component as [`serve`] does.
///
/// # Errors
/// [`ServeError`], whichever store failed.
///
/// # Panics
/// If the two are not of one identity.
pub fn serve_with_logs<S: Store + Send, L: LogStore<LogRoom> + Send>(
    listener: &UnixListener,
    core: TrustedCore<S>,
    logs: A2m<LogRoom, L>,
    limits: &Limits,
    observe: &mut dyn FnMut(Event),
) -> Result<(), ServeError> {
    let (counters, mut logs) = (InProcess::new(core), InProcessLogs::new(logs));
    assert_eq!(counters.identity(), logs.identity(), "counters and logs are of one component");
    serve_home(listener, Home { counters, logs: Some(&mut logs) }, limits, observe)
}

/// What is served.
struct Home<'a, C> {
    counters: C,
    logs: Option<&'a mut dyn TrustedLogs>,
}

fn serve_home<C: TrustedComponent>(
    listener: &UnixListener,
    mut component: Home<'_, C>,
    limits: &Limits,
    observe: &mut dyn FnMut(Event),
) -> Result<(), ServeError> {
    let mut session: Option<Session> = None;
    let mut out = Vec::new();
    loop {
        let ready = wait_for_work(listener, session.as_ref(), limits)?;
        if ready.stop {
            return Ok(());
        }
        if let Some(open) = session.as_mut() {
            let served = open.serve(ready.client, &mut component, limits, &mut out);
            match served {
                Ok(halted) if halted => return Err(ServeError::StoreFailed),
                Ok(_) => {}
                Err(Ended(why)) => {
                    observe(why);
                    session = None;
                }
            }
        }
        if ready.listener {
            admit(listener, &mut session, limits, observe)?;
        }
    }
}

/// What a wait found.
struct Ready {
    stop: bool,
    listener: bool,
    client: bool,
}

fn wait_for_work(
    listener: &UnixListener,
    session: Option<&Session>,
    limits: &Limits,
) -> Result<Ready, ServeError> {
    // The listener stands in for what is not there; the places are told apart below.
    let fallback = listener.as_fd();
    let until = limits.until.as_ref().map_or(fallback, |fd| fd.as_fd());
    let client = session.map_or(fallback, |open| open.socket.as_fd());
    let mut places = [fallback, until, client].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    let timeout =
        session.and_then(|open| open.owes_by).map(|by| by.saturating_duration_since(Instant::now()));
    poll_for(&mut places, timeout)?;
    let [listener, until, client] = places.map(|place| !place.revents().is_empty());
    Ok(Ready { stop: until && limits.until.is_some(), listener, client: client && session.is_some() })
}

/// Takes one waiting connection: as the client, or to tell it why not.
fn admit(
    listener: &UnixListener,
    session: &mut Option<Session>,
    limits: &Limits,
    observe: &mut dyn FnMut(Event),
) -> Result<(), ServeError> {
    let socket = match listener.accept() {
        Ok((socket, _)) => OwnedFd::from(socket),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted) =>
        {
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let peer = rustix::net::sockopt::socket_peercred(&socket).map_err(io::Error::from)?;
    let (uid, pid) = (peer.uid.as_raw(), peer.pid.as_raw_nonzero().get());
    if uid != limits.client_uid {
        observe(Event::NotPermitted { uid, pid });
        turn_away(socket.as_fd(), TurnedAway::NotPermitted);
        return Ok(());
    }
    // A client that was lost and comes back has closed its old connection before it made this one, but
    // possibly after the wait looked at it.
    if session.as_ref().is_some_and(|open| has_ended(&open.socket)) {
        observe(Event::Disconnected);
        *session = None;
    }
    if session.is_some() {
        observe(Event::Busy { pid });
        turn_away(socket.as_fd(), TurnedAway::Busy);
        return Ok(());
    }
    observe(Event::Connected { pid });
    let owes_by = Some(Instant::now() + limits.frame_within);
    *session = Some(Session { socket, inbox: Inbox::new(), greeted: false, owes_by });
    Ok(())
}

/// Does what a request asks and appends the answer. `true` when the component has halted.
fn answer<C: TrustedComponent>(request: Request<'_>, home: &mut Home<'_, C>, out: &mut Vec<u8>) -> bool {
    const HALTED: Answer = Answer::Refused(Refusal::Halted);
    let component = &mut home.counters;
    match request {
        Request::Calls(calls) => {
            let answers = component.call(&calls);
            encode_answers(&answers, out);
            answers.contains(&HALTED)
        }
        Request::Beside(call, blob) => {
            let answer = component.attest_beside(&call, blob);
            encode_done(answer.as_ref(), out);
            answer == Some(HALTED)
        }
        Request::BlobsFrom(from) => {
            let blobs = component.blobs();
            encode_blobs(blobs.get(usize::from(from)..).unwrap_or_default(), out);
            false
        }
        Request::Logs(operations) => {
            let answered = match &mut home.logs {
                Some(logs) => logs.call(&operations),
                None => Err(LogRefusal::Operation { index: 0, why: Unfit::NoSuchLog }),
            };
            encode_log_answers(&answered, out);
            answered == Err(LogRefusal::Halted)
        }
    }
}

/// Says why the connection ends, without waiting: a peer that does not listen learns it from the end.
fn turn_away(socket: BorrowedFd<'_>, why: TurnedAway) {
    let mut out = Vec::new();
    encode_reply(&Reply::TurnedAway(why), &mut out);
    let _ = send_all(socket, &out, Instant::now());
}

impl Session {
    /// Reads what is there and answers every whole frame. `true` when the component has halted.
    fn serve<C: TrustedComponent>(
        &mut self,
        readable: bool,
        component: &mut Home<'_, C>,
        limits: &Limits,
        out: &mut Vec<u8>,
    ) -> Result<bool, Ended> {
        if readable {
            match self.inbox.receive(self.socket.as_fd(), RecvFlags::DONTWAIT) {
                Ok(Received::Bytes | Received::Nothing) => {}
                Ok(Received::End) | Err(_) => return Err(Ended(Event::Disconnected)),
            }
        }
        loop {
            let frame = match self.inbox.frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(why) => return Err(self.not_understood(why)),
            };
            out.clear();
            let mut halted = false;
            let answered = if self.greeted {
                decode_request(frame).map(|request| halted = answer(request, component, out))
            } else {
                match decode_hello(frame) {
                    Ok(VERSION) => {
                        encode_reply(&Reply::Welcome(component.counters.identity()), out);
                        Ok(())
                    }
                    Ok(other) => {
                        turn_away(self.socket.as_fd(), TurnedAway::OtherVersion(VERSION));
                        return Err(Ended(Event::OtherVersion(other)));
                    }
                    Err(why) => Err(why),
                }
            };
            if let Err(why) = answered {
                return Err(self.not_understood(why));
            }
            let sent = send_all(self.socket.as_fd(), out, Instant::now() + limits.frame_within);
            if halted {
                return Ok(true);
            }
            match sent {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(Ended(Event::Late)),
                Err(_) => return Err(Ended(Event::Disconnected)),
            }
            self.greeted = true;
            self.owes_by = None;
        }
        self.keep_time(limits)?;
        Ok(false)
    }

    /// Starts the clock of a frame that has begun, and ends the session of one that never ends.
    fn keep_time(&mut self, limits: &Limits) -> Result<(), Ended> {
        if self.greeted && !self.inbox.has_part() {
            self.owes_by = None;
            return Ok(());
        }
        let now = Instant::now();
        let owes_by = *self.owes_by.get_or_insert(now + limits.frame_within);
        if now >= owes_by { Err(Ended(Event::Late)) } else { Ok(()) }
    }

    fn not_understood(&self, why: Malformed) -> Ended {
        turn_away(self.socket.as_fd(), TurnedAway::Malformed);
        Ended(Event::Malformed(why))
    }
}
