//! A node's component answers what is asked of its logs.

use super::World;
use super::event::Event;
use crate::Protocol;
use crate::logs::{Jumps, LogsComponent, logs_of};
use crate::protocol::Logged;
use std::convert::Infallible;
use troth_core::Ticket;
use troth_trusted::a2m::{LogRefusal, Operation};
use troth_trusted_host::repetition::{Repeated, repeat};
use troth_types::ReplicaId;

/// How many times the room of a correct replica's logs a faulty one's have: it may jump where a correct one does not.
pub(super) const JUMPERS_ROOM: usize = 8;

/// The answer to a call is lost, whichever it is, and the host has it all the same: it asks again, and is told the same
/// (A2M-C4).
fn losing_an_answer(logs: &mut LogsComponent, operations: &[Operation]) -> Result<Logged, String> {
    let lost = logs.call(operations);
    if lost.is_err() {
        return Ok(lost);
    }
    let Ok(again) = repeat(operations, |asked| Ok::<_, Infallible>(logs.call(asked)));
    match again {
        Repeated::Answered(again) if again == lost => Ok(again),
        other => Err(format!("{operations:?} was answered {lost:?} and then {other:?}")),
    }
}

impl<P: Protocol> World<P> {
    /// Which digests the advances of components have.
    pub(super) fn jumps(&self) -> Jumps {
        self.options.literal.as_deref().map_or(Jumps::Told, P::jumps)
    }

    /// The empty logs of a component, where components have any, with so many times the room that a correct replica needs.
    pub(super) fn empty_logs(&self, replica: ReplicaId, epoch: u64, times: usize) -> Option<LogsComponent> {
        let room = P::log_room(&self.options)?.map(|entries| times * entries);
        Some(logs_of(&self.blueprint.group, replica, epoch, room, self.jumps()))
    }

    /// A host asks the logs of its component.
    pub(super) fn logs(&mut self, index: usize, operations: &[Operation]) {
        let node = &mut self.nodes[index];
        let answers = match node.adversary {
            None => match node.logs.as_mut().map(|logs| losing_an_answer(logs, operations)) {
                Some(Ok(answers)) => answers,
                Some(Err(why)) => {
                    self.checks.judge("repetition", &[index], Err(why));
                    Err(LogRefusal::Halted)
                }
                None => Err(LogRefusal::Halted),
            },
            Some((adversary, host)) => {
                let logs = self.adversaries[adversary].logs.as_mut();
                logs.map(|logs| logs.call(host, operations)).ok_or(LogRefusal::Halted)
            }
        };
        // A crash may come between the change of the logs and the answer.
        if let Some(left) = &mut node.crash_in {
            *left -= 1;
            if *left == 0 {
                return self.crash(index);
            }
        }
        if self.options.attest == 0 {
            return self.tell_logged(index, answers);
        }
        node.busy = true;
        let life = node.life;
        let wait = 1 + self.storage_rng.exponential(self.options.attest);
        self.agenda.after(wait, Event::Logged(index, life, answers));
    }

    pub(super) fn logged(&mut self, index: usize, life: u32, answers: Logged) {
        if self.nodes[index].life == life && self.nodes[index].host.is_some() {
            self.nodes[index].busy = false;
            self.tell_logged(index, answers);
            self.pump(index);
        }
    }

    fn tell_logged(&mut self, index: usize, answers: Logged) {
        let env = self.nodes[index].env(self.agenda.now);
        self.acts(index);
        if let Some(host) = &mut self.nodes[index].host {
            host.logged(env, answers);
            self.collect(index);
        }
    }

    /// A host draws a nonce.
    pub(super) fn draw(&mut self, index: usize, ticket: Ticket) {
        let mut nonce = [0; 32];
        nonce.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&self.nonce_rng.next().to_be_bytes()));
        let env = self.nodes[index].env(self.agenda.now);
        self.acts(index);
        if let Some(host) = &mut self.nodes[index].host {
            host.drawn(env, ticket, nonce);
            self.collect(index);
        }
    }
}
