//! The state of an A2M-PBFT-EA replica, and what it may do on its own after any event.

use crate::Config;
use crate::known_views::KnownViews;
use crate::message::{Attested, Body, Committed, StableProof, Vote, Wanted};
use crate::place;
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_blocks::{
    BackOff, Favours, FavoursAsked, FrameStore, HistoryLog, KeptHistory, LackedFrames, Lag, Lateness,
    OrderedAt, Pace, RequestPool, Shown, Voters,
};
use troth_core::{Cx, Reached, Ticket, To, rule};
use troth_trusted::CounterValue;
use troth_trusted::a2m::{LogId, Slot as LogSlot};
use troth_types::{Batch, Digest, Group, ReplicaId, Seq, Time, View};

/// Batches ahead of the last executed one whose frames are wanted, at least.
const LEAST_AHEAD: u64 = 4;

/// Names of A2M-PBFT-EA's timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// The oldest pending request has waited half its time: show it to the primary.
    Forward,
    /// The oldest pending request has waited too long: want the next view.
    Request,
    /// The NEWVIEW has not come: want the next view.
    NewView,
    /// Compare notes with the others.
    Status,
    /// Still behind a stable checkpoint: fetch its state.
    Behind,
    /// The application's deadline is due.
    Deadline,
    /// The application's deadline was due a request's patience ago: want the next view.
    Overdue,
    /// Frames that somebody named have not come, or proposals that somebody voted for: ask for them.
    Fetch,
    /// Look at how fast the primary orders.
    Pace,
    /// The oldest pending requests were shown to the primary a while ago.
    Overtaken,
}

/// One sequence number of the view that this replica entered last.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Slot {
    /// The primary's PREPREPARE.
    pub(crate) proposal: Option<Arc<Attested>>,
    /// PREPAREs of backups.
    pub(crate) prepares: BTreeMap<ReplicaId, Arc<Attested>>,
    /// COMMITs.
    pub(crate) commits: BTreeMap<ReplicaId, Arc<Attested>>,
    /// When messages of this number were sent last.
    pub(crate) sent: Time,
    /// Whom of those that voted this replica asked for the proposal, each time.
    pub(crate) asked: Vec<ReplicaId>,
    /// Another than the primary showed the proposal first; and it came a second time from where it may.
    pub(crate) passed_on: bool,
    pub(crate) came_again: bool,
}

fn of(votes: &BTreeMap<ReplicaId, Arc<Attested>>, digest: &Digest) -> Voters {
    let same = |vote: &&Arc<Attested>| vote.voted().is_some_and(|vote| vote.digest == *digest);
    votes.values().filter(same).map(|vote| vote.from).collect()
}

impl Slot {
    /// What the primary proposed.
    pub(crate) fn proposed(&self) -> Option<Digest> {
        self.proposal.as_ref().and_then(|proposal| proposal.voted()).map(|vote| vote.digest)
    }

    /// Whether a replica voted for something.
    pub(crate) fn has_vote_of(&self, replica: ReplicaId) -> bool {
        self.prepares.contains_key(&replica) || self.commits.contains_key(&replica)
    }

    /// Backups that voted for something; some stand there twice.
    pub(crate) fn backups(&self, primary: ReplicaId) -> impl Iterator<Item = ReplicaId> {
        let voters = self.prepares.keys().chain(self.commits.keys()).copied();
        voters.filter(move |from| *from != primary)
    }

    /// The batch that the primary proposed.
    pub(crate) fn batch(&self) -> Option<&Batch> {
        self.proposal.as_ref().and_then(|proposal| proposal.pre_prepare()).map(|proposal| &proposal.batch)
    }

    /// Who voted for this batch with a PREPARE or by proposing it.
    pub(crate) fn voters(&self, digest: &Digest) -> Voters {
        let mut voters = of(&self.prepares, digest);
        if let Some(proposal) = self.proposal.as_ref().filter(|_| self.proposed() == Some(*digest)) {
            voters.insert(proposal.from);
        }
        voters
    }

    /// The batch that `quorum` distinct replicas committed to, if there is one.
    pub(crate) fn committed(&self, quorum: usize) -> Option<Digest> {
        let voted = self.commits.values().filter_map(|vote| vote.voted()).map(|vote| vote.digest);
        voted.into_iter().find(|digest| of(&self.commits, digest).count() >= quorum)
    }
}

/// What the view that this replica entered last started from.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Started {
    /// Its NEWVIEW; none of view 0.
    pub(crate) by: Option<Arc<Attested>>,
    /// The number of the checkpoint.
    pub(crate) base: Seq,
    /// The batches that follow it.
    pub(crate) chosen: Vec<Batch>,
}

impl Started {
    /// The last number that it carries over.
    pub(crate) fn end(&self) -> Seq {
        Seq(self.base.0 + self.chosen.len() as u64)
    }
}

/// What the trusted component was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A nonce, to want this view.
    Nonce(View),
    /// To abandon the views before this one, and to show it.
    Abandon(View),
    /// To forget what is stable.
    Truncate,
    /// Where its logs begin and end, after a restart.
    Standing,
}

/// An A2M-PBFT-EA replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct A2mPbftEa {
    pub(crate) config: Config,
    pub(crate) me: ReplicaId,
    pub(crate) group: Group,
    /// The view that it is in or moves to.
    pub(crate) view: View,
    /// Whether it works in the view; otherwise it has abandoned all before it and waits for its NEWVIEW.
    pub(crate) active: bool,
    /// The view that it entered last (v_from).
    pub(crate) entered: View,
    pub(crate) started: Started,
    /// The last number that a later view starts with, whose NEWVIEW is valid and whose frames are not all here.
    pub(crate) awaited: Seq,
    pub(crate) slots: BTreeMap<Seq, Slot>,
    /// What the component had attested of each log before this replica started, by its own messages.
    pub(crate) promised: BTreeMap<LogId, LogSlot>,
    /// The last slot of each log that it asked to be filled.
    pub(crate) filled: BTreeMap<LogId, LogSlot>,
    /// The slot of the last own message of each log that came back.
    pub(crate) attested: BTreeMap<LogId, LogSlot>,
    /// The slot below which each log was told to forget.
    pub(crate) forgotten: BTreeMap<LogId, LogSlot>,
    /// The last number that it voted for in the view, with a PREPREPARE or a PREPARE.
    pub(crate) prepared_up_to: Seq,
    /// The last number that it committed to in the view.
    pub(crate) committed_up_to: Seq,
    /// The last batch handed to the executor, and what the executor reached.
    pub(crate) delivered: Seq,
    pub(crate) reached: Reached,
    /// The batches executed above the stable checkpoint.
    pub(crate) decided: BTreeMap<Seq, Batch>,
    pub(crate) pool: RequestPool,
    /// What is ordered again for others, and what this replica asks for.
    pub(crate) favours: Favours,
    pub(crate) favours_asked: FavoursAsked,
    pub(crate) frames: FrameStore,
    /// Somebody is about to be asked for missing frames.
    pub(crate) fetching: bool,
    /// Who showed this replica a proposal that the primary did not, and how many the primary has shown it since.
    pub(crate) left_out: Option<(ReplicaId, u64)>,
    /// Until when what each replica was shown of proposals fills its share, and until when it is shown each one unasked.
    pub(crate) shown_proposals: BTreeMap<ReplicaId, Time>,
    pub(crate) helped: BTreeMap<ReplicaId, Time>,
    /// Until when those that were asked for proposals are charged for none of them.
    pub(crate) helpers: BTreeMap<ReplicaId, Time>,
    /// The pending request that the timers run for, and whether it was executed and gave way to a newer one.
    pub(crate) timed: Option<u64>,
    pub(crate) gave_way: bool,
    /// When that one has waited too long; whether it did while this replica was behind, so that it counts when it is no more;
    /// whether that was borne of the primary once already; and the same of the deadline.
    pub(crate) request_due: Time,
    pub(crate) time_is_over: bool,
    pub(crate) bore_once: bool,
    pub(crate) overdue_once: bool,
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
    /// Whether it finds the primary of the view wanting.
    pub(crate) wanting: bool,
    /// Who of the others would rather have the next view's primary.
    pub(crate) wished_by: Voters,
    /// Whether it has been behind since it looked at the primary last, and whether it passed over that look for this.
    pub(crate) lagged: bool,
    pub(crate) spared: bool,
    pub(crate) stable: (Seq, Digest),
    pub(crate) stable_proof: Arc<StableProof>,
    pub(crate) checkpoint_votes: BTreeMap<Seq, BTreeMap<ReplicaId, Arc<Attested>>>,
    /// The digests of own checkpoints not below the stable one.
    pub(crate) own_digests: BTreeMap<Seq, Digest>,
    /// The newest own state with a known digest, where a log may begin.
    pub(crate) own_state: Seq,
    /// What was executed, as the component attests it (q).
    pub(crate) history: KeptHistory,
    /// The WANTVIEWCHANGE for the highest view of each replica.
    pub(crate) wants: BTreeMap<ReplicaId, Arc<Wanted>>,
    /// The highest view that this replica wanted.
    pub(crate) wanted_view: View,
    /// The WANTVIEWCHANGEs by which it left for its view (W).
    pub(crate) certificate: Vec<Arc<Wanted>>,
    /// Questions to the trusted component that are not answered.
    pub(crate) asked: BTreeMap<Ticket, Asked>,
    pub(crate) tickets: u64,
    /// Whether it knows where its component's logs begin and end.
    pub(crate) knows_logs: bool,
    /// The VIEWCHANGE to the highest view of each replica.
    pub(crate) changes: BTreeMap<ReplicaId, Arc<Attested>>,
    pub(crate) known_views: KnownViews,
    /// Whether anything came since the start of a new view was last computed that may decide it.
    pub(crate) reconsider: bool,
    /// Frames alone that starts of views lacked then.
    pub(crate) starts_lack: LackedFrames,
    /// Whether the timer for the NEWVIEW runs.
    pub(crate) waits_for_view: bool,
    pub(crate) back_off: BackOff,
    /// A checkpoint became stable since what was borne of primaries was last taken back.
    pub(crate) advanced: bool,
    /// Who provably broke a rule.
    pub(crate) accused: Voters,
    /// How many messages did.
    pub(crate) broken: u64,
    /// When a status of each replica was answered last.
    pub(crate) answered: BTreeMap<ReplicaId, Time>,
    pub(crate) suspicions: u64,
    /// How many messages of others have brought this replica further.
    pub(crate) useful: u64,
    /// The last number of each log that a vote of its replica was for.
    pub(crate) heard: BTreeMap<(ReplicaId, LogId), Seq>,
    pub(crate) round: u64,
    pub(crate) lag: Lag,
    /// Its own state was found to differ from a stable one, which is on its way.
    pub(crate) repairing: bool,
}

impl A2mPbftEa {
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
            entered: View(0),
            started: Started::default(),
            awaited: Seq(0),
            slots: BTreeMap::new(),
            promised: BTreeMap::new(),
            filled: BTreeMap::new(),
            attested: BTreeMap::new(),
            forgotten: BTreeMap::new(),
            prepared_up_to: Seq(0),
            committed_up_to: Seq(0),
            delivered: Seq(0),
            reached: Reached::default(),
            decided: BTreeMap::new(),
            pool: RequestPool::new(config.limits.client_window, config.pending_bytes()),
            favours: Favours::new(config.request_timeout, config.batch_bytes()),
            favours_asked: FavoursAsked::new(config.request_timeout, config.batch_bytes()),
            frames: FrameStore::default(),
            fetching: false,
            left_out: None,
            shown_proposals: BTreeMap::new(),
            helped: BTreeMap::new(),
            helpers: BTreeMap::new(),
            timed: None,
            gave_way: false,
            request_due: Time::default(),
            time_is_over: false,
            bore_once: false,
            overdue_once: false,
            pace: Pace::default(),
            looking: false,
            look_due: Time::default(),
            status_due: Time::default(),
            lateness: Lateness::default(),
            committed_at: OrderedAt::default(),
            shown: None,
            wanting: false,
            wished_by: Voters::NONE,
            lagged: false,
            spared: false,
            stable: (Seq(0), Digest::ZERO),
            stable_proof: Arc::default(),
            checkpoint_votes: BTreeMap::new(),
            own_digests: BTreeMap::new(),
            own_state: Seq(0),
            history: KeptHistory::new(&group, me, config.window, config.status_interval),
            wants: BTreeMap::new(),
            wanted_view: View(0),
            certificate: Vec::new(),
            asked: BTreeMap::new(),
            tickets: 0,
            knows_logs: true,
            changes: BTreeMap::new(),
            known_views: KnownViews::default(),
            reconsider: false,
            starts_lack: LackedFrames::default(),
            waits_for_view: false,
            back_off: BackOff::default(),
            advanced: false,
            accused: Voters::NONE,
            broken: 0,
            answered: BTreeMap::new(),
            suspicions: 0,
            useful: 0,
            heard: BTreeMap::new(),
            round: 0,
            lag: Lag::default(),
            repairing: false,
        }
    }

    /// The history, to look at.
    #[must_use]
    pub fn history(&self) -> &HistoryLog {
        &self.history.log
    }

    pub(crate) fn primary(&self) -> ReplicaId {
        self.group.primary(self.view)
    }

    pub(crate) fn is_primary(&self) -> bool {
        self.primary() == self.me
    }

    /// The high water mark: the highest number that may be voted for now. Who is a window behind has its state transferred
    /// and votes for nothing meanwhile: its log goes back to its own last checkpoint, and would grow with every vote. Nobody
    /// waits for it, or nothing more would become stable, and the transfer would be done.
    pub(crate) fn highest(&self) -> Seq {
        rule!("A2MPBFTEA-C8");
        let window = if self.is_transferred() { 0 } else { self.config.window };
        Seq(self.stable.0.0 + window)
    }

    /// Whether what is stable is a window beyond what was executed here.
    fn is_transferred(&self) -> bool {
        self.delivered.0 + self.config.window <= self.stable.0.0
    }

    /// The lowest number that has a slot: what is stable is still executed by a replica that is a little behind; one
    /// that is a window behind has its state transferred.
    pub(crate) fn lowest(&self) -> Seq {
        if self.is_transferred() { self.stable.0.next() } else { self.stable.0.min(self.delivered).next() }
    }

    /// The last number whose frames are wanted. Far ahead only a primary that does not wait for its own batches names
    /// any; a replica that fetched all of them would hold whatever that one invents.
    pub(crate) fn wants_up_to(&self) -> Seq {
        if self.active { self.named_up_to() } else { Seq(u64::MAX) }
    }

    /// The last number whose batch's frames are wanted when a primary proposes it.
    pub(crate) fn named_up_to(&self) -> Seq {
        rule!("A2MPBFTEA-R6");
        let under_way = self.delivered.max(self.started.end()).max(self.stable.0).max(self.awaited);
        Seq(under_way.0.saturating_add(self.config.pipeline.max(LEAST_AHEAD)))
    }

    /// Whether it has yet to execute what it knows to be stable.
    pub(crate) fn lags(&self) -> bool {
        self.repairing || self.delivered < self.stable.0
    }

    /// A local time in the future.
    pub(crate) fn after(&self, cx: &Cx<'_, Self>, micros: u64) -> Time {
        cx.now().after(micros)
    }

    /// A number's slot in the view entered last; none where the number is behind the stable checkpoint and executed, or so
    /// far ahead that nobody correct may be there.
    pub(crate) fn slot(&mut self, seq: Seq) -> Option<&mut Slot> {
        if seq < self.lowest() || seq > self.furthest() {
            return None;
        }
        Some(self.slots.entry(seq).or_default())
    }

    /// The highest number that may be of use while nothing higher is known to be stable: nobody correct proposes more than a
    /// window above what is stable for it, nor are f+1 replicas a window apart.
    pub(crate) fn furthest(&self) -> Seq {
        Seq(self.stable.0.0.saturating_add(2 * self.config.window))
    }

    /// Has a body attested by the log that it belongs to, and sent: there is one slot for it, and it is above all that was
    /// asked for before.
    pub(crate) fn attest(&mut self, cx: &mut Cx<'_, Self>, body: Body) -> bool {
        rule!("A2MPBFTEA-L2");
        let Some((log, slot)) = place::of(&body) else { return false };
        if slot <= self.last_filled(log) {
            return false;
        }
        self.filled.insert(log, slot);
        cx.certify_in_log(log, slot, body, To::Others);
        true
    }

    /// The last slot of a log that this replica asked to be filled.
    pub(crate) fn last_filled(&self, log: LogId) -> LogSlot {
        self.filled.get(&log).copied().unwrap_or(CounterValue(0))
    }

    /// A ticket for a question to the trusted component; those of the history are others.
    pub(crate) fn ticket(&mut self, asked: Asked) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.asked.insert(ticket, asked);
        ticket
    }

    /// What this replica committed to in the view that it entered last, above the stable checkpoint and beyond what the view
    /// started with, each with its prepared certificate.
    pub(crate) fn own_commitments(&self) -> Vec<Committed> {
        let above = self.stable.0.max(self.started.end()).next();
        let mut shown = Vec::new();
        for slot in self.slots.range(above..).map(|(_, slot)| slot) {
            let Some(commit) = slot.commits.get(&self.me) else { break };
            let Some(proposal) = slot.proposal.clone() else { break };
            let digest = proposal.voted().map(|vote| vote.digest);
            let same = |vote: &&Arc<Attested>| vote.voted().map(|vote| vote.digest) == digest;
            let prepares = slot.prepares.values().filter(same).take(self.group.f()).cloned().collect();
            shown.push(Committed { proposal, prepares, commit: commit.clone() });
        }
        shown
    }

    /// A vote for a batch at a number of the present view.
    pub(crate) fn vote(&self, seq: Seq, digest: Digest) -> Vote {
        Vote { view: self.view, seq, digest }
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
        if !self.knows_logs {
            // Nothing is asked of logs whose ends are not known.
            return;
        }
        self.follow_wishes(cx);
        self.follow_wants(cx);
        if std::mem::take(&mut self.reconsider) {
            self.starts_lack.forget();
            self.try_judge(cx);
            self.ask_for_distant_starts();
            self.try_new_view(cx);
            self.try_enter(cx);
        }
        self.try_prepare(cx);
        self.try_commit(cx);
        self.try_execute(cx);
        self.try_checkpoint(cx);
        self.notice_end_of_lag(cx);
        self.try_propose(cx);
        self.extend(cx);
        self.watch_oldest(cx);
        self.watch_pace(cx);
        self.ask_helper(cx);
        self.watch_fetch(cx);
    }
}
