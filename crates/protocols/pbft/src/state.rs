//! The state of a PBFT replica, and what it may do on its own after any event.

use crate::Config;
use crate::choose::null;
use crate::distrust::Distrust;
use crate::message::{Entry, Signed, StableProof, Vote};
use crate::tentative::Tentative;
use std::collections::{BTreeMap, BTreeSet, VecDeque, btree_map};
use std::sync::Arc;
use troth_blocks::{
    BackOff, FrameStore, LackedFrames, Lag, Lateness, OrderedAt, Pace, RequestPool, Shown, ShownAgain, Voters,
};
use troth_core::{Cx, Reached, rule};
use troth_types::{Batch, Digest, Frame, Group, ReplicaId, Seq, Time, View};

/// Batches ahead of the last executed one whose frames are wanted, at least.
const LEAST_AHEAD: u64 = 4;

/// Names of PBFT's timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// The oldest pending request has waited for a while: show it to the primary.
    Forward,
    /// The oldest pending request has waited too long: wish for the next view.
    Request,
    /// The NEW-VIEW has not come: leave for the next view.
    NewView,
    /// Compare notes with the others.
    Status,
    /// Still behind a stable checkpoint: fetch its state.
    Behind,
    /// The application's deadline is due.
    Deadline,
    /// The application's deadline was due a request's patience ago: wish for the next view.
    Overdue,
    /// Frames or batches that somebody named have not come: ask for them.
    Fetch,
    /// Look at how long requests waited.
    Pace,
    /// The oldest pending request was shown to the primary a while ago: see whether others overtake it.
    Overtaken,
}

/// One sequence number of the present view (the paper's log).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Slot {
    /// What the primary proposed, by PRE-PREPARE or NEW-VIEW: the first that came.
    pub(crate) proposal: Option<(Digest, Batch)>,
    /// Whether this replica has pre-prepared it: it is in Q, and its PREPARE is on its way.
    pub(crate) pre_prepared: bool,
    /// Who voted for what with a PREPARE; the primary with its proposal.
    pub(crate) prepares: BTreeMap<ReplicaId, Digest>,
    /// Whether the batch prepared here: it is in P, and the COMMIT is on its way.
    pub(crate) prepared: bool,
    /// Who voted for what with a COMMIT.
    pub(crate) commits: BTreeMap<ReplicaId, Digest>,
    /// When own messages of this number were sent last.
    pub(crate) sent: Time,
    /// Who passed a batch for it on to this replica.
    pub(crate) passed_on: Voters,
    /// Whether who helped before was asked at once for a batch for it.
    pub(crate) asked_helper: bool,
}

impl Slot {
    /// Who voted for this batch with a PREPARE or by proposing it.
    pub(crate) fn voters(&self, digest: &Digest) -> Voters {
        of(&self.prepares, digest)
    }

    /// The batch that so many backups sent a PREPARE for, where the primary proposed nothing.
    pub(crate) fn prepared_by(&self, weak: usize) -> Option<Digest> {
        let mut named = self.prepares.values().filter(|_| self.proposal.is_none());
        named.find(|digest| of(&self.prepares, digest).count() >= weak).copied()
    }

    /// One of those who committed to this batch, where so many did.
    pub(crate) fn first_committer(&self, digest: &Digest, weak: usize) -> Option<ReplicaId> {
        let mut committed = self.commits.iter().filter(|(_, voted)| *voted == digest).map(|(by, _)| *by);
        let enough = of(&self.commits, digest).count() >= weak;
        committed.next_back().filter(|_| enough)
    }

    /// Whether a replica voted for this batch.
    pub(crate) fn has_vote(&self, by: ReplicaId, digest: &Digest) -> bool {
        [&self.prepares, &self.commits].into_iter().any(|votes| votes.get(&by) == Some(digest))
    }

    /// The batch that `quorum` distinct replicas committed to, if there is one.
    pub(crate) fn committed(&self, quorum: usize) -> Option<Digest> {
        let digest = self.commits.values().find(|digest| of(&self.commits, digest).count() >= quorum);
        digest.copied()
    }

    /// A batch that one correct replica at least voted for, and that is not the one proposed here.
    pub(crate) fn named_elsewhere(&self, weak: usize) -> Option<Digest> {
        let proposed = self.proposal.as_ref().map(|(digest, _)| *digest);
        let named = self.prepares.values().chain(self.commits.values()).copied();
        let mut others = named.filter(|digest| Some(*digest) != proposed);
        others
            .find(|digest| of(&self.prepares, digest).count().max(of(&self.commits, digest).count()) >= weak)
    }
}

/// What a vote is to those that came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voted {
    /// The first of its sender, which counts.
    First,
    /// The same once more.
    Again,
    /// For another batch than the first.
    Otherwise,
}

/// Notes a vote: the first of its sender counts.
pub(crate) fn first(votes: &mut BTreeMap<ReplicaId, Digest>, from: ReplicaId, digest: Digest) -> Voted {
    match votes.entry(from) {
        btree_map::Entry::Vacant(vacant) => {
            vacant.insert(digest);
            Voted::First
        }
        btree_map::Entry::Occupied(voted) if *voted.get() == digest => Voted::Again,
        btree_map::Entry::Occupied(_) => Voted::Otherwise,
    }
}

fn of(votes: &BTreeMap<ReplicaId, Digest>, digest: &Digest) -> Voters {
    votes.iter().filter(|(_, voted)| *voted == digest).map(|(replica, _)| *replica).collect()
}

/// What the present view started from.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Started {
    /// Its NEW-VIEW; none in view 0.
    pub(crate) by: Option<Arc<Signed>>,
    /// The last number that it carries over.
    pub(crate) end: Seq,
    /// The digests of the batches that it carries over, up to there.
    pub(crate) chosen: Vec<Digest>,
}

/// A PBFT replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pbft {
    pub(crate) config: Config,
    pub(crate) me: ReplicaId,
    pub(crate) group: Group,
    pub(crate) view: View,
    /// Whether it works in the view; otherwise it waits for the view's NEW-VIEW.
    pub(crate) active: bool,
    pub(crate) started: Started,
    pub(crate) slots: BTreeMap<Seq, Slot>,
    /// Numbers whose slots may have become ready for something.
    pub(crate) touched: BTreeSet<Seq>,
    /// As primary: the last number proposed in the view.
    pub(crate) proposed: Seq,
    /// P: for each number above the stable checkpoint, what prepared last.
    pub(crate) prepared: BTreeMap<Seq, Entry>,
    /// Q: for each number above it and each batch, the last view in which it was pre-prepared.
    pub(crate) pre_prepared: BTreeMap<Seq, BTreeMap<Digest, View>>,
    /// The batches that P, Q and the slots name, as far as they are here.
    pub(crate) batches: BTreeMap<Digest, Batch>,
    /// How many they were when those were let go last that nothing names any more.
    pub(crate) batches_kept: usize,
    /// The last batch whose place is final and that was handed to the executor, and what the executor reached.
    pub(crate) delivered: Seq,
    pub(crate) reached: Reached,
    /// What was executed beyond, before it committed, in order.
    pub(crate) tentative: BTreeMap<Seq, Tentative>,
    /// The last number for which everybody's vote came.
    pub(crate) all_voted: Seq,
    /// The batches executed above the stable checkpoint.
    pub(crate) decided: BTreeMap<Seq, Batch>,
    pub(crate) pool: RequestPool,
    pub(crate) frames: FrameStore,
    /// Frames that a proposal names and whose tag for this replica is wrong.
    pub(crate) doubtful: BTreeMap<Digest, Arc<Frame>>,
    /// Clients of whom only what is signed is proposed, and who complained of whom.
    pub(crate) distrust: Distrust,
    /// Somebody is about to be asked for missing frames or batches.
    pub(crate) fetching: bool,
    /// More than f replicas may have voted for a batch that is not here.
    pub(crate) named: bool,
    /// The pending request that the timers run for, and whether it was executed and gave way to a newer one.
    pub(crate) timed: Option<u64>,
    pub(crate) gave_way: bool,
    /// When that one has waited too long.
    pub(crate) request_due: Time,
    /// How fast batches are agreed on.
    pub(crate) pace: Pace,
    /// The timer of the next look at the primary is set, and for when.
    pub(crate) looking: bool,
    pub(crate) look_due: Time,
    /// For when the timer of the next status is set.
    pub(crate) status_due: Time,
    /// How late this replica comes to its timers.
    pub(crate) lateness: Lateness,
    /// When the batches committed that are handed to the executor.
    pub(crate) committed_at: OrderedAt,
    /// The oldest requests, as they were shown to the primary.
    pub(crate) shown: Option<Shown>,
    /// Whether it finds the primary of the view wanting; whether the request that the timers run for has waited too long;
    /// and whether the application's deadline has.
    pub(crate) wanting: bool,
    pub(crate) impatient: bool,
    pub(crate) overdue: bool,
    /// Who of the others would rather have the next view's primary.
    pub(crate) wished_by: Voters,
    pub(crate) stable: (Seq, Digest),
    pub(crate) stable_proof: Arc<StableProof>,
    /// Votes for checkpoints not below the stable one.
    pub(crate) checkpoint_votes: BTreeMap<Seq, BTreeMap<ReplicaId, Arc<Signed>>>,
    /// Whether more votes for the stable one are asked for.
    pub(crate) seeks_votes: bool,
    /// The digests of own checkpoints not below the stable one.
    pub(crate) own_digests: BTreeMap<Seq, Digest>,
    /// The newest own state with a known digest, where a log may begin.
    pub(crate) own_state: Seq,
    /// Own checkpoints yet to be signed.
    pub(crate) due_checkpoints: VecDeque<(Seq, Digest)>,
    /// The VIEW-CHANGE to the highest view of each replica.
    pub(crate) changes: BTreeMap<ReplicaId, Arc<Signed>>,
    /// Batches that the choice of a new view's start lacks.
    pub(crate) lacking: Vec<Digest>,
    /// Whether anything came since the start of a new view was last computed that may decide it.
    pub(crate) reconsider: bool,
    /// Frames alone that it lacked then.
    pub(crate) start_lacks: LackedFrames,
    /// How often each replica was shown, in which view that has not begun, the NEW-VIEW by which this one entered its last.
    pub(crate) start_shown: BTreeMap<ReplicaId, (View, u8)>,
    /// When each was shown that of the present view.
    pub(crate) shown_starts: BTreeMap<ReplicaId, ShownAgain<View>>,
    /// Whether this replica, as primary of its view, has signed its NEW-VIEW.
    pub(crate) proposed_view: bool,
    /// Whether the timer for the NEW-VIEW runs.
    pub(crate) waits_for_view: bool,
    pub(crate) back_off: BackOff,
    /// Who provably broke a rule.
    pub(crate) accused: Voters,
    /// How many messages did.
    pub(crate) broken: u64,
    /// How many VIEW-CHANGEs and CHECKPOINTs were of no use to it.
    pub(crate) in_vain: u64,
    /// When a status of each replica was answered last.
    pub(crate) answered: BTreeMap<ReplicaId, Time>,
    /// Until when each replica is shown no batches, as it was shown some.
    pub(crate) shown_batches: BTreeMap<ReplicaId, Time>,
    /// Who showed a batch that the primary did not, and how many proposals it has shown since.
    pub(crate) left_out: Option<(ReplicaId, u64)>,
    /// Batches that were passed on in this view and that fewer than f+1 replicas may have voted for.
    pub(crate) passed: BTreeSet<Digest>,
    /// Until when each replica has been passed as many batches as it may.
    pub(crate) passed_batches: BTreeMap<ReplicaId, Time>,
    /// Until when what somebody shows that was asked for batches may bring something.
    pub(crate) helpers: BTreeMap<ReplicaId, Time>,
    /// Who was shown batches, and until when what comes is passed on to it.
    pub(crate) helped: BTreeMap<ReplicaId, Time>,
    pub(crate) suspicions: u64,
    /// How many messages of others have brought this replica further.
    pub(crate) useful: u64,
    pub(crate) round: u64,
    pub(crate) lag: Lag,
    /// The time of the request waited for ended while this replica was behind.
    pub(crate) time_is_over: bool,
    /// Whether it has been behind since it looked at the primary last, and whether it passed over that look for this.
    pub(crate) lagged: bool,
    pub(crate) spared: bool,
    /// Its own state was found to differ from a stable one, which is on its way.
    pub(crate) repairing: bool,
    /// The number up to which batches without frames are proposed where nothing else is.
    pub(crate) filled: Seq,
    /// It has had its first event: what it promised before is known.
    pub(crate) begun: bool,
}

impl Pbft {
    /// A replica in the genesis state. The configuration must pass [`Config::check`].
    #[must_use]
    pub fn new(me: ReplicaId, group: Group, config: Config) -> Self {
        config.check().expect("the configuration was checked");
        Self {
            config,
            me,
            group,
            view: View(0),
            active: true,
            started: Started::default(),
            slots: BTreeMap::new(),
            touched: BTreeSet::new(),
            proposed: Seq(0),
            prepared: BTreeMap::new(),
            pre_prepared: BTreeMap::new(),
            batches: BTreeMap::new(),
            batches_kept: 0,
            delivered: Seq(0),
            reached: Reached::default(),
            tentative: BTreeMap::new(),
            all_voted: Seq(0),
            decided: BTreeMap::new(),
            pool: RequestPool::new(config.limits.client_window, config.pending_bytes()),
            frames: FrameStore::default(),
            doubtful: BTreeMap::new(),
            distrust: Distrust::default(),
            fetching: false,
            named: false,
            timed: None,
            gave_way: false,
            request_due: Time::default(),
            pace: Pace::default(),
            looking: false,
            look_due: Time(0),
            status_due: Time(0),
            lateness: Lateness::default(),
            committed_at: OrderedAt::default(),
            shown: None,
            wanting: false,
            impatient: false,
            overdue: false,
            wished_by: Voters::NONE,
            stable: (Seq(0), Digest::ZERO),
            stable_proof: Arc::default(),
            filled: Seq(0),
            begun: false,
            checkpoint_votes: BTreeMap::new(),
            seeks_votes: false,
            own_digests: BTreeMap::new(),
            own_state: Seq(0),
            due_checkpoints: VecDeque::new(),
            changes: BTreeMap::new(),
            lacking: Vec::new(),
            reconsider: false,
            start_lacks: LackedFrames::default(),
            start_shown: BTreeMap::new(),
            shown_starts: BTreeMap::new(),
            proposed_view: false,
            waits_for_view: false,
            back_off: BackOff::default(),
            accused: Voters::NONE,
            broken: 0,
            in_vain: 0,
            answered: BTreeMap::new(),
            shown_batches: BTreeMap::new(),
            left_out: None,
            passed: BTreeSet::new(),
            passed_batches: BTreeMap::new(),
            helpers: BTreeMap::new(),
            helped: BTreeMap::new(),
            suspicions: 0,
            useful: 0,
            round: 0,
            lag: Lag::default(),
            time_is_over: false,
            lagged: false,
            spared: false,
            repairing: false,
        }
    }

    pub(crate) fn primary(&self) -> ReplicaId {
        self.group.primary(self.view)
    }

    pub(crate) fn is_primary(&self) -> bool {
        self.primary() == self.me
    }

    /// The high water mark H: the highest number that may be voted for now.
    pub(crate) fn highest(&self) -> Seq {
        Seq(self.stable.0.0 + self.config.window)
    }

    /// The lowest number that has a slot: what is stable is still executed by a replica that is a little behind; one
    /// that is a window behind has its state transferred.
    pub(crate) fn lowest(&self) -> Seq {
        let transferred = self.delivered.0 + self.config.window <= self.stable.0.0;
        if transferred { self.stable.0.next() } else { self.stable.0.min(self.delivered).next() }
    }

    /// The last number whose frames are wanted. Far ahead only a primary that does not wait for its own batches names
    /// any; a replica that fetched all of them would hold whatever that one invents.
    pub(crate) fn wants_up_to(&self) -> Seq {
        if self.active { self.named_up_to() } else { Seq(u64::MAX) }
    }

    /// The last number whose batch's frames are wanted when a primary proposes it.
    pub(crate) fn named_up_to(&self) -> Seq {
        rule!("PBFT-R11");
        let under_way = self.delivered.max(self.started.end).max(self.stable.0);
        Seq(under_way.0.saturating_add(self.batches_ahead()))
    }

    /// Batches ahead of the last executed one whose frames are wanted.
    pub(crate) fn batches_ahead(&self) -> u64 {
        self.config.pipeline.max(LEAST_AHEAD)
    }

    /// Whether it has yet to execute what it knows to be stable.
    pub(crate) fn lags(&self) -> bool {
        self.repairing || self.delivered < self.stable.0
    }

    /// A local time in the future.
    pub(crate) fn after(&self, cx: &Cx<'_, Self>, micros: u64) -> Time {
        cx.now().after(micros)
    }

    /// A vote for a batch at a number of the present view.
    pub(crate) fn vote(&self, seq: Seq, digest: Digest) -> Vote {
        Vote { view: self.view, seq, digest }
    }

    /// Whether a number has a slot, or may have one.
    pub(crate) fn has_room(&self, seq: Seq) -> bool {
        seq >= self.lowest() && seq.0 <= self.highest().0 + self.config.window
    }

    /// A number's slot, which is about to change; none where the number is behind the stable checkpoint and executed, or
    /// so far ahead that nobody correct may be there.
    pub(crate) fn slot(&mut self, seq: Seq) -> Option<&mut Slot> {
        if !self.has_room(seq) {
            return None;
        }
        self.touched.insert(seq);
        Some(self.slots.entry(seq).or_default())
    }

    /// A batch that P, Q or a slot names, if it is here. A null request is always.
    pub(crate) fn batch(&self, digest: &Digest) -> Option<Batch> {
        if *digest == null() { Some(Batch::default()) } else { self.batches.get(digest).cloned() }
    }

    /// Something changed that any slot may have waited for.
    pub(crate) fn touch_all(&mut self) {
        self.reconsider = true;
        self.touch_slots();
    }

    /// All numbers are looked at again.
    pub(crate) fn touch_slots(&mut self) {
        self.touched.extend(self.slots.keys().copied());
    }

    /// Frames came that batches name, or some that may be these.
    pub(crate) fn frames_came(&mut self, digests: &[Digest]) {
        if digests.is_empty() {
            return;
        }
        rule!("PBFT-V10");
        for digest in digests {
            self.reconsider |= self.start_lacks.came(digest);
        }
        self.touch_slots();
    }

    pub(crate) fn condemn(&mut self, cx: &mut Cx<'_, Self>, replica: ReplicaId, why: &'static str) {
        self.broken += 1;
        if !self.accused.contains(replica) {
            self.accused.insert(replica);
            cx.accuse(replica, why);
        }
    }

    /// After any event: whatever this replica may do now.
    pub(crate) fn progress(&mut self, cx: &mut Cx<'_, Self>) {
        self.join_later_view(cx);
        self.follow_wishes(cx);
        self.try_new_view(cx);
        self.try_vote(cx);
        self.try_execute(cx);
        self.try_tentatively(cx);
        self.try_checkpoint(cx);
        self.notice_end_of_lag(cx);
        self.try_propose(cx);
        self.watch_oldest(cx);
        self.watch_pace(cx);
        self.watch_fetch(cx);
    }
}
