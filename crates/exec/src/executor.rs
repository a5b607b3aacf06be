//! The executor: batches in, replies, events and checkpoints out.

use crate::frame::{FrameOperations, Within, passes_over};
use crate::install::{Install, Progress};
use crate::map::Discarded;
use crate::place::{piece, state_digest};
use crate::state::APPLICATION;
use crate::{
    Application, MAX_CLIENT_BYTES, MAX_VALUE_BYTES, Mark, MerkleMap, OpContext, SealId, Snapshot, State,
    StateView, Tree, clients, configuration,
};
use bytes::Bytes;
use core::fmt;
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;
use troth_core::{Done, Execution, Installing, Lookup, Meter, Ordered, Outcome, VerifiedFrame};
use troth_types::{
    ClientId, Configuration, Digest, Event, Limits, OPERATOR, Read, ReadReply, Reply, ReplyBody, Seq,
    StateFetch, StatePiece, Time, View,
};

/// Seals that may wait for their digests; one more and the oldest is finished at once, so that
/// reads never look through a long pile of overlays.
const MAX_PENDING: usize = 8;

/// Seals that may wait for their digests before batches take part in the work: as long as the slices between them keep
/// up, a batch costs itself alone.
const PENDING_BESIDE: usize = 1;

/// A seal of more keys is worked on by batches at once: until it is done everything since the one before it is kept, and
/// batches that write so much leave no time anyway.
const LARGE_SEAL: usize = 1 << 16;

/// Units of work on sealed writes (about a microsecond) that a batch does for each key that it wrote, and for each seal
/// beyond [`PENDING_BESIDE`]: what merging and hashing a write takes, so that a seal is done before the next one follows.
const WORK_PER_WRITE: usize = 8;

/// Bytes of a batch's operations for which it does one more: merging a large value hashes and copies it.
const BYTES_PER_WORK: usize = 1 << 10;

/// Nodes of discarded checkpoints that are freed with each batch, and for each of its operations.
const FREED_PER_BATCH: usize = 32;
const FREED_PER_OPERATION: usize = 64;

/// Runs an application on ordered batches. Clones share everything that has not been written since.
#[derive(Clone)]
pub struct Executor<A> {
    app: A,
    limits: Limits,
    map: MerkleMap,
    executed: Seq,
    time: Time,
    /// What was executed tentatively, in order.
    tentative: VecDeque<Tentative>,
    /// Checkpoints whose digests are not known yet, oldest first.
    sealed: VecDeque<(SealId, Seq, Time)>,
    /// Checkpoints that [`Execution::poll_checkpoint`] has not returned yet, oldest first.
    ready: VecDeque<(Seq, Digest)>,
    kept: BTreeMap<Seq, Kept>,
    /// Checkpoints that are not kept any more, until they are freed.
    discarded: Discarded,
    /// Checkpoints below this are not kept.
    stable: Seq,
    install: Option<Install>,
    /// Who the replicas and clients are, and what the group began with.
    configuration: Arc<Configuration>,
    first: Arc<Configuration>,
    /// Batches for which a replica that was admitted may not vote.
    settling: u64,
    /// Who looks on while frames are executed.
    meter: Option<Arc<dyn Meter>>,
}

/// A batch that may be undone.
#[derive(Clone, Debug)]
struct Tentative {
    seq: Seq,
    /// How everything stood before it.
    mark: Mark,
    time: Time,
    configuration: Arc<Configuration>,
}

#[derive(Clone, Debug)]
struct Kept {
    time: Time,
    tree: Tree,
    digest: Digest,
}

impl<A: fmt::Debug> fmt::Debug for Executor<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor")
            .field("app", &self.app)
            .field("executed", &self.executed)
            .field("time", &self.time)
            .field("map", &self.map)
            .field("kept", &self.kept.keys())
            .field("installing", &self.install.as_ref().map(|install| install.seq))
            .finish_non_exhaustive()
    }
}

impl<A: Application> Executor<A> {
    /// An executor at the empty initial state, sequence number 0, which it keeps as a checkpoint.
    ///
    /// # Panics
    /// If the limits leave no room: a window of 0, an outbox below 2 events, or results of one client beyond
    /// [`MAX_CLIENT_BYTES`] or beyond what a frame's slot holds beside the marks of results too large to show.
    #[must_use]
    pub fn new(app: A, limits: Limits) -> Self {
        Self::with_configuration(app, limits, Arc::default(), 0)
    }

    /// The same for a group that operators may change: what it begins with, and for how many batches a
    /// replica that was admitted may not vote.
    ///
    /// # Panics
    /// As [`Executor::new`].
    #[must_use]
    pub fn with_configuration(app: A, limits: Limits, first: Arc<Configuration>, settling: u64) -> Self {
        assert!(limits.client_window > 0, "a client has at least one frame outstanding");
        assert!(limits.outbox_events >= 2, "an outbox holds a marker and an event");
        assert!(limits.client_bytes <= MAX_CLIENT_BYTES, "a client's results fit one value");
        let marks = limits.frame_operations.saturating_mul(app.too_large().len() + 4);
        assert!(marks <= MAX_VALUE_BYTES - MAX_CLIENT_BYTES - 1024, "so do the marks of results too large");
        let mut executor = Self {
            app,
            limits,
            map: if A::SCANS { MerkleMap::with_order(&[APPLICATION]) } else { MerkleMap::new() },
            executed: Seq(0),
            time: Time(0),
            tentative: VecDeque::new(),
            sealed: VecDeque::new(),
            ready: VecDeque::new(),
            kept: BTreeMap::new(),
            discarded: Discarded::default(),
            stable: Seq(0),
            install: None,
            configuration: Arc::clone(&first),
            first,
            settling,
            meter: None,
        };
        executor.stand_at(Seq(0), Time(0), Tree::empty());
        executor
    }

    /// The application's configuration.
    #[must_use]
    pub fn application(&self) -> &A {
        &self.app
    }

    /// The application's part of the current state.
    #[must_use]
    pub fn state(&self) -> StateView<'_> {
        StateView::new(&self.map)
    }

    /// The digest that a checkpoint of the current state would have, computed at once.
    #[must_use]
    pub fn digest_now(&self) -> Digest {
        state_digest(self.executed, self.time, &self.map.tree_now().digest())
    }

    /// Seals whose digests are not known yet.
    #[cfg(test)]
    pub(crate) fn pending(&self) -> usize {
        self.map.pending()
    }

    /// Replaces everything by this state and keeps it as a checkpoint.
    fn stand_at(&mut self, seq: Seq, time: Time, tree: Tree) -> Digest {
        self.map = core::mem::take(&mut self.map).moved_to(&tree);
        self.configuration = configuration::read(&self.map).map_or_else(|| Arc::clone(&self.first), Arc::new);
        self.executed = seq;
        self.time = time;
        self.tentative.clear();
        self.sealed.clear();
        self.ready.retain(|(ready, _)| *ready < seq);
        self.kept.split_off(&seq);
        self.stable = self.stable.min(seq);
        self.install = None;
        let digest = state_digest(seq, time, &tree.digest());
        self.kept.insert(seq, Kept { time, tree, digest });
        digest
    }

    /// Merges and hashes; whether a checkpoint was completed.
    fn work(&mut self, budget: &mut usize) -> bool {
        let Some((id, tree)) = self.map.poll(budget) else { return false };
        let (sealed, seq, time) = self.sealed.pop_front().expect("every seal is a checkpoint");
        assert_eq!(id, sealed, "trees come in the order of the seals");
        let digest = state_digest(seq, time, &tree.digest());
        // Below what is stable the newest own state is kept, too: a log may begin there.
        self.keep_from(self.stable);
        self.kept.insert(seq, Kept { time, tree, digest });
        self.ready.push_back((seq, digest));
        true
    }

    /// Keeps no checkpoint below this.
    fn keep_from(&mut self, seq: Seq) {
        let kept = self.kept.split_off(&seq);
        for old in core::mem::replace(&mut self.kept, kept).into_values() {
            self.discarded.take(old.tree);
        }
    }

    /// Runs the next batch. One whose time is not after the last one's (a null batch of a new view carries none)
    /// executes at the last one's: agreed time never goes back.
    fn run(&mut self, ordered: &Ordered) -> Outcome {
        assert_eq!(ordered.seq, self.executed.next(), "batches execute in order, without gaps");
        self.executed = ordered.seq;
        self.time = self.time.max(ordered.time);
        let mut outcome = Outcome::default();
        // What a batch wrote an earlier version has alone, so this keeps up with what is discarded.
        let operations = ordered.frames.iter().flat_map(|frame| frame.operations());
        let (count, bytes) =
            operations.fold((0, 0), |(count, bytes), operation| (count + 1, bytes + operation.len()));
        self.discarded.go_on(&mut (FREED_PER_BATCH + FREED_PER_OPERATION * count));
        let before = self.map.written();
        self.run_deadline(ordered.seed, &mut outcome);
        for frame in &ordered.frames {
            self.run_frame(frame, ordered.seed, &mut outcome);
        }
        self.keep_pace(self.map.written() - before, bytes);
        outcome
    }

    /// Works on what is sealed in proportion to what a batch wrote: so many keys and, at most, so many bytes. Under a load
    /// that leaves no time between batches seals would pile up, with all that was written since, until one of them had to
    /// be finished at once: with ten million keys that was a second and a half.
    fn keep_pace(&mut self, writes: usize, bytes: usize) {
        let beside = if self.map.sealed_writes() > LARGE_SEAL { 0 } else { PENDING_BESIDE };
        let beyond = self.map.pending().saturating_sub(beside);
        let work = writes.saturating_mul(WORK_PER_WRITE).saturating_add(bytes / BYTES_PER_WORK);
        let mut budget = work.saturating_mul(beyond);
        while budget > 0 && self.map.pending() > beside && self.work(&mut budget) {}
    }

    fn run_deadline(&mut self, seed: Digest, outcome: &mut Outcome) {
        let due = self.app.next_deadline(&StateView::new(&self.map));
        if due.is_none_or(|due| due > self.time) {
            return;
        }
        let mut events = Vec::new();
        let mut cx = OpContext::new(ClientId(0), 0, self.executed, self.time, seed, &mut events);
        self.app.on_deadline(&mut State::new(&mut self.map), &mut cx);
        self.put_events(events, outcome);
    }

    fn put_events(&mut self, events: Vec<(ClientId, Bytes)>, outcome: &mut Outcome) {
        for (to, payload) in events {
            let event = clients::push_event(&mut self.map, &self.limits, to, self.executed, payload);
            outcome.events.push(event);
        }
    }

    fn configure(&mut self, operation: &Bytes, outcome: &mut Outcome) -> Bytes {
        let (result, changed) = configuration::execute(
            &mut self.map,
            &self.configuration,
            operation,
            self.executed,
            self.settling,
        );
        if let Some(changed) = changed {
            self.configuration = Arc::clone(&changed);
            outcome.configuration = Some(changed);
        }
        result
    }

    fn run_frame(&mut self, frame: &VerifiedFrame, seed: Digest, outcome: &mut Outcome) {
        let (client, number) = (frame.client(), frame.number());
        let now = clients::is_new(&self.map, &self.limits, client, number);
        outcome.done.push(Done { client, number, now });
        if !now {
            return;
        }
        if self.configuration.is_removed(client) {
            // Ordered all the same: its place in the order decides, not who heard of the removal when.
            return;
        }
        if let Some(meter) = &self.meter {
            meter.begins();
        }
        // First, so that the events it causes find the room it made.
        let mut record = clients::record(&self.map, client);
        let made_room = clients::acknowledge(&mut self.map, &mut record, client, frame.events_seen());
        let within = Within { seq: self.executed, time: self.time, seed };
        let (app, limits) = (self.app.clone(), self.limits);
        let passes_over = |operation: &Bytes, made| passes_over(&app, &limits, client, operation, made);
        let too_large = || app.too_large();
        let mut operations = FrameOperations::new(frame, within, &limits, &passes_over, &too_large);
        if client == OPERATOR {
            while let Some((_, operation)) = operations.next() {
                operations.answer(self.configure(&operation, outcome));
            }
        } else {
            app.execute_frame(&mut State::new(&mut self.map), &mut operations);
        }
        let (results, events) = operations.finish();
        if !events.is_empty() {
            if made_room {
                clients::set_record(&mut self.map, client, &record);
            }
            self.put_events(events, outcome);
            record = clients::record(&self.map, client);
        }
        let reply = Reply {
            client,
            number,
            seq: self.executed,
            view: View(0),
            events_up_to: record.last_event,
            body: ReplyBody::Full(results),
        };
        clients::store(&mut self.map, &self.limits, &mut record, &reply);
        clients::set_record(&mut self.map, client, &record);
        outcome.replies.push(reply);
        if let Some(meter) = &self.meter {
            meter.executed(client);
        }
    }
}

impl<A: Application> Execution for Executor<A> {
    type Snapshot = Snapshot;

    fn metered(&mut self, meter: Arc<dyn Meter>) {
        self.meter = Some(meter);
    }

    fn meter(&self) -> Option<&dyn Meter> {
        self.meter.as_deref()
    }

    fn executed(&self) -> Seq {
        self.executed
    }

    fn committed(&self) -> Seq {
        self.tentative.front().map_or(self.executed, |first| Seq(first.seq.0 - 1))
    }

    fn configuration(&self) -> &Arc<Configuration> {
        &self.configuration
    }

    fn last_time(&self) -> Time {
        self.time
    }

    fn next_deadline(&self) -> Option<Time> {
        self.app.next_deadline(&StateView::new(&self.map))
    }

    fn lookup(&self, client: ClientId, number: u64) -> Lookup {
        clients::lookup(&self.map, &self.limits, client, number)
    }

    fn is_new(&self, client: ClientId, number: u64) -> bool {
        clients::is_new(&self.map, &self.limits, client, number)
    }

    fn kept_bytes(&self, client: ClientId, number: u64) -> usize {
        clients::kept_bytes(&self.map, &self.limits, client, number)
    }

    fn execute(&mut self, ordered: &Ordered) -> Outcome {
        assert!(self.tentative.is_empty(), "nothing final follows what is tentative");
        self.run(ordered)
    }

    fn execute_tentatively(&mut self, ordered: &Ordered) -> Outcome {
        let (mark, time, configuration) = (self.map.mark(), self.time, Arc::clone(&self.configuration));
        self.tentative.push_back(Tentative { seq: ordered.seq, mark, time, configuration });
        self.run(ordered)
    }

    fn commit(&mut self, through: Seq) {
        while self.tentative.pop_front_if(|first| first.seq <= through).is_some() {}
        match self.tentative.front() {
            Some(first) => self.map.forget_before(first.mark),
            None => self.map.release(),
        }
    }

    fn roll_back(&mut self, to: Seq) {
        assert!(to >= self.committed(), "what is committed stays");
        while let Some(last) = self.tentative.pop_back_if(|last| last.seq > to) {
            self.map.rollback(last.mark);
            let before = Seq(last.seq.0 - 1);
            (self.executed, self.time, self.configuration) = (before, last.time, last.configuration);
        }
        if self.tentative.is_empty() {
            self.map.release();
        }
    }

    fn query(&self, read: &Read) -> ReadReply {
        let result = match read.client {
            OPERATOR => configuration::query(&self.configuration, &read.operation, self.executed),
            client => self.app.query(&StateView::new(&self.map), client, &read.operation),
        };
        let fits = clients::fits(&self.limits, 0, &result).is_some();
        let result = if fits { result } else { self.app.too_large() };
        ReadReply {
            client: read.client,
            number: read.number,
            events_up_to: clients::record(&self.map, read.client).last_event,
            body: ReplyBody::Full(vec![result]),
        }
    }

    fn outbox(&self, client: ClientId) -> RangeInclusive<u64> {
        clients::outbox(&self.map, client)
    }

    fn event(&self, client: ClientId, index: u64) -> Event {
        clients::event(&self.map, client, index)
    }

    fn checkpoint(&mut self) {
        while self.map.pending() >= MAX_PENDING {
            self.work(&mut { usize::MAX });
        }
        assert!(self.tentative.is_empty(), "a checkpoint holds what is final");
        self.sealed.push_back((self.map.seal(), self.executed, self.time));
    }

    fn hashing(&self) -> bool {
        self.map.pending() > 0 || !self.ready.is_empty() || !self.discarded.is_empty() || self.map.is_moving()
    }

    fn poll_checkpoint(&mut self, mut budget: usize) -> Option<(Seq, Digest)> {
        // With more to do the slices are longer: checkpoints must not come quicker than they are done.
        budget = budget.saturating_mul(1 + self.map.pending() / 2);
        if self.ready.is_empty() {
            self.work(&mut budget);
        }
        self.discarded.go_on(&mut budget);
        self.ready.pop_front()
    }

    fn stable(&mut self, seq: Seq) {
        self.stable = self.stable.max(seq);
        // Where no own state is that far, the newest stays: a log may begin there.
        self.keep_from(self.kept.keys().next_back().map_or(seq, |newest| seq.min(*newest)));
    }

    fn serve(&self, fetch: &StateFetch) -> Option<StatePiece> {
        let kept = self.kept.get(&fetch.seq).filter(|kept| kept.digest == fetch.digest)?;
        piece(kept.time, &kept.tree, fetch)
    }

    fn begin_install(&mut self, seq: Seq, digest: Digest) -> Vec<StateFetch> {
        let (earlier, map) = (self.install.take(), &mut self.map);
        self.install.insert(Install::after(earlier, seq, digest, || map.tree_now())).wanted()
    }

    fn abandon_install(&mut self) {
        self.discarded.extend(self.install.take().map(Install::into_local));
    }

    fn on_piece(&mut self, piece: &StatePiece) -> Installing {
        let meant = |install: &&mut Install| (install.seq, install.digest) == (piece.seq, piece.digest);
        let Some(install) = self.install.as_mut().filter(meant) else { return Installing::NotWanted };
        match install.on_piece(piece) {
            Progress::Wants(fetches) => Installing::Wants(fetches),
            Progress::Bad => Installing::Rejected,
            Progress::Unasked => Installing::NotWanted,
            Progress::Complete(time, tree) => {
                self.stand_at(piece.seq, time, tree);
                Installing::Done
            }
        }
    }

    fn wanted(&mut self) -> Vec<StateFetch> {
        self.install.as_mut().map_or_else(Vec::new, Install::wanted)
    }

    fn snapshot(&self, seq: Seq) -> Option<Snapshot> {
        // One whose digest nobody was told, and compared with the others', may be wrong.
        let told = self.ready.iter().all(|(ready, _)| *ready != seq);
        let kept = self.kept.get(&seq).filter(|_| told);
        kept.map(|kept| Snapshot::of(seq, kept.time, kept.tree.clone()))
    }

    fn restore(&mut self, snapshot: Snapshot) -> (Seq, Digest) {
        (self.kept, self.ready) = Default::default();
        let (seq, time) = (snapshot.seq(), snapshot.time());
        (seq, self.stand_at(seq, time, snapshot.into_tree()))
    }
}
