//! The logs of a replica's component and the slots of its messages (§4.3.1).

use crate::message::Body;
use troth_auth::HISTORY_LOG;
use troth_trusted::CounterValue;
use troth_trusted::a2m::{LogId, Slot};
use troth_types::{Seq, View};

/// What was executed, in order (q).
pub const HISTORY: LogId = HISTORY_LOG;
/// PREPREPAREs and PREPAREs (m_p).
pub const PREPARE: LogId = LogId(1);
/// COMMITs, those to a NEWVIEW too (m_c).
pub const COMMIT: LogId = LogId(2);
/// CHECKPOINTs (m_cp).
pub const CHECKPOINT: LogId = LogId(3);
/// VIEWCHANGEs (m_vc).
pub const VIEW_CHANGE: LogId = LogId(4);
/// NEWVIEWs (m_nv).
pub const NEW_VIEW: LogId = LogId(5);

/// `[v|n]`: a number in a view, as a slot.
#[must_use]
pub fn flattened(view: View, seq: Seq) -> Slot {
    CounterValue::new(view.0, seq.0)
}

/// `[v+1|0]-1`: the last slot of a view, which no message of it fills.
#[must_use]
pub fn end_of(view: View) -> Slot {
    CounterValue::new(view.0, u64::MAX)
}

/// Log and slot of a body; none for what is signed, and where no slot is its.
#[must_use]
pub fn of(body: &Body) -> Option<(LogId, Slot)> {
    // The slot of 0 belongs to the commitment to the NEWVIEW, and the last one to nobody.
    let at = |log, view, seq: Seq| (seq > Seq(0) && seq < Seq(u64::MAX)).then(|| (log, flattened(view, seq)));
    match body {
        Body::PrePrepare(proposal) => at(PREPARE, proposal.view, proposal.seq),
        Body::Prepare(vote) => at(PREPARE, vote.view, vote.seq),
        Body::Commit(vote) => at(COMMIT, vote.view, vote.seq),
        Body::Accept(accept) => (accept.view > View(0)).then(|| (COMMIT, flattened(accept.view, Seq(0)))),
        Body::Checkpoint(checkpoint) => {
            (checkpoint.seq > Seq(0)).then(|| (CHECKPOINT, flattened(View(0), checkpoint.seq)))
        }
        Body::ViewChange(change) => {
            (change.to > View(0)).then(|| (VIEW_CHANGE, flattened(View(0), Seq(change.to.0))))
        }
        Body::NewView(new_view) => {
            (new_view.view > View(0)).then(|| (NEW_VIEW, flattened(View(0), Seq(new_view.view.0))))
        }
        Body::Want(_) => None,
    }
}
