//! What a replica that keeps a history log does with it besides appending: which own checkpoints wait for the attestation of
//! their batch, whom it asks for what it lacks, and whom it shows what it has (paper 000 §4.2.2).

use crate::HistoryLog;
use std::collections::BTreeMap;
use troth_core::Ticket;
use troth_trusted::a2m::{Attestation, Operation};
use troth_types::{Digest, Group, ReplicaId, Seq, Time};

/// Entries that a history log needs beside those of the windows: a replica truncates later than it appends.
const SPARE: usize = 64;

/// A history log, and what its replica owes others for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptHistory {
    /// The account of the log itself.
    pub log: HistoryLog,
    /// Own checkpoints that wait for the attestation of their batch.
    unattested: BTreeMap<Seq, Digest>,
    /// Whose turn it was to be asked for history.
    turn: usize,
    /// Who was asked last, and from which number on, while it may answer.
    asked: Option<(ReplicaId, Seq)>,
    /// When each of the others was shown history last, and how long that is enough.
    shown: BTreeMap<ReplicaId, Time>,
    pause: u64,
}

impl KeptHistory {
    /// That of a replica of this group with this window, which shows each of the others history once in so many microseconds.
    #[must_use]
    pub fn new(group: &Group, me: ReplicaId, window: u64, pause: u64) -> Self {
        Self {
            log: HistoryLog::new(group.id(), Self::room(window)),
            unattested: BTreeMap::new(),
            turn: usize::from(me.0),
            asked: None,
            shown: BTreeMap::new(),
            pause,
        }
    }

    /// Entries that the log must have room for with this window: a replica executes up to two windows beyond what it knows
    /// to be stable.
    #[must_use]
    pub fn room(window: u64) -> usize {
        usize::try_from(3 * window).map_or(usize::MAX, |window| window + SPARE)
    }

    /// The replica starts, its executor standing at `reached`; `executed` are the batches that its own log says it executed
    /// since. See [`HistoryLog::start`].
    pub fn start(
        &mut self,
        reached: Seq,
        executed: impl IntoIterator<Item = Seq>,
    ) -> (Ticket, Vec<Operation>) {
        let recorded = executed.into_iter().max().unwrap_or(reached);
        self.log.start(reached, recorded)
    }

    /// An own checkpoint is due: it is vouched for with the attestation of its batch, once that is there.
    pub fn due(&mut self, seq: Seq, digest: Digest) {
        self.unattested.insert(seq, digest);
    }

    /// The own checkpoints that were due are of a state that is wrong.
    pub fn withdraw(&mut self) {
        self.unattested.clear();
    }

    /// The checkpoints that are due and whose batches are attested, in the order of their numbers. What is below the stable
    /// one needs no more votes.
    pub fn ready(&mut self, stable: Seq) -> Vec<(Seq, Digest, Attestation)> {
        // Below the stable one no votes are needed.
        let (mut ready, mut unsigned) = (Vec::new(), None);
        let log = &self.log;
        self.unattested.retain(|seq, digest| {
            match log.held(*seq).map(|held| &held.attestation) {
                // In the order of their numbers: one that comes later goes later.
                Some(Some(attestation)) if unsigned.is_none() => {
                    ready.push((*seq, *digest, attestation.clone()));
                    return false;
                }
                Some(None) if *seq >= stable => unsigned = unsigned.or(Some(*seq)),
                _ => {}
            }
            *seq >= stable
        });
        if let Some(seq) = unsigned {
            self.log.sign(seq);
        }
        ready
    }

    /// Whom to ask now for what the log lacks, and from which number on: one of the others after the other, for any may be
    /// faulty.
    pub fn fetch(&mut self, group: &Group, me: ReplicaId) -> Option<(ReplicaId, Seq)> {
        let from = self.log.lacks()?;
        let others: Vec<ReplicaId> = group.all().filter(|replica| *replica != me).collect();
        self.turn = (self.turn + 1) % others.len();
        self.asked = Some((others[self.turn], from));
        self.asked
    }

    /// Whether somebody who shows a history from a number on was asked for it: once.
    pub fn is_answer(&mut self, by: ReplicaId, from: Seq) -> bool {
        self.asked.take_if(|asked| *asked == (by, from)).is_some()
    }

    /// What to tell somebody who lacks the history from a number on. It is told once in a while: the answer is large.
    pub fn show(&mut self, to: ReplicaId, from: Seq, now: Time) -> Option<Vec<Digest>> {
        let due = self.shown.get(&to).is_none_or(|at| at.after(self.pause) <= now);
        if from == Seq(0) || !due {
            return None;
        }
        let values = self.log.values_from(from);
        if values.is_empty() {
            return None;
        }
        self.shown.insert(to, now);
        Some(values)
    }
}
