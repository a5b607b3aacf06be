//! A client and the replicas it talks to, by hand.

mod asked;
mod events;
mod lies;
mod proof;
mod reads;
mod refusals;
mod replies;
#[cfg(feature = "front")]
mod sessions;
mod standing;
mod tentative;
mod timing;
mod window;

use crate::{Acceptance, ClientCore, ClientError, Config, Output, Ticket};
use bytes::Bytes;
use std::sync::Arc;
use troth_auth::ModelSigner;
use troth_types::{
    ClientId, Event, Frame, Group, GroupId, Read, ReadReply, Refusal, RefusalReason, ReplicaId, Reply,
    ReplyBody, Seq, Time, ToClient, ToReplica, View, Wish,
};

const CLIENT: ClientId = ClientId(7);

/// What a client did since it was last asked.
#[derive(Default)]
struct Seen {
    frames: Vec<(ReplicaId, Arc<Frame>, bool)>,
    reads: Vec<(ReplicaId, Read)>,
    done: Vec<(Ticket, Result<Vec<Bytes>, ClientError>)>,
    events: Vec<Event>,
    /// `e3` for event 3, `d1` for the end of ticket 1, in the order they came.
    order: Vec<String>,
}

impl Seen {
    /// The distinct frames sent, by number.
    fn numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<_> = self.frames.iter().map(|(_, frame, _)| frame.number()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

struct Scene {
    group: Group,
    core: ClientCore,
    now: Time,
}

impl Scene {
    fn new(replicas: u16) -> Self {
        Self::with(replicas, |_| {})
    }

    fn with(replicas: u16, change: impl FnOnce(&mut Config)) -> Self {
        Self::of(Group::hybrid(GroupId([9; 16]), replicas).unwrap(), change)
    }

    /// A client of a PBFT group that bears one faulty replica.
    fn pbft() -> Self {
        let group = Group::general(GroupId([9; 16]), 4).unwrap();
        Self::of(group, |config| config.acceptance = Acceptance::pbft(&group))
    }

    fn of(group: Group, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new(group, CLIENT);
        change(&mut config);
        let core = ClientCore::new(config, Arc::new(ModelSigner::new(1)));
        Self { group, core, now: Time(1_000) }
    }

    fn submit(&mut self, operations: &[&str]) -> Ticket {
        self.core.submit(self.now, texts(operations)).unwrap()
    }

    fn say(&mut self, from: u16, message: ToClient) {
        self.core.on_message(self.now, ReplicaId(from), message);
    }

    fn wait(&mut self, micros: u64) {
        self.now = self.now.after(micros);
        self.core.on_timer(self.now);
    }

    /// All that the client wants done.
    fn drain(&mut self) -> Seen {
        let mut seen = Seen::default();
        while let Some(output) = self.core.poll() {
            match output {
                Output::Send { to, message: ToReplica::Request { frame, wish } } => {
                    seen.frames.push((to, frame, wish == Wish::Full));
                }
                Output::Send { to, message: ToReplica::Read(read) } => seen.reads.push((to, read)),
                Output::Done { ticket, result, .. } => {
                    seen.order.push(format!("d{}", ticket.0));
                    seen.done.push((ticket, result));
                }
                Output::Event(event) => {
                    seen.order.push(format!("e{}", event.index));
                    seen.events.push(event);
                }
            }
        }
        seen
    }
}

fn texts(items: &[&str]) -> Vec<Bytes> {
    items.iter().map(|item| Bytes::copy_from_slice(item.as_bytes())).collect()
}

fn reply(number: u64, events_up_to: u64, body: ReplyBody) -> ToClient {
    ToClient::Reply(Reply { client: CLIENT, number, seq: Seq(number), view: View(4), events_up_to, body })
}

fn full(number: u64, results: &[&str]) -> ToClient {
    reply(number, 0, ReplyBody::Full(texts(results)))
}

fn digest(number: u64, results: &[&str]) -> ToClient {
    reply(number, 0, ReplyBody::Digest(Reply::results_digest(&texts(results))))
}

fn event(index: u64, payload: &str) -> ToClient {
    let payload = Bytes::copy_from_slice(payload.as_bytes());
    ToClient::Event(Event { client: CLIENT, index, seq: Seq(index), payload })
}

fn read_reply(number: u64, events_up_to: u64, body: ReplyBody) -> ToClient {
    ToClient::ReadReply(ReadReply { client: CLIENT, number, events_up_to, body })
}

fn refusal(number: u64, read: bool, reason: RefusalReason) -> ToClient {
    ToClient::Refusal(Refusal { client: CLIENT, number, read, reason })
}
