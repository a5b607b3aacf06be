//! What a VIEW-CHANGE proves by itself (MinBFT §4, "messages that are consistent with the system
//! state"): a pure function of its bytes, the group and the configuration, so that every replica
//! judges it alike.

use crate::message::{
    AcceptNewView, Body, Certified, Checkpoint, Commit, LogEntry, Prepare, StableProof, ViewChange,
};
use crate::place::Place;
use crate::{Config, Flaw};
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_blocks::Voters;
use troth_core::rule;
use troth_trusted::CounterValue;
use troth_types::{Configuration, Digest, Group, ReplicaId, Seq, View};

/// What a valid VIEW-CHANGE says its sender committed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The sender.
    pub from: ReplicaId,
    /// The stable checkpoint it shows.
    pub stable: (Seq, Digest),
    /// The highest view in which it committed to anything.
    pub view: Option<View>,
    /// The PREPAREs it committed to, by view and number.
    pub prepares: BTreeMap<(View, Seq), Arc<Certified>>,
    /// The epoch of the sender's component.
    pub epoch: u64,
    /// The highest epoch of each replica that one of its checkpoints shows.
    pub epochs: BTreeMap<ReplicaId, u64>,
}

/// Whether a message is of a component that was admitted to the running group.
pub fn admitted(configuration: &Configuration, message: &Certified) -> bool {
    let epoch = message.ui.certificate.epoch.0;
    configuration.admission(message.from, epoch).is_some_and(|admission| admission.at > Seq(0))
}

/// Whether a CHECKPOINT is of the component that it says its sender has.
pub fn by_the_named(config: &Config, message: &Certified, checkpoint: &Checkpoint) -> bool {
    if config.follows(Flaw::CountOldEpoch) {
        return true;
    }
    rule!("MINBFT-E5");
    let named = checkpoint.epochs.iter().find(|(replica, _)| *replica == message.from);
    named.is_none_or(|(_, epoch)| *epoch == message.ui.certificate.epoch.0)
}

/// Whether f+1 distinct replicas vouch for one checkpoint; genesis needs no voucher.
pub fn check_stable(
    group: &Group,
    config: &Config,
    proof: &StableProof,
) -> Result<(Seq, Digest), &'static str> {
    let target = proof.target();
    if proof.votes.is_empty() {
        return Ok(target);
    }
    rule!("MINBFT-C2");
    let mut voters = Voters::NONE;
    for vote in &proof.votes {
        match &vote.body {
            Body::Checkpoint(checkpoint) if proof.votes[0].body == vote.body => {
                if group.contains(vote.from) && by_the_named(config, vote, checkpoint) {
                    voters.insert(vote.from);
                }
            }
            _ => return Err("a checkpoint certificate whose votes differ"),
        }
    }
    if voters.count() < group.quorum() { Err("a checkpoint certificate below quorum") } else { Ok(target) }
}

/// Why a message may not stand at its counter value, if it may not (deviation D2: in each view the
/// VIEW-CHANGE, the start and each CHECKPOINT have a place of their own).
pub fn misplaced(group: &Group, config: &Config, message: &Certified) -> Option<&'static str> {
    if config.follows(Flaw::AdoptCounters) {
        return None;
    }
    rule!("MINBFT-U2");
    let value = message.value();
    let place = Place::of(value);
    let view = place.view;
    let starts = value == Place::of_start(view) && view > View(0);
    let good = match &message.body {
        Body::Prepare(prepare) => prepare.view == view && place.is_working(),
        Body::Commit(commit) => {
            commit.prepare.prepare().is_some_and(|prepare| prepare.view == view) && place.is_working()
        }
        Body::Checkpoint(checkpoint) => Place::of_checkpoint(view, checkpoint.seq) == Some(value),
        Body::ViewChange(change) => {
            change.to == view && value == Place::of_view_change(view) && view > View(0)
        }
        Body::NewView(new_view) => new_view.view == view && starts && group.primary(view) == message.from,
        Body::AcceptNewView(accept) => accept.view == view && starts && group.primary(view) != message.from,
        Body::RequestViewChange(_) => false,
    };
    if good { None } else { Some("a message at a counter value that its kind may not hold") }
}

/// The PREPARE inside a COMMIT, if the COMMIT is well formed: by the primary of its view, sent by
/// another replica.
pub fn committed<'a>(
    group: &Group,
    config: &Config,
    from: ReplicaId,
    commit: &'a Commit,
) -> Result<&'a Prepare, &'static str> {
    let carried = &commit.prepare;
    let prepare = carried.prepare().ok_or("a COMMIT without a PREPARE")?;
    if carried.from != group.primary(prepare.view) {
        return Err("a COMMIT whose PREPARE is not the primary's");
    }
    if carried.from == from {
        return Err("a COMMIT by the primary of the view");
    }
    if misplaced(group, config, carried).is_some() {
        return Err("a COMMIT whose PREPARE stands at an impossible counter value");
    }
    within_limits(config, prepare)?;
    Ok(prepare)
}

/// Whether the batch is one that a correct primary may propose. Every log shows batches again: one of any
/// size would make them too large to send.
pub fn within_limits(config: &Config, prepare: &Prepare) -> Result<(), &'static str> {
    rule!("MINBFT-N9");
    if prepare.batch.frames.len() > config.limits.batch_frames {
        return Err("a batch of more frames than the group allows");
    }
    Ok(())
}

/// Follows one sender's commitments through its log: consecutive within a view, within the window of
/// its own checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The view of the last commitment and its number; nothing is known after a jump.
    pub last: Option<(View, Seq)>,
    /// The sender's own last checkpoint.
    pub checkpoint: Seq,
}

impl Walk {
    /// Before the first message.
    pub const START: Self = Self { last: Some((View(0), Seq(0))), checkpoint: Seq(0) };

    /// One commitment, at a counter value. An error is a proof against the sender.
    pub fn commit(
        &mut self,
        config: &Config,
        value: CounterValue,
        view: View,
        seq: Seq,
    ) -> Result<(), &'static str> {
        rule!("MINBFT-N4");
        if let Some((last_view, last)) = self.last {
            if view < last_view {
                return Err("a commitment in a view that its sender left");
            }
            let after_checkpoint = self.checkpoint > last && seq == self.checkpoint.next();
            if view == last_view && seq != last.next() && !after_checkpoint {
                return Err("a skipped commitment");
            }
        }
        // The value tells, not the messages before it: a receiver may have passed over some of them.
        let plain = config.follows(Flaw::AdoptCounters);
        let checkpoint = if plain { self.checkpoint } else { Place::of(value).checkpoint };
        rule!("MINBFT-W1");
        if seq.0 > checkpoint.0.saturating_add(config.window) {
            return Err("a commitment beyond the window of its sender's own checkpoint");
        }
        // Or there would be as many behind one checkpoint as numbers are below it, and each stands in the log.
        if !plain && seq <= checkpoint {
            return Err("a commitment not above its sender's own checkpoint");
        }
        self.last = Some((view, seq));
        Ok(())
    }

    /// One own checkpoint.
    pub fn checkpoint(&mut self, seq: Seq) -> Result<(), &'static str> {
        if seq < self.checkpoint {
            return Err("an own checkpoint below the last");
        }
        self.checkpoint = seq;
        Ok(())
    }
}

/// Judges a VIEW-CHANGE. An error is a proof against its sender.
pub fn evidence(
    group: &Group,
    configuration: &Configuration,
    config: &Config,
    message: &Certified,
) -> Result<Evidence, &'static str> {
    let change = message.view_change().ok_or("not a VIEW-CHANGE")?;
    rule!("MINBFT-V3");
    let stable = check_stable(group, config, &change.stable)?;
    check_requests(group, change)?;
    check_epoch(configuration, config, message, change, stable.0)?;
    let mut follower = Follower::new(group, config, message.from, change.to);
    let mut expected = check_anchor(config, change, stable.0, &mut follower.walk)?;
    for entry in &change.log {
        let ui = entry.ui();
        if expected.is_some_and(|expected| expected != ui.predecessor()) {
            return Err("a hole in a VIEW-CHANGE's log");
        }
        follower.entry(entry)?;
        expected = Some(ui.value());
    }
    rule!("MINBFT-V4");
    if expected.unwrap_or(CounterValue(0)) != message.ui.predecessor() {
        return Err("a VIEW-CHANGE whose log does not reach up to it");
    }
    let mut epochs = follower.epochs;
    for vote in &change.stable.votes {
        note_epochs(&mut epochs, vote);
    }
    let epoch = message.ui.certificate.epoch.0;
    let (view, prepares) = (follower.view, follower.prepares);
    Ok(Evidence { from: message.from, stable, view, prepares, epoch, epochs })
}

/// A readmitted replica stands on a stable checkpoint beyond everything that its earlier component may have
/// promised; its log is of its own component; and it begins above every view in which that checkpoint was
/// vouched for (guide.md §7.3).
fn check_epoch(
    configuration: &Configuration,
    config: &Config,
    message: &Certified,
    change: &ViewChange,
    stable: Seq,
) -> Result<(), &'static str> {
    let epoch = message.ui.certificate.epoch;
    rule!("MINBFT-E9");
    if change.log.iter().any(|entry| entry.ui().certificate.epoch != epoch) {
        return Err("a VIEW-CHANGE whose log is of another component");
    }
    let Some(admission) = configuration.admission(message.from, epoch.0) else { return Ok(()) };
    if admission.at == Seq(0) {
        return Ok(());
    }
    rule!("MINBFT-E3");
    if stable.0 < admission.at.0.saturating_add(config.window) {
        return Err("a readmitted replica without a stable checkpoint a window behind its admission");
    }
    if message.ui.predecessor() == CounterValue(0) && change.stable.view() >= change.to {
        return Err("a readmitted replica that begins no higher than the view of its checkpoint");
    }
    Ok(())
}

fn note_epochs(epochs: &mut BTreeMap<ReplicaId, u64>, message: &Certified) {
    if let Body::Checkpoint(checkpoint) = &message.body {
        for (replica, epoch) in &checkpoint.epochs {
            let highest = epochs.entry(*replica).or_default();
            *highest = (*highest).max(*epoch);
        }
    }
}

fn check_requests(group: &Group, change: &ViewChange) -> Result<(), &'static str> {
    let wanting: Voters = change
        .requests
        .iter()
        .filter(|signed| signed.request.to >= change.to && group.contains(signed.from))
        .map(|signed| signed.from)
        .collect();
    rule!("MINBFT-V2");
    if wanting.count() < group.weak() { Err("a VIEW-CHANGE without f+1 REQ-VIEW-CHANGEs") } else { Ok(()) }
}

/// The log must begin where the sender began, or at an own checkpoint old enough that every
/// commitment before it is below the stable checkpoint (guide.md §4.4). Returns the predecessor
/// that the first entry must have, where it is determined.
fn check_anchor(
    config: &Config,
    change: &ViewChange,
    stable: Seq,
    walk: &mut Walk,
) -> Result<Option<CounterValue>, &'static str> {
    let Some(first) = change.log.first() else { return Ok(Some(CounterValue(0))) };
    if first.ui().predecessor() == CounterValue(0) {
        return Ok(Some(CounterValue(0)));
    }
    rule!("MINBFT-V5");
    let LogEntry::Whole(anchor) = first else { return Err("a VIEW-CHANGE's log without an anchor") };
    let Body::Checkpoint(checkpoint) = &anchor.body else {
        return Err("a VIEW-CHANGE's log without an anchor");
    };
    if !covers(config, checkpoint.seq, stable) {
        return Err("a VIEW-CHANGE's log with an anchor above what is stable");
    }
    // What came before the anchor is not shown, so its last commitment is not known.
    walk.last = None;
    walk.checkpoint = Seq(0);
    Ok(None)
}

/// Whether an own checkpoint may be an anchor once `stable` is stable: every commitment of the same view
/// that precedes it is then not above `stable`, because its counter value bounds it (W1). What precedes it
/// in earlier views entered the start of its view.
pub fn covers(config: &Config, checkpoint: Seq, stable: Seq) -> bool {
    if config.follows(Flaw::CutUnderPipelining) {
        return checkpoint <= stable;
    }
    // A faulty replica may certify any number: no sum here may wrap around.
    checkpoint.0.checked_add(config.window).is_some_and(|covered| covered <= stable.0)
}

struct Follower<'a> {
    group: &'a Group,
    config: &'a Config,
    from: ReplicaId,
    to: View,
    walk: Walk,
    view: Option<View>,
    prepares: BTreeMap<(View, Seq), Arc<Certified>>,
    epochs: BTreeMap<ReplicaId, u64>,
}

impl<'a> Follower<'a> {
    fn new(group: &'a Group, config: &'a Config, from: ReplicaId, to: View) -> Self {
        Self {
            group,
            config,
            from,
            to,
            walk: Walk::START,
            view: None,
            prepares: BTreeMap::new(),
            epochs: BTreeMap::new(),
        }
    }

    fn committed_in(&mut self, view: View) -> Result<(), &'static str> {
        if view >= self.to {
            return Err("a VIEW-CHANGE after a commitment in its target view");
        }
        self.view = self.view.max(Some(view));
        Ok(())
    }

    fn entry(&mut self, entry: &LogEntry) -> Result<(), &'static str> {
        match entry {
            LogEntry::ViewChange(view, _, ui) => {
                if *view >= self.to {
                    return Err("a VIEW-CHANGE after one for a later view");
                }
                self.stub_place(ui.value(), Place::of_view_change(*view))
            }
            LogEntry::NewView(view, _, ui) => {
                if self.group.primary(*view) != self.from {
                    return Err("a NEW-VIEW by a backup");
                }
                self.stub_place(ui.value(), Place::of_start(*view))?;
                // Where the view starts is in the NEW-VIEW; the stub does not tell.
                self.walk.last = None;
                self.committed_in(*view)
            }
            LogEntry::Whole(message) => self.whole(message),
        }
    }

    fn stub_place(&self, value: CounterValue, place: CounterValue) -> Result<(), &'static str> {
        let plain = self.config.follows(Flaw::AdoptCounters);
        if !plain && value != place {
            return Err("a stub at a counter value that its kind may not hold");
        }
        Ok(())
    }

    fn whole(&mut self, message: &Arc<Certified>) -> Result<(), &'static str> {
        if let Some(why) = misplaced(self.group, self.config, message) {
            return Err(why);
        }
        match &message.body {
            Body::Prepare(prepare) => {
                if self.group.primary(prepare.view) != self.from {
                    return Err("a PREPARE by a backup");
                }
                within_limits(self.config, prepare)?;
                self.walk.commit(self.config, message.value(), prepare.view, prepare.seq)?;
                self.committed_in(prepare.view)?;
                self.prepares.insert((prepare.view, prepare.seq), message.clone());
                Ok(())
            }
            Body::Commit(commit) => {
                let prepare = committed(self.group, self.config, self.from, commit)?;
                self.walk.commit(self.config, message.value(), prepare.view, prepare.seq)?;
                self.committed_in(prepare.view)?;
                self.prepares.insert((prepare.view, prepare.seq), commit.prepare.clone());
                Ok(())
            }
            Body::Checkpoint(checkpoint) => {
                self.walk.checkpoint(checkpoint.seq)?;
                note_epochs(&mut self.epochs, message);
                // Who works in a view has accepted its start, though the log may begin behind that.
                self.committed_in(View(message.value().view()))
            }
            Body::AcceptNewView(AcceptNewView { view, .. }) => {
                self.walk.last = None;
                self.committed_in(*view)
            }
            Body::ViewChange(_) | Body::NewView(_) | Body::RequestViewChange(_) => {
                Err("a log entry of a kind that logs do not hold")
            }
        }
    }
}
