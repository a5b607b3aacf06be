//! Numbers, views, batches and states as the steps choose them: mostly what fits where the correct replica stands.

use super::{Fuzzed, INTERVAL, WALL, World};
use crate::bytes::Steps;
use std::collections::BTreeMap;
use troth_core::{Execution, PeerMessage};
use troth_types::{Batch, Digest, ReplicaId, Seq, Time, View};

/// The last number of a checkpoint that MinBFT's counters have a place for; no other protocol minds it.
const FURTHEST: u64 = troth_minbft::place::Place::LAST_CHECKPOINT.0;

impl<P: Fuzzed> World<P> {
    /// The digest of the state as it is.
    pub(super) fn digest_now(&self) -> Digest {
        self.nodes[0].host.machine().execution().digest_now()
    }

    /// The view that the replica is in.
    pub(super) fn present(&self) -> View {
        self.nodes[0].host.machine().agreement().status().view
    }

    /// Mostly small, sometimes at the end of what there is.
    pub(super) fn number(&self, steps: &mut Steps<'_>) -> u64 {
        match steps.byte() {
            255 => u64::MAX,
            254 => u64::MAX - 1,
            253 => FURTHEST,
            small => u64::from(small % 16),
        }
    }

    /// Mostly the next that the replica waits for.
    pub(super) fn seq(&self, steps: &mut Steps<'_>) -> Seq {
        let executed = self.nodes[0].host.machine().execution().executed();
        match steps.byte() % 4 {
            0 => Seq(self.number(steps)),
            ahead => Seq(executed.0.saturating_add(u64::from(ahead))),
        }
    }

    /// Mostly that of a checkpoint.
    pub(super) fn checkpoint_seq(&self, steps: &mut Steps<'_>) -> Seq {
        match steps.byte() % 4 {
            0 => self.seq(steps),
            times => Seq(u64::from(times) * INTERVAL),
        }
    }

    /// Mostly the present one or the next.
    pub(super) fn view(&self, steps: &mut Steps<'_>) -> View {
        let present = self.present();
        match steps.byte() % 8 {
            0 => View(self.number(steps)),
            1..=3 => View(present.0.saturating_add(1)),
            4 => View(present.0.saturating_add(2)),
            _ => present,
        }
    }

    pub(super) fn batch(&self, steps: &mut Steps<'_>) -> Batch {
        let frames = (0..steps.byte() % 4).map(|_| match steps.one_of(&self.known) {
            Some(frame) => frame.digest(),
            None => Digest([7; 32]),
        });
        let frames = frames.collect();
        let time = match steps.byte() % 8 {
            0 => Time(self.number(steps)),
            later => Time(WALL + self.now + u64::from(later)),
        };
        Batch { time, frames }
    }

    /// The present state, one that a CHECKPOINT vouched for, or none that there is.
    pub(super) fn state(&self, steps: &mut Steps<'_>) -> Digest {
        match steps.byte() % 4 {
            0 => Digest([steps.byte(); 32]),
            1 => self.digest_now(),
            _ => {
                let states: Vec<Digest> = self.said.iter().filter_map(P::state).collect();
                steps.one_of(&states).copied().unwrap_or_else(|| self.digest_now())
            }
        }
    }

    /// One of the messages that were said, of those that this makes something of.
    pub(super) fn one_said<T>(
        &self,
        steps: &mut Steps<'_>,
        of: impl Fn(&P::Message) -> Option<T>,
    ) -> Option<T> {
        let mut fitting: Vec<T> = self.said.iter().filter_map(of).collect();
        if fitting.is_empty() { None } else { Some(fitting.swap_remove(steps.below(fitting.len()))) }
    }

    /// Whoever speaks: mostly this replica, where it is faulty.
    pub(super) fn mostly(&self, wanted: ReplicaId, from: ReplicaId, steps: &mut Steps<'_>) -> ReplicaId {
        if self.faulty.contains(&wanted) && !steps.one_in(16) { wanted } else { from }
    }

    /// Who says the same: mostly all faulty replicas, or this one alone.
    pub(super) fn speakers(&self, from: ReplicaId, steps: &mut Steps<'_>) -> Vec<ReplicaId> {
        if steps.byte() % 4 == 1 { vec![from] } else { self.faulty.clone() }
    }

    /// The last thing that each replica said, of those that this makes something of.
    pub(super) fn last_of_each<T>(
        &self,
        of: impl Fn(&P::Message) -> Option<(ReplicaId, T)>,
    ) -> BTreeMap<ReplicaId, T> {
        self.said.iter().filter_map(of).collect()
    }

    /// A faulty replica says something that it can be held to: it may keep it to itself.
    pub(super) fn says(&mut self, from: ReplicaId, message: P::Message, steps: &mut Steps<'_>) {
        if !self.said.contains(&message) {
            self.said.push(message.clone());
        }
        if !steps.one_in(8) {
            self.tell(from, PeerMessage::Protocol(message), steps);
        }
    }
}
