//! Whatever comes, the service answers, and the same everywhere.

use super::support::{World, create};
use crate::acl::{Id, MAX_ID};
use crate::jute::Output;
use crate::message::{Answer, Asked, Attachment, MAX_READS, Notice, Operation, Replied, Said, Tally};
use crate::{Code, opcode};
use bytes::Bytes;
use proptest::prelude::*;
use troth_auth::PublicKey;
use troth_types::{Signature, Time, Wire};

#[test]
fn messages_have_one_encoding() {
    let at = Attachment { session: -3, number: 7 };
    let who = vec![Id::new("ip", "::1")];
    for operation in [
        Operation::Open { timeout: 1, key: PublicKey([1; 32]), who: who.clone() },
        Operation::Attach { session: 5, proof: Signature([2; 64]), timeout: 9, who },
        Operation::Identify { at, id: Id::new("sasl", "me") },
        Operation::Request { at, code: -11, body: Bytes::from_static(b"body") },
        Operation::Touch(vec![at, at]),
        Operation::Reads { at, reads: vec![Asked { code: 4, body: Bytes::from_static(b"body") }] },
    ] {
        assert_eq!(Operation::from_wire(&operation.to_wire()), Ok(operation.clone()));
        let said = Said { when: Time(9), operation };
        assert_eq!(Said::wire(said.when, &said.operation.to_wire()), said.to_wire());
        assert_eq!(Said::from_wire(&said.to_wire()), Ok(said));
    }
    for answer in [
        Answer::Attached { at, timeout: 3 },
        Answer::Reply { zxid: 1 << 40, error: -101, body: Bytes::new() },
        Answer::Heard {
            over: vec![at],
            tally: Tally { time: Time(6), nodes: 7, ephemerals: 1, bytes: 90, watches: 3 },
        },
        Answer::Ahead(Time(5)),
        Answer::Replies {
            zxid: 9,
            replies: vec![Replied { error: -4, body: Bytes::from_static(b"body") }; 3],
        },
    ] {
        assert_eq!(Answer::from_wire(&answer.to_wire()), Ok(answer));
    }
    for notice in [Notice::Fired { at, kind: 3, path: "/ä".to_owned(), zxid: 9 }, Notice::Over(at)] {
        assert_eq!(Notice::from_wire(&notice.to_wire()), Ok(notice));
    }
}

#[test]
fn encoded_requests_of_one_attachment_are_one_operation() {
    let at = Attachment { session: 5, number: 2 };
    let asked = |code| Asked { code, body: Bytes::from(vec![7; 3]) };
    let request = |at, code| Operation::Request { at, code, body: asked(code).body }.to_wire();
    let together = |all: &[Bytes]| Operation::together(all.iter());
    let all = [request(at, 3), request(at, 4), request(at, 6)];
    let reads = Operation::Reads { at, reads: [3, 4, 6].map(asked).to_vec() };
    assert_eq!(together(&all), Some(reads.to_wire()));
    assert_eq!(together(&[]), None);
    assert_eq!(together(&[request(at, 3), request(Attachment { number: 3, ..at }, 3)]), None);
    assert_eq!(together(&[request(at, 3), Operation::Touch(vec![at]).to_wire()]), None);
    assert_eq!(together(&[Operation::Touch(vec![at]).to_wire()]), None);
    assert!(together(&vec![request(at, 3); MAX_READS]).is_some());
    assert_eq!(together(&vec![request(at, 3); MAX_READS + 1]), None);
}

#[test]
fn what_is_no_operation_is_answered_all_the_same() {
    let mut world = World::new();
    let refused = Code::MarshallingError.number();
    for bytes in [&b""[..], b"\x09", b"\0\0\0\0\0\0\0\0\x09", b"\0\0\0\0\0\0\0\0\x03\0\0"] {
        let answer = world.raw(1, &Bytes::copy_from_slice(bytes));
        assert!(matches!(answer, Answer::Reply { error, .. } if error == refused));
    }
}

const CODES: [i32; 27] =
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 100, 101, 103, 104, 105, 106];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Any bytes in the place of any request: an answer, and the same state at two replicas.
    #[test]
    fn no_request_brings_the_service_down(
        requests in proptest::collection::vec((0_usize..CODES.len(), proptest::collection::vec(any::<u8>(), 0..64)), 1..20),
    ) {
        let (mut one, mut two) = (World::new(), World::new());
        let at = one.open(1);
        two.open(1);
        for (code, body) in requests {
            let body = Bytes::from(body);
            let answer = one.ask(1, at, CODES[code], body.clone());
            prop_assert_eq!(answer, two.ask(1, at, CODES[code], body));
            one.pass(700);
            two.pass(700);
            prop_assert_eq!(one.map.tree_now().digest(), two.map.tree_now().digest());
        }
    }

    /// Well-formed requests with texts around every bound: all that is kept of them can be read again.
    #[test]
    fn whatever_is_kept_can_be_read_again(
        requests in proptest::collection::vec((0_usize..7, 0_usize..5_200, 1_usize..70), 1..12),
    ) {
        let mut world = World::new();
        let mut at = world.open(1);
        for (what, length, times) in requests {
            let text = "x".repeat(length);
            let mut out = Output::new();
            let code = match what {
                0 => {
                    out.int(0).text("digest").text(&text);
                    opcode::AUTH
                }
                1 | 2 => {
                    // One entry each, or everybody whom the session proved to be.
                    out.text(&format!("/{}", &text[..length / 2])).text("");
                    out.length(times);
                    for number in 0..times {
                        let scheme = if what == 1 { "auth" } else { "sasl" };
                        out.int(31).text(scheme).text(&format!("{number}{text}"));
                    }
                    out.int(0);
                    opcode::CREATE
                }
                3 => {
                    out.text(&format!("/{text}")).boolean(true);
                    opcode::EXISTS
                }
                4 => {
                    out.text(&format!("/{text}")).int(1);
                    opcode::ADD_WATCH
                }
                5 => {
                    let who = vec![Id::new("x509", &text[..length.min(MAX_ID)]); times.min(64)];
                    let open = Operation::Open { timeout: 9_000, key: PublicKey([0; 32]), who };
                    if let Answer::Attached { at: other, .. } = world.run(1, &open) {
                        at = other;
                    }
                    opcode::PING
                }
                _ => {
                    let id = Id::new("sasl", &text[..length.min(MAX_ID)]);
                    world.run(1, &Operation::Identify { at, id });
                    opcode::PING
                }
            };
            world.ask(1, at, code, out.finish());
            world.decodes();
        }
    }

    /// Requests that are cut or changed at one place.
    #[test]
    fn no_damaged_request_does(at_byte in 0_usize..60, value in any::<u8>(), cut in any::<bool>()) {
        let mut world = World::new();
        let at = world.open(1);
        let mut body = create("/some/path", "some data", 2).to_vec();
        if cut { body.truncate(at_byte) } else if at_byte < body.len() { body[at_byte] = value }
        world.ask(1, at, opcode::CREATE, Bytes::from(body));
    }
}
