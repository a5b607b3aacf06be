//! MinBFT in the simulated world.

mod relabel;
mod strategies;

use crate::protocol::{Made, Named};
use crate::world::limits;
use crate::{Body, Message, Options, OwnHistory, Protocol};
use troth_core::Agreement;
use troth_minbft::place::Place;
use troth_minbft::{Config, Flaw, Message as Minbft, MinBft};
use troth_trusted::{CounterId, CounterValue};
use troth_types::{Group, GroupId, ReplicaId, View};

/// The plug-in.
#[derive(Debug)]
pub struct MinBftWorld;

/// The parameters of a seed's group.
fn config(options: &Options) -> Config {
    let literal = options
        .literal
        .as_deref()
        .and_then(|name| Flaw::ALL.iter().find(|(_, known)| *known == name))
        .map(|(flaw, _)| *flaw);
    Config {
        interval: options.interval,
        window: options.window,
        pipeline: options.pipeline,
        request_timeout: options.request_timeout,
        view_timeout: options.view_timeout,
        status_interval: options.status_interval,
        clock_bound: options.clock_bound(),
        slower_by: Config::DEFAULT.slower_by,
        message_bytes: Config::DEFAULT.message_bytes,
        limits: limits(options),
        literal,
    }
}

impl Protocol for MinBftWorld {
    type Agreement = MinBft;
    const NAME: &'static str = "minbft";
    const REPLACES: bool = true;
    const HEIR: Option<Made<Self>> = Some(strategies::heir);

    fn primary_shows() -> bool {
        true
    }

    fn group(f: u16) -> Group {
        Group::hybrid(GroupId(*b"simulated-minbft"), 2 * f + 1).expect("f is at least 1")
    }

    fn agreement(options: &Options, group: &Group, me: ReplicaId, epoch: Option<u64>) -> MinBft {
        let agreement = MinBft::new(me, *group, config(options));
        match epoch {
            Some(epoch) => agreement.with_epoch(epoch),
            None => agreement,
        }
    }

    fn counters() -> &'static [CounterId] {
        &[CounterId(0)]
    }

    fn literals() -> Vec<&'static str> {
        Flaw::ALL.iter().map(|(_, name)| *name).collect()
    }

    fn strategies() -> &'static [Named<Self>] {
        strategies::ALL
    }

    fn certified(message: &Message<Self>) -> Option<(ReplicaId, Body<Self>)> {
        match message {
            Minbft::Certified(message) => Some((message.from, message.body.clone())),
            _ => None,
        }
    }

    fn relabel_body(body: Body<Self>, me: ReplicaId, own: &dyn OwnHistory<Message<Self>>) -> Body<Self> {
        relabel::body(body, me, me, own)
    }

    fn relabel_message(
        message: Message<Self>,
        me: ReplicaId,
        own: &dyn OwnHistory<Message<Self>>,
    ) -> Message<Self> {
        relabel::message(message, me, own)
    }

    fn next_value(current: CounterValue, wanted: CounterValue, body: &Body<Self>) -> CounterValue {
        let view = wanted.view().max(current.view());
        match body {
            // A CHECKPOINT has one place in a view.
            troth_minbft::Body::Checkpoint(checkpoint) => {
                Place::of_checkpoint(View(view), checkpoint.seq).unwrap_or(current)
            }
            _ if wanted.view() > current.view() => wanted,
            _ => current.next().unwrap_or(current),
        }
    }

    fn kind(message: &Message<Self>) -> &'static str {
        match message {
            Minbft::Certified(message) => match message.body {
                troth_minbft::Body::Prepare(_) => "PREPARE",
                troth_minbft::Body::Commit(_) => "COMMIT",
                troth_minbft::Body::Checkpoint(_) => "CHECKPOINT",
                troth_minbft::Body::ViewChange(_) => "VIEW-CHANGE",
                troth_minbft::Body::NewView(_) => "NEW-VIEW",
                troth_minbft::Body::AcceptNewView(_) => "COMMIT(NEW-VIEW)",
                troth_minbft::Body::RequestViewChange(_) => "REQ-VIEW-CHANGE",
            },
            Minbft::RequestViewChange(_) => "REQ-VIEW-CHANGE",
            Minbft::Status(_) => "STATUS",
            Minbft::Stable(_) => "STABLE",
            Minbft::Evidence(_) => "EVIDENCE",
        }
    }

    fn changes_view(message: &Message<Self>) -> bool {
        matches!(Self::kind(message), "VIEW-CHANGE" | "NEW-VIEW")
    }

    fn excess(agreement: &MinBft, options: &Options) -> Option<String> {
        let pending = agreement.status().pending as u64;
        let clients = (options.clients + options.byzantine_clients + 1) as u64;
        if pending > clients * options.client_window {
            return Some(format!("{pending} requests pending of {clients} clients"));
        }
        // A commitment per number of two windows, a checkpoint per interval, and what each of the view
        // changes since the last checkpoint adds.
        let views = agreement.view().0;
        let most = 2 * options.window + 2 * options.window / options.interval + 3 * views + 16;
        let (messages, _) = agreement.retained();
        (messages.len() as u64 > most)
            .then(|| format!("{} own messages kept, at most {most}", messages.len()))
    }
}
