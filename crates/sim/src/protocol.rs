//! What a protocol brings to the simulated world.

use crate::adversary::{Hand, Strategy};
use crate::logs::Jumps;
use crate::{Options, Shape};
use troth_auth::Seal;
use troth_client::Acceptance;
use troth_core::Agreement;
use troth_trusted::a2m::{Answer, LOGS, LogId, LogRefusal};
use troth_trusted::{CounterId, CounterValue};
use troth_types::{Digest, Group, ReplicaId, ToClient};

/// What a component answers to operations on its logs.
pub type Logged = Result<Vec<Answer>, LogRefusal>;

/// The way between a faulty host's fiction and the truth, in one direction: what
/// [`Protocol::relabel_body`] and [`Protocol::relabel_message`] look up.
pub trait OwnHistory<M> {
    /// The message on the other side in the place of the own message with this value.
    fn counterpart(&self, counter: CounterId, value: CounterValue) -> Option<M>;
    /// On the way out, every message really certified so far, in the order of their values.
    fn all(&self) -> &[M];
}

/// How to make a strategy.
pub type Made<P> = fn() -> Box<dyn Strategy<P>>;
/// A written strategy's name and how to make one.
pub type Named<P> = (&'static str, Made<P>);

/// A protocol in the simulated world.
pub trait Protocol: Sized + 'static {
    /// The agreement.
    type Agreement: Agreement;
    /// Its name on the command line.
    const NAME: &'static str;

    /// Whether a replica whose machine is lost can be replaced by another.
    const REPLACES: bool;
    /// How many of its written strategies, the last ones, came later than its first seeds.
    const LATER: usize = 0;
    /// Whether a replica whose component lost its logs goes on with another component and its own disk.
    const RENEWS_LOGS: bool = false;
    /// Whether its clients may send authenticators in the place of signatures; in half of the worlds they do.
    const AUTHENTICATORS: bool = false;

    /// What a faulty replica may sign in the place of a message that its own host signed: the same with lists
    /// emptied, cut, repeated and filled from one another, by somebody who knows the form and no rule. `None` where
    /// there is nothing of the kind.
    fn distort(rng: &mut crate::Rng, me: ReplicaId, message: &Message<Self>) -> Option<Body<Self>> {
        let _ = (rng, me, message);
        None
    }

    /// Whether a faulty replica may be a [`Parrot`](crate::adversary::Parrot).
    const PARROTS: bool = false;
    /// Whether in some worlds no fault of the network keeps faulty replicas from hearing and being heard.
    const BRIDGES: bool = false;

    /// Whether in some worlds faulty replicas have a face for each part of the network.
    const FACES: bool = false;

    /// Whether in some worlds faulty replicas go back together to what they were, and work with those who do not know.
    const RELAPSES: bool = false;

    /// How a faulty replica behaves that has the component that it had and the one that took its place; `None` where no
    /// component is replaced.
    const HEIR: Option<Made<Self>> = None;

    /// What `from` says, as a faulty replica says it in its own name; `None` where it cannot.
    fn as_own(hand: &Hand<'_, Self>, from: ReplicaId, message: &Message<Self>) -> Option<Message<Self>> {
        let _ = (hand, from, message);
        None
    }

    /// What its worlds are made of.
    fn shape(f: u16) -> Shape {
        let n = u16::try_from(Self::group(f).n()).expect("a group has at most 128 replicas");
        let strategies = Self::strategies().len() - Self::LATER;
        let replaces = Self::REPLACES || Self::RENEWS_LOGS;
        let (parrots, bridges, faces) = (Self::PARROTS, Self::BRIDGES, Self::FACES);
        let (relapses, heirs) = (Self::RELAPSES, Self::HEIR.is_some());
        Shape { n, strategies, later: Self::LATER, replaces, parrots, bridges, faces, relapses, heirs }
    }
    /// The group of a fault bound.
    fn group(f: u16) -> Group;
    /// A replica's agreement in a seed's world, with a component of this epoch; one that does not care whether
    /// its component was replaced has none.
    fn agreement(options: &Options, group: &Group, me: ReplicaId, epoch: Option<u64>) -> Self::Agreement;
    /// The counters of the trusted component that it uses.
    fn counters() -> &'static [CounterId];
    /// How many entries each log of its components has room for, where they hold logs.
    fn log_room(options: &Options) -> Option<[usize; LOGS]> {
        let _ = options;
        None
    }
    /// The log in which clients find their requests, where replies prove their place.
    fn history() -> Option<LogId> {
        None
    }
    /// Whether clients see one history with more than f faulty replicas, too.
    fn one_history_beyond_f() -> bool {
        false
    }
    /// The literal rules that can be put in force, by name.
    fn literals() -> Vec<&'static str>;
    /// Whether a literal rule costs progress rather than a right answer: only then is a run judged for what is missing
    /// at its end.
    fn costs_progress(literal: &str) -> bool {
        let _ = literal;
        false
    }
    /// Whether a literal rule may have a replica forget in a crash what it executed: then only what it has shown counts
    /// against it.
    fn forgets(literal: &str) -> bool {
        let _ = literal;
        true
    }
    /// Whether by a literal rule the logs of components jump as the paper prints it.
    fn jumps(literal: &str) -> Jumps {
        let _ = literal;
        Jumps::Told
    }
    /// Whether a primary shows the others what its clients sent to it alone.
    fn primary_shows() -> bool {
        false
    }
    /// Which answers its clients believe.
    fn acceptance(group: &Group) -> Acceptance {
        Acceptance::hybrid(group)
    }
    /// What a client makes of a message where this literal rule is a client's.
    fn heard(literal: &str, message: ToClient) -> ToClient {
        let _ = literal;
        message
    }
    /// Its written strategies, by name.
    fn strategies() -> &'static [Named<Self>];

    /// Who certified a message, and its body; nothing for a message without a certificate of its own.
    fn certified(message: &Message<Self>) -> Option<(ReplicaId, Body<Self>)>;
    /// A faulty replica's body (or, for messages without a certificate, the message) as the world must
    /// see it: own messages inside it replaced by those really certified, own lists of them complete.
    fn relabel_body(body: Body<Self>, me: ReplicaId, own: &dyn OwnHistory<Message<Self>>) -> Body<Self>;
    /// The same for a message that carries no certificate of its own.
    fn relabel_message(
        message: Message<Self>,
        me: ReplicaId,
        own: &dyn OwnHistory<Message<Self>>,
    ) -> Message<Self>;
    /// A short name of what a message is, for traces and for adversaries that choose by kind.
    fn kind(message: &Message<Self>) -> &'static str;
    /// Whether a message tells that its sender leaves a view or begins one: the moments at which
    /// cutting links hurts most.
    fn changes_view(message: &Message<Self>) -> bool;
    /// What is out of bounds in a correct replica's memory, if anything.
    fn excess(agreement: &Self::Agreement, options: &Options) -> Option<String>;

    /// The value that the real component must move to for a body, where it stands at `current` and the
    /// host's fiction moves to `wanted`. One that is not above `current` cannot be had any more.
    fn next_value(current: CounterValue, wanted: CounterValue, body: &Body<Self>) -> CounterValue;
    /// The digest that is certified for a body.
    fn digest(body: &Body<Self>, group: &Group, from: ReplicaId) -> Digest {
        Self::Agreement::digest(body, group.id(), from)
    }
    /// The message that a sealed body becomes.
    fn seal(body: Body<Self>, digest: Digest, from: ReplicaId, seal: Seal) -> Message<Self> {
        Self::Agreement::seal(body, digest, from, seal)
    }
}

/// A protocol's messages.
pub type Message<P> = <<P as Protocol>::Agreement as Agreement>::Message;
/// A protocol's bodies.
pub type Body<P> = <<P as Protocol>::Agreement as Agreement>::Body;
