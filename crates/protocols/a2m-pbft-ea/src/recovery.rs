//! A start from the log: the replica goes on from its attested messages, which bind it whether or not they were sent.

use crate::checkpoint::proven;
use crate::message::{Attested, Body, Message, Record};
use crate::place::{self, CHECKPOINT, COMMIT, NEW_VIEW, PREPARE, VIEW_CHANGE, end_of};
use crate::state::{A2mPbftEa, Asked};
use std::sync::Arc;
use troth_auth::Verified;
use troth_core::{Cx, Reached, rule};
use troth_trusted::CounterValue;
use troth_trusted::a2m::{Answer, Content, LogId, Operation, Slot as LogSlot};
use troth_types::{Digest, Seq, View};

/// The logs of messages.
const LOGS: [LogId; 5] = [PREPARE, COMMIT, CHECKPOINT, VIEW_CHANGE, NEW_VIEW];

impl A2mPbftEa {
    /// Rebuilds the state from a snapshot, its own messages and the records since.
    pub(crate) fn recover(
        &mut self,
        cx: &mut Cx<'_, Self>,
        own: Vec<Message>,
        records: Vec<Record>,
        snapshot: (Seq, Digest),
        reached: Reached,
    ) {
        rule!("A2MPBFTEA-R10");
        self.reached = reached;
        self.delivered = reached.seq;
        self.own_state = snapshot.0;
        let own: Vec<Arc<Attested>> = own
            .into_iter()
            .filter_map(|message| match message {
                Message::Attested(message) => Some(message),
                _ => None,
            })
            .collect();
        for message in &own {
            if let Some((log, slot)) = place::of(&message.body) {
                self.holds(log, slot);
                self.attested_to(log, slot);
            }
            if let Some(change) = message.view_change() {
                // It was made when the views that it leaves were abandoned.
                let end = end_of(View(change.to.0.saturating_sub(1)));
                [COMMIT, PREPARE].into_iter().for_each(|log| self.attested_to(log, end));
            }
        }
        let (mut proposals, mut prepares, mut leaving) = (Vec::new(), Vec::new(), Vec::new());
        let mut executed = Vec::new();
        for record in records {
            match record {
                Record::Frame(frame) => self.frames.restore(Verified::made_here(frame)),
                Record::Proposal(message) => proposals.push(message),
                Record::Prepared(messages) => prepares.extend(messages),
                Record::Leaving(wanted) => leaving = wanted,
                Record::NewView(message) => self.know_start(&message),
                Record::Accepted(message) => {
                    self.known_views.accept(&message);
                }
                Record::Stable(proof) => {
                    if let Some(target) = proven(&self.group, &proof).filter(|it| it.0 > self.stable.0) {
                        (self.stable, self.stable_proof) = (target, proof);
                    }
                }
                Record::Executed(seq, batch) => {
                    executed.push(seq);
                    self.decided.insert(seq, batch);
                }
                Record::Filled(slots) => {
                    for (log, slot) in slots {
                        // What a fresh segment of the log says was attested, too.
                        self.holds(LogId(log), CounterValue(slot));
                        self.attested_to(LogId(log), CounterValue(slot));
                    }
                }
                Record::History(from, values) => {
                    rule!("A2MPBFTEA-R16");
                    self.history.log.remember(from, &values);
                }
            }
        }
        // Nothing is asked of the history before it is known where that ends.
        self.ask_history(cx, reached.seq, executed);
        // What was stable before is certified still.
        self.certified(cx);
        self.back_in_view(cx, &own);
        self.known_views.entered(&self.group, self.entered);
        for message in own.iter().chain(&proposals).chain(&prepares) {
            self.take_up(message);
        }
        self.prepared_up_to = self.prepared_up_to.max(self.last_in_view(PREPARE));
        self.committed_up_to = self.committed_up_to.max(self.last_in_view(COMMIT));
        if let Some(to) = leaving.first().map(|wanted| wanted.want.to).filter(|to| *to > self.entered) {
            (self.view, self.active, self.certificate) = (to, false, leaving);
        }
        self.wanted_view = self.view;
        self.name_promised();
        if snapshot.0 > Seq(0) {
            self.own_digests.insert(snapshot.0, snapshot.1);
            self.history.due(snapshot.0, snapshot.1);
        }
        self.execute_decided(cx);
        self.drop_stable();
        self.ask_standing(cx);
        self.reconsider = true;
        // The snapshot may be older than what was known to be stable, or may be wrong.
        self.compare_with_stable(cx);
        self.notice_lag(cx);
    }

    /// Asks the component where the history ends: what it holds must be what was executed here, as the own log says.
    pub(crate) fn ask_history(&mut self, cx: &mut Cx<'_, Self>, reached: Seq, executed: Vec<Seq>) {
        rule!("A2MPBFTEA-R14");
        let (ticket, operations) = self.history.start(reached, executed);
        cx.trusted(ticket, operations);
    }

    /// A log holds an own message at this slot.
    fn holds(&mut self, log: LogId, slot: LogSlot) {
        for known in [&mut self.filled, &mut self.attested] {
            let last = known.get(&log).copied().unwrap_or_default().max(slot);
            known.insert(log, last);
        }
    }

    /// The component has attested this slot, or one behind it, of a log.
    fn attested_to(&mut self, log: LogId, slot: LogSlot) {
        let least = self.promised.entry(log).or_default();
        *least = (*least).max(slot);
    }

    fn know_start(&mut self, message: &Arc<Attested>) {
        if let Some(new_view) = message.new_view() {
            self.known_views.restore(new_view.view, message, crate::new_view::rests_on(new_view));
        }
    }

    /// It is in the last view to whose start it committed.
    fn back_in_view(&mut self, cx: &mut Cx<'_, Self>, own: &[Arc<Attested>]) {
        for message in own {
            match &message.body {
                Body::NewView(_) => self.know_start(message),
                Body::Accept(_) => {
                    self.known_views.accept(message);
                }
                _ => {}
            }
        }
        let entered = own.iter().filter_map(|message| message.accept()).max_by_key(|accept| accept.view);
        let Some(view) = entered.map(|accept| accept.view) else { return };
        let started = self.known_views.get(view).cloned();
        match started.as_ref().and_then(|message| message.new_view().map(|new_view| (message, new_view))) {
            Some((message, new_view)) => {
                (self.view, self.active) = (view, true);
                self.begin(message, new_view);
            }
            None => cx.halt("the log on disk lacks the NEWVIEW that this replica committed to last"),
        }
    }

    /// A message of the view that it is back in, or one that stands for itself.
    fn take_up(&mut self, message: &Arc<Attested>) {
        let (entered, from) = (self.entered, message.from);
        match &message.body {
            Body::PrePrepare(proposal) if proposal.view == entered => {
                if let Some(slot) = self.slot(proposal.seq) {
                    slot.proposal = Some(message.clone());
                }
            }
            Body::Prepare(vote) if vote.view == entered => {
                if let Some(slot) = self.slot(vote.seq) {
                    slot.prepares.insert(from, message.clone());
                }
            }
            Body::Commit(vote) if vote.view == entered => {
                if let Some(slot) = self.slot(vote.seq) {
                    slot.commits.insert(from, message.clone());
                }
            }
            Body::Checkpoint(checkpoint) if checkpoint.seq > self.stable.0 => {
                self.checkpoint_votes.entry(checkpoint.seq).or_default().insert(from, message.clone());
            }
            Body::ViewChange(_) => {
                self.changes.insert(from, message.clone());
            }
            _ => {}
        }
    }

    /// The last number of the view entered at which this replica filled a slot of this log.
    fn last_in_view(&self, log: LogId) -> Seq {
        let last = self.last_filled(log);
        let in_view = View(last.view()) == self.entered && last.count() < u64::MAX;
        if in_view { Seq(last.count()) } else { Seq(0) }
    }

    /// What the slots, the start of the view and the executed batches name is needed until it is stable: a new view may rest
    /// on this replica's word that it has the frames.
    fn name_promised(&mut self) {
        for (seq, slot) in &self.slots {
            if let Some(batch) = slot.batch() {
                self.frames.name(*seq, &batch.frames);
            }
        }
        for (seq, batch) in &self.decided {
            self.frames.name(*seq, &batch.frames);
        }
    }

    /// Asks the component where its logs begin and end: what it did without a message, the log on disk does not tell.
    fn ask_standing(&mut self, cx: &mut Cx<'_, Self>) {
        rule!("A2MPBFTEA-R11");
        self.knows_logs = false;
        let nonce = [0; 32];
        let of =
            |log| [Operation::End { log, nonce }, Operation::Lookup { log, slot: CounterValue(0), nonce }];
        let ticket = self.ticket(Asked::Standing);
        cx.trusted(ticket, LOGS.into_iter().flat_map(of).collect());
    }

    /// The component's answer. A log that goes further than this replica remembers, and not to the end of a view, holds a
    /// message that the disk has lost: such a replica must not go on. Neither must one whose component has forgotten what it
    /// attested: it would attest something else there.
    pub(crate) fn standing(&mut self, cx: &mut Cx<'_, Self>, answers: &[Answer]) {
        for (log, answers) in LOGS.into_iter().zip(answers.chunks(2)) {
            let [Answer::Attested(end), Answer::Attested(low)] = answers else { continue };
            if self.promised.get(&log).is_some_and(|attested| end.claim.slot < *attested) {
                return cx.halt("the trusted component is older than what it has attested");
            }
            if end.claim.slot > self.last_filled(log) {
                if !abandoned(log, end.claim.slot) {
                    return cx.halt("the log on disk is older than the trusted component");
                }
                self.filled.insert(log, end.claim.slot);
            }
            if let Content::Forgotten { low } = low.claim.content {
                self.forgotten.insert(log, low);
            }
        }
        self.knows_logs = true;
        let shown = self.changes.get(&self.me).and_then(|mine| mine.view_change());
        if !self.active && shown.is_none_or(|change| change.to < self.view) {
            self.abandon(cx);
        }
    }

    /// Executes again what was executed before: the checkpoints that this replica has vouched for since its snapshot may be
    /// stable, and it must be able to show their states.
    pub(crate) fn execute_decided(&mut self, cx: &mut Cx<'_, Self>) {
        while let Some(batch) = self.decided.get(&self.delivered.next()).cloned() {
            let seq = self.delivered.next();
            if !self.frames.name(seq, &batch.frames) {
                return;
            }
            self.deliver(cx, seq, batch);
        }
    }
}

/// Whether a slot is the end of a view, where only an abandonment gets.
fn abandoned(log: LogId, slot: LogSlot) -> bool {
    (log == COMMIT || log == PREPARE) && slot.count() == u64::MAX
}
