//! Retransmission until stable: what MinBFT §3 assumes of the network ("packet retransmissions") and
//! what its liveness rests on (F-M5). Replicas compare notes; each re-serves what another lacks.

use crate::fetching::MOST_FRAMES;
use crate::message::{Message, SignedRequest, Status};
use crate::shown_again::{Name, name_of_large};
use crate::state::{MinBft, Timer};
use std::sync::Arc;
use troth_core::{Cx, To, rule};
use troth_trusted::CounterValue;
use troth_types::{ReplicaId, Time};

/// Messages of one sender re-served in answer to one status.
const MOST_RESENT: usize = 64;
/// The part of the interval between two status messages of a replica before which a second one has no answer.
const SELDOM: u64 = 4;
/// An idle replica compares notes only every so many intervals.
const IDLE_FACTOR: u64 = 8;

impl MinBft {
    /// Compares notes, and asks for what is missing.
    pub(crate) fn on_status_timer(&mut self, cx: &mut Cx<'_, Self>) {
        self.round += 1;
        let busy = self.busy();
        if busy || self.round.is_multiple_of(IDLE_FACTOR) {
            cx.send(To::Others, Message::Status(self.status_message()));
        }
        self.ask_to_join(cx);
        let missing = self.frames.missing(MOST_FRAMES, self.round, self.wants_up_to());
        if !missing.is_empty() {
            rule!("MINBFT-R2");
            cx.fetch_frames(To::Others, missing);
        }
        if self.known_views.wanted(0).is_some() {
            // What it rests on may have become known otherwise.
            self.judge_evidence(cx);
        }
        // A VIEW-CHANGE or NEW-VIEW may wait for nothing but a clock.
        if !self.active() {
            self.candidates.look_again();
            self.recheck = true;
            self.settle(cx);
        } else {
            self.progress(cx);
        }
        let at = self.after(cx, self.config.status_interval);
        cx.set_timer(Timer::Status, at);
    }

    /// Whether anything is under way that a lost message could hold up.
    fn busy(&self) -> bool {
        let beyond_stable = self.committed > self.stable.0;
        !self.pool.is_empty()
            || !self.active()
            || beyond_stable
            || self.known_views.wanted(0).is_some()
            || self.peers.iter().any(|peer| peer.gate.held() > 0)
    }

    fn status_message(&self) -> Status {
        Status {
            view: self.view,
            processed: self.peers.iter().map(|peer| peer.gate.processed().0).collect(),
            stable: self.told_stable(),
            executed: self.delivered,
            round: self.round,
            wants: self.known_views.wanted(self.round),
        }
    }

    /// Re-serves what the sender lacks: own messages always; those of third parties where it is this
    /// replica's turn, for certified messages convince everybody whoever sends them.
    pub(crate) fn on_status(&mut self, cx: &mut Cx<'_, Self>, from: ReplicaId, status: &Status) {
        if from == self.me || status.processed.len() != self.group.n() {
            return;
        }
        self.peer_mut(from).said_view = status.view;
        rule!("MINBFT-R10");
        let now = cx.now();
        // A machine that was replaced and goes on may have the keys of the one in its place: it asks for something else.
        let lacks_stable = usize::from(status.stable < self.stable.0);
        let answered = self.peer(from).answered[lacks_stable];
        if answered.is_some_and(|at| now.0 < at.0 + self.config.status_interval / SELDOM) {
            return cx.ignore(from, "its last status was answered just now");
        }
        self.peer_mut(from).answered[lacks_stable] = Some(now);
        rule!("MINBFT-R3");
        let to = To::One(from);
        if status.stable < self.stable.0 {
            cx.send(to, Message::Stable(self.stable_proof.clone()));
        }
        if status.view < self.wanted_view
            && let Some(request) = &self.peer(self.me).asked
        {
            cx.send(to, Message::RequestViewChange(request.clone()));
        }
        if status.view < self.view {
            for request in self.reasons().iter().filter(|request| request.from != from) {
                cx.send(to, Message::RequestViewChange(request.clone()));
            }
        }
        let evidence = status.wants.map(|view| self.known_views.shown(view)).unwrap_or_default();
        let mut messages: Vec<Message> = evidence.into_iter().map(Message::Evidence).collect();
        // What was sent less than half an interval ago is probably on its way.
        let settled = cx.now().0.saturating_sub(self.config.status_interval / 2);
        let n = self.group.n() as u64;
        for replica in self.group.all() {
            let turn = (u64::from(replica.0) + 1 + status.round % (n - 1)) % n == u64::from(self.me.0);
            if replica == from || (replica != self.me && !turn) {
                continue;
            }
            let processed = CounterValue(status.processed[usize::from(replica.0)]);
            let peer = self.peer(replica);
            rule!("MINBFT-E10");
            messages.extend(peer.first_beyond(processed).cloned().map(Message::Certified));
            let log = peer.log.iter();
            let lacking = log.filter(|logged| logged.message.value() > processed && logged.at.0 <= settled);
            let lacking = lacking.take(MOST_RESENT).map(|logged| logged.message.clone());
            messages.extend(lacking.map(Message::Certified));
        }
        let chosen = self.choose_large(cx.now(), from, &messages);
        for message in messages {
            if name_of_large(&message).is_none_or(|name| chosen.contains(&name)) {
                cx.send(to, message);
            }
        }
    }

    /// The requests for which this replica left earlier views: it need not have asked for that itself. Where its VIEW-CHANGE
    /// went with what its log let go of, those that the view began with.
    fn reasons(&self) -> &[Arc<SignedRequest>] {
        let begun = || self.known_views.get(self.view)?.new_view()?.changes.first();
        let change = self.changes.get(&self.me).or_else(begun).and_then(|change| change.view_change());
        change.map(|change| change.requests.as_slice()).unwrap_or_default()
    }

    /// Which of the large messages among these a replica is sent in answer to its status.
    fn choose_large(&mut self, now: Time, to: ReplicaId, messages: &[Message]) -> Vec<Name> {
        rule!("MINBFT-R15");
        let interval = self.config.status_interval;
        let lacking: Vec<Name> = messages.iter().filter_map(name_of_large).collect();
        let mut shown_again = std::mem::take(&mut self.peer_mut(to).shown_again);
        let chosen = shown_again.choose(now, interval, &lacking);
        if !chosen.is_empty() {
            shown_again.retain(|(replica, value, evidence)| match evidence {
                true => self.known_views.all().any(|known| known.from == *replica && known.value() == *value),
                false => self.peer(*replica).shows(*value),
            });
        }
        self.peer_mut(to).shown_again = shown_again;
        chosen
    }
}
