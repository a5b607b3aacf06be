//! Faulty replicas: what they may do, and the machinery that lets production code play them.
//!
//! A faulty replica runs the production host on a *fiction*: its own component certifies whatever
//! the host asks. What leaves is certified anew by the one real component ([`Puppet`]), so a
//! strategy may insert, replace and withhold messages, and several hosts may share the component,
//! and still nothing leaves that a real component would not have certified.

mod amnesia;
mod janus;
mod lie;
mod parrot;
mod proxy;
mod puppet;
mod relapse;
mod remind;
mod rewrite;
mod select;
mod stale;
mod twin;

pub use amnesia::Amnesia;
pub use janus::Janus;
pub use lie::Liar;
pub use parrot::Parrot;
pub use proxy::Proxy;
pub use puppet::Puppet;
pub use relapse::{Relapse, Stage};
pub use remind::Reminder;
pub use rewrite::scramble;
pub use select::Selective;
pub use stale::Stale;
pub use twin::Twin;

use crate::logs::Pretender;
use crate::protocol::Logged;
use crate::{Body, Message, Protocol, Rng, ServiceKind};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use troth_auth::Ui;
use troth_core::PeerMessage;
use troth_trusted::a2m::{LogRefusal, Operation};
use troth_trusted::{CounterId, CounterValue};
use troth_types::{Group, ReplicaId, Seq, ToClient, ToReplica};

/// Something a faulty replica does.
pub enum Act<P: Protocol> {
    /// Sends to a replica, after a while (microseconds).
    Peer(ReplicaId, PeerMessage<Message<P>>, u64),
    /// Sends to one host of a faulty replica.
    Face(ReplicaId, usize, PeerMessage<Message<P>>),
    /// Sends to a client, after a while.
    Client(ToClient, u64),
    /// Keeps a clone of a host's state if nothing is under way there that a clone would wait for without end.
    SaveAtRest(usize),
    /// Puts a host back to the kept clone as soon as nothing is under way there.
    RestoreAtRest(usize),
}

/// What colluding replicas agree on: whom they let see their messages now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pact {
    /// Bits of the replicas that hear the colluders.
    pub audience: u64,
    /// Bits of the colluders.
    pub members: u64,
    /// Bits of the replicas in the first of the parts into which the network fell last.
    pub part: u64,
    /// Bits of the colluders whose second face has that part; what those who relapse together draw from.
    pub turned: u64,
    /// How often the network fell into parts.
    pub parted: u64,
    /// Until when they have a face for each part.
    pub apart_until: u64,
    /// How far those are that relapse together.
    pub stage: Stage,
}

/// How far a faulty replica's component is on its way to be replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Succession {
    /// Whether the operator was told to admit another one.
    pub asked: bool,
    /// The batch that admitted it, once the replica's first host has executed that.
    pub at: Option<Seq>,
    /// What that host has executed.
    pub executed: Seq,
}

/// What a strategy holds while it acts.
pub struct Hand<'a, P: Protocol> {
    /// The faulty replica.
    pub me: ReplicaId,
    /// The group.
    pub group: &'a Group,
    /// Virtual microseconds.
    pub now: u64,
    /// The adversary's random numbers.
    pub rng: &'a mut Rng,
    /// What it heard lately, its own hosts' sendings included.
    pub heard: &'a VecDeque<(ReplicaId, PeerMessage<Message<P>>)>,
    /// What the colluders agree on now.
    pub pact: Pact,
    /// What the group replicates: lies are about that.
    pub service: ServiceKind,
    /// How far its component is on its way to be replaced.
    pub succession: Succession,
    pub(crate) puppet: &'a mut Puppet<P>,
    pub(crate) heir: &'a mut Puppet<P>,
    pub(crate) logs: Option<&'a mut Pretender>,
    pub(crate) acts: &'a mut Vec<Act<P>>,
    pub(crate) effective: &'a mut u64,
}

impl<P: Protocol> Hand<'_, P> {
    /// Has the real component certify a body, whatever it says.
    pub fn certify(&mut self, body: Body<P>) -> Option<Message<P>> {
        self.puppet.certify_extra(body)
    }

    /// Has the real component certify a body by another counter, at the place of `like`.
    pub fn certify_beside(&mut self, counter: CounterId, like: &Ui, body: Body<P>) -> Option<Message<P>> {
        self.puppet.certify_beside(counter, like, body)
    }

    /// Has the component that takes the place of the replica's certify a body, in the view that a value names.
    pub fn certify_as_heir(&mut self, at: CounterValue, body: Body<P>) -> Option<Message<P>> {
        self.heir.certify(P::counters()[0], at, body)
    }

    /// Asks the logs of the real component.
    ///
    /// # Errors
    /// As the component refuses; also where it has no logs.
    pub fn logs(&mut self, operations: &[Operation]) -> Logged {
        self.logs.as_mut().map_or(Err(LogRefusal::Halted), |logs| logs.ask(operations))
    }

    /// Signs a body with the host's key.
    pub fn sign(&self, body: Body<P>) -> Message<P> {
        self.puppet.sign(body)
    }

    /// Every message that the real component certified, in order.
    #[must_use]
    pub fn certified(&self) -> &[Message<P>] {
        self.puppet.all()
    }

    /// Sends a message on, as a correct replica would.
    pub fn send(&mut self, to: ReplicaId, message: PeerMessage<Message<P>>) {
        self.acts.push(Act::Peer(to, message, 0));
    }

    /// Sends later than a correct replica would.
    pub fn send_late(&mut self, to: ReplicaId, message: PeerMessage<Message<P>>, after: u64) {
        self.acted();
        self.acts.push(Act::Peer(to, message, after));
    }

    /// Sends to one host of another faulty replica.
    pub fn send_face(&mut self, to: ReplicaId, face: usize, message: PeerMessage<Message<P>>) {
        self.acts.push(Act::Face(to, face, message));
    }

    /// Sends what a correct replica would not.
    pub fn send_evil(&mut self, to: ReplicaId, message: PeerMessage<Message<P>>) {
        self.acted();
        self.acts.push(Act::Peer(to, message, 0));
    }

    /// Sends to a client, as a correct replica would.
    pub fn client(&mut self, message: ToClient) {
        self.acts.push(Act::Client(message, 0));
    }

    /// Tells a client what a correct replica would not.
    pub fn client_evil(&mut self, message: ToClient) {
        self.acted();
        self.acts.push(Act::Client(message, 0));
    }

    /// Keeps a clone of a host's state unless something is under way there: then the last one stays.
    pub fn save_at_rest(&mut self, host: usize) {
        self.acts.push(Act::SaveAtRest(host));
    }

    /// Puts a host back to its kept clone as soon as nothing is under way there.
    pub fn restore_at_rest(&mut self, host: usize) {
        self.acted();
        self.acts.push(Act::RestoreAtRest(host));
    }

    /// Counts an action that a correct replica would not have taken.
    pub fn acted(&mut self) {
        *self.effective += 1;
    }

    /// The other replicas.
    #[must_use]
    pub fn others(&self) -> Vec<ReplicaId> {
        self.group.all().filter(|replica| *replica != self.me).collect()
    }

    /// Whether the colluders let a replica hear them now.
    #[must_use]
    pub fn in_audience(&self, replica: ReplicaId) -> bool {
        (self.pact.audience | self.pact.members) & (1 << replica.0) != 0
    }
}

/// A faulty replica's behaviour. Every method's default is that of a correct replica.
pub trait Strategy<P: Protocol> {
    /// The name, for traces.
    fn name(&self) -> &'static str;
    /// How many hosts play the replica.
    fn hosts(&self) -> usize {
        1
    }
    /// The bodies to certify in the place of one that a host wants certified; the first stands for the
    /// host's own. More than one inserts messages, none is not possible: the value is spent.
    fn certify(&mut self, _hand: &mut Hand<'_, P>, _host: usize, body: Body<P>) -> Body<P> {
        body
    }
    /// A message of a host on its way to a replica.
    fn send(
        &mut self,
        hand: &mut Hand<'_, P>,
        _host: usize,
        to: ReplicaId,
        message: PeerMessage<Message<P>>,
    ) {
        hand.send(to, message);
    }
    /// A host's message to a client.
    fn client(&mut self, hand: &mut Hand<'_, P>, _host: usize, message: ToClient) {
        hand.client(message);
    }
    /// Whether a host may hear a message of a replica.
    fn hears(
        &mut self,
        _hand: &mut Hand<'_, P>,
        _host: usize,
        _from: ReplicaId,
        _message: &PeerMessage<Message<P>>,
    ) -> bool {
        true
    }
    /// Whether a host may hear a client.
    fn hears_client(&mut self, _hand: &mut Hand<'_, P>, _host: usize, _message: &ToReplica) -> bool {
        true
    }
    /// Whether it goes on when the faults stop: correct replicas must get along with it for ever.
    fn goes_on(&self) -> bool {
        false
    }
    /// Now and then.
    fn tick(&mut self, _hand: &mut Hand<'_, P>) {}
}

/// The most messages that an adversary remembers.
const MEMORY: usize = 128;

/// A faulty replica in the world.
pub struct Adversary<P: Protocol> {
    /// Its number.
    pub me: ReplicaId,
    /// Its behaviour.
    pub strategy: Box<dyn Strategy<P>>,
    /// Its nodes in the world: one per host.
    pub nodes: Vec<usize>,
    /// What it did that a correct replica would not have done.
    pub effective: u64,
    /// Whether it still follows its strategy; after the healing it does not.
    pub active: bool,
    /// Whether it says nothing at all.
    pub silent: bool,
    /// How far its component is on its way to be replaced.
    pub succession: Succession,
    pub(crate) puppet: Puppet<P>,
    /// The component that takes the place of the one behind its hosts.
    pub(crate) heir: Puppet<P>,
    /// The logs of its component, between its hosts.
    pub(crate) logs: Option<Pretender>,
    pub(crate) heard: VecDeque<(ReplicaId, PeerMessage<Message<P>>)>,
    pub(crate) rng: Rng,
    pub(crate) service: ServiceKind,
    pub(crate) pact: Rc<RefCell<Pact>>,
}

impl<P: Protocol> Adversary<P> {
    /// Remembers a message.
    pub fn hear(&mut self, from: ReplicaId, message: &PeerMessage<Message<P>>) {
        if self.heard.len() == MEMORY {
            self.heard.pop_front();
        }
        self.heard.push_back((from, message.clone()));
    }

    /// Runs one method of the strategy; what it does comes back.
    pub fn with<T>(
        &mut self,
        group: &Group,
        now: u64,
        run: impl FnOnce(&mut dyn Strategy<P>, &mut Hand<'_, P>) -> T,
    ) -> (T, Vec<Act<P>>) {
        let mut acts = Vec::new();
        let mut hand = Hand {
            me: self.me,
            group,
            now,
            rng: &mut self.rng,
            heard: &self.heard,
            pact: *self.pact.borrow(),
            service: self.service,
            succession: self.succession,
            puppet: &mut self.puppet,
            heir: &mut self.heir,
            logs: self.logs.as_mut(),
            acts: &mut acts,
            effective: &mut self.effective,
        };
        let answer = run(self.strategy.as_mut(), &mut hand);
        (answer, acts)
    }

    /// A host's message as the world must see it: certified by the real component, with the real
    /// messages inside. Nothing where the real component refuses.
    pub fn realise(
        &mut self,
        group: &Group,
        now: u64,
        host: usize,
        message: Message<P>,
    ) -> Option<Message<P>> {
        let Some((from, _)) = P::certified(&message).filter(|(from, _)| *from == self.me) else {
            return Some(self.puppet.relabel(host, message));
        };
        assert_eq!(from, self.me, "filtered just now");
        if let Some(known) = self.puppet.known(host, &message) {
            return Some(known);
        }
        let (_, body) = P::certified(&message).expect("looked at just now");
        let mut body = self.puppet.relabel_body(host, body);
        if self.active {
            let (changed, acts) =
                self.with(group, now, |strategy, hand| strategy.certify(hand, host, body.clone()));
            assert!(acts.is_empty(), "a strategy sends when it is asked to send");
            if changed != body {
                self.effective += 1;
                body = changed;
            }
        }
        self.puppet.certify_for(host, &message, body)
    }
}
