//! The bounded queue between the loop and the thread that writes.

use super::{Job, Refused, Ticket};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    bytes: usize,
    submitted: u64,
    /// No more jobs come.
    closed: bool,
    /// Nobody takes jobs any more.
    abandoned: bool,
    /// What was taken last may not be done yet.
    busy: bool,
}

pub(super) struct Queue {
    most_jobs: usize,
    most_bytes: usize,
    waiting: Mutex<Waiting>,
    /// There are jobs, or no more will come.
    filled: Condvar,
    /// There is room, or nobody takes jobs any more.
    emptied: Condvar,
}

/// All jobs that waited, and the ticket of the last.
pub(super) struct Taken {
    pub(super) jobs: VecDeque<Job>,
    pub(super) last: Ticket,
}

impl Queue {
    pub(super) fn new(most_jobs: usize, most_bytes: usize) -> Self {
        Self {
            most_jobs,
            most_bytes,
            waiting: Mutex::default(),
            filled: Condvar::new(),
            emptied: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a job in; where there is no room it waits, or does not.
    pub(super) fn put(&self, job: Job, wait: bool) -> Result<Ticket, Refused> {
        let bytes = job.bytes();
        let mut waiting = self.lock();
        loop {
            if waiting.abandoned || waiting.closed {
                return Err(Refused::Stopped(job));
            }
            // A job over the bound goes in alone.
            let fits = waiting.jobs.len() < self.most_jobs && waiting.bytes + bytes <= self.most_bytes;
            if fits || waiting.jobs.is_empty() {
                break;
            }
            if !wait {
                return Err(Refused::Busy(job));
            }
            waiting = self.emptied.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        waiting.jobs.push_back(job);
        waiting.bytes += bytes;
        waiting.submitted += 1;
        let ticket = Ticket(waiting.submitted);
        drop(waiting);
        self.filled.notify_one();
        Ok(ticket)
    }

    /// Has a job done by the caller, where nothing waits and whoever takes jobs waits for one; else, and where
    /// `act` gives back what it could not do, that is what is left to be submitted. Nothing is taken meanwhile.
    pub(super) fn meanwhile(
        &self,
        job: Job,
        act: impl FnOnce(Job) -> Result<(), Job>,
    ) -> Result<Ticket, Job> {
        let mut waiting = self.lock();
        if waiting.busy || waiting.closed || waiting.abandoned || !waiting.jobs.is_empty() {
            return Err(job);
        }
        act(job)?;
        waiting.submitted += 1;
        Ok(Ticket(waiting.submitted))
    }

    /// Takes all that wait, or waits for one, until `due` at most: then there may be none. Nothing once the
    /// queue is closed and empty.
    pub(super) fn take(&self, due: Option<Instant>) -> Option<Taken> {
        let mut waiting = self.lock();
        waiting.busy = false;
        while waiting.jobs.is_empty() {
            if waiting.closed {
                return None;
            }
            let Some(due) = due else {
                waiting = self.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = due.saturating_duration_since(super::now());
            if left.is_zero() {
                break;
            }
            let woken = self.filled.wait_timeout(waiting, left);
            waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        let jobs = std::mem::take(&mut waiting.jobs);
        waiting.bytes = 0;
        waiting.busy = true;
        let last = Ticket(waiting.submitted);
        drop(waiting);
        self.emptied.notify_all();
        Some(Taken { jobs, last })
    }

    /// Waits a while, less if the queue is closed; whether it is.
    pub(super) fn pause(&self, time: Duration) -> bool {
        let waiting = self.lock();
        let until_closed = self.filled.wait_timeout_while(waiting, time, |waiting| !waiting.closed);
        until_closed.unwrap_or_else(PoisonError::into_inner).0.closed
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
        self.emptied.notify_all();
    }

    pub(super) fn abandon(&self) {
        self.lock().abandoned = true;
        self.emptied.notify_all();
    }
}
