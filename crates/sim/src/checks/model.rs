//! What a sequential service answers and tells at every place of the order, with a client table: what replicas must compute.

use super::store::Store;
use crate::service::{ServiceKind, coordination};
use crate::zookeeper::{self, Turn};
use bytes::Bytes;
use std::collections::BTreeMap;
use troth_core::Ordered;
use troth_exec::OpContext;
use troth_types::{ClientId, Digest, OPERATOR, Seq, Time, Wire};

/// One executed frame as the model has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// Where it took effect.
    pub seq: Seq,
    /// Its operations.
    pub operations: Vec<Bytes>,
    /// Their results.
    pub results: Vec<Bytes>,
    /// The client's events up to and including this frame's.
    pub events_up_to: u64,
}

/// The service itself.
#[derive(Debug)]
enum Reference {
    Kv(Store),
    ZooKeeper(Box<zookeeper::Model>),
}

/// The model after a prefix of the order.
#[derive(Debug)]
pub struct Model {
    /// The last batch applied.
    pub seq: Seq,
    time: Time,
    window: u64,
    reference: Reference,
    slots: BTreeMap<(ClientId, u64), u64>,
    /// Every frame that took effect.
    pub done: BTreeMap<(ClientId, u64), Done>,
    /// How many frames took effect at each number.
    pub effects: BTreeMap<Seq, usize>,
    /// Every event, with the batch that caused it, by client and index - 1.
    pub events: BTreeMap<ClientId, Vec<(Seq, Bytes)>>,
    /// The events of each batch in their order: receiver and index.
    pub caused: BTreeMap<Seq, Vec<(ClientId, u64)>>,
    /// The coordination service after each batch, the initial one first.
    states: Vec<zookeeper::Model>,
    /// When clients sent their frames first, virtual time: of those that are not executed yet.
    sent: BTreeMap<(ClientId, u64), u64>,
}

impl Default for Model {
    fn default() -> Self {
        Self::new(0, ServiceKind::default())
    }
}

impl Model {
    /// The service in the beginning, in a group with this client window.
    #[must_use]
    pub fn new(window: u64, service: ServiceKind) -> Self {
        let (reference, states) = match service {
            ServiceKind::Kv => (Reference::Kv(Store::default()), Vec::new()),
            ServiceKind::ZooKeeper => {
                let model = zookeeper::Model::new(coordination());
                (Reference::ZooKeeper(Box::new(model.clone())), vec![model])
            }
        };
        Self {
            seq: Seq(0),
            time: Time(0),
            window,
            reference,
            slots: BTreeMap::new(),
            done: BTreeMap::new(),
            effects: BTreeMap::new(),
            events: BTreeMap::new(),
            caused: BTreeMap::new(),
            states,
            sent: BTreeMap::new(),
        }
    }

    /// A client sends a frame, at this virtual time.
    pub fn sends(&mut self, client: ClientId, number: u64, now: u64) {
        self.sent.entry((client, number)).or_insert(now);
    }

    /// Applies the next batch, which nobody has executed before this virtual time.
    pub fn apply(&mut self, ordered: &Ordered, now: u64) {
        self.seq = Seq(self.seq.0 + 1);
        self.time = self.time.max(ordered.time);
        if let Reference::ZooKeeper(model) = &mut self.reference {
            let mut told = Vec::new();
            model.pass(self.time.0, now, &mut told);
            self.tell(told.into_iter().map(|(to, notice)| (to, notice.to_wire())));
        }
        for frame in &ordered.frames {
            let slot = self.slots.entry((frame.client(), frame.number() % self.window)).or_default();
            if frame.number() <= *slot {
                continue;
            }
            *slot = frame.number();
            let sent = self.sent.remove(&(frame.client(), frame.number())).unwrap_or(now);
            let (mut told, mut results) = (Vec::new(), Vec::new());
            for (index, operation) in frame.operations().iter().enumerate() {
                let place = (frame.client(), frame.number(), index);
                results.push(self.run(place, (ordered.seed, sent), &operation, &mut told));
            }
            self.tell(told);
            let events_up_to = self.events.get(&frame.client()).map_or(0, |events| events.len() as u64);
            let operations = frame.operations().iter().collect();
            let done = Done { seq: self.seq, operations, results, events_up_to };
            *self.effects.entry(self.seq).or_default() += 1;
            self.done.insert((frame.client(), frame.number()), done);
        }
        if let Reference::ZooKeeper(model) = &self.reference {
            self.states.push(zookeeper::Model::clone(model));
        }
    }

    fn run(
        &mut self,
        (client, number, index): (ClientId, u64, usize),
        (seed, sent): (Digest, u64),
        operation: &Bytes,
        told: &mut Vec<(ClientId, Bytes)>,
    ) -> Bytes {
        // What the operator changes is no matter of the service.
        if client == OPERATOR {
            return Bytes::new();
        }
        match &mut self.reference {
            Reference::Kv(store) => store.execute(client, operation, told),
            Reference::ZooKeeper(model) => {
                let mut none = Vec::new();
                let mut cx = OpContext::new(client, number, self.seq, self.time, seed, &mut none);
                cx.index = index;
                let turn = Turn { client, now: self.time.0, sent, unique: &cx.unique() };
                let mut notices = Vec::new();
                let result = model.execute(turn, operation, &mut notices);
                told.extend(notices.into_iter().map(|(to, notice)| (to, notice.to_wire())));
                result
            }
        }
    }

    fn tell(&mut self, told: impl IntoIterator<Item = (ClientId, Bytes)>) {
        for (client, payload) in told {
            let events = self.events.entry(client).or_default();
            events.push((self.seq, payload));
            self.caused.entry(self.seq).or_default().push((client, events.len() as u64));
        }
    }

    /// How many events a client has by this batch.
    #[must_use]
    pub fn events_by(&self, client: ClientId, seq: Seq) -> u64 {
        let events = self.events.get(&client).map_or(&[][..], Vec::as_slice);
        events.partition_point(|(caused, _)| *caused <= seq) as u64
    }

    /// The coordination service after this batch, where that is what the group replicates.
    #[must_use]
    pub fn coordination(&self, seq: Seq) -> Option<&zookeeper::Model> {
        self.states.get(usize::try_from(seq.0).ok()?)
    }

    /// What must hold of the service in the model, whatever was asked.
    ///
    /// # Errors
    /// What does not.
    pub fn look_over(&self) -> Result<(), String> {
        match &self.reference {
            Reference::Kv(_) => Ok(()),
            Reference::ZooKeeper(model) => model.look_over(),
        }
    }
}
