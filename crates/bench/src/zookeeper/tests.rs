use super::records::{Answered, Template, accepted, answered, connect, take};
use super::verdict::CellShown;
use crate::peers::line::Figures;
use bytes::Bytes;
use troth_zookeeper::jute::Input;
use troth_zookeeper::opcode;

/// What is in a packet that was written.
fn inside(packet: &[u8]) -> Bytes {
    let mut rest = packet;
    let inside = take(&mut rest).expect("a packet").expect("a whole one");
    assert!(rest.is_empty(), "one packet");
    Bytes::copy_from_slice(inside)
}

#[test]
fn requests_are_zookeepers_records() {
    let mut out = Vec::new();
    Template::set("/a", b"value").write(77, &mut out);
    let record = inside(&out);
    let mut input = Input::new(&record);
    assert_eq!((input.int(), input.int()), (Ok(77), Ok(opcode::SET_DATA)));
    assert_eq!(input.text().expect("a path").as_deref(), Some("/a"));
    assert_eq!(input.buffer().expect("data").as_deref(), Some(&b"value"[..]));
    assert_eq!((input.int(), input.remaining()), (Ok(-1), 0));

    out.clear();
    Template::get("/b").write(1, &mut out);
    Template::delete("/b").write(2, &mut out);
    let mut rest = &out[..];
    let mut codes = Vec::new();
    while let Some(packet) = take(&mut rest).expect("packets") {
        let record = Bytes::copy_from_slice(packet);
        let mut input = Input::new(&record);
        codes.push((input.int().expect("a number"), input.int().expect("a code")));
    }
    assert_eq!(codes, [(1, opcode::GET_DATA), (2, opcode::DELETE)]);
}

#[test]
fn packets_that_have_not_come_whole_are_waited_for() {
    let whole = connect();
    for length in 0..whole.len() {
        let mut rest = &whole[..length];
        assert_eq!(take(&mut rest), Ok(None), "{length} bytes");
        assert_eq!(rest.len(), length, "nothing is taken");
    }
    let mut much = &[0x7f, 0, 0, 0][..];
    assert!(take(&mut much).is_err(), "no length is believed without end");
}

#[test]
fn answers_and_refusals_are_told_apart() {
    let head = [&7_i32.to_be_bytes()[..], &9_i64.to_be_bytes(), &(-110_i32).to_be_bytes()].concat();
    assert_eq!(answered(&head), Ok(Answered { xid: 7, error: -110 }));
    assert!(answered(&head[..15]).is_err());
    assert!(accepted(&[0, 0, 0, 0, 0, 0, 0x75, 0x30]));
    assert!(!accepted(&[0; 37]), "a time-out of 0 is a refusal");
}

#[test]
fn a_gate_is_the_ratio_of_medians() {
    let rounds = |rates: [f64; 3]| rates.map(|rate| Figures { rate, ..Figures::default() }).to_vec();
    let mut shown = CellShown {
        name: "cell".to_owned(),
        bound: Some(2.0),
        names: ["Troth".to_owned(), "ZooKeeper".to_owned()],
        rounds: [rounds([10.0, 20.0, 90.0]), rounds([10.0, 1.0, 12.0])],
    };
    assert!(shown.gate().expect("a bound").ok(), "20 is twice 10");
    shown.rounds[0][1].rate = 19.9;
    assert!(!shown.gate().expect("a bound").ok());
    shown.rounds[1].clear();
    assert!(!shown.gate().expect("a bound").ok(), "nothing was measured");
}
