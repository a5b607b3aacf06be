//! The coordination service beside its sequential model: thousands of operations, sensible and not, with time passing, and
//! whole seeds of the simulated world.

use crate::checks::{FastRead, FastReads, ReplyIntegrity};
use crate::report::{COORDINATION, MIN_ANSWERS, Report};
use crate::service::coordination;
use crate::shrink::run;
use crate::zookeeper::{Model, Talk, Told, Town, Turn, audit, nuisance};
use crate::{Options, Overrides, Protocol, Rng, ServiceKind, minbft::MinBftWorld, pbft::PbftWorld};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_auth::{ModelSigner, Signer, Verified};
use troth_core::Ordered;
use troth_exec::{Application, MerkleMap, OpContext, State, StateView};
use troth_types::{ClientId, Digest, FrameDraft, GroupId, Seq, Time, Wire};
use troth_zookeeper::acl::Id;
use troth_zookeeper::events::MAX_MISSED;
use troth_zookeeper::jute::{Input, Output};
use troth_zookeeper::{
    Answer, Attachment, Carrier, Code, Operation, Password, Said, ZooKeeper, key_of, opcode, prove,
};

/// The service and its model, one operation after the other.
struct Beside {
    service: ZooKeeper,
    map: MerkleMap,
    model: Model,
    /// Microseconds.
    now: u64,
    seq: u64,
    told: usize,
}

impl Beside {
    fn new(service: ZooKeeper) -> Self {
        let model = Model::new(service.clone());
        let map = MerkleMap::with_order(b"");
        Self { service, map, model, now: 1_700_000_000_000_000, seq: 0, told: 0 }
    }

    fn same_events(&mut self, events: &[(ClientId, Bytes)], told: Told) {
        let told: Vec<(ClientId, Bytes)> =
            told.into_iter().map(|(to, notice)| (to, notice.to_wire())).collect();
        assert_eq!(events, told, "at {}", self.seq);
        self.told += told.len();
    }

    /// As the executor does before a batch.
    fn pass(&mut self, micros: u64) {
        self.now += micros;
        let (service, view) = (&self.service, StateView::new(&self.map));
        let due = service.next_deadline(&view);
        assert_eq!(due.map(|due| due.0), self.model.next_deadline(), "the next deadline");
        let mut told = Vec::new();
        self.model.pass(self.now, self.now, &mut told);
        let mut events = Vec::new();
        if due.is_some_and(|due| due.0 <= self.now) {
            let (seq, now) = (Seq(self.seq), Time(self.now));
            let mut cx = OpContext::new(ClientId(0), 0, seq, now, Digest::ZERO, &mut events);
            self.service.on_deadline(&mut State::new(&mut self.map), &mut cx);
        }
        self.same_events(&events, told);
    }

    fn execute(&mut self, client: ClientId, operation: &Bytes) -> Answer {
        self.execute_said(client, self.now, operation)
    }

    /// Of what a gateway says at this time by its clock.
    fn execute_said(&mut self, client: ClientId, when: u64, operation: &Bytes) -> Answer {
        let operation = &Said::wire(Time(when), operation);
        self.seq += 1;
        let (seq, now) = (Seq(self.seq), Time(self.now));
        let mut events = Vec::new();
        let mut cx = OpContext::new(client, 1, seq, now, Digest::ZERO, &mut events);
        let unique = cx.unique();
        let answer = self.service.execute(&mut State::new(&mut self.map), &mut cx, operation);
        let mut told = Vec::new();
        let turn = Turn { client, now: self.now, sent: self.now, unique: &unique };
        let expected = self.model.execute(turn, operation, &mut told);
        let decoded = Answer::from_wire(&answer).expect("answers decode");
        assert_eq!(
            answer,
            expected,
            "operation {}: {:?} is answered {decoded:?}, by the model {:?}",
            self.seq,
            Said::from_wire(operation),
            Answer::from_wire(&expected)
        );
        self.same_events(&events, told);
        self.model.look_over().expect("the model");
        decoded
    }

    fn query(&self, client: ClientId, operation: &Bytes) {
        let operation = &Said::wire(Time(u64::MAX), operation);
        let answer = self.service.query(&StateView::new(&self.map), client, operation);
        assert_eq!(answer, self.model.query(client, operation), "{:?}", Said::from_wire(operation));
    }
}

/// Clients of four gateways, of which one knows nobody's passwords.
struct Crowd {
    rng: Rng,
    talks: Vec<Talk>,
    sessions: Vec<(u64, Attachment, Password)>,
    town: Town,
    opened: u8,
}

impl Crowd {
    fn operation(&mut self) -> (u64, Bytes) {
        let rng = &mut self.rng;
        let gateway = rng.range(1, 4);
        let talk = &mut self.talks[gateway as usize - 1];
        if gateway == 4 && rng.one_in(3) {
            return (4, nuisance(rng, ClientId(4), &self.town, talk));
        }
        let timeout = rng.pick(&[0, 1_000, 3_000, 10_000, 60_000]);
        if self.sessions.is_empty() || rng.one_in(25) {
            self.opened = self.opened.wrapping_add(1);
            let key = key_of(&[self.opened; 16]);
            let who = talk.who(rng);
            return (gateway, Operation::Open { timeout, key, who }.to_wire());
        }
        let (owner, at, password) = rng.pick(&self.sessions);
        let operation = match rng.below(40) {
            0 => {
                // Mostly for where it is sent to.
                let carrier = Carrier { group: coordination().group, gateway: ClientId(gateway) };
                let proof = prove(&password, carrier, at.session);
                let operation = Operation::Attach { session: at.session, proof, timeout, who: talk.who(rng) };
                return (if rng.one_in(4) { owner } else { gateway }, operation.to_wire());
            }
            1 => Operation::Touch(vec![at, Attachment { number: 0, ..at }]),
            2 => Operation::Identify { at, id: Id::new(rng.pick(&["sasl", "world"]), "me") },
            _ => {
                let seen = rng.below(self.sessions.len() as u64 * 40) as i64;
                let (code, body) = self.talks[owner as usize - 1].request(rng, seen);
                Operation::Request { at, code, body }
            }
        };
        // Mostly through its own gateway.
        let through = if rng.one_in(12) { gateway } else { owner };
        (through, operation.to_wire())
    }

    fn learn(&mut self, gateway: u64, operation: &Bytes, answer: &Answer) {
        if let (Ok(Operation::Request { at, code, .. }), Answer::Reply { error, body, .. }) =
            (Operation::from_wire(operation), answer)
        {
            if *error == Code::SessionExpired.number() || (code == opcode::CLOSE_SESSION && *error == 0) {
                self.sessions.retain(|(_, known, _)| known.session != at.session);
            } else if code == opcode::CREATE && *error == 0 {
                let path = Input::new(body).text().expect("a path").expect("a path");
                self.talks[gateway as usize - 1].remember(path);
            }
        }
        let Answer::Attached { at, .. } = answer else { return };
        let before = self.sessions.iter().find(|(_, known, _)| known.session == at.session);
        let password = before.map_or([self.opened; 16], |(_, _, password)| *password);
        self.sessions.retain(|(_, known, _)| known.session != at.session);
        if self.sessions.len() > 9 {
            self.sessions.remove(0);
        }
        self.sessions.push((gateway, *at, password));
    }
}

fn compare(seed: u64, steps: u64) -> (BTreeMap<&'static str, u64>, usize) {
    let service =
        ZooKeeper { timeouts: (1_000, 30_000), config: Bytes::from_static(b"here"), ..coordination() };
    let mut beside = Beside::new(service);
    let mut crowd = Crowd {
        rng: Rng::stream(seed, "coordination", 0),
        talks: (1..=4).map(|gateway| Talk::new(gateway, 3)).collect(),
        sessions: Vec::new(),
        town: Town::default(),
        opened: 0,
    };
    for step in 0..steps {
        let pause = match crowd.rng.below(200) {
            0 => crowd.rng.below(4_000_000),
            1 => crowd.rng.below(40_000_000),
            2 => 61_000_000,
            3..60 => crowd.rng.below(200_000),
            _ => crowd.rng.below(2_000),
        };
        // Mostly what is due happens when it is; where the service stands still, later.
        while let Some(due) = beside.model.next_deadline().filter(|due| *due <= beside.now + pause) {
            if crowd.rng.one_in(5) {
                break;
            }
            beside.pass(due.saturating_sub(beside.now));
        }
        beside.pass(pause);
        let (gateway, operation) = crowd.operation();
        let (off, far) = (crowd.rng.below(4_000_000), crowd.rng.one_in(12));
        let when = if far { beside.now + off } else { beside.now - off };
        let answer = beside.execute_said(ClientId(gateway), when, &operation);
        crowd.learn(gateway, &operation, &answer);
        beside.query(ClientId(gateway), &operation);
        if step % 50 == 0 {
            let state = StateView::new(&beside.map);
            audit(&beside.service, &state, &beside.model).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        }
    }
    (beside.model.counts, beside.told)
}

#[test]
fn the_service_is_what_its_model_is() {
    let (mut counts, mut told) = (BTreeMap::<&str, u64>::new(), 0);
    for seed in 0..12 {
        println!("seed {seed}");
        let (own, events) = compare(seed, 1_500);
        own.into_iter().for_each(|(what, count)| *counts.entry(what).or_default() += count);
        told += events;
    }
    println!("{told} events, {counts:?}");
    for what in [
        "sessions expired",
        "sessions closed",
        "sessions attached elsewhere",
        "standstills",
        "nodes that went by themselves",
        "nodes that went with their session",
        "transactions",
        "transactions undone",
        "watch events",
        "quotas",
        "said ahead of the agreed time",
    ] {
        assert!(counts.get(what).is_some_and(|count| *count >= 10), "{what}: {counts:?}");
    }
    assert!(counts["answers"] > counts["refusals"] / 3, "{counts:?}");
}

/// The record of what one step of a transaction does so many times.
fn times(count: usize, code: i32, step: impl Fn(&mut Output)) -> Bytes {
    let mut out = Output::new();
    for _ in 0..count {
        out.int(code).boolean(false).int(-1);
        step(&mut out);
    }
    out.int(-1).boolean(true).int(-1);
    out.finish()
}

#[test]
fn what_one_operation_may_cost_the_model_knows_too() {
    let mut beside = Beside::new(coordination());
    let open = Operation::Open { timeout: 30_000, key: key_of(&[7; 16]), who: Vec::new() }.to_wire();
    let attached = |beside: &mut Beside, gateway| match beside.execute(ClientId(gateway), &open) {
        Answer::Attached { at, .. } => at,
        other => panic!("it opens: {other:?}"),
    };
    let ask = |beside: &mut Beside, gateway, at, code, body: Bytes| {
        let operation = Operation::Request { at, code, body }.to_wire();
        match beside.execute(ClientId(gateway), &operation) {
            Answer::Reply { error, .. } => error,
            other => panic!("a request is answered: {other:?}"),
        }
    };
    let long = format!("/{}", "x".repeat(3_900));
    let at = attached(&mut beside, 1);
    let create = |path: &str, data: &[u8]| {
        let mut out = Output::new();
        out.text(path).buffer(data).length(1).int(31).text("world").text("anyone").int(0);
        out.finish()
    };
    for (path, data) in [(&*long, 1), ("/a", 1_000_000), ("/b", 1), ("/zookeeper/quota/a", 1)] {
        assert_eq!(ask(&mut beside, 1, at, opcode::CREATE, create(path, &vec![0; data])), 0);
    }
    let watching = |path: &str, mode| {
        let mut out = Output::new();
        out.text(path).int(mode);
        out.finish()
    };
    // Too many events for a session, and for all of them; then the same again, for those who are still there.
    let sessions: Vec<Attachment> = (0..12).map(|_| attached(&mut beside, 2)).collect();
    for (number, session) in sessions.iter().enumerate() {
        let (path, mode) = (if number % 3 == 0 { "/" } else { &*long }, i32::from(number % 3 == 0));
        assert_eq!(ask(&mut beside, 2, *session, opcode::ADD_WATCH, watching(path, mode)), 0);
    }
    for (count, path) in [(300, &*long), (400, &*long), (512, "/b"), (513, "/b"), (400, &*long), (20, &*long)]
    {
        let set = times(count, opcode::SET_DATA, |out| {
            out.text(path).text("y").int(-1);
        });
        assert_eq!(ask(&mut beside, 1, at, opcode::MULTI, set), 0);
    }
    assert!(beside.model.counts["attachments ended for their events"] >= 4);
    assert!(beside.model.counts["transactions undone"] >= 1);
    // What was missed: once each, and only so much.
    for distinct in [1, 512, MAX_MISSED, MAX_MISSED + 1] {
        let at = attached(&mut beside, 3);
        let mut out = Output::new();
        out.long(0).length(20_000);
        (0..20_000).for_each(|number| {
            out.text(&format!("/gone{}", number % distinct));
        });
        out.length(0).length(0);
        assert_eq!(ask(&mut beside, 3, at, opcode::SET_WATCHES, out.finish()), 0);
    }
    let reads = |count| {
        times(count, opcode::GET_DATA, |out| {
            out.text("/a").boolean(false);
        })
    };
    for (count, expected) in [(2, 0), (3, Code::MarshallingError.number())] {
        assert_eq!(ask(&mut beside, 1, at, opcode::MULTI_READ, reads(count)), expected);
    }
    let mut out = Output::new();
    out.int(0).text("digest").text(&long.repeat(2));
    assert_eq!(ask(&mut beside, 1, at, opcode::AUTH, out.finish()), Code::AuthFailed.number());
    // One quota for each transaction.
    let mut begins = Vec::new();
    let mut undo = Output::new();
    undo.text("/zookeeper/quota/a/zookeeper_stats").int(-1);
    let stats = create("/zookeeper/quota/a/zookeeper_stats", b"");
    for (code, body) in [(opcode::CREATE, &stats), (opcode::DELETE, &undo.finish()), (opcode::CREATE, &stats)]
    {
        let mut head = Output::new();
        head.int(code).boolean(false).int(-1);
        begins.extend_from_slice(&[head.finish(), body.clone()].concat());
    }
    let mut last = Output::new();
    last.int(-1).boolean(true).int(-1);
    begins.extend_from_slice(&last.finish());
    let undone = beside.model.counts["transactions undone"];
    assert_eq!(ask(&mut beside, 1, at, opcode::MULTI, Bytes::from(begins)), 0);
    assert_eq!(beside.model.counts["transactions undone"], undone + 1);
}

#[test]
fn seeds_of_the_coordination_service_hold() {
    let overrides = Overrides { service: ServiceKind::ZooKeeper, ..Overrides::default() };
    for (f, seeds) in [(1, 50), (2, 12)] {
        let mut report = Report::default();
        for seed in 0..seeds {
            let outcome = run::<MinBftWorld>(seed, f, &overrides, 0);
            assert_eq!(outcome.violation, None, "f = {f}, seed {seed}");
            assert!(outcome.service["answers"] >= MIN_ANSWERS);
            report.add(seed, &outcome);
        }
        assert_eq!(report.vacuous_seed, None);
        assert_eq!(report.rarely_done(ServiceKind::ZooKeeper), None);
    }
}

#[test]
fn seeds_with_reads_that_need_only_be_recent_hold_and_show_the_past() {
    let service = ServiceKind::ZooKeeper;
    let overrides = Overrides { service, recent: true, ..Overrides::default() };
    let mut behind = 0;
    for (f, seeds) in [(1, 40), (2, 10)] {
        for seed in 0..seeds {
            for outcome in
                [run::<MinBftWorld>(seed, f, &overrides, 0), run::<PbftWorld>(seed, f, &overrides, 0)]
            {
                assert_eq!(outcome.violation, None, "f = {f}, seed {seed}");
                behind += outcome.service["reads behind"];
            }
        }
    }
    assert!(behind > 100, "only {behind} reads showed less than others had been shown");
}

/// A batch of one frame for each of these operations of a client.
fn batch(seq: u64, operations: &[Operation]) -> Ordered {
    let frame = |(at, operation): (usize, &Operation)| {
        let draft = FrameDraft {
            group: GroupId::default(),
            client: ClientId(1),
            number: 10 * seq + at as u64,
            events_seen: 0,
            operations: vec![Said::wire(Time(0), &operation.to_wire())],
        };
        let signature = ModelSigner::new(1).sign(&draft.signing_digest());
        Verified::made_here(Arc::new(draft.sign(signature)))
    };
    let frames = operations.iter().enumerate().map(frame).collect();
    Ordered { seq: Seq(seq), time: Time(1_000_000 * seq), seed: Digest::ZERO, frames }
}

#[test]
fn fast_reads_trip_on_what_was_never_so_and_on_what_is_no_longer_or_not_yet() {
    let mut replies = ReplyIntegrity::of(64, ServiceKind::ZooKeeper);
    let model = &mut replies.model;
    model.apply(&batch(1, &[Operation::Open { timeout: 3_000, key: key_of(&[1; 16]), who: Vec::new() }]), 0);
    let Ok(Answer::Attached { at, .. }) = Answer::from_wire(&model.done[&(ClientId(1), 10)].results[0])
    else {
        panic!("it opens")
    };
    let request = |code, body: Output| Operation::Request { at, code, body: body.finish() };
    let mut body = Output::new();
    body.text("/a").text("one").length(1).int(31).text("world").text("anyone").int(0);
    let create = request(opcode::CREATE, body);
    let mut body = Output::new();
    body.text("/a").boolean(true);
    let look = request(opcode::GET_DATA, body);
    let mut body = Output::new();
    body.text("/a").text("two").int(-1);
    let set = request(opcode::SET_DATA, body);
    model.apply(&batch(2, &[create, look]), 0);
    model.apply(&batch(3, &[set]), 0);
    model.apply(&batch(4, &[]), 0);
    let mut body = Output::new();
    body.text("/a").boolean(false);
    let read = Said::wire(Time(0), &request(opcode::GET_DATA, body).to_wire());
    let at_place = |seq| replies.model.coordination(Seq(seq)).expect("applied").query(ClientId(1), &read);
    let judge = |answer: Bytes, since, until, events| {
        let (client, operation) = (ClientId(1), read.clone());
        let read = FastRead { client, operation, answer, since: Seq(since), until: Seq(until), events };
        FastReads::default().answered(read, &replies)
    };
    assert_eq!(judge(at_place(2), 1, 3, 0), Ok(()));
    assert_eq!(judge(at_place(3), 2, 4, 1), Ok(()));
    assert!(judge(at_place(3), 2, 4, 0).is_err(), "the event comes first");
    assert!(judge(at_place(2), 3, 4, 1).is_err(), "somebody was shown what followed");
    assert!(judge(at_place(3), 1, 2, 1).is_err(), "no replica is that far");
    let invented = Answer::Reply { zxid: 2, error: 0, body: Bytes::from_static(b"lie") };
    assert!(judge(invented.to_wire(), 0, 4, 1).is_err());
    // What was shown to one client, the next read does not go behind.
    let mut reads = FastReads::default();
    let later = FastRead {
        client: ClientId(1),
        operation: read.clone(),
        answer: at_place(3),
        since: Seq(0),
        until: Seq(4),
        events: 1,
    };
    assert_eq!((reads.answered(later, &replies), reads.revealed()), (Ok(()), Seq(3)));
}

#[test]
fn a_run_in_which_too_little_happened_says_so() {
    let overrides = Overrides { service: ServiceKind::ZooKeeper, ..Overrides::default() };
    let outcome = run::<MinBftWorld>(1, 1, &overrides, 0);
    let of = |change: &dyn Fn(&mut BTreeMap<&'static str, u64>)| {
        let mut changed = outcome.clone();
        COORDINATION.iter().for_each(|what| *changed.service.entry(what).or_default() += 1);
        change(&mut changed.service);
        let mut report = Report::default();
        (0..50).for_each(|seed| report.add(seed, &changed));
        report
    };
    assert_eq!(of(&|_| {}).rarely_done(ServiceKind::ZooKeeper), None);
    let dull = of(&|service| {
        service.insert("watch events", 0);
    });
    let rare = dull.rarely_done(ServiceKind::ZooKeeper);
    assert!(rare.is_some_and(|why| why.starts_with("watch events")));
    let silent = of(&|service| {
        service.insert("answers", MIN_ANSWERS - 1);
    });
    assert_eq!(silent.vacuous_seed, Some(0));
}

#[test]
fn the_same_seed_gives_the_same_run_of_another_service() {
    let overrides = Overrides { service: ServiceKind::ZooKeeper, ..Overrides::default() };
    let shape = MinBftWorld::shape(1);
    assert_eq!(
        Options::draw(7, 1, shape, &overrides).faulty,
        Options::draw(7, 1, shape, &Overrides::default()).faulty
    );
    let hashes = [0, 1].map(|_| run::<MinBftWorld>(7, 1, &overrides, 0).hash);
    assert_eq!(hashes[0], hashes[1]);
    assert_ne!(hashes[0], run::<MinBftWorld>(7, 1, &Overrides::default(), 0).hash);
}
