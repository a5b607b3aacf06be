//! What happens beside the loop: the disk and the trusted component take their time on threads of their
//! own, and tell the loop when they are done.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{io, thread};
use tokio::sync::Notify;
use troth_trusted::Refusal;
use troth_trusted_host::{Answer, Call, TrustedComponent};
use troth_types::Seq;

/// Until a component that found no space for its counters is asked again.
const RETRY: Duration = Duration::from_millis(500);

/// Something that a thread has done, or could not do.
#[derive(Debug)]
pub(crate) enum Done {
    /// Everything appended before the last sync was asked for is durable.
    Synced,
    /// This snapshot is durable.
    Snapshot(Seq),
    /// The component answered.
    Attested(Answer),
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
    Here(Box<dyn TrustedComponent>),
    /// It takes its time, on a thread that ends with this.
    Beside(Sender<Call>),
}

impl Attestor {
    /// A component whose answers take long: a sync, another process, a chip.
    pub(crate) fn beside(mut component: Box<dyn TrustedComponent>, desk: Desk) -> io::Result<Self> {
        let (asked, calls) = mpsc::channel::<Call>();
        thread::Builder::new().name("attest".to_string()).spawn(move || {
            let _watched = Watched::new("attest", &desk);
            while let Ok(call) = calls.recv() {
                let Some(answer) = patiently(component.as_mut(), &call, &calls, &desk) else { return };
                desk.leave(Done::Attested(answer));
            }
        })?;
        Ok(Self::Beside(asked))
    }

    /// Asks; the answer comes back at once or is left on the desk.
    pub(crate) fn ask(&mut self, call: Call) -> Option<Answer> {
        match self {
            Self::Here(component) => {
                Some(component.call(&[call]).pop().unwrap_or(Answer::Refused(Refusal::Halted)))
            }
            // Where the thread is gone it panicked: nothing more can be certified.
            Self::Beside(asked) => asked.send(call).is_err().then_some(Answer::Refused(Refusal::Halted)),
        }
    }
}

/// The answer, however long the component has no space for its counters; nothing where the loop has gone.
fn patiently(
    component: &mut dyn TrustedComponent,
    call: &Call,
    calls: &Receiver<Call>,
    desk: &Desk,
) -> Option<Answer> {
    let mut told = false;
    loop {
        let answer = component.call(std::slice::from_ref(call)).pop();
        let answer = answer.unwrap_or(Answer::Refused(Refusal::Halted));
        if answer != Answer::Refused(Refusal::NoSpace) {
            if told {
                desk.leave(Done::CountersSpace);
            }
            return Some(answer);
        }
        if !told {
            desk.leave(Done::CountersFull);
            told = true;
        }
        match calls.recv_timeout(RETRY) {
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
            Ok(_) => unreachable!("the host asks one question at a time"),
        }
    }
}
