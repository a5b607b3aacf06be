//! A store without an executor around it.

use crate::{Answer, Change, Kv, Operation};
use bytes::Bytes;
use troth_exec::{Application, MerkleMap, OpContext, State, StateView};
use troth_types::{ClientId, Digest, Seq, Time, Wire};

pub struct Store {
    pub kv: Kv,
    pub map: MerkleMap,
    pub events: Vec<(ClientId, Bytes)>,
}

pub fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

impl Store {
    pub fn new() -> Self {
        Self { kv: Kv::default(), map: MerkleMap::with_order(b""), events: Vec::new() }
    }

    pub fn raw(&mut self, client: u64, operation: &Bytes) -> Answer {
        let mut cx = OpContext::new(ClientId(client), 1, Seq(1), Time(1), Digest::ZERO, &mut self.events);
        let result = self.kv.execute(&mut State::new(&mut self.map), &mut cx, operation);
        Answer::from_wire(&result).expect("answers decode")
    }

    pub fn run(&mut self, client: u64, operation: &Operation) -> Answer {
        self.raw(client, &operation.to_wire())
    }

    pub fn query(&self, operation: &Operation) -> Answer {
        let before = self.map.tree_now().digest();
        let result = self.kv.query(&StateView::new(&self.map), ClientId(1), &operation.to_wire());
        assert_eq!(self.map.tree_now().digest(), before, "a read changes nothing");
        Answer::from_wire(&result).expect("answers decode")
    }

    pub fn put(&mut self, key: &'static str, value: &'static str) -> u64 {
        match self.run(1, &Operation::Put { key: bytes(key), value: bytes(value) }) {
            Answer::Written { version } => version,
            other => panic!("a put was answered with {other:?}"),
        }
    }

    pub fn delete(&mut self, key: &'static str) -> Answer {
        self.run(1, &Operation::Delete { key: bytes(key) })
    }

    pub fn get(&mut self, key: &'static str) -> Answer {
        let operation = Operation::Get { key: bytes(key) };
        let answer = self.run(1, &operation);
        assert_eq!(answer, self.query(&operation), "a get is the same ordered and as a read");
        answer
    }

    /// The changes since the last call, by receiver.
    pub fn changes(&mut self) -> Vec<(u64, Change)> {
        let decode = |payload: &Bytes| Change::from_wire(payload).expect("changes decode");
        self.events.drain(..).map(|(client, payload)| (client.0, decode(&payload))).collect()
    }
}
