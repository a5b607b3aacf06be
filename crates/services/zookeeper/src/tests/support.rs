//! The service without an executor around it, spoken to in ZooKeeper's records.

use crate::acl::{Acl, Id, perms};
use crate::jute::{Input, Output};
use crate::message::{Answer, Attachment, Notice, Operation, Said, Tally};
use crate::proof::{Carrier, Password, key_of, prove};
use crate::{ZooKeeper, opcode};
use bytes::Bytes;
use troth_exec::{Application, MerkleMap, OpContext, State, StateView};
use troth_types::{ClientId, Digest, GroupId, Seq, Time, Wire};

/// What the service is.
pub struct World {
    pub service: ZooKeeper,
    pub map: MerkleMap,
    /// Microseconds.
    pub now: u64,
    seq: u64,
    events: Vec<(ClientId, Bytes)>,
}

/// A stat, as a client reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub created_zxid: i64,
    pub modified_zxid: i64,
    pub created: i64,
    pub modified: i64,
    pub version: i32,
    pub child_version: i32,
    pub acl_version: i32,
    pub owner: i64,
    pub length: i32,
    pub children: i32,
    pub children_zxid: i64,
}

impl Stat {
    pub fn read(input: &mut Input<'_>) -> Self {
        let mut long = || input.long().expect("a stat");
        let (created_zxid, modified_zxid, created, modified) = (long(), long(), long(), long());
        let mut int = || input.int().expect("a stat");
        let (version, child_version, acl_version) = (int(), int(), int());
        let owner = input.long().expect("a stat");
        let (length, children) = (input.int().expect("a stat"), input.int().expect("a stat"));
        let children_zxid = input.long().expect("a stat");
        Self {
            created_zxid,
            modified_zxid,
            created,
            modified,
            version,
            child_version,
            acl_version,
            owner,
            length,
            children,
            children_zxid,
        }
    }
}

pub const OPEN: i32 = perms::ALL;

pub fn put_acl(out: &mut Output, list: &[Acl]) {
    out.length(list.len());
    for acl in list {
        acl.write(out);
    }
}

pub fn world() -> Vec<Acl> {
    vec![Acl::world(OPEN)]
}

pub fn create(path: &str, data: &str, flags: i32) -> Bytes {
    create_for(path, data, &world(), flags)
}

pub fn create_for(path: &str, data: &str, list: &[Acl], flags: i32) -> Bytes {
    let mut out = Output::new();
    out.text(path).text(data);
    put_acl(&mut out, list);
    out.int(flags);
    out.finish()
}

pub fn versioned(path: &str, version: i32) -> Bytes {
    let mut out = Output::new();
    out.text(path).int(version);
    out.finish()
}

pub fn set(path: &str, data: &str, version: i32) -> Bytes {
    let mut out = Output::new();
    out.text(path).text(data).int(version);
    out.finish()
}

pub fn watching(path: &str, watch: bool) -> Bytes {
    let mut out = Output::new();
    out.text(path).boolean(watch);
    out.finish()
}

pub fn path(path: &str) -> Bytes {
    let mut out = Output::new();
    out.text(path);
    out.finish()
}

pub fn secret(gateway: u64) -> [u8; 16] {
    [u8::try_from(gateway).expect("few gateways"); 16]
}

/// To attach a session through a gateway whose client knows this password.
pub fn attaching(gateway: u64, session: i64, password: Password) -> Operation {
    let carrier = Carrier { group: GroupId::default(), gateway: ClientId(gateway) };
    let proof = prove(&password, carrier, session);
    Operation::Attach { session, proof, timeout: 10_000, who: Vec::new() }
}

/// Whose signs of life came too late.
pub fn over(answer: Answer) -> Vec<Attachment> {
    match answer {
        Answer::Heard { over, .. } => over,
        other => panic!("signs of life were answered with {other:?}"),
    }
}

impl World {
    pub fn new() -> Self {
        Self::of(ZooKeeper::default())
    }

    pub fn of(service: ZooKeeper) -> Self {
        Self {
            service,
            map: MerkleMap::with_order(b""),
            now: 1_700_000_000_000_000,
            seq: 0,
            events: Vec::new(),
        }
    }

    pub fn raw(&mut self, gateway: u64, operation: &Bytes) -> Answer {
        self.seq += 1;
        let (seq, now) = (Seq(self.seq), Time(self.now));
        let mut cx = OpContext::new(ClientId(gateway), 1, seq, now, Digest::ZERO, &mut self.events);
        let result = self.service.execute(&mut State::new(&mut self.map), &mut cx, operation);
        Answer::from_wire(&result).expect("answers decode")
    }

    pub fn run(&mut self, gateway: u64, operation: &Operation) -> Answer {
        self.run_said(gateway, self.now, operation)
    }

    /// What is said at this time, microseconds.
    pub fn run_said(&mut self, gateway: u64, when: u64, operation: &Operation) -> Answer {
        self.raw(gateway, &Said::wire(Time(when), &operation.to_wire()))
    }

    /// These give signs of life; those of them that are over.
    pub fn touch(&mut self, gateway: u64, touched: Vec<Attachment>) -> Vec<Attachment> {
        over(self.run(gateway, &Operation::Touch(touched)))
    }

    /// What there is, as a gateway is told.
    pub fn tally(&mut self) -> Tally {
        match self.run(1, &Operation::Touch(Vec::new())) {
            Answer::Heard { over, tally } if over.is_empty() => tally,
            other => panic!("nobody's signs of life were answered with {other:?}"),
        }
    }

    pub fn open(&mut self, gateway: u64) -> Attachment {
        self.open_as(gateway, Vec::new())
    }

    pub fn open_as(&mut self, gateway: u64, who: Vec<Id>) -> Attachment {
        let key = key_of(&secret(gateway));
        match self.run(gateway, &Operation::Open { timeout: 10_000, key, who }) {
            Answer::Attached { at, timeout } => {
                assert_eq!(timeout, 10_000);
                at
            }
            other => panic!("opening was answered with {other:?}"),
        }
    }

    /// Error and record of the answer to a request.
    pub fn ask(&mut self, gateway: u64, at: Attachment, code: i32, body: Bytes) -> (i32, Bytes) {
        match self.run(gateway, &Operation::Request { at, code, body }) {
            Answer::Reply { error, body, .. } => (error, body),
            other => panic!("a request was answered with {other:?}"),
        }
    }

    /// The record of the answer to a request that must be well.
    pub fn well(&mut self, at: Attachment, code: i32, body: Bytes) -> Bytes {
        let gateway = self.gateway(at);
        let (error, answer) = self.ask(gateway, at, code, body);
        assert_eq!(error, 0, "operation {code}");
        answer
    }

    /// The error of the answer to one that must not.
    pub fn ill(&mut self, at: Attachment, code: i32, body: Bytes) -> i32 {
        let gateway = self.gateway(at);
        let (error, answer) = self.ask(gateway, at, code, body);
        assert!(error != 0 && answer.is_empty(), "operation {code} answered {error} and {answer:?}");
        error
    }

    fn gateway(&self, at: Attachment) -> u64 {
        let view = StateView::new(&self.map);
        crate::sessions::Session::find(&mut &view, at.session).map_or(1, |session| session.carrier.gateway.0)
    }

    /// The answer to a read, which is the same in the order and outside it.
    pub fn read(&mut self, at: Attachment, code: i32, body: Bytes) -> Result<Bytes, i32> {
        let gateway = self.gateway(at);
        let (error, answer) = self.ask(gateway, at, code, body.clone());
        let before = self.map.tree_now().digest();
        let query = Said::wire(Time(self.now), &Operation::Request { at, code, body }.to_wire());
        let queried = self.service.query(&StateView::new(&self.map), ClientId(gateway), &query);
        assert_eq!(self.map.tree_now().digest(), before, "a read changes nothing");
        let Answer::Reply { error: other, body, .. } = Answer::from_wire(&queried).expect("answers decode")
        else {
            panic!("a read was answered with something else");
        };
        assert_eq!((error, &answer), (other, &body), "a read is the same ordered and as a query");
        if error == 0 { Ok(answer) } else { Err(error) }
    }

    pub fn create(&mut self, at: Attachment, name: &str, data: &str, flags: i32) -> String {
        let answer = self.well(at, opcode::CREATE, create(name, data, flags));
        Input::new(&answer).text().expect("a path").expect("a path")
    }

    pub fn get(&mut self, at: Attachment, name: &str) -> Result<(Bytes, Stat), i32> {
        let answer = self.read(at, opcode::GET_DATA, watching(name, false))?;
        let mut input = Input::new(&answer);
        let data = input.buffer().expect("data").expect("data");
        Ok((data, Stat::read(&mut input)))
    }

    pub fn stat(&mut self, at: Attachment, name: &str) -> Result<Stat, i32> {
        let answer = self.read(at, opcode::EXISTS, watching(name, false))?;
        Ok(Stat::read(&mut Input::new(&answer)))
    }

    pub fn children(&mut self, at: Attachment, name: &str) -> Vec<String> {
        let answer = self.read(at, opcode::GET_CHILDREN, watching(name, false)).expect("children");
        let mut input = Input::new(&answer);
        let names = input.vector(4, |input| Ok(input.text()?.expect("a name")));
        names.expect("names").expect("names")
    }

    /// Lets time pass, and what is due happen.
    pub fn pass(&mut self, millis: u64) {
        let until = self.now + millis * 1000;
        while let Some(due) = self.service.next_deadline(&StateView::new(&self.map)) {
            if due.0 > until {
                break;
            }
            self.now = self.now.max(due.0);
            self.deadline();
            let next = self.service.next_deadline(&StateView::new(&self.map));
            assert!(next.is_none_or(|next| next.0 > self.now), "all that is due is done");
        }
        self.now = until;
    }

    pub fn deadline(&mut self) {
        self.seq += 1;
        let (seq, now) = (Seq(self.seq), Time(self.now));
        let mut cx = OpContext::new(ClientId(0), 0, seq, now, Digest::ZERO, &mut self.events);
        self.service.on_deadline(&mut State::new(&mut self.map), &mut cx);
    }

    /// What was told since the last call: to which gateway, and what.
    pub fn told(&mut self) -> Vec<(u64, Notice)> {
        let decode = |payload: &Bytes| Notice::from_wire(payload).expect("notices decode");
        std::mem::take(&mut self.events).iter().map(|(to, payload)| (to.0, decode(payload))).collect()
    }

    /// The same, watches only: whose, what happened, and where.
    pub fn fired(&mut self) -> Vec<(i64, i32, String)> {
        let watch = |(_, notice)| match notice {
            Notice::Fired { at, kind, path, .. } => Some((at.session, kind, path)),
            Notice::Over(_) => None,
        };
        self.told().into_iter().filter_map(watch).collect()
    }

    /// All that is kept can be read again, by every replica that goes on from here.
    pub fn decodes(&self) {
        let view = StateView::new(&self.map);
        let all = |letter: u8| {
            view.scan(&[letter])
                .take_while(move |(key, _)| key.first() == Some(&letter))
                .map(|(_, value)| value)
        };
        for node in all(b'n') {
            crate::node::Node::from_wire(&node).expect("a node");
        }
        for session in all(b's') {
            crate::sessions::Kept::from_wire(&session).expect("a session");
        }
        for counters in all(b'c') {
            crate::counters::Counters::from_wire(&counters).expect("what is counted");
        }
    }

    /// Entries of the state whose keys begin with this letter.
    pub fn entries(&self, letter: u8) -> usize {
        crate::store::beginning(&StateView::new(&self.map), &[letter]).count()
    }
}
