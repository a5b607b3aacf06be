//! The logs of a trusted component behind a socket.

use super::{Lost, RemoteComponent};
use crate::wire::{decode_log_answers, encode_log_call};
use std::time::Duration;
use troth_trusted::Identity;
use troth_trusted::a2m::{Answer, LogRefusal, MOST_OPERATIONS, Operation, Request};
use troth_trusted_host::repetition::{Answered, Repeated, repeat};
use troth_trusted_host::{TrustedComponent, TrustedLogs};

/// A call is a frame. One whose answer is lost is repeated once on a new connection, as
/// [`repetition`](troth_trusted_host::repetition) says. A process that serves no logs refuses every call as one for a log that
/// there is not.
impl TrustedLogs for RemoteComponent {
    fn identity(&self) -> Identity {
        TrustedComponent::identity(self)
    }

    fn call(&mut self, operations: &[Operation]) -> Answered {
        if self.lost.is_some() {
            return Err(LogRefusal::Halted);
        }
        if operations.len() > MOST_OPERATIONS {
            return Err(LogRefusal::TooMany);
        }
        match self.ask_logs(operations) {
            Ok(answered) => answered,
            Err(why) => {
                self.lose(why);
                Err(LogRefusal::Halted)
            }
        }
    }

    fn call_soon(&mut self, operations: &[Operation]) -> Option<Answered> {
        if self.lost.is_some() {
            return Some(Err(LogRefusal::Halted));
        }
        if operations.len() > MOST_OPERATIONS {
            return Some(Err(LogRefusal::TooMany));
        }
        // Nobody waits for a process that is lost or stalls: it may have done the call or not.
        let Ok(answered) = self.exchange_logs(operations, self.patience.beside) else { return None };
        Some(self.fitting(operations, answered).unwrap_or_else(|why| {
            self.lose(why);
            Err(LogRefusal::Halted)
        }))
    }
}

impl RemoteComponent {
    fn ask_logs(&mut self, operations: &[Operation]) -> Result<Answered, Lost> {
        if let Ok(answered) = self.exchange_logs(operations, self.patience.answer) {
            return self.fitting(operations, answered);
        }
        rule!("A2M-C4");
        self.reconnect()?;
        let patience = self.patience.answer;
        let again = repeat(operations, |asked| {
            let answered = self.exchange_logs(asked, patience).map_err(Lost::Connection)?;
            self.fitting(asked, answered)
        })?;
        match again {
            Repeated::Answered(answered) => Ok(answered),
            Repeated::Lost => Err(Lost::LogAnswers),
        }
    }

    fn exchange_logs(&mut self, operations: &[Operation], patience: Duration) -> std::io::Result<Answered> {
        self.out.clear();
        encode_log_call(operations, &mut self.out);
        self.exchange(patience, decode_log_answers)
    }

    /// What was answered, if it can be an answer to this call.
    fn fitting(&self, operations: &[Operation], answered: Answered) -> Result<Answered, Lost> {
        let fits = match &answered {
            Err(LogRefusal::Halted) => return Err(Lost::Halted),
            Err(LogRefusal::Operation { index, .. }) => *index < operations.len(),
            Err(LogRefusal::TooMany | LogRefusal::NoSpace) => true,
            Ok(answers) => {
                answers.len() == operations.len()
                    && operations.iter().zip(answers).all(|(asked, given)| fits(&self.identity, asked, given))
            }
        };
        if fits { Ok(answered) } else { Err(Lost::Unfitting) }
    }
}

/// Whether an answer can be one to this operation.
fn fits(identity: &Identity, operation: &Operation, answer: &Answer) -> bool {
    let asked = match *operation {
        Operation::Append { slot, nonce, .. } | Operation::Advance { slot, nonce, .. } => {
            nonce.map(|nonce| (Request::Lookup, Some(slot), nonce))
        }
        Operation::Truncate { .. } => None,
        Operation::Lookup { slot, nonce, .. } | Operation::LookupFor { slot, nonce, .. } => {
            Some((Request::Lookup, Some(slot), nonce))
        }
        Operation::End { nonce, .. } => Some((Request::End, None, nonce)),
    };
    match (asked, answer) {
        (None, Answer::Done) => true,
        (Some((request, slot, nonce)), Answer::Attested(made)) => {
            made.epoch == identity.epoch
                && (made.claim.request, made.claim.log, made.claim.nonce) == (request, operation.log(), nonce)
                && slot.is_none_or(|slot| made.claim.slot == slot)
        }
        _ => false,
    }
}
