//! What the machine notes, counted and logged: the only thing that the runtime does with it.

use crate::engine::Engine;
use troth_core::{Agreement, Execution, Note};

/// Accused clients that a replica names, the first ones that it saw.
const ACCUSED_CLIENTS: usize = 64;

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
                // One that is gone seems slow to the protocol, which knows of no connections.
                if self.links.reaches(*replica) {
                    tracing::info!(%replica, reason, "suspects a replica");
                } else {
                    tracing::info!(
                        %replica, noticed = reason,
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
