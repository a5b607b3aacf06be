//! The coordination service: messages of gateways and requests of clients, which may be any bytes. Two of it that are given the
//! same stand the same, and what reads changes nothing.

use crate::bytes::Steps;
use crate::wire::{Decoder, hidden, of, one_of, seed};
use crate::{Bound, Target};
use bytes::Bytes;
use troth_exec::{Application, MerkleMap, OpContext, State, StateView};
use troth_types::{ClientId, Digest, GroupId, Seq, Time, Wire};
use troth_zookeeper::acl::Id;
use troth_zookeeper::jute::Output;
use troth_zookeeper::{
    Answer, Asked, Attachment, Carrier, Notice, Operation, Replied, Said, Tally, ZooKeeper, fuzzing, key_of,
    opcode, prove,
};

pub(super) const WIRE: Target = Target {
    name: "wire-zookeeper",
    run: |input| one_of(GROUP, input),
    seeds: wire_seeds,
    bound: Bound::DECODER,
    longest: 4096,
};

pub(super) const GROUP: &[Decoder] = &[
    of::<Said>(),
    of::<Operation>(),
    of::<Asked>(),
    of::<Answer>(),
    of::<Replied>(),
    of::<Notice>(),
    of::<Attachment>(),
    hidden(|| "troth_zookeeper::Id", fuzzing::id),
    hidden(|| "troth_zookeeper::Acl", fuzzing::acl),
    hidden(|| "troth_zookeeper::Node", fuzzing::node),
    hidden(|| "troth_zookeeper::Kept", fuzzing::session),
    hidden(|| "troth_zookeeper::Counters", fuzzing::counters),
    of::<Tally>(),
];

pub(super) const TARGET: Target = Target {
    name: "zookeeper",
    run,
    seeds,
    // Two services, and of each a few versions of pages.
    bound: Bound { fixed: 2 << 20, per_byte: 4096 },
    longest: 4096,
};

const AT: Attachment = Attachment { session: 7, number: 1 };
const PASSWORD: [u8; 16] = [5; 16];
const CARRIER: Carrier = Carrier { group: GroupId([0; 16]), gateway: ClientId(1) };

/// Requests that there are, each with a record.
fn requests() -> Vec<(i32, Bytes)> {
    let made = |fill: &dyn Fn(&mut Output)| {
        let mut out = Output::new();
        fill(&mut out);
        out.finish()
    };
    let open = |out: &mut Output| {
        out.length(1).int(31).text("world").text("anyone");
    };
    let create = |flags: i32| {
        made(&|out| {
            out.text("/a").buffer(b"data");
            open(out);
            out.int(flags);
        })
    };
    let multi = made(&|out| {
        out.int(opcode::CREATE).boolean(false).int(-1).text("/b").buffer(b"x");
        open(out);
        out.int(0)
            .int(opcode::DELETE)
            .boolean(false)
            .int(-1)
            .text("/b")
            .int(-1)
            .int(-1)
            .boolean(true)
            .int(-1);
    });
    vec![
        (opcode::CREATE, create(0)),
        (opcode::CREATE2, create(3)),
        (opcode::CREATE_CONTAINER, create(4)),
        (
            opcode::GET_DATA,
            made(&|out| {
                out.text("/a").boolean(true);
            }),
        ),
        (
            opcode::EXISTS,
            made(&|out| {
                out.text("/c").boolean(true);
            }),
        ),
        (
            opcode::GET_CHILDREN2,
            made(&|out| {
                out.text("/").boolean(false);
            }),
        ),
        (
            opcode::SET_DATA,
            made(&|out| {
                out.text("/a").buffer(b"new").int(-1);
            }),
        ),
        (
            opcode::DELETE,
            made(&|out| {
                out.text("/a").int(0);
            }),
        ),
        (opcode::MULTI, multi),
        (
            opcode::AUTH,
            made(&|out| {
                out.int(0).text("digest").buffer(b"me:secret");
            }),
        ),
        (
            opcode::ADD_WATCH,
            made(&|out| {
                out.text("/").int(1);
            }),
        ),
        (
            opcode::SET_WATCHES,
            made(&|out| {
                out.long(0).length(1).text("/a").length(0).length(0);
            }),
        ),
        (
            opcode::CONTINUE_SEQUENCE,
            made(&|out| {
                out.text("/a").int(41);
            }),
        ),
        (opcode::CLOSE_SESSION, Bytes::new()),
    ]
}

/// Long ago.
fn said(operation: Operation) -> Said {
    Said { when: Time(1), operation }
}

fn wire_seeds() -> Vec<Vec<u8>> {
    let who = vec![Id::new("ip", "::1")];
    let mut seeds: Vec<Vec<u8>> = requests()
        .into_iter()
        .map(|(code, body)| seed(GROUP, &said(Operation::Request { at: AT, code, body })))
        .collect();
    seeds.extend([
        seed(GROUP, &said(Operation::Open { timeout: 9, key: key_of(&PASSWORD), who: who.clone() })),
        seed(
            GROUP,
            &said(Operation::Attach { session: 7, proof: prove(&PASSWORD, CARRIER, 7), timeout: 9, who }),
        ),
        seed(GROUP, &said(Operation::Identify { at: AT, id: Id::new("sasl", "me") })),
        seed(GROUP, &said(Operation::Touch(vec![AT]))),
        seed(
            GROUP,
            &said(Operation::Reads {
                at: AT,
                reads: vec![Asked { code: opcode::WHO_AM_I, body: Bytes::new() }],
            }),
        ),
        seed(GROUP, &Answer::Replies { zxid: 1, replies: vec![Replied { error: -101, body: Bytes::new() }] }),
        seed(GROUP, &Answer::Attached { at: AT, timeout: 9 }),
        seed(GROUP, &Answer::Ahead(Time(7))),
        seed(
            GROUP,
            &Answer::Heard { over: vec![AT], tally: Tally { nodes: 4, bytes: 90, ..Tally::default() } },
        ),
        seed(GROUP, &Answer::Reply { zxid: 1, error: -101, body: Bytes::new() }),
        seed(GROUP, &Notice::Fired { at: AT, kind: 1, path: "/a".to_owned(), zxid: 3 }),
        seed(GROUP, &Notice::Over(AT)),
    ]);
    seeds
}

struct Service {
    service: ZooKeeper,
    map: MerkleMap,
    told: Vec<(ClientId, Bytes)>,
    open: Vec<Attachment>,
}

impl Service {
    fn new() -> Self {
        let map = MerkleMap::with_order(b"");
        Self { service: ZooKeeper::default(), map, told: Vec::new(), open: Vec::new() }
    }

    fn run(&mut self, at: u64, now: u64, client: ClientId, operation: &Bytes) -> Bytes {
        let mut cx = OpContext::new(client, at, Seq(at), Time(now), Digest::ZERO, &mut self.told);
        let answer = self.service.execute(&mut State::new(&mut self.map), &mut cx, operation);
        if let Ok(Answer::Attached { at, .. }) = Answer::from_wire(&answer) {
            self.open.push(at);
        }
        answer
    }

    fn due(&mut self, at: u64, now: u64) {
        let due = self.service.next_deadline(&StateView::new(&self.map));
        if due.is_some_and(|due| due.0 <= now) {
            let mut cx = OpContext::new(ClientId(0), 0, Seq(at), Time(now), Digest::ZERO, &mut self.told);
            self.service.on_deadline(&mut State::new(&mut self.map), &mut cx);
            let next = self.service.next_deadline(&StateView::new(&self.map));
            assert!(next.is_none_or(|next| next.0 > now), "what was due is not done");
        }
    }
}

fn run(input: &[u8]) {
    let mut steps = Steps::new(input);
    let (mut one, mut other) = (Service::new(), Service::new());
    let mut now = 1_700_000_000_000_000;
    for at in 1..60 {
        if steps.is_over() {
            break;
        }
        let client = ClientId(u64::from(steps.byte() % 2));
        let what = steps.byte();
        now += 1000 * u64::from(steps.short());
        one.due(at, now);
        other.due(at, now);
        let operation = match what % 4 {
            0 => Bytes::copy_from_slice(steps.chunk()),
            1 => said(Operation::Open { timeout: 4_000, key: key_of(&PASSWORD), who: Vec::new() }).to_wire(),
            _ => {
                let at = steps.one_of(&one.open).copied().unwrap_or(AT);
                let codes = requests();
                let mut asked = || Asked {
                    code: codes[steps.below(codes.len())].0,
                    body: Bytes::copy_from_slice(steps.chunk()),
                };
                let Asked { code, body } = asked();
                let when = Time(now + 1_000_000 * u64::from(what / 64));
                let operation = match what % 32 {
                    3 => Operation::Reads { at, reads: vec![Asked { code, body }, asked(), asked()] },
                    _ => Operation::Request { at, code, body },
                };
                Said { when, operation }.to_wire()
            }
        };
        let answer = one.run(at, now, client, &operation);
        assert_eq!(answer, other.run(at, now, client, &operation), "two services answer differently");
        let before = one.map.tree_now().digest();
        let _ = one.service.query(&StateView::new(&one.map), client, &operation);
        assert_eq!(one.map.tree_now().digest(), before, "a read changed something");
    }
    assert_eq!(one.told, other.told, "two services told different things");
    assert_eq!(one.map.tree_now().digest(), other.map.tree_now().digest(), "two services stand differently");
}

fn seeds() -> Vec<Vec<u8>> {
    let all = requests();
    let open: &[u8] = &[0, 1, 1, 0];
    let step = |(at, (_, body)): (usize, &(i32, Bytes))| {
        let number = u8::try_from(at).expect("few");
        let length = u8::try_from(body.len()).expect("short");
        [&[0, 2, 1, 0, 0, number, length], &body[..]].concat()
    };
    let each: Vec<Vec<u8>> = all.iter().enumerate().map(step).collect();
    let mut seeds: Vec<Vec<u8>> = each.iter().map(|one| [open, one].concat()).collect();
    seeds.push([open, &each.concat()].concat());
    seeds
}
