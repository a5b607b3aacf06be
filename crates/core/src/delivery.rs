//! Batches on their way through the executor: finally, or tentatively until they are committed or undone.

use crate::replica::Outputs;
use crate::{Agreement, Cx, Effect, Env, Execution, Ordered, Outcome, Output, Replica, ReplicaTimer};
use std::sync::Arc;
use troth_types::{Configuration, Event, Seq, ToClient, View};

/// What a tentative batch brought about that nobody may see before its place is final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Undecided {
    pub(crate) seq: Seq,
    /// The view that gave it its place.
    pub(crate) view: View,
    events: Vec<Event>,
    configuration: Option<Arc<Configuration>>,
}

impl<A: Agreement, X: Execution> Replica<A, X> {
    /// Executes a batch whose place is final.
    pub(crate) fn deliver(
        &mut self,
        env: Env,
        ordered: &Ordered,
        more: &mut Vec<Effect<A>>,
        out: &mut Outputs<A, X>,
    ) {
        let mut outcome = self.execution.execute(ordered);
        if self.repair.is_none() {
            self.answer(ordered, &mut outcome, out);
            let events = outcome.events.iter().cloned();
            out.extend(events.map(|event| Output::Client(ToClient::Event(event))));
        }
        if let Some(configuration) = &outcome.configuration {
            self.configured(env, configuration, more, out);
        }
        self.overtake_transfer(out);
        self.tell_executed(env, &outcome, more);
    }

    /// Executes a batch whose place may yet change. Its replies say so; its events, which a client believes from f+1
    /// replicas as it does final replies, wait, and so does a change of the configuration.
    pub(crate) fn deliver_tentatively(
        &mut self,
        env: Env,
        ordered: &Ordered,
        view: View,
        more: &mut Vec<Effect<A>>,
        out: &mut Outputs<A, X>,
    ) {
        let mut outcome = self.execution.execute_tentatively(ordered);
        self.undecided.push_back(Undecided {
            seq: ordered.seq,
            view,
            events: outcome.events.clone(),
            configuration: outcome.configuration.clone(),
        });
        if self.repair.is_none() {
            self.answer(ordered, &mut outcome, out);
        }
        self.tell_executed(env, &outcome, more);
    }

    /// The places of the batches up to this one are final: what waited for it may be seen.
    pub(crate) fn commit(
        &mut self,
        env: Env,
        through: Seq,
        more: &mut Vec<Effect<A>>,
        out: &mut Outputs<A, X>,
    ) {
        self.execution.commit(through);
        while let Some(batch) = self.undecided.pop_front_if(|batch| batch.seq <= through) {
            if self.repair.is_none() {
                out.extend(batch.events.into_iter().map(|event| Output::Client(ToClient::Event(event))));
            }
            if let Some(configuration) = &batch.configuration {
                self.configured(env, configuration, more, out);
            }
        }
        self.overtake_transfer(out);
    }

    /// Undoes the batches above this one, and what was to be answered from them.
    pub(crate) fn roll_back(&mut self, to: Seq, out: &mut Outputs<A, X>) {
        self.execution.roll_back(to);
        self.undecided.retain(|batch| batch.seq <= to);
        self.reads.undone(to, out);
    }

    fn tell_executed(&mut self, env: Env, outcome: &Outcome, more: &mut Vec<Effect<A>>) {
        let reached = self.reached();
        let mut cx = Cx::new(env.now, env.wall, self.me, &self.group, more);
        self.agreement.on_executed(&mut cx, reached, outcome);
    }

    /// The ordinary messages were faster than a state transfer; an older state must not replace a newer one.
    fn overtake_transfer(&mut self, out: &mut Outputs<A, X>) {
        let committed = self.execution.committed();
        if self.repair.is_none() && self.transfer.as_ref().is_some_and(|transfer| transfer.seq <= committed) {
            self.transfer = None;
            // It holds the whole state as it was, and what has come of the other one.
            self.execution.abandon_install();
            out.push(Output::CancelTimer(ReplicaTimer::Transfer));
        }
    }
}
