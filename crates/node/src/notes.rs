//! What the machine notes, counted and logged: the only thing that the runtime does with it.

use crate::engine::Engine;
use std::collections::BTreeMap;
use troth_core::{Agreement, Execution, Note};
use troth_types::{ReplicaId, Time};

/// Accused clients that a replica names, the first ones that it saw.
const ACCUSED_CLIENTS: usize = 64;

/// Microseconds between two lines of the log that say the same of one replica.
const SAY_AGAIN: u64 = 10_000_000;

/// What was said of replicas that are suspected. A faulty one chooses how often it is.
#[derive(Debug, Default)]
pub(crate) struct Suspicions {
    /// When, and how often it would have been said since.
    said: BTreeMap<(ReplicaId, &'static str), (Time, u64)>,
}

impl Suspicions {
    /// Whether a suspicion is to be said at `now`: how many of the same were not since the last that was.
    pub(crate) fn say(&mut self, replica: ReplicaId, reason: &'static str, now: Time) -> Option<u64> {
        match self.said.get_mut(&(replica, reason)) {
            Some((said, unsaid)) if now.0.saturating_sub(said.0) < SAY_AGAIN => {
                *unsaid += 1;
                None
            }
            _ => self.said.insert((replica, reason), (now, 0)).map_or(Some(0), |(_, unsaid)| Some(unsaid)),
        }
    }
}

impl<A: Agreement, X: Execution> Engine<A, X> {
    /// Counts a note and logs it.
    pub(crate) fn note(&mut self, note: &Note) {
        let counters = &mut self.counters;
        match note {
            Note::Ignored { from, reason } => {
                counters.ignored += 1;
                tracing::trace!(%from, reason, "ignored");
            }
            Note::Suspected { replica, reason } => {
                counters.suspected += 1;
                let Some(unsaid) = self.suspicions.say(*replica, reason, self.clock.now()) else { return };
                let unsaid = Some(unsaid).filter(|unsaid| *unsaid > 0);
                // One that is gone seems slow to the protocol, which knows of no connections.
                if self.links.reaches(*replica) {
                    tracing::info!(%replica, reason, unsaid, "suspects a replica");
                } else {
                    tracing::info!(
                        %replica, noticed = reason, unsaid,
                        "suspects a replica that is not connected: it has ended, or cannot be reached"
                    );
                }
            }
            Note::Accused { replica, rule } => {
                counters.accused += 1;
                tracing::warn!(%replica, rule, "a replica provably broke a rule");
            }
            Note::ClientAccused { client, number } => {
                counters.accused_clients += 1;
                if self.accused_clients.len() == ACCUSED_CLIENTS {
                    let configuration = self.host.machine().execution().configuration();
                    self.accused_clients.retain(|client| !configuration.is_removed(*client));
                }
                if self.accused_clients.len() < ACCUSED_CLIENTS && self.accused_clients.insert(*client) {
                    tracing::warn!(
                        %client, number,
                        "signed two frames under one number: it lies, or two programs use its key; if it is not \
                         yours to mend, `troth admin remove-client` puts an end to it"
                    );
                }
            }
            Note::ViewChange { to } => {
                counters.view_changes += 1;
                tracing::info!(%to, "leaves its view");
            }
            Note::ViewEntered { view } => tracing::info!(%view, "works in a view"),
            Note::Stable { seq, .. } => {
                counters.stable_checkpoints += 1;
                tracing::debug!(%seq, "checkpoint is stable");
            }
            // Under load the target moves on with every checkpoint.
            Note::TransferStarted { seq } => tracing::debug!(%seq, "fetches the state"),
            Note::TransferDone { seq } => {
                counters.transfers += 1;
                match self.diverged.take() {
                    None => tracing::info!(%seq, "has the state"),
                    Some(since) => tracing::error!(
                        %seq, %since,
                        "its state is repaired, and clients are answered again; find out what made it wrong: memory, \
                         disk, another build, or somebody in this machine"
                    ),
                }
            }
            Note::Diverged { seq } => {
                counters.divergences += 1;
                self.diverged = Some(*seq);
                tracing::error!(
                    %seq,
                    "ALARM: its own state differs from what the group agreed on: answers no client any more, throws its \
                     state away and fetches the group's"
                );
            }
        }
    }
}
