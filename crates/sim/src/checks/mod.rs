//! What must hold in every run, one file and one property each (guide.md §8.1). The checkers see
//! what replicas execute, what clients accept and what the components certified; their arithmetic is
//! their own and borrows nothing from the code they judge.

mod accused;
mod agreement;
mod bounds;
mod checkpoints;
mod events;
mod linear;
mod liveness;
mod model;
mod once;
mod order;
mod reads;
mod recovered;
mod replies;
mod stable;
mod store;
mod trusted;
mod validity;

pub use accused::NoneAccused;
pub use agreement::Agreed;
pub use bounds::Bounded;
pub use checkpoints::EqualCheckpoints;
pub use events::EventOrder;
#[cfg(test)]
pub(crate) use linear::search;
pub use linear::{Call, Linear, Verdict};
pub use liveness::{ClientState, Liveness};
pub use model::Model;
pub use once::ExactlyOnce;
pub use order::PrefixOrder;
pub use reads::{FastRead, FastReads};
pub use recovered::RecoveredPrefix;
pub use replies::ReplyIntegrity;
pub use stable::StableMonotone;
pub use trusted::TrustedUniqueness;
pub use validity::Validity;

use crate::report::MIN_ANSWERS;
use std::collections::BTreeMap;
use troth_core::{Note, Ordered, Outcome};
use troth_types::{ClientId, Digest, ReplicaId, Seq};

/// A property that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The property: the name of its checker.
    pub property: &'static str,
    /// What was seen.
    pub detail: String,
    /// The nodes involved.
    pub nodes: Vec<usize>,
}

/// The checkers of one run. The first violation stays.
#[derive(Default)]
pub struct Checks {
    /// I1.
    pub agreed: Agreed,
    /// I2.
    pub order: PrefixOrder,
    /// I3.
    pub once: ExactlyOnce,
    /// I4.
    pub linear: Linear,
    /// I5.
    pub validity: Validity,
    /// I6.
    pub replies: ReplyIntegrity,
    /// I7.
    pub checkpoints: EqualCheckpoints,
    /// I8, the order.
    pub stable: StableMonotone,
    /// I8, the memory.
    pub bounded: Bounded,
    /// I9.
    pub recovered: RecoveredPrefix,
    /// I11.
    pub accused: NoneAccused,
    /// Events.
    pub events: EventOrder,
    /// Reads of the coordination service that were not ordered.
    pub reads: FastReads,
    /// U1.
    pub trusted: TrustedUniqueness,
    /// I10.
    pub liveness: Liveness,
    /// Whether more replicas are faulty than the group tolerates: then only what clients see counts, and what components
    /// say.
    pub beyond: bool,
    /// The only property that is judged, where not all are.
    pub only: Option<String>,
    /// Answers of replicas that were compared with the model's at the end.
    pub audited: u64,
    /// The first violation.
    pub violation: Option<Violation>,
}

/// All that is judged, by name.
pub const PROPERTIES: [&str; 24] = [
    "agreement",
    "authentic messages",
    "bounds",
    "codec",
    "equal checkpoints",
    "equal states",
    "events",
    "exactly once",
    "execution",
    "fast reads",
    "halt",
    "linearizability",
    "liveness",
    "no correct client accused",
    "no correct replica accused",
    "prefix order",
    "recovered state",
    "recovery",
    "repetition",
    "reply integrity",
    "stable checkpoints grow",
    "start",
    "trusted uniqueness",
    "validity",
];
/// What must hold with more faulty replicas than the group tolerates, too.
const EVEN_BEYOND: [&str; 2] = ["linearizability", "trusted uniqueness"];

impl Checks {
    /// Keeps the first violation.
    pub fn judge(&mut self, property: &'static str, nodes: &[usize], result: Result<(), String>) {
        debug_assert!(PROPERTIES.contains(&property), "{property} is none of those that can be asked for");
        let passed_over = self.only.as_deref().is_some_and(|only| only != property);
        if passed_over || self.beyond && !EVEN_BEYOND.contains(&property) {
            return;
        }
        if let (Err(detail), None) = (result, &self.violation) {
            self.violation = Some(Violation { property, detail, nodes: nodes.to_vec() });
        }
    }

    /// What the coordination service did, by the model, and what was judged of it beside.
    #[must_use]
    pub fn done_by_service(&self) -> BTreeMap<&'static str, u64> {
        let model = &self.replies.model;
        let Some(service) = model.coordination(model.seq) else { return BTreeMap::new() };
        let mut done = service.counts.clone();
        done.insert("reads judged", self.reads.judged);
        done.insert("reads behind", self.reads.behind);
        done.insert("answers audited", self.audited);
        done
    }

    /// Whether the coordination service has hardly done anything but refuse, and may do more if it is given time. Where the
    /// model cannot follow, nobody knows.
    #[must_use]
    pub fn shows_little(&self, now: u64) -> bool {
        let model = &self.replies.model;
        let has_time = now < self.liveness.healed_at + self.liveness.bound && !self.replies.is_behind();
        let service = model.coordination(model.seq).filter(|_| has_time);
        service.is_some_and(|service| service.counts.get("answers").is_none_or(|count| *count < MIN_ANSWERS))
    }

    /// Everything is answered: whether what clients took for done before its place was final has one now, or will
    /// not have one any more.
    pub fn outlasts(&mut self, now: u64) -> bool {
        match self.replies.settle() {
            Ok(()) => true,
            Err(_) if now <= self.liveness.healed_at.max(self.liveness.asked_at) + self.liveness.bound => {
                false
            }
            Err(missing) => {
                self.judge("reply integrity", &[], Err(missing));
                true
            }
        }
    }

    /// A correct node executed a batch.
    pub fn executed(&mut self, node: usize, ordered: &Ordered, outcome: &Outcome, now: u64) {
        let result = self.agreed.executed(node, ordered);
        self.judge("agreement", &[node], result);
        let result = self.order.executed(node, ordered.seq);
        self.judge("prefix order", &[node], result);
        let result = self.once.executed(ordered.seq, outcome);
        self.judge("exactly once", &[node], result);
        let result = self.validity.executed(ordered);
        self.judge("validity", &[node], result);
        let result = self.replies.executed(ordered, outcome, now);
        self.judge("execution", &[node], result);
    }

    /// A correct node knows the digest of its checkpoint.
    pub fn checkpoint(&mut self, node: usize, seq: Seq, digest: Digest) {
        let result = self.checkpoints.taken(seq, digest);
        self.judge("equal checkpoints", &[node], result);
    }

    /// A correct node took over a state.
    pub fn installed(&mut self, node: usize, seq: Seq, digest: Digest) {
        let result = self.checkpoints.taken(seq, digest);
        self.judge("equal checkpoints", &[node], result);
        let result = self.order.installed(node, seq);
        self.judge("prefix order", &[node], result);
    }

    /// A correct node started again from a snapshot.
    pub fn restored(&mut self, node: usize, seq: Seq, digest: Digest) {
        let result = self.recovered.restored(seq, digest, &self.checkpoints);
        self.judge("recovered state", &[node], result);
        self.order.restored(node, seq);
    }

    /// A correct node starts again, so far from its genesis state.
    pub fn restarted(&mut self, node: usize) {
        self.order.restored(node, Seq(0));
        self.stable.restarted(node);
    }

    /// A correct node tells something. `faulty` says which replicas are faulty, `faulty_client` which clients.
    pub fn noted(
        &mut self,
        node: usize,
        note: &Note,
        faulty: &dyn Fn(ReplicaId) -> bool,
        faulty_client: &dyn Fn(ClientId) -> bool,
    ) {
        match note {
            Note::Accused { replica, rule } => {
                let result = self.accused.accused(*replica, rule, faulty(*replica));
                self.judge("no correct replica accused", &[node], result);
            }
            Note::ClientAccused { client, number } => {
                let result = self.accused.client_accused(*client, *number, faulty_client(*client));
                self.judge("no correct client accused", &[node], result);
            }
            Note::Stable { seq, digest } => {
                let result = self.stable.stable(node, *seq);
                self.judge("stable checkpoints grow", &[node], result);
                let result = self.checkpoints.taken(*seq, *digest);
                self.judge("equal checkpoints", &[node], result);
            }
            Note::Diverged { seq } => {
                let result =
                    Err(format!("a correct replica's state differs from the stable checkpoint at {seq}"));
                self.judge("equal checkpoints", &[node], result);
            }
            _ => {}
        }
    }
}
