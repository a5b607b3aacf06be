//! A2M-PBFT-E in the simulated world: PBFT's messages and strategies, components with history logs, and clients that
//! check them.

use crate::adversary::Hand;
use crate::logs::Jumps;
use crate::pbft::strategies::Written;
use crate::pbft::{PbftFamily, PbftWorld, as_own, config};
use crate::protocol::Named;
use crate::{Body, Message, Options, OwnHistory, Protocol, Rng};
use troth_a2m_pbft_e::{A2mPbftE, Flaw};
use troth_auth::HISTORY_LOG;
use troth_trusted::a2m::{LOGS, LogId};
use troth_trusted::{CounterId, CounterValue};
use troth_types::{Group, GroupId, ReplicaId};

/// The plug-in.
#[derive(Debug)]
pub struct A2mPbftEWorld;

impl PbftFamily for A2mPbftEWorld {}

/// The flaw of this name, where it is one of A2M-PBFT-E and not of PBFT.
fn flaw(literal: &str) -> Option<Flaw> {
    Flaw::ALL.iter().find(|(_, known)| *known == literal).map(|(flaw, _)| *flaw)
}

impl Protocol for A2mPbftEWorld {
    type Agreement = A2mPbftE;
    const NAME: &'static str = "a2m-pbft-e";
    const REPLACES: bool = false;
    const LATER: usize = 1;
    const RENEWS_LOGS: bool = true;
    const PARROTS: bool = true;
    const BRIDGES: bool = true;
    const FACES: bool = true;

    fn group(f: u16) -> Group {
        Group::general(GroupId(*b"simulated-a2me--"), 3 * f + 1).expect("f is at least 1")
    }

    fn agreement(options: &Options, group: &Group, me: ReplicaId, epoch: Option<u64>) -> A2mPbftE {
        let agreement = A2mPbftE::new(me, *group, config(options));
        let agreement = match epoch {
            Some(epoch) => agreement.with_epoch(epoch),
            None => agreement,
        };
        agreement.literally(options.literal.as_deref().and_then(flaw))
    }

    fn counters() -> &'static [CounterId] {
        &[]
    }

    fn log_room(options: &Options) -> Option<[usize; LOGS]> {
        let mut room = [0; LOGS];
        room[usize::from(HISTORY_LOG.0)] = A2mPbftE::room(&config(options));
        Some(room)
    }

    fn history() -> Option<LogId> {
        Some(HISTORY_LOG)
    }

    fn one_history_beyond_f() -> bool {
        true
    }

    fn literals() -> Vec<&'static str> {
        Flaw::ALL.iter().map(|(_, name)| *name).chain(PbftWorld::literals()).collect()
    }

    /// How a log goes on has nothing to do with what is durable.
    fn forgets(literal: &str) -> bool {
        flaw(literal).is_none()
    }

    fn jumps(literal: &str) -> Jumps {
        if flaw(literal) == Some(Flaw::Advance) { Jumps::AsPrinted } else { Jumps::Told }
    }

    fn costs_progress(literal: &str) -> bool {
        PbftWorld::costs_progress(literal)
    }

    fn strategies() -> &'static [Named<Self>] {
        Written::AND_HISTORIES
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
        PbftWorld::distort(rng, me, message)
    }

    fn kind(message: &Message<Self>) -> &'static str {
        PbftWorld::kind(message)
    }

    fn changes_view(message: &Message<Self>) -> bool {
        PbftWorld::changes_view(message)
    }

    fn excess(agreement: &A2mPbftE, options: &Options) -> Option<String> {
        let (kept, most) = (agreement.history().len() as u64, options.most_history());
        if kept > most {
            return Some(format!("{kept} slots of the history kept, at most {most}"));
        }
        PbftWorld::excess(agreement.pbft(), options)
    }
}
