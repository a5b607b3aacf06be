//! What the primary of a view that has yet to begin knows of the VIEW-CHANGEs that it may base it on, so that it looks at
//! each again only for what may have changed: one is megabytes, and what makes it look may be a hundred bytes.

use crate::choose::{start_of, within_window, without_hole};
use crate::evidence::{Evidence, evidence};
use crate::message::Certified;
use crate::state::MinBft;
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_core::{Cx, rule};
use troth_types::{ReplicaId, Seq, View, Wire as _};

/// A VIEW-CHANGE and what it proves.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Judged {
    message: Arc<Certified>,
    evidence: Arc<Evidence>,
    /// How many the VIEW-CHANGE takes.
    bytes: usize,
    /// Those batches whose frames were not all here, or whose time had not come.
    lacking: Vec<Lacking>,
}

/// A batch that a VIEW-CHANGE brings into a view that begins from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lacking {
    /// Its sender committed to it.
    Committed(View, Seq),
    /// The highest view that its sender took part in started with it.
    CarriedOver(Seq),
}

/// What is known of VIEW-CHANGEs that a view may be based on.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Candidates {
    judged: BTreeMap<ReplicaId, Judged>,
    /// Something came that may let the view begin.
    pub(crate) reconsider: bool,
    /// What they lead to was larger than links carry, and no more has come since.
    pub(crate) too_large: bool,
}

impl Candidates {
    /// Forgets all: another view, or another configuration, by which they are judged.
    pub(crate) fn clear(&mut self) {
        self.judged.clear();
        self.look_again();
    }

    /// Has all be looked at again that is here.
    pub(crate) fn look_again(&mut self) {
        self.reconsider = true;
        self.too_large = false;
    }

    /// Bytes of a VIEW-CHANGE that was judged; of another none.
    pub(crate) fn bytes(&self, from: ReplicaId) -> usize {
        self.judged.get(&from).map_or(0, |judged| judged.bytes)
    }

    /// What a VIEW-CHANGE lacked when all of it was looked at.
    pub(crate) fn lacks(&mut self, from: ReplicaId, lacking: Vec<Lacking>) {
        if let Some(judged) = self.judged.get_mut(&from) {
            judged.lacking = lacking;
        }
    }
}

impl MinBft {
    /// What a VIEW-CHANGE proves, worked out once.
    pub(crate) fn evidence_of(&mut self, message: &Arc<Certified>) -> Option<Arc<Evidence>> {
        let known = self.candidates.judged.get(&message.from);
        if let Some(judged) = known.filter(|judged| Arc::ptr_eq(&judged.message, message)) {
            return Some(Arc::clone(&judged.evidence));
        }
        let evidence = Arc::new(evidence(&self.group, &self.configuration, &self.config, message).ok()?);
        let judged = Judged {
            message: Arc::clone(message),
            evidence: Arc::clone(&evidence),
            bytes: message.to_wire().len(),
            lacking: Vec::new(),
        };
        self.candidates.judged.insert(message.from, judged);
        Some(evidence)
    }

    /// Whether a VIEW-CHANGE certainly cannot be stood for yet, by a look at the first thing that it lacked.
    pub(crate) fn still_lacks(&mut self, cx: &Cx<'_, Self>, message: &Arc<Certified>) -> bool {
        if !self.begins_well(message) {
            return true;
        }
        let Some(evidence) = self.evidence_of(message) else { return true };
        if !within_window(&self.config, &evidence) {
            return true;
        }
        if let Some(view) = evidence.view {
            let start = start_of(view, |view| self.known_views.get(view)?.new_view());
            let Some(start) = start else {
                self.known_views.want(view);
                return true;
            };
            if !without_hole(&self.config, &evidence, start) {
                return true;
            }
        }
        let above = evidence.stable.0.max(self.delivered);
        let judged = self.candidates.judged.get_mut(&message.from);
        let mut lacking = judged.map(|judged| std::mem::take(&mut judged.lacking)).unwrap_or_default();
        let start = evidence.view.and_then(|view| self.known_views.get(view).cloned());
        while let Some(last) = lacking.last().copied() {
            let (seq, batch) = match last {
                Lacking::Committed(view, seq) => {
                    let prepare = evidence.prepares.get(&(view, seq)).and_then(|message| message.prepare());
                    (seq, prepare.map(|prepare| &prepare.batch))
                }
                Lacking::CarriedOver(seq) => {
                    (seq, start.as_ref().and_then(|message| message.new_view()?.batch_at(seq)))
                }
            };
            if seq > above && batch.is_some_and(|batch| !self.can_stand_for_batch(cx, seq, batch)) {
                break;
            }
            lacking.pop();
        }
        let lacks = !lacking.is_empty();
        self.candidates.lacks(message.from, lacking);
        lacks
    }

    /// Whether something came since the last look that may let the view begin.
    pub(crate) fn may_begin_now(&mut self, cx: &Cx<'_, Self>, candidates: &[Arc<Certified>]) -> bool {
        if !std::mem::take(&mut self.candidates.reconsider) {
            return false;
        }
        rule!("MINBFT-R16");
        let able = candidates.iter().filter(|message| !self.still_lacks(cx, message)).count();
        able >= self.group.quorum()
    }
}
