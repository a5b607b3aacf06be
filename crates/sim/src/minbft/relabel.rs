//! Own messages inside MinBFT's messages, exchanged between a faulty host's fiction and the truth.

use crate::OwnHistory;
use crate::component::FIRST_EPOCH;
use std::sync::Arc;
use troth_minbft::{Body, Certified, Commit, LogEntry, Message, NewView, StableProof, ViewChange};
use troth_trusted::CounterId;
use troth_types::ReplicaId;

type Own<'a> = &'a dyn OwnHistory<Message>;

const COUNTER: CounterId = CounterId(0);

/// A message whose sender is not changed: only what stands inside.
fn inside(message: &Arc<Certified>, me: ReplicaId, own: Own<'_>) -> Arc<Certified> {
    let changed = body(message.body.clone(), message.from, me, own);
    if changed == message.body {
        return Arc::clone(message);
    }
    Arc::new(Certified { body: changed, ..(**message).clone() })
}

/// A nested message: the counterpart where it is an own one.
fn nested(message: &Arc<Certified>, me: ReplicaId, own: Own<'_>) -> Arc<Certified> {
    // Only what the first component certified has a fiction.
    if message.from != me || message.ui.certificate.epoch.0 != FIRST_EPOCH {
        return inside(message, me, own);
    }
    match own.counterpart(COUNTER, message.value()) {
        Some(Message::Certified(counterpart)) => counterpart,
        _ => Arc::clone(message),
    }
}

fn stable(proof: &StableProof, me: ReplicaId, own: Own<'_>) -> StableProof {
    StableProof { votes: proof.votes.iter().map(|vote| nested(vote, me, own)).collect() }
}

/// The log that a VIEW-CHANGE of `me` must show: everything really certified since what stands first
/// in the host's own log.
fn whole_log(log: &[LogEntry], own: Own<'_>) -> Option<Vec<LogEntry>> {
    let all = own.all();
    if all.is_empty() {
        return None;
    }
    let start = match log.first() {
        None => 0,
        Some(first) => {
            let counterpart = own.counterpart(COUNTER, first.ui().value());
            let known = counterpart.and_then(|counterpart| all.iter().position(|real| *real == counterpart));
            // A log that begins with the very first message has no anchor.
            if first.ui().value().0 == 1 { 0 } else { known? }
        }
    };
    let entry = |message: &Message| match message {
        Message::Certified(message) => Some(message.log_entry()),
        _ => None,
    };
    Some(all[start..].iter().filter_map(entry).collect())
}

/// A body of `from`, with the own messages inside exchanged.
pub(super) fn body(body: Body, from: ReplicaId, me: ReplicaId, own: Own<'_>) -> Body {
    match body {
        Body::Commit(commit) => Body::Commit(Commit { prepare: nested(&commit.prepare, me, own) }),
        Body::ViewChange(change) => {
            let log = if from == me {
                whole_log(&change.log, own).unwrap_or_else(|| change.log.clone())
            } else {
                let exchange = |entry: &LogEntry| match entry {
                    LogEntry::Whole(message) => LogEntry::Whole(inside(message, me, own)),
                    stub => stub.clone(),
                };
                change.log.iter().map(exchange).collect()
            };
            Body::ViewChange(ViewChange { stable: stable(&change.stable, me, own), log, ..change })
        }
        Body::NewView(new_view) => {
            let changes = new_view.changes.iter().map(|change| nested(change, me, own)).collect();
            Body::NewView(NewView { changes, ..new_view })
        }
        other => other,
    }
}

/// A message with the own messages inside exchanged; itself too, where it is an own one.
pub(super) fn message(message: Message, me: ReplicaId, own: Own<'_>) -> Message {
    match message {
        Message::Certified(message) => Message::Certified(nested(&message, me, own)),
        Message::Evidence(message) => Message::Evidence(nested(&message, me, own)),
        Message::Stable(proof) => Message::Stable(Arc::new(stable(&proof, me, own))),
        Message::Status(mut status) => {
            let last = own.all().last().and_then(|last| match last {
                Message::Certified(last) => Some(last.value().0),
                _ => None,
            });
            if let (Some(last), Some(known)) = (last, status.processed.get_mut(usize::from(me.0))) {
                *known = last;
            }
            Message::Status(status)
        }
        other => other,
    }
}
