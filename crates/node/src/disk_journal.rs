//! The log and the snapshots of a replica on its disk, each on a thread of its own.
//!
//! While a snapshot is written the log goes on behind the old base. When the snapshot is durable the log stands on it and
//! begins where it was when the snapshot was taken: all or nothing, so a crash at any point leaves a base
//! and everything since. One that is needed first is another matter: nothing behind it is durable before it is, so
//! that the little that is appended meanwhile is held in memory, and begins a base with it.

use crate::beside::{Desk, Done, Watched};
use crate::journal::Journal;
use crate::snapshots::Keep;
use bytes::Bytes;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use troth_disk::{Disk, Job, Log, Report, SnapshotError, Step, Syncer, SyncerOptions, Ticket};
use troth_exec::Snapshot;
use troth_types::Seq;

/// Bytes of log after which a snapshot pays: a start reads what came since.
const SNAPSHOT_AFTER: usize = 16 << 20;
/// A write into the system's memory takes longer only where the disk holds it up.
const SLOW: Duration = Duration::from_millis(20);
/// Writes that the thread does before the loop tries one again.
const REST: u32 = 64;
/// Until a snapshot is tried again on a full disk.
const RETRY: Duration = Duration::from_millis(500);

/// A replica's log and snapshots.
pub(crate) struct DiskJournal<D: Disk> {
    /// Both until it is dropped.
    syncer: Option<Syncer<D>>,
    snapshots: Option<(Sender<Task>, JoinHandle<()>)>,
    /// The end has come: nobody waits for space any more.
    ending: Arc<AtomicBool>,
    steps: Vec<Step>,
    /// Bytes appended since the base.
    since_base: usize,
    base: Seq,
    /// Snapshots that the thread has yet to write.
    writing: usize,
    coming: Option<Coming>,
    /// A sync was asked for that waits for the snapshot.
    asked: bool,
    state: Arc<Mutex<State>>,
    /// Nothing is synced: the loop writes by itself what is short.
    unsynced: bool,
    /// Writes that are the thread's yet.
    rest: u32,
    /// A planted bug: says that something is durable when it is written.
    #[cfg(feature = "faults")]
    pub(crate) skips_sync: bool,
}

/// What the thread for snapshots does.
enum Task {
    /// Write one.
    Write(Snapshot),
    /// The log stands on this one: earlier ones go.
    Retain(Seq),
}

/// A snapshot that is being written.
struct Coming {
    seq: Seq,
    /// Bytes appended since.
    bytes: usize,
    /// The next sync waits for it: what was appended since, which is nowhere else.
    needed: Option<Vec<Bytes>>,
}

/// What the threads tell each other.
#[derive(Default)]
struct State {
    /// The sync that the loop waits for.
    awaited: Option<Ticket>,
    /// Done, this and all before.
    done: Option<Ticket>,
    /// The base that the log was put on last, until it is durable.
    base: Option<(Ticket, Seq)>,
    desk: Desk,
}

impl State {
    /// Says that what the loop waits for is done, if it is; the base that is durable now, the first time.
    fn look(&mut self) -> Option<Seq> {
        if self.awaited.is_some() && self.done >= self.awaited {
            self.awaited = None;
            self.desk.leave(Done::Synced);
        }
        let durable = self.base.filter(|(ticket, _)| self.done >= Some(*ticket));
        if durable.is_some() {
            self.base = None;
        }
        durable.map(|(_, seq)| seq)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<D: Disk> DiskJournal<D> {
    /// Starts the threads. The log stands on the snapshot `base` and holds `since_base` bytes; with `every` it is synced by the
    /// clock, so often.
    pub(crate) fn start(
        log: Log<D>,
        base: Seq,
        since_base: usize,
        mut keeper: impl Keep + Send + 'static,
        desk: Desk,
        every: Option<Duration>,
    ) -> io::Result<Self> {
        let state = Arc::new(Mutex::new(State { desk: desk.clone(), ..State::default() }));
        let shared = Arc::clone(&state);
        let reports = desk.clone();
        let (snapshots, asked) = mpsc::channel::<Task>();
        let retain = snapshots.clone();
        // The thread of the log drops what it reports to when it ends.
        let log_watched = Watched::new("log", &desk);
        let syncer =
            Syncer::start(log, SyncerOptions { every, ..SyncerOptions::default() }, move |report| {
                let _watched = &log_watched;
                match report {
                    Report::Done(ticket) => {
                        let mut state = lock(&shared);
                        state.done = state.done.max(Some(ticket));
                        if let Some(base) = state.look() {
                            drop(retain.send(Task::Retain(base)));
                        }
                    }
                    Report::Full(why) => reports.leave(Done::DiskFull(why.to_string())),
                    Report::Space => reports.leave(Done::DiskSpace),
                    Report::Failed(why) => reports.leave(Done::DiskFailed(why.to_string())),
                }
            })?;
        let ending = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&ending);
        let thread = thread::Builder::new().name("snapshot".to_string()).spawn(move || {
            let _watched = Watched::new("snapshot", &desk);
            give_way();
            for task in asked {
                match task {
                    Task::Write(snapshot) => desk.leave(written(&mut keeper, &snapshot, &ends)),
                    Task::Retain(base) => {
                        if let Err(why) = keeper.retain(base) {
                            tracing::warn!(%why, "cannot remove an old snapshot");
                        }
                    }
                }
            }
        })?;
        Ok(Self {
            syncer: Some(syncer),
            snapshots: Some((snapshots, thread)),
            ending,
            steps: Vec::new(),
            since_base,
            base,
            writing: 0,
            coming: None,
            asked: false,
            state,
            unsynced: false,
            rest: 0,
            #[cfg(feature = "faults")]
            skips_sync: false,
        })
    }

    /// Has these appended first: a start has found them elsewhere, where they are durable until then.
    pub(crate) fn go_on_with(&mut self, records: Vec<Bytes>) {
        self.steps.extend(records.into_iter().map(Step::Append));
    }

    /// The same for a disk of which nobody wants a sync.
    pub(crate) fn unsynced(mut self, unsynced: bool) -> Self {
        self.unsynced = unsynced;
        self
    }

    fn submit(&mut self, steps: Vec<Step>) -> Option<Ticket> {
        #[cfg(not(feature = "faults"))]
        let sync = true;
        #[cfg(feature = "faults")]
        let sync = !self.skips_sync;
        // Where the thread has ended it has said why.
        self.syncer.as_ref()?.submit(Job { steps, sync }).ok()
    }

    fn ask(&self, task: Task) {
        if let Some((asked, _)) = &self.snapshots {
            // Where the thread has ended it panicked, and has told the loop.
            drop(asked.send(task));
        }
    }

    /// Earlier snapshots go once the log stands on this one.
    fn retain(&self, base: Option<Seq>) {
        if let Some(base) = base {
            self.ask(Task::Retain(base));
        }
    }

    /// What a snapshot is needed for comes behind it: see `snapshot_done`.
    fn waits_for_snapshot(&self) -> bool {
        self.coming.as_ref().is_some_and(|coming| coming.needed.is_some())
    }

    /// Has everything so far made durable, and the loop told.
    fn wait(&mut self) {
        let steps = std::mem::take(&mut self.steps);
        let ticket = self.submit(steps);
        let mut state = lock(&self.state);
        state.awaited = ticket;
        let base = state.look();
        drop(state);
        self.retain(base);
    }
}

/// Gives way to the loop where both want a processor: a snapshot has time. Of this thread alone; where the system
/// does not let it, it goes on as it is.
fn give_way() {
    // What is said of the calling process Linux takes as said of the calling thread.
    #[cfg(target_os = "linux")]
    if let Ok(niceness) = rustix::process::getpriority_process(None) {
        let _ = rustix::process::setpriority_process(None, niceness.max(10));
    }
}

/// Writes a snapshot, as long as it takes.
fn written(keeper: &mut impl Keep, snapshot: &Snapshot, ends: &AtomicBool) -> Done {
    let mut told = false;
    loop {
        match keeper.write(snapshot) {
            Ok(()) => return Done::Snapshot(snapshot.seq()),
            Err(why @ SnapshotError::Full(_)) if !ends.load(Ordering::Relaxed) => {
                if !told {
                    tracing::warn!(%why, "no space for a snapshot: tries again, and the log grows meanwhile");
                    told = true;
                }
                thread::sleep(RETRY);
            }
            Err(why) => return Done::DiskFailed(why.to_string()),
        }
    }
}

/// What was asked for is done before the directory is anybody else's.
impl<D: Disk> Drop for DiskJournal<D> {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        // What is durable elsewhere so far: the next start finds less to do.
        let base_comes_first = self.waits_for_snapshot();
        if !self.steps.is_empty() && !base_comes_first {
            let steps = std::mem::take(&mut self.steps);
            self.submit(steps);
        }
        // The thread of the log holds a way to ask for snapshots, so it ends first.
        drop(self.syncer.take());
        if let Some((asked, thread)) = self.snapshots.take() {
            drop(asked);
            // A panic there has been printed by the thread.
            drop(thread.join());
        }
    }
}

impl<D: Disk> Journal<Snapshot> for DiskJournal<D> {
    fn append(&mut self, record: Bytes) {
        self.since_base += record.len();
        if let Some(coming) = &mut self.coming {
            coming.bytes += record.len();
            if let Some(records) = &mut coming.needed {
                return records.push(record);
            }
        }
        self.steps.push(Step::Append(record));
    }

    fn wants_segment(&self) -> bool {
        self.writing == 0 && self.since_base >= SNAPSHOT_AFTER
    }

    fn new_segment(&mut self, snapshot: Snapshot, needed: bool) {
        if self.writing > 0 && !needed {
            return;
        }
        self.writing += 1;
        self.base = snapshot.seq();
        let needed = needed.then(Vec::new);
        if needed.is_none() {
            self.steps.push(Step::Place);
        }
        self.coming = Some(Coming { seq: snapshot.seq(), bytes: 0, needed });
        self.ask(Task::Write(snapshot));
    }

    fn base(&self) -> Seq {
        self.base
    }

    fn write_now(&mut self) -> bool {
        if !self.unsynced || self.waits_for_snapshot() {
            return false;
        }
        if self.rest > 0 {
            self.rest -= 1;
            return false;
        }
        let Some(syncer) = &self.syncer else { return false };
        let began = Instant::now();
        let job = Job { steps: std::mem::take(&mut self.steps), sync: false };
        match syncer.write_now(job) {
            Ok(ticket) => {
                if began.elapsed() > SLOW {
                    self.rest = REST;
                }
                let mut state = lock(&self.state);
                state.done = state.done.max(Some(ticket));
                let base = state.look();
                drop(state);
                self.retain(base);
                true
            }
            Err(left) => {
                self.steps = left.steps;
                false
            }
        }
    }

    fn sync(&mut self) {
        if self.waits_for_snapshot() {
            self.asked = true;
        } else {
            self.wait();
        }
    }

    fn snapshot_done(&mut self, seq: Seq) {
        self.writing = self.writing.saturating_sub(1);
        // One that another had to come before goes when the log stands on that.
        let Some(coming) = self.coming.take_if(|coming| coming.seq == seq) else { return };
        self.since_base = coming.bytes;
        let mut steps = std::mem::take(&mut self.steps);
        let needed = coming.needed.is_some();
        match coming.needed {
            // What came before counts no more, durable or not.
            Some(records) => steps = vec![Step::Base { base: seq.0, records }],
            None => steps.push(Step::StandOn(seq.0)),
        }
        let ticket = self.submit(steps);
        let mut state = lock(&self.state);
        state.base = ticket.map(|ticket| (ticket, seq));
        if needed && self.asked {
            self.asked = false;
            state.awaited = ticket;
        }
        let base = state.look();
        drop(state);
        self.retain(base);
    }
}
