//! What happens beside the loop: the disk and the trusted component take their time on threads of their
//! own, and tell the loop when they are done.

use crate::component::{Component, Logged};
use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};
use tokio::sync::Notify;
use troth_trusted::Refusal;
use troth_trusted::a2m::{LogRefusal, Operation};
use troth_trusted_host::{Answer, Call};
use troth_types::Seq;

/// Until a component that found no space for its counters is asked again.
const RETRY: Duration = Duration::from_millis(500);
/// An answer that the loop waits for takes no longer than a few syncs of a healthy disk.
const SLOW: Duration = Duration::from_millis(20);
/// Runs that go the longer way before a slow component is waited for again.
const REST: u32 = 16;

/// Something that a thread has done, or could not do.
#[derive(Debug)]
pub(crate) enum Done {
    /// Everything appended before the last sync was asked for is durable.
    Synced,
    /// This snapshot is durable.
    Snapshot(Seq),
    /// The component answered.
    Attested(Answer),
    /// Its logs did.
    Logged(Logged),
    /// The disk has no space; what was asked for waits for some.
    DiskFull(String),
    /// There is space again.
    DiskSpace,
    /// The component finds no space to store its counters; its answer waits for some.
    CountersFull,
    /// There is space for the counters again.
    CountersSpace,
    /// The thread of this name panicked: what waits for it would wait for ever.
    Panicked(&'static str),
    /// The disk failed: what is on it is unknown until a start reads it.
    DiskFailed(String),
}

/// Where threads leave what they have done, and what wakes the loop.
#[derive(Clone, Default)]
pub(crate) struct Desk(Arc<(Mutex<VecDeque<Done>>, Notify)>);

impl Desk {
    /// Leaves something and wakes the loop.
    pub(crate) fn leave(&self, done: Done) {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(done);
        self.0.1.notify_one();
    }

    /// Takes what was left first.
    pub(crate) fn take(&self) -> Option<Done> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Waits until something is left.
    pub(crate) async fn woken(&self) {
        self.0.1.notified().await;
    }
}

/// Tells the loop where the thread that holds it ends by a panic.
pub(crate) struct Watched {
    desk: Desk,
    thread: &'static str,
}

impl Watched {
    pub(crate) fn new(thread: &'static str, desk: &Desk) -> Self {
        Self { desk: desk.clone(), thread }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if thread::panicking() {
            self.desk.leave(Done::Panicked(self.thread));
        }
    }
}

/// The trusted component as the loop asks it.
pub(crate) enum Attestor {
    /// It answers at once.
    Here(Box<dyn Component>),
    /// It takes its time.
    Beside(Aside),
    /// There is none, and a protocol without one never asks.
    Nobody,
}

/// A component whose answers take long: a sync, another process, a chip. Its thread ends with this.
pub(crate) struct Aside {
    /// Held while it answers one question, and there is never a second.
    component: Arc<Mutex<Box<dyn Component>>>,
    asked: Sender<Question>,
    /// Whether a move takes no sync, so that the loop waits for it where it can.
    pub(crate) quick: bool,
    /// Runs that go the longer way yet.
    rest: u32,
}

/// What the thread asks the component.
enum Question {
    Counters(Call),
    Logs(Vec<Operation>),
}

impl Question {
    /// The answer now, for want of space too.
    fn ask(&self, component: &mut dyn Component) -> Done {
        match self {
            Self::Counters(call) => {
                let answer = component.call(std::slice::from_ref(call)).pop();
                Done::Attested(answer.unwrap_or(Answer::Refused(Refusal::Halted)))
            }
            Self::Logs(operations) => Done::Logged(component.logs(operations)),
        }
    }
}

/// An answer that may be that the component's disk has no space.
trait NeedsSpace {
    /// Whether it is that.
    fn needs_space(&self) -> bool;
}

impl NeedsSpace for Answer {
    fn needs_space(&self) -> bool {
        *self == Self::Refused(Refusal::NoSpace)
    }
}

impl NeedsSpace for Logged {
    fn needs_space(&self) -> bool {
        *self == Err(LogRefusal::NoSpace)
    }
}

impl NeedsSpace for Done {
    fn needs_space(&self) -> bool {
        match self {
            Self::Attested(answer) => answer.needs_space(),
            Self::Logged(logged) => logged.needs_space(),
            _ => false,
        }
    }
}

impl Attestor {
    /// A component whose answers take long; a `quick` one syncs nothing, and is waited for while it answers at
    /// once.
    pub(crate) fn beside(component: Box<dyn Component>, quick: bool, desk: Desk) -> io::Result<Self> {
        let (asked, calls) = mpsc::channel::<Question>();
        let component = Arc::new(Mutex::new(component));
        let own = Arc::clone(&component);
        thread::Builder::new().name("attest".to_string()).spawn(move || {
            let _watched = Watched::new("attest", &desk);
            while let Ok(question) = calls.recv() {
                let mut component = own.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(done) = patiently(component.as_mut(), &question, &calls, &desk) else { return };
                drop(component);
                desk.leave(done);
            }
        })?;
        Ok(Self::Beside(Aside { component, asked, quick, rest: 0 }))
    }

    /// Whether [`Attestor::ask`] waits for another process.
    pub(crate) fn is_waited_for(&self) -> bool {
        matches!(self, Self::Beside(aside) if aside.quick && aside.rest == 0)
    }

    /// Asks; the answer comes back at once or is left on the desk.
    pub(crate) fn ask(&mut self, call: Call) -> Option<Answer> {
        match self {
            Self::Nobody => unreachable!("a protocol without trusted components has nothing certified"),
            Self::Here(component) => {
                Some(component.call(&[call]).pop().unwrap_or(Answer::Refused(Refusal::Halted)))
            }
            Self::Beside(aside) => {
                if aside.quick
                    && let Some(answer) = aside.soon(|component| component.call_soon(&call))
                {
                    return Some(answer);
                }
                // Where the thread is gone it panicked: nothing more can be certified.
                let asked = aside.asked.send(Question::Counters(call));
                asked.is_err().then_some(Answer::Refused(Refusal::Halted))
            }
        }
    }

    /// Asks the component's logs; the answers come back at once or are left on the desk.
    pub(crate) fn ask_logs(&mut self, operations: Vec<Operation>) -> Option<Logged> {
        match self {
            Self::Nobody => unreachable!("a protocol without trusted components asks no logs"),
            Self::Here(component) => Some(component.logs(&operations)),
            Self::Beside(aside) => {
                if aside.quick
                    && let Some(logged) = aside.soon(|component| component.logs_soon(&operations))
                {
                    return Some(logged);
                }
                aside.asked.send(Question::Logs(operations)).is_err().then_some(Err(LogRefusal::Halted))
            }
        }
    }

    /// Asks and waits, with these bodies to be kept beside the record. `None` where the component keeps
    /// none, or the loop should not wait for it: then nothing has happened. While nothing else is to be done
    /// a wait costs less than two hand-overs to another thread.
    pub(crate) fn ask_beside(&mut self, call: &Call, bodies: &[u8]) -> Option<Answer> {
        let Self::Beside(aside) = self else { return None };
        aside.soon(|component| component.attest_beside(call, bodies))
    }
}

impl Aside {
    /// The answer that the loop itself asks for, unless the component was slow of late.
    fn soon<T: NeedsSpace>(&mut self, ask: impl FnOnce(&mut dyn Component) -> Option<T>) -> Option<T> {
        if self.rest > 0 {
            self.rest -= 1;
            return None;
        }
        let asked = Instant::now();
        let mut component = self.component.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = ask(component.as_mut()).filter(|answer| {
            // Whoever waits for space does it on the thread.
            !answer.needs_space()
        });
        if answer.is_none() || asked.elapsed() > SLOW {
            self.rest = REST;
        }
        answer
    }
}

/// The answer, however long the component has no space for its counters; nothing where the loop has gone.
fn patiently(
    component: &mut dyn Component,
    question: &Question,
    questions: &Receiver<Question>,
    desk: &Desk,
) -> Option<Done> {
    let mut told = false;
    loop {
        let done = question.ask(component);
        if !done.needs_space() {
            if told {
                desk.leave(Done::CountersSpace);
            }
            return Some(done);
        }
        if !told {
            desk.leave(Done::CountersFull);
            told = true;
        }
        match questions.recv_timeout(RETRY) {
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
            Ok(_) => unreachable!("the host asks one question at a time"),
        }
    }
}
