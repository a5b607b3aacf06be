//! Components that are lost or not trusted any more, and those that take their place: what guide.md
//! §7.3 asks of a readmission, which the paper leaves out ("the service has to be stopped").

use crate::evidence::Evidence;
use crate::message::{Body, Certified, Record, RequestViewChange, SignedRequest, StableProof};
use crate::peer::Peer;
use crate::state::{MinBft, Phase};
use std::sync::Arc;
use troth_blocks::Voters;
use troth_core::{Cx, To, rule};
use troth_types::{Admission, Batch, Configuration, OPERATOR, ReplicaId, Seq, View};

/// Status rounds between the first and the second view change for the sake of one readmitted replica.
const WELCOMES_PAUSE: u64 = 64;

impl MinBft {
    /// The component of this replica is of this epoch. Where the configuration knows another one, the replica
    /// only follows until it is admitted.
    #[must_use]
    pub fn with_epoch(mut self, epoch: u64) -> Self {
        self.own_epoch = Some(epoch);
        self
    }

    /// The configuration after the batch that the executor reached.
    pub(crate) fn configured(&mut self, cx: &mut Cx<'_, Self>, configuration: &Arc<Configuration>) {
        let before = std::mem::replace(&mut self.configuration, Arc::clone(configuration));
        for replica in self.group.all() {
            let Some(member) = configuration.member(replica) else { continue };
            if before.member(replica).is_some_and(|known| known.host().signing != member.host().signing) {
                // What the earlier host asked for counts no more (V21).
                self.requests.remove(&replica);
            }
            let known = before.member(replica).map(|member| member.admission().epoch);
            // A state that is put right may be an earlier one; what is executed again from there comes again.
            if known.is_some_and(|known| known < member.admission().epoch) {
                self.replaced(cx, replica, member.admission());
            }
        }
        // Those of removed clients would be shown to primaries that take them no more.
        for digest in self.pool.retain(|client, _| !configuration.is_removed(client)) {
            self.frames.settle(&digest);
        }
        if !self.has_joined() {
            self.stand_aside();
        }
        let known = Arc::clone(&self.stable_proof);
        self.note_where_to_begin(&known);
        self.candidates.clear();
        self.recheck = true;
    }

    /// From `at` on a replica has another component: whatever the earlier one certified for later numbers is
    /// void, received or not. Otherwise it would count here and not there: see "Why both rules" in the
    /// specification.
    fn replaced(&mut self, cx: &mut Cx<'_, Self>, replica: ReplicaId, admission: &Admission) {
        let Admission { epoch, at, .. } = *admission;
        if replica == self.me && self.own_epoch.is_some_and(|own| own >= epoch) {
            // This is the component that is admitted: nothing of an earlier one is held.
            return;
        }
        if replica != self.me {
            // What was judged before a restart stays judged, though the admission is executed again.
            let before = self.peer_mut(replica).first.take();
            let first = before.filter(|first| first.ui.certificate.epoch.0 >= epoch);
            *self.peer_mut(replica) = Peer { first, ..Peer::new(&self.config) };
        }
        if self.config.follows(crate::Flaw::CountOldEpoch) {
            return;
        }
        rule!("MINBFT-E2");
        for (_, slot) in self.slots.range_mut(at.next()..) {
            slot.commits.remove(&replica);
            if slot.prepare.as_ref().is_some_and(|prepare| prepare.from == replica) {
                slot.prepare = None;
            }
        }
        for (_, votes) in self.checkpoint_votes.range_mut(at.next()..) {
            votes.remove(&replica);
        }
        self.changes.remove(&replica);
        // After a restart the view may be one that the new component has a part in.
        let start = self.known_views.shown(self.view);
        let of_the_new = |by: &Arc<Certified>| by.from == replica && by.ui.certificate.epoch.0 >= epoch;
        if self.started.end() > at && !start.iter().any(of_the_new) {
            self.started.accepted.remove(replica);
        }
        let of_the_old = self.active() && !start.first().is_some_and(of_the_new);
        if replica != self.me && replica == self.primary() && of_the_old {
            self.suspect(cx, "its component was replaced");
        }
    }

    /// Whether a message is of the component that its sender has now, as far as this replica knows. What an
    /// earlier component of this replica certified, others may still send.
    pub(crate) fn is_present(&self, message: &Certified) -> bool {
        let epoch = message.ui.certificate.epoch.0;
        if message.from == self.me {
            return self.own_epoch.is_none_or(|own| own == epoch);
        }
        self.configuration.member(message.from).is_none_or(|member| member.admission().epoch == epoch)
    }

    /// Whether a message is of a component that its sender has no more. After a restart this replica may know
    /// less of the configuration than the messages in its log do: a later component is none of those.
    pub(crate) fn is_past(&self, message: &Certified) -> bool {
        let epoch = message.ui.certificate.epoch.0;
        if message.from == self.me {
            return self.own_epoch.is_some_and(|own| epoch < own);
        }
        self.configuration.member(message.from).is_some_and(|member| epoch < member.admission().epoch)
    }

    /// Whether enough vouch for a checkpoint without those whose components were replaced before it, as far as
    /// this replica knows: what they certify there is void, whatever epochs they name.
    pub(crate) fn is_vouched_for(&self, proof: &StableProof) -> bool {
        if proof.votes.is_empty() || self.config.follows(crate::Flaw::CountOldEpoch) {
            return true;
        }
        rule!("MINBFT-E2");
        let ends = self.configuration.epochs_at(proof.target().0);
        let is_void = |vote: &Certified| {
            ends.iter().any(|(replica, epoch)| *replica == vote.from && vote.ui.certificate.epoch.0 < *epoch)
        };
        let mut voters = Voters::NONE;
        for vote in proof.votes.iter().filter(|vote| !is_void(vote)) {
            voters.insert(vote.from);
        }
        voters.count() >= self.group.quorum()
    }

    /// Whether nothing stands in the way of what a replica's component says: the group began with it, or the VIEW-CHANGE by
    /// which it began was judged here. Its later messages do not tell whether it began as it has to (E3).
    pub(crate) fn has_judged_the_first_of(&self, replica: ReplicaId) -> bool {
        rule!("MINBFT-E10");
        let Some(member) = self.configuration.member(replica) else { return true };
        let Admission { epoch, at, .. } = *member.admission();
        let first = self.peer(replica).first.as_ref();
        replica == self.me || at == Seq(0) || first.is_some_and(|it| it.ui.certificate.epoch.0 == epoch)
    }

    /// Whether a VIEW-CHANGE may be one of those that a view begins from: it is the first of its component, which shows by
    /// itself that it may begin, or that one is known. Nothing is asked of components that their senders have no more (E2).
    /// Nor may its checkpoint rest on one of those; that proves nobody faulty, for its sender may not know of the replacement.
    pub(crate) fn begins_well(&self, change: &Certified) -> bool {
        if change.view_change().is_some_and(|inner| !self.is_vouched_for(&inner.stable)) {
            return false;
        }
        let is_first = change.ui.predecessor() == troth_trusted::CounterValue(0);
        is_first || !self.is_present(change) || self.has_judged_the_first_of(change.from)
    }

    /// Whoever executes again may hear of an earlier component's beginning when it has a later one's.
    pub(crate) fn note_first(&mut self, message: &Arc<Certified>) {
        let peer = self.peer_mut(message.from);
        let epoch = |of: &Certified| of.ui.certificate.epoch;
        if peer.first.as_ref().is_none_or(|first| epoch(first) <= epoch(message)) {
            peer.first = Some(Arc::clone(message));
        }
    }

    /// Keeps the VIEW-CHANGE by which a component began that was admitted to the group, in the log, too.
    pub(crate) fn keep_first(&mut self, cx: &mut Cx<'_, Self>, message: &Arc<Certified>) {
        let begins = message.ui.predecessor() == troth_trusted::CounterValue(0);
        if begins && crate::evidence::admitted(&self.configuration, message) {
            self.note_first(message);
            cx.remember(Record::First(Arc::clone(message)));
            self.candidates.reconsider = true;
            self.recheck = true;
        }
    }

    /// Whether this replica knows every component that a VIEW-CHANGE or a NEW-VIEW rests on, from what it has
    /// executed: keys may be known earlier, from a file. What it drops is served again.
    pub(crate) fn knows_all(&self, message: &Arc<Certified>) -> bool {
        let components = match &message.body {
            Body::ViewChange(_) | Body::NewView(_) => {
                let message = crate::message::Message::Certified(Arc::clone(message));
                troth_auth::epochs_in(&message, self.group.id())
            }
            _ => vec![(message.from, message.ui.certificate.epoch.0)],
        };
        let known = |(replica, epoch): &(ReplicaId, u64)| {
            self.configuration.member(*replica).is_none()
                || self.configuration.admission(*replica, *epoch).is_some()
        };
        components.iter().all(known)
    }

    /// The batch that admitted this replica's component, if it was admitted; nothing where the group began
    /// with it.
    pub(crate) fn admitted_at(&self) -> Option<Seq> {
        let admission = self.configuration.member(self.me)?.admission();
        (admission.at > Seq(0)).then_some(admission.at)
    }

    /// Whether this replica's component may certify: it is the one that the configuration names, and, until
    /// it certified its first message, everything that an earlier component of this replica may have
    /// promised is behind a stable checkpoint. One that has certified was named: a replica that executes again
    /// may not have come to its admission yet.
    pub(crate) fn may_certify(&self) -> bool {
        rule!("MINBFT-E6");
        let Some(member) = self.configuration.member(self.me) else { return true };
        if self.own_epoch.is_some_and(|own| own < member.admission().epoch) {
            return false;
        }
        let settled = || self.admitted_at().is_none_or(|at| self.stable.0.0 >= self.settled(at).0);
        self.has_begun() || (self.is_named() && settled())
    }

    /// Whether this replica's component is the one that the configuration names.
    pub(crate) fn is_named(&self) -> bool {
        let named = self.configuration.member(self.me).map(|member| member.admission().epoch);
        self.own_epoch.is_none_or(|own| named.is_none_or(|named| own == named))
    }

    /// Whether this replica's component has certified anything.
    fn has_begun(&self) -> bool {
        self.requested.0 > 0
    }

    /// Whether this replica votes.
    pub(crate) fn has_joined(&self) -> bool {
        self.may_certify() && (self.has_begun() || self.admitted_at().is_none())
    }

    /// The batch behind which nothing can stand that was promised before a replica was admitted at `at`.
    pub(crate) fn settled(&self, at: Seq) -> Seq {
        Seq(at.0.saturating_add(self.config.window))
    }

    /// Follows without a vote: nothing is certified but, one day, the VIEW-CHANGE by which it begins.
    pub(crate) fn stand_aside(&mut self) {
        if self.due_view_change.is_none() {
            self.phase = Phase::Changing;
            self.slots.clear();
            self.due_view_change = Some(Vec::new());
        }
    }

    /// Whether the VIEW-CHANGE that is due may be certified. The first of a readmitted component opens its
    /// log, above every view in which somebody vouched for the checkpoint that it stands on.
    pub(crate) fn may_change(&self) -> bool {
        if !self.may_certify() {
            return false;
        }
        if self.has_begun() || self.admitted_at().is_none() {
            return true;
        }
        let grounds = self.due_view_change.as_ref().is_some_and(|grounds| !grounds.is_empty());
        grounds && self.begins_on().view() < self.view
    }

    /// Whether a replica that was readmitted has not begun.
    fn is_to_begin(&self) -> bool {
        !self.has_begun() && self.admitted_at().is_some()
    }

    /// The stable checkpoint that the next VIEW-CHANGE shows: the last one, but for the first VIEW-CHANGE of a readmitted component
    /// where somebody vouched for that in the view itself, or in a later one.
    pub(crate) fn begins_on(&self) -> &Arc<StableProof> {
        match &self.lowest_proof {
            Some(lowest) if self.is_to_begin() && self.stable_proof.view() >= self.view => lowest,
            _ => &self.stable_proof,
        }
    }

    /// Of the stable checkpoints a window behind its admission a replica that is to begin keeps the one whose votes are of the
    /// lowest views: others may have gone on since.
    pub(crate) fn note_where_to_begin(&mut self, proof: &Arc<StableProof>) {
        rule!("MINBFT-E3");
        let at = self.admitted_at().filter(|_| self.is_to_begin() && self.is_named());
        // It may have been admitted once more since.
        let good = |proof: &Arc<StableProof>| {
            at.is_some_and(|at| proof.target().0.0 >= self.settled(at).0) && self.is_vouched_for(proof)
        };
        let known = self.lowest_proof.clone().filter(good);
        let is_lower = good(proof) && known.as_ref().is_none_or(|lowest| proof.view() < lowest.view());
        self.recheck |= is_lower;
        self.lowest_proof = if is_lower { Some(Arc::clone(proof)) } else { known };
    }

    /// Whether reads may be answered as far as earlier components of this replica are concerned: what they
    /// committed to is executed here.
    pub(crate) fn is_settled(&self) -> bool {
        let settled = self.admitted_at().is_none_or(|at| self.reached.seq >= self.settled(at));
        self.may_certify() && self.is_named() && settled
    }

    /// The number up to which batches without frames are proposed, so that a replica that was admitted need
    /// not wait for clients.
    pub(crate) fn filled_up_to(&self) -> Seq {
        let interval = self.config.interval;
        let admitted = self.configuration.members().iter().map(|member| member.admission().at);
        admitted
            .filter(|at| *at > Seq(0))
            .map(|at| Seq(self.settled(at).0.div_ceil(interval).saturating_mul(interval)))
            .max()
            .unwrap_or(Seq(0))
    }

    /// Whether a batch may change the configuration.
    pub(crate) fn may_reconfigure(&self, batch: &Batch) -> bool {
        let of_operator = |digest| self.frames.get(digest).is_some_and(|frame| frame.client() == OPERATOR);
        batch.frames.iter().any(of_operator)
    }

    /// The view that this replica is in, or a later one that f+1 said they are in: one of them is correct.
    fn present_view(&self) -> View {
        let mut said: Vec<View> = self.peers.iter().map(|peer| peer.said_view).collect();
        said.sort_unstable_by(|a, b| b.cmp(a));
        self.view.max(said[self.group.weak() - 1])
    }

    /// The stable checkpoint that others are told of. Who was readmitted and could not begin in the next view, because a vote
    /// of the proof is as of a later one, says that it knows none: whoever has another proof shows it (R3).
    pub(crate) fn told_stable(&self) -> Seq {
        rule!("MINBFT-E3");
        let lowest = self.lowest_proof.as_ref().unwrap_or(&self.stable_proof);
        if self.is_to_begin() && lowest.view() > self.present_view() { Seq(0) } else { self.stable.0 }
    }

    /// A readmitted replica that may begin, and has no view change to begin with, asks for one.
    pub(crate) fn ask_to_join(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.is_to_begin() || !self.may_certify() {
            return;
        }
        let present = self.present_view();
        if self.may_change() && self.view == present {
            // The others are there, or on the way.
            return;
        }
        rule!("MINBFT-E8");
        // Never from a vote: one faulty voter could name any view.
        let to = present.next();
        if self.wanted_view < to {
            self.wanted_view = to;
            cx.sign(Body::RequestViewChange(RequestViewChange { to }), To::Others);
        }
    }

    /// Whether a replica was readmitted and is kept out, nor was a view change made for its sake of late.
    pub(crate) fn may_be_welcomed(&self, replica: ReplicaId) -> bool {
        let member = self.configuration.member(replica);
        member.is_some_and(|member| member.admission().at > Seq(0))
            && self.is_kept_out(replica)
            && self.round >= self.peer(replica).welcomed_until
    }

    /// Whether a replica has not begun, or may not work in this view.
    fn is_kept_out(&self, replica: ReplicaId) -> bool {
        let works = !self.active() || self.works_from(replica, self.started.base);
        self.peer(replica).gate.processed().0 == 0 || !works
    }

    /// Nobody is welcomed for a while who has not begun: a view change, for whosever sake, is one for all of them.
    pub(crate) fn rest_from_welcomes(&mut self) {
        let round = self.round;
        let kept_out: Vec<ReplicaId> =
            self.group.all().filter(|replica| self.is_kept_out(*replica)).collect();
        for replica in kept_out {
            let peer = self.peer_mut(replica);
            let pause = WELCOMES_PAUSE << peer.welcomes.saturating_sub(1).min(40);
            peer.welcomed_until = peer.welcomed_until.max(round.saturating_add(pause));
        }
    }

    /// A view change for the sake of a readmitted replica that asks for the next view, and nobody is blamed: once, and where it
    /// missed that, after a pause that doubles, so that one that never begins costs ever less.
    pub(crate) fn welcome(&mut self, cx: &mut Cx<'_, Self>, signed: &SignedRequest) {
        let to = self.view.next();
        let Some(member) = self.configuration.member(signed.from) else { return };
        let settled = self.settled(member.admission().at);
        let new = self.may_be_welcomed(signed.from) && self.stable.0 >= settled;
        if !new || signed.from == self.me || signed.request.to != to || !self.active() {
            return;
        }
        // It could not begin there on what is known here, and is welcomed seldom. (Who has begun is kept out by the view's base.)
        rule!("MINBFT-E3");
        let begins = self.peer(signed.from).gate.processed().0 == 0;
        if begins && self.stable_proof.view() > self.view {
            return;
        }
        rule!("MINBFT-E8");
        self.peer_mut(signed.from).welcomes += 1;
        self.rest_from_welcomes();
        if self.wanted_view < to {
            self.wanted_view = to;
            cx.sign(Body::RequestViewChange(RequestViewChange { to }), To::Others);
        }
    }
}

impl MinBft {
    /// Whether none of these VIEW-CHANGEs is of a component that was replaced before the checkpoint that a view starts from, as
    /// that shows: a VIEW-CHANGE may show an older certificate, and a log that begins behind what its sender vouched for. Not
    /// before that is known.
    pub(crate) fn base_allows(&self, base: Seq, changes: &[Arc<Certified>]) -> bool {
        if self.config.follows(crate::Flaw::CountOldEpoch) {
            return true;
        }
        rule!("MINBFT-E4");
        let named = if self.reached.seq >= base {
            self.configuration.epochs_at(base)
        } else if self.stable.0 >= base {
            // A later checkpoint names what was replaced since, too: where that is in doubt the base is executed first.
            named_by(&self.stable_proof)
        } else {
            let starts = self.known_views.all().filter_map(|start| start.new_view());
            let shown = starts.flat_map(|start| &start.changes).chain(changes);
            let mut proofs = shown.filter_map(|change| change.view_change()).map(|change| &change.stable);
            let proof = proofs.find(|proof| proof.target().0 == base && self.is_vouched_for(proof));
            let Some(proof) = proof else { return false };
            named_by(proof)
        };
        let is_replaced = |change: &Arc<Certified>| {
            named
                .iter()
                .any(|(replica, epoch)| *replica == change.from && change.ui.certificate.epoch.0 < *epoch)
        };
        !changes.iter().any(is_replaced)
    }

    /// Says of components whether a checkpoint shows them replaced.
    pub(crate) fn replaced_by(&self, proof: &StableProof) -> impl Fn(ReplicaId, u64) -> bool + use<> {
        let counts = !self.config.follows(crate::Flaw::CountOldEpoch);
        let named = if counts { named_by(proof) } else { Vec::new() };
        move |from, epoch| named.iter().any(|(replica, now)| *replica == from && epoch < *now)
    }
}

/// The epochs that a stable checkpoint names.
fn named_by(proof: &StableProof) -> Vec<(ReplicaId, u64)> {
    match proof.votes.first().map(|vote| &vote.body) {
        Some(Body::Checkpoint(checkpoint)) => checkpoint.epochs.clone(),
        _ => Vec::new(),
    }
}

/// Sets that a primary looks at for one that goes together: with up to a dozen faulty replicas, all that there may be.
const MOST_TRIES: usize = 4096;

/// Whether none of these VIEW-CHANGEs shows that another is of a component that was replaced.
pub(crate) fn consistent(config: &crate::Config, shown: &[Evidence]) -> bool {
    if config.follows(crate::Flaw::CountOldEpoch) {
        return true;
    }
    rule!("MINBFT-E4");
    !shown.iter().any(|one| shown.iter().any(|other| disowns(one, other)))
}

/// Whether one VIEW-CHANGE shows a configuration in which the other's component was replaced.
fn disowns(one: &Evidence, other: &Evidence) -> bool {
    one.epochs.get(&other.from).is_some_and(|epoch| *epoch > other.epoch)
}

/// As many of these as a quorum has, the first among them, that are consistent, wherever there are so many: who lies about
/// the components of others must not have a primary miss those that go together.
pub(crate) fn agreeing(config: &crate::Config, shown: Vec<Evidence>, quorum: usize) -> Option<Vec<Evidence>> {
    rule!("MINBFT-E4");
    let spare = shown.len().checked_sub(quorum)?;
    let counts = !config.follows(crate::Flaw::CountOldEpoch);
    let clash = |one: &Evidence, other: &Evidence| counts && (disowns(one, other) || disowns(other, one));
    let with = |one: &Evidence| -> Vec<bool> { shown.iter().map(|other| clash(one, other)).collect() };
    let clashes: Vec<Vec<bool>> = shown.iter().map(with).collect();
    let mut tries = MOST_TRIES;
    let kept = without_clashes(&clashes, vec![true; shown.len()], spare, &mut tries)?;
    let chosen = shown.into_iter().zip(kept).filter_map(|(one, kept)| kept.then_some(one));
    Some(chosen.take(quorum).collect())
}

/// What is kept of these where up to `spare` of them go, but not the first, such that nothing clashes: of whoever clashes with
/// most, either it goes or all those.
fn without_clashes(
    clashes: &[Vec<bool>],
    kept: Vec<bool>,
    spare: usize,
    tries: &mut usize,
) -> Option<Vec<bool>> {
    *tries = tries.checked_sub(1)?;
    let among = || (0..kept.len()).filter(|one| kept[*one]);
    let rivals = |one: usize| among().filter(|other| clashes[one][*other]).collect::<Vec<_>>();
    let (worst, rivals) = among().map(|one| (one, rivals(one))).max_by_key(|(_, rivals)| rivals.len())?;
    if rivals.is_empty() {
        return Some(kept);
    }
    let mut without = |gone: &[usize]| {
        let spare = spare.checked_sub(gone.len()).filter(|_| !gone.contains(&0))?;
        let left = kept.iter().enumerate().map(|(one, kept)| *kept && !gone.contains(&one)).collect();
        without_clashes(clashes, left, spare, tries)
    };
    without(&[worst]).or_else(|| without(&rivals))
}
