//! PBFT in the simulated world.

mod distort;
pub(crate) mod strategies;

use crate::adversary::Hand;
use crate::protocol::Named;
use crate::world::limits;
use crate::{Body, Message, Options, OwnHistory, Protocol, Rng};
use troth_client::Acceptance;
use troth_core::Agreement;
use troth_pbft::{Body as Signed, Config, Flaw, Message as Sent, Pbft};
use troth_trusted::{CounterId, CounterValue};
use troth_types::{Group, GroupId, ReplicaId, Reply, ToClient, View};

/// The plug-in.
#[derive(Debug)]
pub struct PbftWorld;

/// The literal rule of clients that count tentative replies whatever views they are of.
const MIXED_VIEWS: &str = "MIXED-VIEWS";

/// Protocols that order as PBFT does, with its messages.
pub trait PbftFamily: Protocol<Agreement: Agreement<Body = Signed, Message = Sent>> {}

impl PbftFamily for PbftWorld {}

/// Votes and signed messages of another, as this faulty replica says them: no attestation of another's component is its own.
pub(crate) fn as_own<P: PbftFamily>(hand: &Hand<'_, P>, from: ReplicaId, message: &Sent) -> Option<Sent> {
    match message {
        Sent::PrePrepare(_) | Sent::Prepare(_) | Sent::Commit(_) => Some(message.clone()),
        Sent::Signed(signed) if signed.from == from && !matches!(signed.body, Signed::Attested(_)) => {
            Some(hand.sign(signed.body.clone()))
        }
        _ => None,
    }
}

/// The parameters of a seed's group.
pub(crate) fn config(options: &Options) -> Config {
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
        tentative: true,
        fast_reads: true,
        limits: limits(options),
        histories: false,
        signs_phases: false,
        literal,
    }
}

/// Whether the replicas of a seed's group sign everything (§4): in a quarter of the worlds they do.
fn signs_phases(options: &Options) -> bool {
    Rng::stream(options.seed, "signed phases", 0).one_in(4)
}

impl Protocol for PbftWorld {
    type Agreement = Pbft;
    const NAME: &'static str = "pbft";
    const REPLACES: bool = false;
    const AUTHENTICATORS: bool = true;
    const PARROTS: bool = true;
    const BRIDGES: bool = true;
    const FACES: bool = true;

    fn group(f: u16) -> Group {
        Group::general(GroupId(*b"simulated-pbft--"), 3 * f + 1).expect("f is at least 1")
    }

    fn agreement(options: &Options, group: &Group, me: ReplicaId, _: Option<u64>) -> Pbft {
        Pbft::new(me, *group, Config { signs_phases: signs_phases(options), ..config(options) })
    }

    fn counters() -> &'static [CounterId] {
        &[]
    }

    fn literals() -> Vec<&'static str> {
        Flaw::ALL.iter().map(|(_, name)| *name).chain([MIXED_VIEWS]).collect()
    }

    fn forgets(_: &str) -> bool {
        false
    }

    fn acceptance(group: &Group) -> Acceptance {
        Acceptance::pbft(group)
    }

    fn heard(literal: &str, message: ToClient) -> ToClient {
        match message {
            ToClient::Tentative(reply) if literal == MIXED_VIEWS => {
                ToClient::Tentative(Reply { view: View(0), ..reply })
            }
            message => message,
        }
    }

    fn costs_progress(literal: &str) -> bool {
        Flaw::ALL.iter().any(|(flaw, name)| *name == literal && *flaw == Flaw::NoResend)
    }

    fn strategies() -> &'static [Named<Self>] {
        strategies::Written::ALL
    }

    fn certified(_: &Message<Self>) -> Option<(ReplicaId, Body<Self>)> {
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

    fn as_own(hand: &Hand<'_, Self>, from: ReplicaId, message: &Message<Self>) -> Option<Message<Self>> {
        as_own(hand, from, message)
    }

    fn distort(rng: &mut Rng, me: ReplicaId, message: &Message<Self>) -> Option<Body<Self>> {
        match message {
            Sent::Signed(signed) if signed.from == me => distort::distorted(rng, &signed.body),
            _ => None,
        }
    }

    fn kind(message: &Message<Self>) -> &'static str {
        match message {
            Sent::PrePrepare(_) => "PRE-PREPARE",
            Sent::Prepare(_) => "PREPARE",
            Sent::Commit(_) => "COMMIT",
            Sent::Signed(message) => message.body.kind(),
            Sent::Status(_) => "STATUS",
            Sent::Stable(_) => "STABLE",
            Sent::FetchBatches(_) => "FETCH",
            Sent::Batches(_) => "BATCHES",
            Sent::WrongTags(_) => "WRONG-TAGS",
            Sent::FetchHistory(_) => "FETCH-HISTORY",
            Sent::History(..) => "HISTORY",
        }
    }

    fn changes_view(message: &Message<Self>) -> bool {
        let signed = match message {
            Sent::Signed(message) => &message.body,
            _ => return false,
        };
        matches!(signed, Signed::ViewChange(_) | Signed::NewView(_))
    }

    fn excess(agreement: &Pbft, options: &Options) -> Option<String> {
        let pending = agreement.status().pending as u64;
        let clients = (options.clients + options.byzantine_clients + 1) as u64;
        if pending > clients * options.client_window {
            return Some(format!("{pending} requests pending of {clients} clients"));
        }
        // P, Q with several batches a number, what is executed, and frames.
        let per_number = 2 + 16 + 1 + 18 * options.batch_frames as u64;
        let most = 3 * options.window * per_number + 16;
        let (_, records) = agreement.retained();
        (records.len() as u64 > most).then(|| format!("{} records kept, at most {most}", records.len()))
    }
}
