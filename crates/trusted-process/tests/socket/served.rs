//! A server in a thread, stopped when it is dropped.

use crate::support::{Scratch, core_in, mac, no_hook};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use troth_trusted::a2m::{A2m, LogStore};
use troth_trusted::{Certifier, Identity, Store, TrustedCore, VolatileStore};
use troth_trusted_host::LogRoom;
use troth_trusted_process::{
    Event, Limits, Patience, RemoteComponent, ServeError, bind, serve, serve_with_logs,
};

pub fn own_uid() -> u32 {
    nix::unistd::Uid::effective().as_raw()
}

/// Long enough for a slow machine, short enough for a test that fails.
pub const PATIENCE: Patience = Patience { answer: LONG, beside: LONG, reconnect: LONG };
/// Longer than any answer takes on a machine that does much else.
const LONG: Duration = Duration::from_secs(20);

pub struct Served {
    pub path: PathBuf,
    pub events: Receiver<Event>,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Served {
    pub fn with_limits<S: Store + Send + 'static>(
        path: PathBuf,
        core: TrustedCore<S>,
        limits: Limits,
    ) -> Self {
        Self::run(path, limits, move |listener, limits, observe| serve(listener, core, limits, observe))
    }

    /// A server over counters that nothing keeps and these logs.
    pub fn with_logs<L: LogStore<LogRoom> + Send + 'static>(path: PathBuf, logs: A2m<LogRoom, L>) -> Self {
        let core = TrustedCore::start(logs.logs().identity(), mac(), VolatileStore);
        Self::run(path, Limits::new(own_uid()), move |listener, limits, observe| {
            serve_with_logs(listener, core, logs, limits, observe)
        })
    }

    fn run(
        path: PathBuf,
        limits: Limits,
        serve: impl FnOnce(&UnixListener, &Limits, &mut dyn FnMut(Event)) -> Result<(), ServeError>
        + Send
        + 'static,
    ) -> Self {
        let listener = bind(&path, own_uid()).expect("a socket");
        let (stop, until) = UnixStream::pair().expect("a pair of sockets");
        let limits = Limits { until: Some(OwnedFd::from(until)), ..limits };
        let (tell, events) = channel();
        let thread = std::thread::spawn(move || {
            serve(&listener, &limits, &mut |event| {
                let _ = tell.send(event);
            })
        });
        Self { path, events, stop: Some(stop), thread: Some(thread) }
    }

    pub fn new<S: Store + Send + 'static>(path: PathBuf, core: TrustedCore<S>) -> Self {
        Self::with_limits(path, core, Limits::new(own_uid()))
    }

    /// A server over the store in a scratch directory.
    pub fn durable(scratch: &Scratch, identity: Identity, certifier: Certifier) -> Self {
        Self::new(scratch.path("socket"), core_in(&scratch.0, identity, certifier, no_hook()))
    }

    pub fn connect(&self) -> RemoteComponent {
        RemoteComponent::connect(&self.path, PATIENCE).expect("a server")
    }

    /// The next event.
    pub fn event(&self) -> Event {
        self.events.recv_timeout(Duration::from_secs(20)).expect("an event")
    }

    /// How a server ended that has answered its last call. One that goes on is stopped, and has not failed.
    pub fn end(mut self) -> Result<(), ServeError> {
        drop(self.stop.take());
        self.thread.take().expect("not ended").join().expect("no panic")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                assert!(ended.is_ok(), "the server panicked");
            }
        }
    }
}
