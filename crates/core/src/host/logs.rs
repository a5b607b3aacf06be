//! What the trusted component's logs answer, and what the host draws.

use super::wanted::Asked;
use super::{Command, Halt, Host};
use crate::log::LogRecord;
use crate::{Env, Input, Machine, Ticket};
use troth_auth::Seal;
use troth_trusted::a2m::{Answer, LogRefusal, Nonce};

impl<M: Machine> Host<M> {
    /// Gives the component's answer to the last [`Command::Logs`].
    pub fn logged(&mut self, env: Env, answers: Result<Vec<Answer>, LogRefusal>) {
        let asked = std::mem::take(&mut self.asked);
        assert!(!asked.is_empty(), "an answer belongs to a question");
        let mut answers = match answers {
            Ok(answers) => answers.into_iter(),
            Err(refusal) => return self.ready.push_back(Command::Halt(Halt::Logs(refusal))),
        };
        for asked in asked {
            match asked {
                Asked::Message { body, digest, to, .. } => {
                    let Some(Answer::Attested(attestation)) = answers.next() else {
                        return self.ready.push_back(Command::Halt(Halt::Logs(LogRefusal::Halted)));
                    };
                    if self.durable {
                        self.append(LogRecord::Attested(attestation.clone()));
                    }
                    let message = M::seal(body, digest, self.me, Seal::Slot(attestation));
                    self.sealed(to, message);
                }
                Asked::Call { ticket, operations } => {
                    let mine: Vec<Answer> = answers.by_ref().take(operations.len()).collect();
                    if mine.len() < operations.len() {
                        return self.ready.push_back(Command::Halt(Halt::Logs(LogRefusal::Halted)));
                    }
                    self.own.push_back(Input::Trusted(ticket, mine));
                }
            }
        }
        self.settle(env);
    }

    /// Gives the answer to a [`Command::Draw`].
    pub fn drawn(&mut self, env: Env, ticket: Ticket, nonce: Nonce) {
        self.own.push_back(Input::Drawn(ticket, nonce));
        self.settle(env);
    }
}
