//! The trusted process as a child of its replica: started, started again when it ends, and gone when the
//! replica is.

use std::ffi::OsString;
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use thiserror::Error;
use troth_trusted_process::{RestartLimit, TooManyStarts};

/// More starts than whoever kills it for a test makes, and fewer than a process that cannot serve.
const STARTS: NonZeroUsize = NonZeroUsize::new(30).expect("not zero");
/// Within this.
const WITHIN: Duration = Duration::from_secs(60);
/// Before it is started again: the one before may be about to let go of socket and store.
const PAUSE: Duration = Duration::from_millis(50);
/// Exit code of `troth` for what must not run.
pub(crate) const MUST_NOT_RUN: i32 = 3;
/// Exit code of `troth` for wrong usage or configuration.
const USAGE: i32 = 2;
/// What another start would only repeat.
const FINAL: [i32; 2] = [USAGE, MUST_NOT_RUN];

/// The trusted process does not run.
#[derive(Clone, Debug, Error)]
pub enum SupervisorError {
    /// It could not be started.
    #[error(
        "cannot start the trusted process: {0}; mend: is the troth program still where it was started from?"
    )]
    Start(Arc<io::Error>),
    /// It will not run as things are.
    #[error("the trusted process ended with {0}; mend: what it said stands before this line")]
    Ended(ExitStatus),
    /// It ends again and again.
    #[error(transparent)]
    TooManyStarts(#[from] TooManyStarts),
}

/// Watches the child from a thread of its own, which ends with this process.
pub(crate) struct Supervisor {
    watched: Arc<Mutex<Watched>>,
}

/// What is known of the child.
#[derive(Default)]
struct Watched {
    /// Why it is started no more, if that is so.
    gave_up: Option<SupervisorError>,
    /// Whether it was reached. Before that the replica's own failure tells why it could not be.
    reached: bool,
}

impl Watched {
    fn tell(&self) {
        if let (Some(why), true) = (&self.gave_up, self.reached) {
            tracing::error!("{why}");
        }
    }
}

impl Supervisor {
    /// Starts the process with this program and arguments.
    pub(crate) fn start(command: &[OsString]) -> Result<Self, SupervisorError> {
        let failed = |why| SupervisorError::Start(Arc::new(why));
        let mut limit = RestartLimit::new(STARTS, WITHIN);
        limit.start(Duration::ZERO)?;
        let begun = Instant::now();
        let child = spawn(command).map_err(failed)?;
        let watched = Arc::new(Mutex::new(Watched::default()));
        let (command, told) = (command.to_vec(), Arc::clone(&watched));
        let watch = move || {
            let why = watch(&command, child, &mut limit, begun);
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            told.gave_up = Some(why);
            told.tell();
        };
        std::thread::Builder::new().name("supervise".to_owned()).spawn(watch).map_err(failed)?;
        Ok(Self { watched })
    }

    /// Why it starts the process no more, if it has given up.
    pub(crate) fn gave_up(&self) -> Option<SupervisorError> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).gave_up.clone()
    }

    /// Notes that the process was reached: what becomes of it from now on is said in the log.
    pub(crate) fn reached(&self) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.reached = true;
        watched.tell();
    }
}

/// Starts the process again until there is no point in it.
fn watch(
    command: &[OsString],
    mut child: Child,
    limit: &mut RestartLimit,
    begun: Instant,
) -> SupervisorError {
    let failed = |why| SupervisorError::Start(Arc::new(why));
    loop {
        let status = match wait(&mut child) {
            Ok(status) => status,
            Err(why) => return failed(why),
        };
        if status.code().is_some_and(|code| FINAL.contains(&code)) {
            return SupervisorError::Ended(status);
        }
        if let Err(why) = limit.start(begun.elapsed()) {
            return why.into();
        }
        tracing::warn!("the trusted process ended with {status}; starting it again");
        std::thread::sleep(PAUSE);
        child = match spawn(command) {
            Ok(child) => child,
            Err(why) => return failed(why),
        };
    }
}

/// Waits without closing the child's standard input, which would end it.
fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    let input = child.stdin.take();
    let status = child.wait();
    drop(input);
    status
}

/// The child watches its standard input, whose other end only this process holds, so it ends however this
/// one does. It has a process group of its own, as Ctrl-C is for the replica, which still certifies then.
fn spawn(command: &[OsString]) -> io::Result<Child> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::NotFound)?;
    Command::new(program).args(arguments).process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()
}
