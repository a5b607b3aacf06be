//! Group commit beside the loop: a thread that merges all jobs that wait into one write and one sync.

mod queue;

use crate::{Disk, Log, LogError};
use bytes::Bytes;
use queue::Queue;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use thiserror::Error;

/// One thing to do to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Append a record.
    Append(Bytes),
    /// Begin a base, as [`Log::begin_base`] does.
    Base {
        /// The number of its snapshot.
        base: u64,
        /// The records carried over.
        records: Vec<Bytes>,
    },
}

/// Steps that are done together, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// What to do.
    pub steps: Vec<Step>,
    /// Whether it is done only when it is durable; else when it is written.
    pub sync: bool,
}

impl Job {
    /// What it counts against the bound of the queue.
    fn bytes(&self) -> usize {
        let records = self.steps.iter().map(|step| match step {
            Step::Append(record) => record.len() + size_of::<Step>(),
            Step::Base { records, .. } => {
                records.iter().map(|record| record.len() + size_of::<Bytes>()).sum::<usize>()
                    + size_of::<Step>()
            }
        });
        records.sum::<usize>() + size_of::<Self>()
    }
}

/// Names a job: they count from 1 in the order in which they were submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What the thread tells, from the thread.
#[derive(Debug)]
pub enum Report {
    /// This job and all before it are done.
    Done(Ticket),
    /// The disk is full: nothing is done until [`Report::Space`], and nothing is lost. Said once.
    Full(LogError),
    /// There is space again.
    Space,
    /// The log failed; the thread has ended, and jobs not yet done never will be.
    Failed(LogError),
}

/// Why a job was not taken.
#[derive(Debug, Error)]
pub enum Refused {
    /// The queue is full.
    #[error("too many jobs wait for the disk")]
    Busy(Job),
    /// The thread has ended.
    #[error("the log has stopped")]
    Stopped(Job),
}

/// Bounds and pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncerOptions {
    /// Jobs that may wait.
    pub most_jobs: usize,
    /// Bytes that may wait; a job of more is taken when no other waits.
    pub most_bytes: usize,
    /// How long to wait on a full disk before trying again.
    pub retry: Duration,
}

impl Default for SyncerOptions {
    /// 1,024 jobs, 32 MiB, half a second.
    fn default() -> Self {
        Self { most_jobs: 1024, most_bytes: 1 << 25, retry: Duration::from_millis(500) }
    }
}

/// A log on a thread of its own.
///
/// While the disk works on one group of jobs the next gathers in the queue; the next write and sync serve
/// all of it. Dropping it lets what was submitted be done first.
pub struct Syncer<D: Disk> {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<Log<D>>>,
}

impl<D: Disk> Syncer<D> {
    /// Starts the thread. `report` runs on it and should only pass on what it is told: the disk waits for
    /// it.
    pub fn start(
        log: Log<D>,
        options: SyncerOptions,
        report: impl FnMut(Report) + Send + 'static,
    ) -> io::Result<Self> {
        let queue = Arc::new(Queue::new(options.most_jobs.max(1), options.most_bytes));
        let worker = Worker { log, queue: Abandoned(Arc::clone(&queue)), options, report };
        let thread = thread::Builder::new().name("log".to_string()).spawn(move || worker.run())?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// Hands a job over. Blocks only while the queue is full, which on a full disk may be for good: a loop
    /// that must go on uses [`Syncer::try_submit`].
    pub fn submit(&self, job: Job) -> Result<Ticket, Refused> {
        self.queue.put(job, true)
    }

    /// Hands a job over, or gives it back where the queue is full.
    pub fn try_submit(&self, job: Job) -> Result<Ticket, Refused> {
        self.queue.put(job, false)
    }

    /// Lets what was submitted be done, as far as there is space for it, and gives the log back; nothing where
    /// the thread panicked.
    #[must_use]
    pub fn stop(mut self) -> Option<Log<D>> {
        self.queue.close();
        self.thread.take().and_then(|thread| thread.join().ok())
    }
}

impl<D: Disk> Drop for Syncer<D> {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed by the thread, and a panic here could end the process.
            drop(thread.join());
        }
    }
}

/// Tells those who submit when the thread ends, however it does.
struct Abandoned(Arc<Queue>);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

struct Worker<D: Disk, R> {
    log: Log<D>,
    queue: Abandoned,
    options: SyncerOptions,
    report: R,
}

/// Why the thread ends.
enum End {
    Failed(LogError),
    Stopped,
}

impl<D: Disk, R: FnMut(Report)> Worker<D, R> {
    fn run(mut self) -> Log<D> {
        while let Some(taken) = self.queue.0.take() {
            let ended = self.group(taken.jobs.into_iter()).and_then(|()| {
                (self.report)(Report::Done(taken.last));
                match self.log.housekeep() {
                    // Nobody waits for it; where somebody does, the next job finds out.
                    Err(why) if !why.is_full() => Err(End::Failed(why)),
                    _ => Ok(()),
                }
            });
            match ended {
                Ok(()) => {}
                Err(End::Stopped) => break,
                Err(End::Failed(why)) => {
                    // Submitting fails from before the report on: whoever is told can rely on it.
                    self.queue.0.abandon();
                    (self.report)(Report::Failed(why));
                    break;
                }
            }
        }
        self.log
    }

    /// Does all jobs with one write and at most one sync.
    fn group(&mut self, jobs: impl Iterator<Item = Job>) -> Result<(), End> {
        let mut sync = false;
        for job in jobs {
            sync |= job.sync;
            for step in job.steps {
                match &step {
                    Step::Append(record) => self.patiently(|log| log.append(record))?,
                    Step::Base { base, records } => self.patiently(|log| log.begin_base(*base, records))?,
                }
            }
        }
        self.patiently(if sync { Log::sync } else { Log::flush })
    }

    /// Repeats a step until the disk has space for it.
    fn patiently(&mut self, mut step: impl FnMut(&mut Log<D>) -> Result<(), LogError>) -> Result<(), End> {
        let mut told = false;
        loop {
            match step(&mut self.log) {
                Ok(()) => break,
                Err(why) if why.is_full() => {
                    if !told {
                        (self.report)(Report::Full(why));
                        told = true;
                    }
                    if self.queue.0.pause(self.options.retry) {
                        return Err(End::Stopped);
                    }
                }
                Err(why) => return Err(End::Failed(why)),
            }
        }
        if told {
            (self.report)(Report::Space);
        }
        Ok(())
    }
}
