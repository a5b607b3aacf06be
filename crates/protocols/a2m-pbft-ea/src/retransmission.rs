//! Status messages: replicas compare notes, and each sends again what another lacks. What is attested convinces whoever
//! shows it, so the primary's proposal and what proves a decision are shown by all that have them.

use crate::message::{Attested, Message, Status};
use crate::state::{A2mPbftEa, Slot, Timer};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use troth_core::{Cx, To, rule};
use troth_types::{ReplicaId, Seq, Time, View};

/// Numbers whose messages are sent again in answer to one status.
const MOST_RESENT: usize = 64;
/// Missing frames asked for at once.
const MOST_FRAMES: usize = 128;
/// Numbers that a status tells of.
const MOST_TOLD: usize = 256;
/// The part of the interval between two status messages of a replica before which a second one has no answer.
const SELDOM: u64 = 4;
/// An idle replica compares notes only every so many intervals.
const IDLE_FACTOR: u64 = 8;
/// The part of the interval after which the primary is asked for what it named: a frame that was sent when the proposal
/// was has come by then.
pub(crate) const SOON: u64 = 32;
/// Proposals asked of one replica at once.
pub(crate) const MOST_ASKED: usize = 64;
/// Proposals are shown to one replica in the time in which one status of it is answered for so much together, each of them
/// counting as one and one more for each so many frames that it names.
pub(crate) const SHARE: u64 = 512;
const NAMES: u64 = 32;
/// Proposals asked again of one replica at once, each as large as it may be: it shows so many until it is asked again.
const ROUND: usize = 8;
/// How often each of those who voted for a number is asked for its proposal; a status asks everybody.
const ASKED: usize = 2;
/// After so many proposals in a row that the primary shows it nobody has to help a replica any more.
const HELPED: u64 = 64;

impl A2mPbftEa {
    /// Compares notes, and asks for what is missing.
    pub(crate) fn on_status_timer(&mut self, cx: &mut Cx<'_, Self>) {
        self.round += 1;
        self.lateness.note(self.status_due, cx.now());
        if self.busy() || self.round.is_multiple_of(IDLE_FACTOR) {
            cx.send(To::Others, Message::Status(self.status_message()));
        }
        let missing = self.frames.missing(MOST_FRAMES, self.round, self.wants_up_to());
        if !missing.is_empty() {
            rule!("A2MPBFTEA-R7");
            cx.fetch_frames(To::Others, missing);
        }
        self.reconsider = true;
        self.watch_status(cx);
    }

    /// Compares notes again after a while.
    pub(crate) fn watch_status(&mut self, cx: &mut Cx<'_, Self>) {
        self.status_due = self.after(cx, self.config.status_interval);
        cx.set_timer(Timer::Status, self.status_due);
    }

    /// Whether anything is under way that a lost message could hold up.
    fn busy(&self) -> bool {
        let beyond_stable = !self.slots.is_empty() || self.delivered > self.stable.0;
        let behind = self.delivered < self.stable.0;
        let changes_views = !self.active || self.is_views_behind();
        !self.pool.is_empty() || changes_views || self.wanting || beyond_stable || behind
    }

    pub(crate) fn status_message(&self) -> Status {
        // What was executed without this replica's own COMMIT it must still commit to: no later number comes before.
        rule!("A2MPBFTEA-R13");
        let done = self.delivered.min(self.committed_up_to.max(self.stable.0));
        let from = done.next();
        let last = self.slots.last_key_value().map_or(Seq(0), |(last, _)| *last);
        let told = (from.0..=last.0).take(MOST_TOLD).map(|seq| match self.slots.get(&Seq(seq)) {
            None => 0,
            Some(slot) => {
                let digest = slot.proposed();
                let prepared = digest.is_some_and(|it| slot.voters(&it).count() >= self.group.quorum());
                u8::from(digest.is_some()) * Status::PROPOSED
                    + u8::from(prepared) * Status::PREPARED
                    + u8::from(slot.commits.contains_key(&self.me) && self.decides(slot)) * Status::COMMITTED
            }
        });
        let slots = if self.active { told.collect() } else { Vec::new() };
        let bit = |bits: u128, message: &Arc<Attested>| bits | 1u128 << message.from.0;
        Status {
            view: self.view,
            active: self.active,
            stable: self.stable.0,
            executed: done,
            slots,
            changes: self.present_changes().fold(0, bit),
            accepts: self.known_views.accepts(self.view).fold(0, bit),
            lacks: self.known_views.asks_for(&self.group, self.round),
            wishes: self.wanting,
        }
    }

    fn decides(&self, slot: &Slot) -> bool {
        slot.committed(self.group.quorum()).is_some()
    }

    /// Sends again what the sender lacks.
    pub(crate) fn on_status(&mut self, cx: &mut Cx<'_, Self>, from: ReplicaId, status: &Status) {
        if from == self.me {
            return;
        }
        self.note_wish(from, status);
        rule!("A2MPBFTEA-R8");
        let now = cx.now();
        let answered = self.answered.get(&from);
        if answered.is_some_and(|at| now.0 < at.0 + self.config.status_interval / SELDOM) {
            return cx.ignore(from, "its last status was answered just now");
        }
        self.answered.insert(from, now);
        let to = To::One(from);
        rule!("A2MPBFTEA-R9");
        if status.stable < self.stable.0 {
            cx.send(to, Message::Stable(self.stable_proof.clone()));
        }
        let above = (Bound::Excluded(status.stable), Bound::Unbounded);
        for votes in self.checkpoint_votes.range(above).map(|(_, votes)| votes) {
            if let Some(mine) = votes.get(&self.me) {
                cx.send(to, Message::Attested(mine.clone()));
            }
        }
        if let Some(lacks) = status.lacks.and_then(|view| self.known_views.to_show(view)) {
            self.show_start(cx, to, lacks, 0);
        }
        if let Some(mine) = self.wants.get(&self.me).filter(|mine| mine.want.to > status.view) {
            cx.send(to, Message::Want(mine.clone()));
        }
        if status.view > self.view {
            return;
        }
        let behind = status.view < self.view;
        if !self.active {
            self.show_change(cx, to, behind || status.changes & 1 << self.me.0 == 0);
        } else if behind || !status.active {
            self.show_start(cx, to, self.view, 0);
        } else {
            self.show_accepts(cx, to, self.view, status.accepts);
            self.show_votes(cx, to, status);
        }
    }

    /// A VIEWCHANGE is sent until it is known to have come.
    fn show_change(&self, cx: &mut Cx<'_, Self>, to: To, lacks: bool) {
        rule!("A2MPBFTEA-V18");
        let mine = self.changes.get(&self.me).filter(|_| lacks);
        let present = mine.filter(|mine| mine.view_change().is_some_and(|change| change.to == self.view));
        present.into_iter().for_each(|mine| cx.send(to, Message::Attested(mine.clone())));
    }

    /// What proves how a view started: its NEWVIEW, and the commitments to it.
    fn show_start(&self, cx: &mut Cx<'_, Self>, to: To, view: View, has: u128) {
        rule!("A2MPBFTEA-V15");
        if let Some(new_view) = self.known_views.get(view) {
            cx.send(to, Message::Attested(new_view.clone()));
        }
        self.show_accepts(cx, to, view, has);
    }

    fn show_accepts(&self, cx: &mut Cx<'_, Self>, to: To, view: View, has: u128) {
        for accept in self.known_views.accepts(view).filter(|accept| has & 1 << accept.from.0 == 0) {
            cx.send(to, Message::Attested(accept.clone()));
        }
    }

    /// Messages of the view for numbers that the other has not executed.
    fn show_votes(&mut self, cx: &mut Cx<'_, Self>, to: To, status: &Status) {
        // What was sent less than half an interval ago is probably on its way.
        let settled = Time(cx.now().0.saturating_sub(self.config.status_interval / 2));
        let (me, quorum) = (self.me, self.group.quorum());
        let open = self.slots.range((Bound::Excluded(status.executed), Bound::Unbounded)).take(MOST_RESENT);
        for (seq, slot) in open.filter(|(_, slot)| slot.sent <= settled) {
            let at = usize::try_from(seq.0 - status.executed.0 - 1).unwrap_or(usize::MAX);
            let has = status.slots.get(at).copied().unwrap_or(0);
            for message in votes_lacking(me, quorum, slot, has) {
                cx.send(to, Message::Attested(message));
            }
        }
    }

    /// Asks soon for what was named and is not here.
    pub(crate) fn watch_fetch(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.fetching && (self.frames.lacks_any() || self.withheld().next().is_some()) {
            self.fetching = true;
            cx.set_timer(Timer::Fetch, self.after(cx, self.config.status_interval / SOON));
        }
    }

    /// Asks the primary for what it named and has not come meanwhile, or everybody for what a new view needs; and everybody
    /// for what the primary was asked for and did not send: it may have been shown to f others, with whom it goes on. What
    /// does not come is asked of all with the next status.
    pub(crate) fn on_fetch_timer(&mut self, cx: &mut Cx<'_, Self>) {
        self.fetching = false;
        let before = |micros| Time(cx.now().0.saturating_sub(micros));
        let (asked_before, soon) =
            (before(self.config.status_interval), before(self.config.status_interval / SOON));
        let (now, up_to) = (cx.now(), self.wants_up_to());
        let works = self.active && !self.is_primary();
        let kept_back = if works {
            self.frames.ask_next(MOST_FRAMES, up_to, now, soon, asked_before)
        } else {
            Vec::new()
        };
        if !kept_back.is_empty() {
            rule!("A2MPBFTEA-R7");
            cx.fetch_frames(To::Others, kept_back);
            // One question at a time: a second would take the place of the first.
            self.ask_proposals(cx);
            return self.watch_fetch(cx);
        }
        let missing = self.frames.ask_first(MOST_FRAMES, up_to, now, asked_before);
        if !missing.is_empty() {
            cx.fetch_frames(if works { To::One(self.primary()) } else { To::Others }, missing);
        }
        self.ask_proposals(cx);
    }

    /// Numbers whose proposals are not here though backups voted for them, with whom to ask next.
    fn withheld(&self) -> impl Iterator<Item = (Seq, ReplicaId)> {
        let works = self.active && !self.is_primary();
        // What is stable is shown by nobody any more.
        let (primary, first) = (self.primary(), self.delivered.max(self.stable.0).next());
        let last = if works { self.named_up_to().max(first) } else { first };
        let lacking =
            self.slots.range(first..=last).filter(move |(_, slot)| works && slot.proposal.is_none());
        lacking.filter_map(move |(seq, slot)| {
            let times = |voter: &ReplicaId| slot.asked.iter().filter(|asked| *asked == voter).count();
            let voter = slot.backups(primary).min_by_key(times)?;
            (times(&voter) < ASKED).then_some((*seq, voter))
        })
    }

    /// Asks who helped this replica last for proposals that it has voted for, at once: the primary leaves this replica out.
    pub(crate) fn ask_helper(&mut self, cx: &mut Cx<'_, Self>) {
        let Some((helper, _)) = self.left_out.filter(|_| self.active && !self.is_primary()) else { return };
        let (view, first) = (self.view, self.delivered.max(self.stable.0).next());
        let near = self.slots.range_mut(first..=self.named_up_to().max(first));
        let lacking = near.filter(|(_, slot)| slot.proposal.is_none() && slot.asked.is_empty());
        let mut asked = Vec::new();
        for (seq, slot) in lacking.filter(|(_, slot)| slot.has_vote_of(helper)).take(MOST_ASKED) {
            slot.asked.push(helper);
            asked.push(*seq);
        }
        if !asked.is_empty() {
            rule!("A2MPBFTEA-R19");
            self.helpers.insert(helper, self.after(cx, 2 * self.config.status_interval));
            cx.send(To::One(helper), Message::FetchProposals(view, asked));
        }
    }

    /// A proposal came, shown by the primary or by another: after being `asked`, or of its own accord.
    pub(crate) fn note_shown(&mut self, by: ReplicaId, primary: ReplicaId, asked: bool) {
        if by != primary && (asked || self.left_out.is_some()) {
            self.left_out = Some((by, 0));
        } else if by == primary {
            // One that shows every other proposal would have it wait for each of the rest.
            self.left_out = self.left_out.map(|(helper, since)| (helper, since + 1));
            self.left_out.take_if(|(_, since)| *since >= HELPED);
        }
    }

    /// Asks backups that voted for a number for its proposal, one after the other.
    fn ask_proposals(&mut self, cx: &mut Cx<'_, Self>) {
        let mut asked: BTreeMap<ReplicaId, Vec<Seq>> = BTreeMap::new();
        for (seq, voter) in self.withheld() {
            let of_voter = asked.entry(voter).or_default();
            if of_voter.len() < ROUND {
                of_voter.push(seq);
            }
        }
        for (voter, seqs) in asked {
            rule!("A2MPBFTEA-R19");
            for seq in &seqs {
                if let Some(slot) = self.slots.get_mut(seq) {
                    slot.asked.push(voter);
                }
            }
            self.helpers.insert(voter, self.after(cx, 2 * self.config.status_interval));
            cx.send(To::One(voter), Message::FetchProposals(self.view, seqs));
        }
    }

    /// Passes a proposal on to those that had to ask for some a while ago: each would ask for this one as well.
    pub(crate) fn pass_on(&mut self, cx: &mut Cx<'_, Self>, proposal: &Arc<Attested>) {
        let now = cx.now();
        self.helped.retain(|_, until| *until > now);
        for replica in self.helped.keys().copied().collect::<Vec<_>>() {
            rule!("A2MPBFTEA-R19");
            if self.may_show(cx, replica, proposal) {
                cx.send(To::One(replica), Message::Attested(proposal.clone()));
            }
        }
    }

    /// Whether a replica's share has room for this proposal, which it is shown then.
    fn may_show(&mut self, cx: &Cx<'_, Self>, to: ReplicaId, proposal: &Attested) -> bool {
        rule!("A2MPBFTEA-R20");
        let names = proposal.pre_prepare().map_or(0, |proposal| proposal.batch.frames.len() as u64);
        let share = self.config.status_interval / SELDOM;
        let filled = self.shown_proposals.get(&to).copied().unwrap_or_default().max(cx.now());
        let until = filled.after(((1 + names / NAMES) * share).div_ceil(SHARE));
        let may = until <= cx.now().after(share);
        if may {
            self.shown_proposals.insert(to, until);
        }
        may
    }

    /// Shows proposals to a replica that the primary may have left out.
    pub(crate) fn show_proposals(
        &mut self,
        cx: &mut Cx<'_, Self>,
        from: ReplicaId,
        view: View,
        asked: &[Seq],
    ) {
        if from == self.me || view != self.entered {
            return cx.ignore(from, "it asks for the proposals of another view");
        }
        let mut asked: Vec<Seq> = asked.iter().take(MOST_ASKED).copied().collect();
        asked.sort_unstable();
        asked.dedup();
        let proposal = |seq: &Seq| self.slots.get(seq).and_then(|slot| slot.proposal.clone());
        let found: Vec<Arc<Attested>> = asked.iter().filter_map(proposal).collect();
        let mut shown = false;
        for proposal in found {
            if !self.may_show(cx, from, &proposal) {
                cx.ignore(from, "it was shown proposals just now");
                break;
            }
            shown = true;
            cx.send(To::One(from), Message::Attested(proposal));
        }
        if shown && from != self.primary() {
            self.helped.insert(from, self.after(cx, self.config.status_interval));
        }
    }
}

/// Messages for a number that the other, who has so much of it, lacks: the proposal, own votes, and where a batch is
/// decided the COMMITs that prove it (F-P3).
fn votes_lacking(me: ReplicaId, quorum: usize, slot: &Slot, has: u8) -> Vec<Arc<Attested>> {
    let mut messages = Vec::new();
    if has & Status::PROPOSED == 0 {
        messages.extend(slot.proposal.clone());
    }
    if has & Status::COMMITTED != 0 {
        return messages;
    }
    if has & Status::PREPARED == 0 {
        messages.extend(slot.prepares.get(&me).cloned());
    }
    match slot.committed(quorum) {
        Some(decided) => {
            let proof =
                slot.commits.values().filter(|vote| vote.voted().map(|it| it.digest) == Some(decided));
            messages.extend(proof.take(quorum).cloned());
        }
        None => messages.extend(slot.commits.get(&me).cloned()),
    }
    messages
}
