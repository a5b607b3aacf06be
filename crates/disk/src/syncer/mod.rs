//! Group commit beside the loop: a thread that merges all jobs that wait into one write and one sync.

mod queue;

use crate::{Disk, Log, LogError};
use bytes::Bytes;
use queue::{Queue, Taken};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
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
    /// Note where the log is, as [`Log::place`] does.
    Place,
    /// Have it stand on the snapshot of this number and begin at that place, as [`Log::stand_on`] does.
    StandOn(u64),
}

/// Steps that are done together, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// What to do.
    pub steps: Vec<Step>,
    /// Whether it is done only when it is durable; else when it is written. Where [`SyncerOptions::every`]
    /// says otherwise, it is done when it is written all the same, unless the log stands on another snapshot after it.
    pub sync: bool,
}

impl Job {
    /// What it counts against the bound of the queue.
    fn bytes(&self) -> usize {
        let records = self.steps.iter().map(|step| match step {
            Step::Append(record) => record.len() + size_of::<Step>(),
            // Its records were held before it, however long that was: who had to wait until there is room for a hundred
            // megabytes of them would wait for a sync.
            Step::Base { records, .. } => records.len() * size_of::<Bytes>() + size_of::<Step>(),
            Step::Place | Step::StandOn(_) => size_of::<Step>(),
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
    /// Bytes that may wait, those of a base's records not counted; a job of more is taken when no other waits.
    pub most_bytes: usize,
    /// How long to wait on a full disk before trying again.
    pub retry: Duration,
    /// Sync by the clock and not for each job: what is written is durable this long after, and the time of a
    /// sync more.
    pub every: Option<Duration>,
}

impl Default for SyncerOptions {
    /// 1,024 jobs, 32 MiB, half a second; a sync for each group of jobs that ask for one.
    fn default() -> Self {
        Self { most_jobs: 1024, most_bytes: 1 << 25, retry: Duration::from_millis(500), every: None }
    }
}

/// A log on a thread of its own.
///
/// While the disk works on one group of jobs the next gathers in the queue; the next write and sync serve
/// all of it. Dropping it lets what was submitted be done first.
pub struct Syncer<D: Disk> {
    queue: Arc<Queue>,
    /// Held by the thread while it does something, and by nobody while it waits.
    log: Shared<D>,
    every: Option<Duration>,
    thread: Option<JoinHandle<()>>,
}

type Shared<D> = Arc<Mutex<Log<D>>>;

fn lock<D: Disk>(log: &Shared<D>) -> MutexGuard<'_, Log<D>> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
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
        let log = Arc::new(Mutex::new(log));
        let worker = Worker {
            log: Arc::clone(&log),
            queue: Abandoned(Arc::clone(&queue)),
            options,
            report,
            due: None,
        };
        let thread = thread::Builder::new().name("log".to_string()).spawn(move || worker.run())?;
        Ok(Self { queue, log, every: options.every, thread: Some(thread) })
    }

    /// Writes a job down before it returns, with no sync whatever the job says and without a report, where the
    /// thread has nothing to do: a write into the system's memory takes less time than two hand-overs. Gives back
    /// what is left to be submitted where the thread is at work, there is more to do than appending, the disk does not take it, or
    /// there is a clock by which is synced.
    pub fn write_now(&self, job: Job) -> Result<Ticket, Job> {
        let only_records = job.steps.iter().all(|step| matches!(step, Step::Append(_)));
        if self.every.is_some() || !only_records {
            return Err(job);
        }
        self.queue.meanwhile(job, |mut job| {
            let mut log = lock(&self.log);
            let append = |step: &Step| match step {
                Step::Append(record) => log.append(record).is_ok(),
                Step::Base { .. } | Step::Place | Step::StandOn(_) => false,
            };
            let appended = job.steps.iter().map(append).take_while(|done| *done).count();
            job.steps.drain(..appended);
            // What is appended and not written waits in the log: the thread writes it with the rest.
            if job.steps.is_empty() && log.flush().is_ok() { Ok(()) } else { Err(job) }
        })
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
        self.thread.take()?.join().ok()?;
        let log = Arc::clone(&self.log);
        drop(self);
        Arc::into_inner(log)?.into_inner().ok()
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
    log: Shared<D>,
    queue: Abandoned,
    options: SyncerOptions,
    report: R,
    /// When the next sync by the clock is due: something is written that is not durable.
    due: Option<Instant>,
}

/// Why the thread ends.
enum End {
    Failed(LogError),
    Stopped,
}

impl<D: Disk, R: FnMut(Report)> Worker<D, R> {
    fn run(mut self) {
        loop {
            let taken = self.queue.0.take(self.due);
            let last = taken.is_none();
            let done = match taken {
                Some(taken) => self.turn(taken),
                None => self.sync_the_rest(),
            };
            match done {
                Ok(()) if last => break,
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
    }

    /// Does what waits, if anything does, and what is due by the clock.
    fn turn(&mut self, taken: Taken) -> Result<(), End> {
        if !taken.jobs.is_empty() {
            self.group(taken.jobs.into_iter())?;
            (self.report)(Report::Done(taken.last));
        }
        if self.due.is_some_and(|due| due <= now()) {
            self.patiently(Log::sync)?;
            self.due = None;
        }
        let kept = lock(&self.log).housekeep();
        match kept {
            // Nobody waits for it; where somebody does, the next job finds out.
            Err(why) if !why.is_full() => Err(End::Failed(why)),
            _ => Ok(()),
        }
    }

    /// An end in good order leaves nothing to the clock.
    fn sync_the_rest(&mut self) -> Result<(), End> {
        if self.due.is_some() { self.patiently(Log::sync) } else { Ok(()) }
    }

    /// Does all jobs with one write and at most one sync.
    fn group(&mut self, jobs: impl Iterator<Item = Job>) -> Result<(), End> {
        let mut sync = false;
        for job in jobs {
            sync |= job.sync && self.options.every.is_none();
            for step in job.steps {
                match &step {
                    Step::Append(record) => self.patiently(|log| log.append(record))?,
                    Step::Base { base, records } => {
                        // Until it is synced a base is nowhere but in the memory of this process.
                        sync = true;
                        self.patiently(|log| log.begin_base(*base, records))?;
                    }
                    Step::Place => self.patiently(Log::place)?,
                    Step::StandOn(base) => {
                        // Earlier snapshots go when it is done.
                        sync = true;
                        self.patiently(|log| log.stand_on(*base))?;
                    }
                }
            }
        }
        self.patiently(if sync { Log::sync } else { Log::flush })?;
        self.due = match self.options.every {
            Some(every) if !sync => self.due.or_else(|| now().checked_add(every)),
            _ => None,
        };
        Ok(())
    }

    /// Repeats a step until the disk has space for it.
    fn patiently(&mut self, mut step: impl FnMut(&mut Log<D>) -> Result<(), LogError>) -> Result<(), End> {
        let mut told = false;
        loop {
            let done = step(&mut lock(&self.log));
            match done {
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

#[expect(clippy::disallowed_methods, reason = "a thread of the runtime, where the clock is read")]
fn now() -> Instant {
    Instant::now()
}
