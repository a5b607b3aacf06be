//! Retransmission until stable: what MinBFT §3 assumes of the network ("packet retransmissions") and
//! what its liveness rests on (F-M5). Replicas compare notes; each re-serves what another lacks.

use crate::fetching::MOST_FRAMES;
use crate::message::{Certified, Message, Status};
use crate::state::{MinBft, Timer};
use std::sync::Arc;
use troth_core::{Cx, To, rule};
use troth_trusted::CounterValue;
use troth_types::ReplicaId;

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
        // A VIEW-CHANGE or NEW-VIEW may wait for nothing but a clock.
        if !self.active() {
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
            stable: self.stable.0,
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
        let answered = self.peer(from).answered;
        if answered.is_some_and(|at| now.0 < at.0 + self.config.status_interval / SELDOM) {
            return cx.ignore(from, "its last status was answered just now");
        }
        self.peer_mut(from).answered = Some(now);
        rule!("MINBFT-R3");
        let to = To::One(from);
        if status.stable < self.stable.0 {
            cx.send(to, Message::Stable(self.stable_proof.clone()));
        }
        if status.view < self.wanted_view
            && let Some(request) = self.requests.get(&self.me)
        {
            cx.send(to, Message::RequestViewChange(request.clone()));
        }
        for evidence in status.wants.map(|view| self.known_views.shown(view)).unwrap_or_default() {
            cx.send(to, Message::Evidence(evidence));
        }
        // What was sent less than half an interval ago is probably on its way.
        let settled = cx.now().0.saturating_sub(self.config.status_interval / 2);
        let n = self.group.n() as u64;
        for replica in self.group.all() {
            let turn = (u64::from(replica.0) + 1 + status.round % (n - 1)) % n == u64::from(self.me.0);
            if replica == from || (replica != self.me && !turn) {
                continue;
            }
            let processed = CounterValue(status.processed[usize::from(replica.0)]);
            let lacking: Vec<Arc<Certified>> = self
                .peer(replica)
                .log
                .iter()
                .filter(|logged| logged.message.value() > processed && logged.at.0 <= settled)
                .take(MOST_RESENT)
                .map(|logged| logged.message.clone())
                .collect();
            for message in lacking {
                cx.send(to, Message::Certified(message));
            }
        }
    }
}
