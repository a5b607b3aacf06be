//! The state of a MinBFT replica, and how certified messages pass through it in order.

use crate::candidates::Candidates;
use crate::checkpoint::DueCheckpoint;
use crate::known_views::KnownViews;
use crate::message::{Body, Certified, Checkpoint, SignedRequest, StableProof};
use crate::peer::{Logged, Peer};
use crate::place::Place;
use crate::{Config, evidence};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use troth_blocks::{BackOff, FrameStore, Lag, Offered, OrderedAt, Pace, RequestPool, Shown, Voters};
use troth_core::{Cx, Reached, rule};
use troth_trusted::{CounterId, CounterValue};
use troth_types::{Batch, Configuration, Digest, Group, ReplicaId, Seq, Time, View};

/// MinBFT uses one counter of the component.
pub const COUNTER: CounterId = CounterId(0);

/// VIEW-CHANGEs and NEW-VIEWs of one sender held back ahead of their turn: large ones. What finds no place is served again.
const MOST_HEAVY: usize = 4;

/// Names of MinBFT's timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// The oldest pending request has waited half its time: show it to the primary.
    Forward,
    /// The oldest pending request has waited too long: suspect the primary.
    Request,
    /// The NEW-VIEW has not come: want the next view.
    NewView,
    /// Compare notes with the others.
    Status,
    /// Still behind a stable checkpoint: fetch its state.
    Behind,
    /// The application's deadline is due.
    Deadline,
    /// The application's deadline was due a request's patience ago: suspect the primary.
    Overdue,
    /// Frames that a PREPARE names have not come: ask the primary for them.
    Fetch,
    /// Look at how fast the primary orders.
    Pace,
    /// The oldest pending request was shown to the primary a while ago: see whether others overtake it.
    Overtaken,
}

/// Where a replica stands in its view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It works in the view.
    Active,
    /// It left the older views and waits for this one's NEW-VIEW.
    Changing,
}

/// One sequence number of the present view.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Slot {
    /// The primary's PREPARE.
    pub(crate) prepare: Option<Arc<Certified>>,
    /// When this replica committed to it: from then on it waits for nothing of the primary's.
    pub(crate) at: Time,
    /// Who committed, and to which PREPARE: its counter value and its digest.
    pub(crate) commits: BTreeMap<ReplicaId, (CounterValue, Digest)>,
}

impl Slot {
    /// The batch, once the PREPARE is here.
    pub(crate) fn batch(&self) -> Option<&Batch> {
        self.prepare.as_ref().and_then(|message| message.prepare()).map(|prepare| &prepare.batch)
    }

    /// Who committed to the PREPARE that this replica processed; the primary did by sending it.
    pub(crate) fn voters(&self) -> Voters {
        let Some(prepare) = &self.prepare else { return Voters::NONE };
        let same = self.commits.iter().filter(|(_, to)| **to == (prepare.value(), prepare.digest));
        let mut voters: Voters = same.map(|(replica, _)| *replica).collect();
        voters.insert(prepare.from);
        voters
    }
}

/// What the present view started from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    /// The checkpoint.
    pub(crate) base: Seq,
    /// The batches carried over, from base+1.
    pub(crate) chosen: Vec<Batch>,
    /// The digest certified for the NEW-VIEW; zero in view 0.
    pub(crate) digest: Digest,
    /// Who committed to the NEW-VIEW.
    pub(crate) accepted: Voters,
}

impl Started {
    /// The last number that the view started with.
    pub(crate) fn end(&self) -> Seq {
        Seq(self.base.0 + self.chosen.len() as u64)
    }
}

/// A MinBFT replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinBft {
    pub(crate) config: Config,
    pub(crate) me: ReplicaId,
    pub(crate) group: Group,
    /// Who the replicas are, after the last executed batch.
    pub(crate) configuration: Arc<Configuration>,
    /// The epoch of this replica's component; where none is given, the one that the group began with.
    pub(crate) own_epoch: Option<u64>,
    /// A delivered batch that may change the configuration; nothing is delivered before its outcome is known.
    pub(crate) awaited: Option<Seq>,
    pub(crate) view: View,
    pub(crate) phase: Phase,
    pub(crate) started: Started,
    pub(crate) peers: Vec<Peer>,
    /// The counter value of the last message this replica asked to have certified.
    pub(crate) requested: CounterValue,
    /// The last number this replica committed to (as primary: proposed) in its view.
    pub(crate) committed: Seq,
    /// The last own checkpoint this replica asked to have certified.
    pub(crate) own_checkpoint: Checkpoint,
    /// Own checkpoints whose CHECKPOINT waits: none is certified while a view changes.
    pub(crate) due_checkpoints: VecDeque<DueCheckpoint>,
    /// The digests of own checkpoints not below the stable one.
    pub(crate) own_digests: BTreeMap<Seq, Digest>,
    /// The newest own state with a known digest, where a log may begin.
    pub(crate) own_state: Seq,
    pub(crate) slots: BTreeMap<Seq, Slot>,
    /// The last batch handed to the executor, and what the executor reached.
    pub(crate) delivered: Seq,
    pub(crate) reached: Reached,
    /// The batches executed above the stable checkpoint.
    pub(crate) decided: BTreeMap<Seq, Batch>,
    pub(crate) pool: RequestPool,
    pub(crate) frames: FrameStore,
    /// Missing frames are about to be asked for.
    pub(crate) fetching: bool,
    /// Frames of batches up to this one the primary of the view was asked for.
    pub(crate) asked_up_to: Seq,
    /// The pending request that the timers run for.
    pub(crate) timed: Option<u64>,
    /// How fast the primary orders, beside the others.
    pub(crate) pace: Pace,
    /// The timer of the next look at the primary is set.
    pub(crate) looking: bool,
    /// When the batches were proposed that are handed to the executor.
    pub(crate) proposed_at: OrderedAt,
    /// The oldest requests, as they were shown to the primary.
    pub(crate) shown: Option<Shown>,
    pub(crate) stable: (Seq, Digest),
    pub(crate) stable_proof: Arc<StableProof>,
    /// What a readmitted replica may begin on where it may not on that.
    pub(crate) lowest_proof: Option<Arc<StableProof>>,
    pub(crate) checkpoint_votes: BTreeMap<Seq, BTreeMap<ReplicaId, Arc<Certified>>>,
    /// The highest view this replica asked for, and everybody's latest REQ-VIEW-CHANGE.
    pub(crate) wanted_view: View,
    pub(crate) requests: BTreeMap<ReplicaId, Arc<SignedRequest>>,
    /// The justification of the VIEW-CHANGE that this replica has yet to have certified.
    pub(crate) due_view_change: Option<Vec<Arc<SignedRequest>>>,
    /// The latest VIEW-CHANGE of each replica.
    pub(crate) changes: BTreeMap<ReplicaId, Arc<Certified>>,
    pub(crate) candidates: Candidates,
    /// Whether this replica, as primary of its view, has asked to have its NEW-VIEW certified.
    pub(crate) proposed_view: bool,
    /// Valid NEW-VIEWs that commitments in somebody's log may refer to, and those that are needed.
    pub(crate) known_views: KnownViews,
    pub(crate) back_off: BackOff,
    /// Until this is executed, no reads are answered (F-M11).
    pub(crate) read_barrier: Seq,
    pub(crate) suspicions: u64,
    pub(crate) round: u64,
    pub(crate) lag: Lag,
    /// Its own state was found to differ from a stable one, which is on its way.
    pub(crate) repairing: bool,
    /// Messages of others may have become processable.
    pub(crate) recheck: bool,
}

/// What became of a message whose turn it was.
pub(crate) enum Verdict {
    /// It is processed.
    Done,
    /// It waits: for its view, for bodies, for evidence, for the window.
    Wait,
    /// It proves that its sender broke a rule.
    Condemn(&'static str),
}

impl MinBft {
    /// A replica in the genesis state. The configuration must pass [`Config::check`].
    #[must_use]
    pub fn new(me: ReplicaId, group: Group, config: Config) -> Self {
        config.check().expect("the configuration was checked");
        let started = Started {
            base: Seq(0),
            chosen: Vec::new(),
            digest: Digest::ZERO,
            accepted: group.all().collect(),
        };
        Self {
            config,
            me,
            group,
            configuration: Arc::default(),
            own_epoch: None,
            awaited: None,
            view: View(0),
            phase: Phase::Active,
            started,
            peers: group.all().map(|_| Peer::new(&config)).collect(),
            requested: CounterValue(0),
            committed: Seq(0),
            own_checkpoint: Checkpoint::default(),
            due_checkpoints: VecDeque::new(),
            own_digests: BTreeMap::new(),
            own_state: Seq(0),
            slots: BTreeMap::new(),
            delivered: Seq(0),
            reached: Reached::default(),
            decided: BTreeMap::new(),
            // Every number of the window fits: a primary without room for what backups show would be suspected.
            pool: RequestPool::new(config.limits.client_window, config.pending_bytes()),
            frames: FrameStore::default(),
            fetching: false,
            asked_up_to: Seq(0),
            timed: None,
            pace: Pace::default(),
            looking: false,
            proposed_at: OrderedAt::default(),
            shown: None,
            stable: (Seq(0), Digest::ZERO),
            stable_proof: Arc::default(),
            lowest_proof: None,
            checkpoint_votes: BTreeMap::new(),
            wanted_view: View(0),
            requests: BTreeMap::new(),
            due_view_change: None,
            changes: BTreeMap::new(),
            candidates: Candidates::default(),
            proposed_view: false,
            known_views: KnownViews::default(),
            back_off: BackOff::default(),
            read_barrier: Seq(0),
            suspicions: 0,
            round: 0,
            lag: Lag::default(),
            repairing: false,
            recheck: false,
        }
    }

    pub(crate) fn primary(&self) -> ReplicaId {
        self.group.primary(self.view)
    }

    pub(crate) fn is_primary(&self) -> bool {
        self.primary() == self.me
    }

    pub(crate) fn active(&self) -> bool {
        self.phase == Phase::Active
    }

    pub(crate) fn peer(&self, replica: ReplicaId) -> &Peer {
        &self.peers[usize::from(replica.0)]
    }

    pub(crate) fn peer_mut(&mut self, replica: ReplicaId) -> &mut Peer {
        &mut self.peers[usize::from(replica.0)]
    }

    /// The highest number that may be committed to now: within the window of the stable checkpoint
    /// and of the own one.
    pub(crate) fn highest(&self) -> Seq {
        rule!("MINBFT-W2");
        let plain = self.config.follows(crate::Flaw::AdoptCounters);
        let own = if plain { self.own_checkpoint.seq } else { Place::of(self.requested).checkpoint };
        Seq(self.stable.0.min(own).0 + self.config.window)
    }

    /// Asks for the next counter value in the present view for a body.
    pub(crate) fn certify(&mut self, cx: &mut Cx<'_, Self>, body: Body) {
        rule!("MINBFT-U1");
        let plain = self.config.follows(crate::Flaw::AdoptCounters);
        let new = match &body {
            Body::Checkpoint(checkpoint) if !plain => {
                Place::of_checkpoint(self.view, checkpoint.seq).expect("a group ends before its 2^44th batch")
            }
            _ => self.requested.next().expect("a counter of 128 bits is never spent"),
        };
        cx.certify(COUNTER, self.requested, new, body, troth_core::To::Others);
        self.requested = new;
    }

    /// Whether every own message has come back certified.
    pub(crate) fn caught_up_with_itself(&self) -> bool {
        self.peer(self.me).gate.processed() == self.requested
    }

    pub(crate) fn condemn(&mut self, cx: &mut Cx<'_, Self>, replica: ReplicaId, why: &'static str) {
        if self.peer(replica).condemned.is_none() {
            self.peer_mut(replica).condemned = Some(why);
            cx.accuse(replica, why);
            self.changes.remove(&replica);
            if replica == self.primary() {
                self.suspect(cx, "it provably broke a rule");
            }
        }
    }

    /// Notes a message that comes from its author and was processed already: inside another's COMMIT, or re-served.
    /// Its author had to send it, once.
    pub(crate) fn note_repetition(&mut self, from: ReplicaId, message: &Certified) {
        if message.from != from || from == self.me {
            return;
        }
        let (value, peer) = (message.value(), self.peer_mut(from));
        if value <= peer.gate.processed() {
            peer.repeated = peer.repeated.max(value);
        }
    }

    /// Takes a certified message into its sender's order and processes whatever is next.
    pub(crate) fn accept(&mut self, cx: &mut Cx<'_, Self>, message: Arc<Certified>) {
        let from = message.from;
        self.offer(message);
        self.drain(cx, from);
        self.settle(cx);
    }

    /// Whether a VIEW-CHANGE or NEW-VIEW may still have its turn: it is of a replica that broke no rule, was not processed and
    /// does not wait here.
    pub(crate) fn may_bring(&self, message: &Certified) -> bool {
        let (Body::ViewChange(_) | Body::NewView(_)) = &message.body else { return true };
        if !self.group.contains(message.from) {
            return false;
        }
        let peer = self.peer(message.from);
        peer.condemned.is_none() && message.value() > peer.gate.processed() && !self.holds_back(message)
    }

    /// Whether a message waits here for those before it.
    pub(crate) fn holds_back(&self, message: &Certified) -> bool {
        let value = message.value();
        self.group.contains(message.from)
            && self.peer(message.from).gate.waiting().any(|waiting| waiting.value() == value)
    }

    /// Whether no list of a VIEW-CHANGE or NEW-VIEW names more replicas than there are.
    pub(crate) fn fits_the_group(&self, message: &Certified) -> bool {
        let n = self.group.n();
        match &message.body {
            Body::ViewChange(change) => change.requests.len() <= n && change.stable.votes.len() <= n,
            Body::NewView(start) => {
                start.changes.len() <= n && start.changes.iter().all(|change| self.fits_the_group(change))
            }
            _ => true,
        }
    }

    /// Puts a message into its sender's hold-back; says whether it is news.
    pub(crate) fn offer(&mut self, message: Arc<Certified>) -> bool {
        rule!("MINBFT-U3");
        let (predecessor, value) = (message.ui.predecessor(), message.value());
        let mine = message.from == self.me;
        if !self.is_present(&message) {
            return false;
        }
        let most = self.config.limits.batch_frames;
        let peer = self.peer_mut(message.from);
        // One that names more frames than a batch may is refused in its turn, and large until then.
        let heavy = |message: &Certified| match &message.body {
            Body::ViewChange(_) | Body::NewView(_) => true,
            Body::Prepare(prepare) => prepare.batch.frames.len() > most,
            Body::Commit(commit) => {
                commit.prepare.prepare().is_some_and(|prepare| prepare.batch.frames.len() > most)
            }
            _ => false,
        };
        if !mine
            && heavy(&message)
            && predecessor != peer.gate.processed()
            && peer.gate.waiting().filter(|waiting| heavy(waiting)).count() >= MOST_HEAVY
        {
            return false;
        }
        peer.condemned.is_none() && peer.gate.offer(predecessor, value, message) == Offered::Held
    }

    /// Processes messages of a sender as long as the next one is here and may be processed.
    pub(crate) fn drain(&mut self, cx: &mut Cx<'_, Self>, from: ReplicaId) {
        loop {
            if self.peer(from).condemned.is_some() {
                return;
            }
            let Some(message) = self.peer(from).gate.next() else {
                if !self.pass_over_gap(from) {
                    return;
                }
                continue;
            };
            match self.process(cx, &message) {
                Verdict::Wait => return,
                Verdict::Condemn(why) => return self.condemn(cx, from, why),
                Verdict::Done => {
                    let at = cx.now();
                    let peer = self.peer_mut(from);
                    peer.gate.advance();
                    peer.log.push_back(Logged { message, at });
                    if from == self.me {
                        self.try_view_change(cx);
                    }
                }
            }
        }
    }

    /// A replica that was brought up by state transfer misses what others dropped. It goes on at a
    /// sender's own checkpoint that covers: every commitment passed over is not above what is stable, and
    /// no older view can hide there, because counter values order views (deviation D2, F-M3). What the
    /// sender commits to later at a number that is stable may contradict what was passed over: it is
    /// followed, and counts for nothing. The first message of an admitted component is never passed over.
    fn pass_over_gap(&mut self, from: ReplicaId) -> bool {
        if !self.peer(from).gate.has_gap() || !self.has_judged_the_first_of(from) {
            return false;
        }
        let (config, stable) = (self.config, self.stable.0);
        let peer = self.peer_mut(from);
        let jumped = peer.gate.jump_to(|message| match &message.body {
            Body::Checkpoint(checkpoint) => {
                let literally = config.follows(crate::Flaw::AdoptCounters) && checkpoint.seq <= stable;
                literally || evidence::covers(&config, checkpoint.seq, stable)
            }
            _ => false,
        });
        if jumped {
            rule!("MINBFT-T2");
            peer.walk.last = None;
            peer.walk.checkpoint = Seq(0);
            peer.floor = stable;
            peer.log.clear();
        }
        jumped
    }

    fn process(&mut self, cx: &mut Cx<'_, Self>, message: &Arc<Certified>) -> Verdict {
        if let Some(why) = evidence::misplaced(&self.group, &self.config, message) {
            return Verdict::Condemn(why);
        }
        rule!("MINBFT-E3");
        let begins = self.peer(message.from).gate.processed().0 == 0
            && evidence::admitted(&self.configuration, message);
        if begins && message.view_change().is_none() {
            return Verdict::Condemn("a readmitted replica that does not begin with a VIEW-CHANGE");
        }
        match &message.body {
            Body::Prepare(prepare) => self.on_prepare(cx, message, prepare),
            Body::Commit(commit) => self.on_commit(cx, message, commit),
            Body::Checkpoint(checkpoint) => self.on_checkpoint_vote(cx, message, checkpoint),
            Body::ViewChange(_) => self.on_view_change(cx, message),
            Body::NewView(new_view) => self.on_new_view(cx, message, new_view),
            Body::AcceptNewView(accept) => self.on_accept_new_view(cx, message, accept),
            Body::RequestViewChange(_) => Verdict::Condemn("a certified REQ-VIEW-CHANGE"),
        }
    }

    /// After any event: whatever other senders' messages waited for may have come true.
    pub(crate) fn settle(&mut self, cx: &mut Cx<'_, Self>) {
        while std::mem::take(&mut self.recheck) {
            self.candidates.reconsider = true;
            for replica in self.group.all() {
                self.drain(cx, replica);
            }
        }
        self.progress(cx);
    }

    /// Whatever this replica may do now on its own.
    pub(crate) fn progress(&mut self, cx: &mut Cx<'_, Self>) {
        self.try_view_change(cx);
        self.try_begin_view(cx);
        // After a state transfer the own checkpoint is what lets the next commitment skip numbers.
        self.try_checkpoint(cx);
        self.try_commit(cx);
        self.try_execute(cx);
        self.try_propose(cx);
        self.watch_oldest(cx);
        self.watch_pace(cx);
        if std::mem::take(&mut self.recheck) {
            self.recheck = true;
            self.settle(cx);
        }
    }
}
