//! What a step tells its observers: counted and traced outside, never acted upon.

use troth_types::{ClientId, Digest, ReplicaId, Seq, View};

/// An observation. Notes leave a step as effects, so a protocol neither logs nor counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Input that a rule says to drop, with the rule's reason.
    Ignored {
        /// Who sent it.
        from: ReplicaId,
        /// Why.
        reason: &'static str,
    },
    /// A local judgement: slow, missing, clock off. Condemns nobody.
    Suspected {
        /// Whom.
        replica: ReplicaId,
        /// Why.
        reason: &'static str,
    },
    /// A proof, from certified bytes alone, that a replica broke a rule.
    Accused {
        /// Whom.
        replica: ReplicaId,
        /// Which rule.
        rule: &'static str,
    },
    /// A client signed two frames with different contents under one number. Anybody with its key may have: two
    /// programs that were given the same one, too.
    ClientAccused {
        /// Whose key.
        client: ClientId,
        /// The number.
        number: u64,
    },
    /// This replica abandons a view.
    ViewChange {
        /// The view it wants.
        to: View,
    },
    /// This replica works in a view.
    ViewEntered {
        /// The view.
        view: View,
    },
    /// A checkpoint became stable.
    Stable {
        /// Its sequence number.
        seq: Seq,
        /// Its digest.
        digest: Digest,
    },
    /// The state comes from others.
    TransferStarted {
        /// The target.
        seq: Seq,
    },
    /// The state came from others.
    TransferDone {
        /// The target.
        seq: Seq,
    },
    /// This replica's state differs from a stable checkpoint's.
    Diverged {
        /// Where.
        seq: Seq,
    },
}
