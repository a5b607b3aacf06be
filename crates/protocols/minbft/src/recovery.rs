//! A start from the log: the replica goes on from its own certified messages, which bind it.

use crate::checkpoint::DueCheckpoint;
use crate::evidence::Walk;
use crate::known_views::rests_on;
use crate::message::{Body, Certified, Message, Record};
use crate::state::{MinBft, Phase};
use std::sync::Arc;
use troth_auth::Verified;
use troth_core::{Cx, Reached, rule};
use troth_types::{Digest, ReplicaId, Seq, View};

impl MinBft {
    /// Rebuilds the state from a snapshot at a stable checkpoint, the own messages since, in counter
    /// order, and the records.
    pub(crate) fn recover(
        &mut self,
        cx: &mut Cx<'_, Self>,
        own: Vec<Message>,
        records: Vec<Record>,
        snapshot: (Seq, Digest),
        reached: Reached,
    ) {
        rule!("MINBFT-R4");
        let me = self.me;
        let mut promised = (View(0), Seq(0));
        // Whether it may vote is not known before it is known what it certified.
        self.due_view_change = None;
        self.phase = Phase::Active;
        self.reached = reached;
        self.delivered = reached.seq;
        self.own_state = snapshot.0;
        if snapshot.0 > Seq(0) {
            self.own_digests.insert(snapshot.0, snapshot.1);
        }
        for record in records {
            match record {
                Record::Frame(frame) => {
                    self.frames.restore(Verified::made_here(frame));
                }
                Record::NewView(message) => {
                    if let Some(new_view) = message.new_view() {
                        let rests_on = rests_on(&self.group, &self.configuration, &self.config, &message);
                        self.known_views.hold(new_view.view, message.clone(), rests_on);
                    }
                }
                Record::Accepted(message) => {
                    self.known_views.accept(&message);
                }
                Record::Executed(seq, batch) => {
                    self.decided.insert(seq, batch);
                }
                Record::Committed(view, seq) => promised = promised.max((view, seq)),
                // What a component has said that was replaced since is void.
                Record::First(message) if self.is_past(&message) => {}
                Record::First(message) => self.note_first(&message),
                Record::Stable(proof) => {
                    self.note_where_to_begin(&proof);
                    if proof.target().0 > self.stable.0 {
                        self.stable = proof.target();
                        self.stable_proof = proof;
                    }
                }
            }
        }
        let own: Vec<Arc<Certified>> = own
            .into_iter()
            .filter_map(|message| match message {
                Message::Certified(message) => Some(message),
                _ => None,
            })
            .collect();
        self.follow_own(cx, &own);
        let view = self.view;
        let walk = &mut self.peer_mut(me).walk;
        if promised.0 <= view && walk.last.unwrap_or_default() < promised {
            // The next fresh log says it again.
            walk.last = Some(promised);
        }
        self.execute_decided(cx);
        // The log on disk may be far longer than what this replica still held: it would all be in its next
        // VIEW-CHANGE. What it executed stays, until a later checkpoint is stable: a fresh log may begin at any
        // checkpoint that is being taken again.
        rule!("MINBFT-R7");
        self.truncate_logs();
        // A state that came by transfer may be ahead of everything this replica certified: it goes on
        // there, and its own CHECKPOINT comes first.
        self.committed = self.committed.max(self.delivered).max(self.own_checkpoint.seq);
        // The log may have been cut behind the last commitments of this view.
        self.read_barrier = self.read_barrier.max(promised.1);
        if promised.0 == self.view && self.active() {
            self.committed = self.committed.max(promised.1);
        }
        if snapshot.0 > self.own_checkpoint.seq {
            // Nothing tells any more whether it came from others.
            rule!("MINBFT-E12");
            let (seq, digest) = snapshot;
            self.due_checkpoints.push_back(DueCheckpoint { seq, digest, given: true });
        }
        if !self.has_joined() {
            self.stand_aside();
        }
        // The snapshot may be older than what was known to be stable, or may be wrong.
        self.compare_with_stable(cx);
        self.notice_lag(cx);
    }

    /// Executes again what was executed before: the checkpoints that this replica has certified since its
    /// snapshot may be stable, and it must be able to show their states.
    pub(crate) fn execute_decided(&mut self, cx: &mut Cx<'_, Self>) {
        rule!("MINBFT-R6");
        let certified: std::collections::BTreeSet<Seq> = self
            .peer(self.me)
            .log
            .iter()
            .filter_map(|logged| match &logged.message.body {
                Body::Checkpoint(checkpoint) => Some(checkpoint.seq),
                _ => None,
            })
            .collect();
        while let Some(batch) = self.decided.get(&self.delivered.next()).cloned() {
            let seq = self.delivered.next();
            self.frames.name(seq, &batch.frames);
            let Some(ordered) = self.ordered(seq, &batch) else { return };
            self.delivered = seq;
            self.slots.remove(&seq);
            cx.deliver(ordered);
            rule!("MINBFT-E1");
            self.awaited = Some(seq);
            if seq.0.is_multiple_of(self.config.interval) || certified.contains(&seq) {
                cx.checkpoint();
            }
        }
    }

    /// Takes up where the last own message left off: what was certified was promised, whether or not it
    /// was sent.
    fn follow_own(&mut self, cx: &mut Cx<'_, Self>, own: &[Arc<Certified>]) {
        let Some((first, last)) = own.first().zip(own.last()) else { return };
        let me = self.me;
        self.requested = last.value();
        self.peer_mut(me).gate.start_at(last.value());
        let mut walk = Walk::START;
        if first.ui.predecessor() != troth_trusted::CounterValue(0) {
            walk.last = None;
        }
        for message in own {
            self.follow_one(&mut walk, message);
            let at = cx.now();
            self.peer_mut(me).log.push_back(crate::peer::Logged { message: message.clone(), at });
        }
        self.peer_mut(me).walk = walk;
        self.wanted_view = self.view;
        self.read_barrier = self.committed.max(self.delivered);
        self.name_committed(own);
    }

    fn follow_one(&mut self, walk: &mut Walk, message: &Arc<Certified>) {
        let me = self.me;
        match &message.body {
            Body::Prepare(prepare) => {
                walk.last = Some((prepare.view, prepare.seq));
                self.in_view(prepare.view, prepare.seq);
            }
            Body::Commit(commit) => {
                if let Some(prepare) = commit.prepare.prepare() {
                    walk.last = Some((prepare.view, prepare.seq));
                    self.in_view(prepare.view, prepare.seq);
                }
            }
            Body::Checkpoint(checkpoint) => {
                walk.checkpoint = walk.checkpoint.max(checkpoint.seq);
                self.own_checkpoint.clone_from(checkpoint);
                if checkpoint.seq >= self.stable.0 {
                    // Or nothing that f+1 replicas vouched for would be stable after all of those restarted.
                    self.checkpoint_votes.entry(checkpoint.seq).or_default().insert(me, message.clone());
                }
                // The log may hold nothing else of its view.
                self.in_view(View(message.value().view()), Seq(0));
            }
            Body::ViewChange(change) => {
                self.view = change.to;
                self.phase = Phase::Changing;
                self.peer_mut(me).view = change.to;
                if message.ui.predecessor() == troth_trusted::CounterValue(0) {
                    // It exists since its body was durable, and may not have come back before the end.
                    self.note_first(message);
                }
                self.changes.insert(me, message.clone());
                self.wanted_view = self.wanted_view.max(change.to);
                for request in &change.requests {
                    self.note_shown_request(request);
                }
            }
            Body::NewView(new_view) => {
                let rests_on = rests_on(&self.group, &self.configuration, &self.config, message);
                self.known_views.hold(new_view.view, message.clone(), rests_on);
                self.back_in_view(walk, new_view.view, me);
            }
            Body::AcceptNewView(accept) => self.back_in_view(walk, accept.view, me),
            Body::RequestViewChange(_) => {}
        }
    }

    fn in_view(&mut self, view: View, seq: Seq) {
        if view > self.view || (view == self.view && self.active()) {
            // The log may begin in the middle of a view, after its start.
            if view > self.view
                && let Some(message) = self.known_views.get(view).cloned()
            {
                self.resume_view(&message);
            }
            self.view = view;
            self.phase = Phase::Active;
        }
        self.committed = self.committed.max(seq);
    }

    fn back_in_view(&mut self, walk: &mut Walk, view: View, me: ReplicaId) {
        if let Some(message) = self.known_views.get(view).cloned() {
            self.view = view;
            self.phase = Phase::Active;
            self.resume_view(&message);
            self.started.accepted.insert(me);
            walk.last = Some((view, self.started.end()));
        }
    }

    fn resume_view(&mut self, message: &Arc<Certified>) {
        if let Some(new_view) = message.new_view() {
            self.begin(message.digest, message.from, new_view);
            if self.is_past(message) {
                self.started.accepted.remove(message.from);
            }
            self.started.accepted.insert(self.me);
            self.committed = self.started.end();
        }
    }

    /// The slots of the present view, as far as this replica committed to them, and the frames that they
    /// name.
    fn name_committed(&mut self, own: &[Arc<Certified>]) {
        let chosen = self.started.chosen.clone();
        for (seq, batch) in (self.started.base.0 + 1..).map(Seq).zip(&chosen) {
            if seq > self.delivered {
                self.frames.name(seq, &batch.frames);
            }
        }
        for message in own {
            let (prepare, mine) = match &message.body {
                Body::Prepare(_) => (message, None),
                Body::Commit(commit) => {
                    (&commit.prepare, Some((commit.prepare.value(), commit.prepare.digest)))
                }
                _ => continue,
            };
            let Some(inner) = prepare.prepare() else { continue };
            if inner.seq <= self.delivered {
                continue;
            }
            self.frames.name(inner.seq, &inner.batch.frames);
            if inner.view == self.view && self.active() {
                let me = self.me;
                let slot = self.slots.entry(inner.seq).or_default();
                match mine {
                    Some(to) => {
                        slot.commits.insert(me, to);
                    }
                    None => slot.prepare = Some(prepare.clone()),
                }
            }
        }
    }
}
