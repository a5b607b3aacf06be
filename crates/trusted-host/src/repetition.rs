//! What becomes of a call to the logs whose answer was lost.
//!
//! A call is done as a whole or not at all, so the client asks the same again. That does nothing twice: a change
//! that was done is refused the second time, as it is behind the end of its log (or, a truncation, not above its
//! low mark). But then the answers are still owed. They are asked for anew by lookups, and are those of the call
//! if nothing that it was asked has changed since:
//!
//! * no log changes in the call after it was looked up or asked for its end there, but for lookups of slots up to one that
//!   the call had filled, which nothing changes any more but forgetting;
//! * no slot that the call filled, and attested in the same breath or looked up so, is forgotten later in the call.
//!
//! A call that changes first and asks afterwards has this property. The answers of another one that was done are lost
//! for good: no component makes them again. Its client cannot go on as if it knew them, and halts. So a replica sends
//! no such call: [`CallSoFar`] says where one call must end and the next begin.
//!
//! Whether the call was done is seen from the logs alone: every slot that it fills holds what it fills it with.
//! Where they do so because an earlier call did the same, this one was refused, and is answered all the same: what
//! it wanted is the case, and what is attested is what the logs hold.

use troth_trusted::CounterValue;
use troth_trusted::a2m::{
    Answer, Attestation, Content, LOGS, LogId, LogRefusal, Operation, Slot, Unfit, chained, jumped,
    slot_nonce,
};

/// What a component says to a call: an answer to each operation, or why none was done.
pub type Answered = Result<Vec<Answer>, LogRefusal>;

/// What becomes of a call that is asked again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repeated {
    /// It is answered as it was, or would have been.
    Answered(Answered),
    /// It was done, and its answers are lost for good.
    Lost,
}

/// Asks for a call once more whose answer was lost.
///
/// # Errors
/// Where asking fails.
pub fn repeat<E>(
    operations: &[Operation],
    mut ask: impl FnMut(&[Operation]) -> Result<Answered, E>,
) -> Result<Repeated, E> {
    let refusal = match ask(operations)? {
        Err(refusal) if may_be_done(operations, &refusal) => refusal,
        answered => return Ok(Repeated::Answered(answered)),
    };
    let replies = match ask(&questions(operations))? {
        Ok(replies) => replies,
        Err(refusal) => return Ok(Repeated::Answered(Err(refusal))),
    };
    Ok(match answers(operations, replies) {
        None => Repeated::Answered(Err(refusal)),
        Some(answers) if can_be_answered_later(operations) => Repeated::Answered(Ok(answers)),
        Some(_) => Repeated::Lost,
    })
}

/// What stands in one call so far, as far as it says what may still be added to it.
#[derive(Clone, Debug, Default)]
pub struct CallSoFar {
    logs: [Touched; LOGS],
}

/// What a call does with one log.
#[derive(Clone, Copy, Debug, Default)]
struct Touched {
    /// It asks for something that a change may make another.
    asks: bool,
    /// The last slot that it fills.
    fills: Option<Slot>,
    /// The first slot that it has attested and that can but be forgotten: that it fills in the same breath, or filled
    /// before, or below such a one.
    attests: Option<Slot>,
    /// It forgets something.
    truncates: bool,
}

impl Touched {
    fn attests_slot(&mut self, slot: Slot) {
        self.attests = Some(self.attests.map_or(slot, |first| first.min(slot)));
    }
}

impl CallSoFar {
    /// Whether the call can still be answered again with this operation added to it.
    #[must_use]
    pub fn admits(&self, operation: &Operation) -> bool {
        let Some(log) = self.logs.get(usize::from(operation.log().0)) else { return true };
        rule!("A2M-C5");
        let forgets = log.attests.is_some_and(|attested| forgets(operation, attested));
        !(operation.changes() && log.asks || forgets)
    }

    /// Whether this operation fills a slot of a log of which the call forgets something: only the next call has the
    /// room that becomes free.
    #[must_use]
    pub fn waits_for_room(&self, operation: &Operation) -> bool {
        let fills = matches!(operation, Operation::Append { .. } | Operation::Advance { .. });
        fills && self.logs.get(usize::from(operation.log().0)).is_some_and(|log| log.truncates)
    }

    /// Adds an operation.
    pub fn add(&mut self, operation: &Operation) {
        let Some(log) = self.logs.get_mut(usize::from(operation.log().0)) else { return };
        // Slots ascend; but a call that is refused may have them in any order.
        match *operation {
            Operation::Append { slot, nonce, .. } | Operation::Advance { slot, nonce, .. } => {
                log.fills = log.fills.max(Some(slot));
                if nonce.is_some() {
                    log.attests_slot(slot);
                }
            }
            Operation::Lookup { slot, .. } | Operation::LookupFor { slot, .. } if Some(slot) <= log.fills => {
                log.attests_slot(slot);
            }
            Operation::Truncate { .. } => log.truncates = true,
            Operation::Lookup { .. } | Operation::LookupFor { .. } | Operation::End { .. } => log.asks = true,
        }
    }
}

/// Whether a call was refused for what it would itself have left: it may have been done before.
pub fn may_be_done(operations: &[Operation], refusal: &LogRefusal) -> bool {
    let LogRefusal::Operation { index, why } = refusal else { return false };
    let Some(first) = operations.iter().position(Operation::changes) else { return false };
    *index == first
        && match (&operations[first], why) {
            (Operation::Append { slot, .. }, Unfit::Elsewhere { high })
            | (Operation::Advance { slot, .. }, Unfit::NotAhead { high }) => slot <= high,
            (Operation::Append { .. }, Unfit::Spent) => true,
            (Operation::Truncate { slot, .. }, Unfit::OutsideLog { low, .. }) => slot <= low,
            _ => false,
        }
}

/// Whether the answers of a call that was done can be had by asking the logs afterwards.
pub fn can_be_answered_later(operations: &[Operation]) -> bool {
    let mut call = CallSoFar::default();
    operations.iter().all(|operation| {
        let admitted = call.admits(operation);
        call.add(operation);
        admitted
    })
}

/// Whether a change forgets this slot of its log.
fn forgets(change: &Operation, of: Slot) -> bool {
    matches!(change, Operation::Truncate { slot, .. } if of < *slot)
}

/// What to ask of the logs, one for each operation, to learn whether the call was done and what it is answered.
pub fn questions(operations: &[Operation]) -> Vec<Operation> {
    let lookup = |log, slot: Slot, nonce: Option<[u8; 32]>| {
        let nonce = nonce.unwrap_or_else(|| slot_nonce(slot));
        Operation::Lookup { log, slot, nonce }
    };
    let question = |operation: &Operation| match *operation {
        Operation::Append { log, slot, nonce, .. } | Operation::Advance { log, slot, nonce, .. } => {
            lookup(log, slot, nonce)
        }
        // The slot below says where the low mark is.
        Operation::Truncate { log, slot } => lookup(log, CounterValue(slot.0.saturating_sub(1)), None),
        asked @ (Operation::Lookup { .. } | Operation::LookupFor { .. } | Operation::End { .. }) => asked,
    };
    operations.iter().map(question).collect()
}

/// The answers of a call, made of those to its [`questions`]; `None` where the logs show that it was not done.
pub fn answers(operations: &[Operation], replies: Vec<Answer>) -> Option<Vec<Answer>> {
    let done = operations.len() == replies.len()
        && operations
            .iter()
            .zip(&replies)
            .enumerate()
            .all(|(index, (operation, reply))| shows(operation, &operations[index + 1..], reply));
    let owed = |(operation, reply): (&Operation, Answer)| match operation {
        Operation::Append { nonce: None, .. }
        | Operation::Advance { nonce: None, .. }
        | Operation::Truncate { .. } => Answer::Done,
        _ => reply,
    };
    done.then(|| operations.iter().zip(replies).map(owed).collect())
}

/// Whether the logs show that this operation was done, and those that followed it in the call.
fn shows(operation: &Operation, later: &[Operation], reply: &Answer) -> bool {
    let Answer::Attested(Attestation { claim, .. }) = reply else { return false };
    let forgotten = |log: LogId, slot| later.iter().any(|later| later.log() == log && forgets(later, slot));
    match (operation, claim.content) {
        (Operation::Append { value, .. }, Content::Assigned { value: held, .. }) => *value == held,
        (Operation::Advance { slot, previous, value, .. }, Content::Assigned { value: held, digest }) => {
            let begun_or_jumped = [chained(*slot, value, previous), jumped(*slot, value, previous)];
            *value == held && begun_or_jumped.contains(&digest)
        }
        (
            Operation::Append { log, slot, .. } | Operation::Advance { log, slot, .. },
            Content::Forgotten { .. },
        ) => forgotten(*log, *slot),
        (Operation::Truncate { slot, .. }, Content::Forgotten { low }) => *slot <= low,
        (Operation::Lookup { .. } | Operation::LookupFor { .. } | Operation::End { .. }, _) => true,
        _ => false,
    }
}
