//! A2M-PBFT-EA in the simulated world, with clients that check the histories.

mod strategies;

use crate::protocol::Named;
use crate::world::limits;
use crate::{Body, Message, Options, OwnHistory, Protocol};
use troth_a2m_pbft_ea::place::HISTORY;
use troth_a2m_pbft_ea::{A2mPbftEa, Config, Flaw, Message as Sent};
use troth_core::Agreement;
use troth_trusted::a2m::{LOGS, LogId};
use troth_trusted::{CounterId, CounterValue};
use troth_types::{Group, GroupId, ReplicaId};

/// The plug-in.
#[derive(Debug)]
pub struct A2mPbftEaWorld;

/// Views that may be left without a stable checkpoint before a log is full.
const FAILED_VIEWS: usize = 1_000;

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
        limits: limits(options),
        literal,
    }
}

impl Protocol for A2mPbftEaWorld {
    type Agreement = A2mPbftEa;
    const NAME: &'static str = "a2m-pbft-ea";
    const REPLACES: bool = false;
    const LATER: usize = 1;
    const BRIDGES: bool = true;
    const FACES: bool = true;
    const RELAPSES: bool = true;

    fn group(f: u16) -> Group {
        Group::hybrid(GroupId(*b"simulated-a2m-ea"), 2 * f + 1).expect("f is at least 1")
    }

    fn agreement(options: &Options, group: &Group, me: ReplicaId, _: Option<u64>) -> A2mPbftEa {
        A2mPbftEa::new(me, *group, config(options))
    }

    fn counters() -> &'static [CounterId] {
        &[]
    }

    fn log_room(options: &Options) -> Option<[usize; LOGS]> {
        let window = usize::try_from(options.window).unwrap_or(usize::MAX);
        let mut room = [3 * window + FAILED_VIEWS; LOGS];
        room[usize::from(HISTORY.0)] = config(options).history_room();
        Some(room)
    }

    fn history() -> Option<LogId> {
        Some(HISTORY)
    }

    fn literals() -> Vec<&'static str> {
        Flaw::ALL.iter().map(|(_, name)| *name).collect()
    }

    /// Which views a VIEWCHANGE shows has nothing to do with what is durable.
    fn forgets(literal: &str) -> bool {
        literal != "F-A2"
    }

    fn strategies() -> &'static [Named<Self>] {
        strategies::ALL
    }

    fn certified(_: &Message<Self>) -> Option<(ReplicaId, Body<Self>)> {
        // What a host believes of its logs either is what they say, or does not verify.
        None
    }

    fn relabel_body(body: Body<Self>, _: ReplicaId, _: &dyn OwnHistory<Message<Self>>) -> Body<Self> {
        body
    }

    fn relabel_message(
        message: Message<Self>,
        _: ReplicaId,
        _: &dyn OwnHistory<Message<Self>>,
    ) -> Message<Self> {
        message
    }

    fn next_value(current: CounterValue, _: CounterValue, _: &Body<Self>) -> CounterValue {
        current
    }

    fn kind(message: &Message<Self>) -> &'static str {
        match message {
            Sent::Attested(message) => message.body.kind(),
            Sent::Want(_) => "WANTVIEWCHANGE",
            Sent::Status(_) => "STATUS",
            Sent::Stable(_) => "STABLE",
            Sent::FetchHistory(_) => "FETCH-HISTORY",
            Sent::History(..) => "HISTORY",
            Sent::FetchProposals(..) => "FETCH-PROPOSALS",
        }
    }

    fn changes_view(message: &Message<Self>) -> bool {
        matches!(Self::kind(message), "WANTVIEWCHANGE" | "VIEWCHANGE" | "NEWVIEW")
    }

    fn excess(agreement: &A2mPbftEa, options: &Options) -> Option<String> {
        let pending = agreement.status().pending as u64;
        let clients = (options.clients + options.byzantine_clients + 1) as u64;
        if pending > clients * options.client_window {
            return Some(format!("{pending} requests pending of {clients} clients"));
        }
        let (slots, most) = (agreement.history().len() as u64, options.most_history());
        if slots > most {
            return Some(format!("{slots} slots of the history kept, at most {most}"));
        }
        let (messages, records) = agreement.retained();
        // Of each number a proposal, its certificate, two votes and frames; of each view that is still needed its start
        // and the commitments to it.
        let n = 2 * options.f as u64 + 1;
        let views = 140 + agreement.view().0;
        let most = 3 * options.window * (5 + options.batch_frames as u64) + views * (n + 1) + 64;
        let kept = (messages.len() + records.len()) as u64;
        (kept > most).then(|| format!("{kept} messages and records kept, at most {most}"))
    }
}
