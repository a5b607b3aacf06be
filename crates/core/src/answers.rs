//! What a replica answers its clients to new requests and to repeated ones.

use crate::replica::Outputs;
use crate::{Agreement, Env, Execution, Lookup, Machine, Output, Repeated, Replica, Request};
use troth_types::{ClientId, Refusal, RefusalReason, Reply, ReplyBody, ToClient};

/// Bytes of answers repeated for requests that came together, about.
const REPEATED_ANSWER: usize = 1 << 20;

impl<A: Agreement, X: Execution> Replica<A, X> {
    /// The reply as this replica sends it: in full from the designated one or when asked; as tentative where the place
    /// of the batch is not final.
    pub(crate) fn reply(&self, mut reply: Reply, full: bool) -> ToClient {
        reply.view = self.agreement.view();
        if !full
            && self.group.designated(reply.client, reply.number) != self.me
            && let ReplyBody::Full(results) = &reply.body
        {
            reply.body = ReplyBody::Digest(Reply::results_digest(results));
        }
        let Some(batch) = self.undecided.iter().find(|batch| batch.seq == reply.seq) else {
            return ToClient::Reply(reply);
        };
        reply.view = batch.view;
        ToClient::Tentative(reply)
    }

    pub(crate) fn on_requests(&mut self, env: Env, requests: Vec<Request>, out: &mut Outputs<A, X>) {
        let (mut new, mut repeated) = (Vec::new(), 0);
        for Request { frame, full } in requests {
            let (client, number) = (frame.client(), frame.number());
            if self.execution.configuration().is_removed(client) {
                out.push(refuse(client, number, false, RefusalReason::Removed));
                continue;
            }
            match self.execution.lookup(client, number) {
                // What it knows of the client may be as wrong as the rest of its state.
                Lookup::Executed(_) | Lookup::TooOld if self.repair.is_some() => {}
                Lookup::New => new.push(frame),
                // Asked for once more by whoever waits for it, and then by itself.
                Lookup::Executed(_) if repeated >= REPEATED_ANSWER => {}
                Lookup::Executed(reply) => {
                    repeated += reply.body.size();
                    self.answer_again(*reply, frame.events_seen(), full, out);
                }
                Lookup::TooOld => out.push(refuse(client, number, false, RefusalReason::TooOld)),
            }
        }
        if !new.is_empty() {
            self.step(env, out, |agreement, cx| agreement.on_requests(cx, new));
        }
    }

    pub(crate) fn on_repeated(&self, repeated: Repeated, out: &mut Outputs<A, X>) {
        let Repeated { client, number, events_seen, full } = repeated;
        if self.execution.configuration().is_removed(client) {
            return out.push(refuse(client, number, false, RefusalReason::Removed));
        }
        // As above, of what comes without its frame.
        if self.repair.is_some() {
            return;
        }
        match self.execution.lookup(client, number) {
            Lookup::Executed(reply) => self.answer_again(*reply, events_seen, full, out),
            Lookup::TooOld => out.push(refuse(client, number, false, RefusalReason::TooOld)),
            // Its frame comes with its signature, when it comes again.
            Lookup::New => {}
        }
    }

    /// The reply to what was executed before, with the events that the client lacks where it asks for all.
    fn answer_again(&self, reply: Reply, events_seen: u64, full: bool, out: &mut Outputs<A, X>) {
        if full {
            // Of batches whose place is not final there are some in the outbox, and none to be seen.
            let committed = self.execution.committed();
            let events = self.execution.events_after(reply.client, events_seen);
            let events = events.into_iter().filter(|event| event.seq <= committed);
            out.extend(events.map(|event| Output::Client(ToClient::Event(event))));
        }
        out.push(Output::Client(self.reply(reply, full)));
    }
}

pub(crate) fn refuse<M: Machine>(
    client: ClientId,
    number: u64,
    read: bool,
    reason: RefusalReason,
) -> Output<M> {
    Output::Client(ToClient::Refusal(Refusal { client, number, read, reason }))
}
