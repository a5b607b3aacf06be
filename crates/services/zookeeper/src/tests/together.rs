//! Several reads in one operation.

use super::support::{World, path, set, watching};
use crate::{Answer, Asked, Attachment, Code, Operation, Replied, Said, opcode};
use bytes::Bytes;
use troth_exec::{Application, StateView};
use troth_types::{ClientId, Time, Wire};

fn asked(code: i32, body: Bytes) -> Asked {
    Asked { code, body }
}

/// The answer, which is the same in the order and outside it.
fn read(world: &mut World, gateway: u64, at: Attachment, reads: &[Asked]) -> Answer {
    let operation = Operation::Reads { at, reads: reads.to_vec() };
    let ordered = world.run(gateway, &operation);
    let query = Said::wire(Time(world.now), &operation.to_wire());
    let before = world.map.tree_now().digest();
    let queried = world.service.query(&StateView::new(&world.map), ClientId(gateway), &query);
    assert_eq!(world.map.tree_now().digest(), before, "a read changes nothing");
    assert_eq!(Answer::from_wire(&queried), Ok(ordered.clone()));
    ordered
}

fn replies(answer: Answer) -> Vec<Replied> {
    match answer {
        Answer::Replies { replies, .. } => replies,
        other => panic!("reads were answered with {other:?}"),
    }
}

#[test]
fn each_is_answered_as_it_would_be_by_itself() {
    let mut world = World::new();
    let at = world.open(1);
    world.create(at, "/a", "some data", 0);
    let all = [
        asked(opcode::GET_DATA, watching("/a", false)),
        asked(opcode::GET_DATA, watching("/b", false)),
        asked(opcode::EXISTS, watching("/a", false)),
        asked(opcode::EXISTS, watching("no path", false)),
        asked(opcode::GET_ACL, path("/a")),
        asked(opcode::WHO_AM_I, Bytes::new()),
        asked(opcode::GET_DATA, Bytes::from_static(b"?")),
    ];
    let alone: Vec<(i32, Bytes)> =
        all.iter().map(|one| world.ask(1, at, one.code, one.body.clone())).collect();
    let together = replies(read(&mut world, 1, at, &all));
    assert_eq!(together.into_iter().map(|reply| (reply.error, reply.body)).collect::<Vec<_>>(), alone);
    assert_eq!(alone.iter().filter(|(error, _)| *error == 0).count(), 4);
    assert_eq!(replies(read(&mut world, 1, at, &[])), []);
}

#[test]
fn what_may_be_long_or_changes_something_may_not_stand_with_others() {
    let mut world = World::new();
    let at = world.open(1);
    world.create(at, "/a", "old", 0);
    let none = [
        asked(opcode::SET_DATA, set("/a", "new", -1)),
        asked(opcode::GET_DATA, watching("/a", true)),
        asked(opcode::GET_CHILDREN, watching("/", false)),
        asked(opcode::GET_ALL_CHILDREN_NUMBER, path("/")),
        asked(opcode::PING, Bytes::new()),
        asked(opcode::CLOSE_SESSION, Bytes::new()),
    ];
    let bad = Code::BadArguments.number();
    for reply in replies(read(&mut world, 1, at, &none)) {
        assert_eq!((reply.error, reply.body), (bad, Bytes::new()));
    }
    assert_eq!(world.get(at, "/a").expect("a node").0, "old");
    world.well(at, opcode::SET_DATA, set("/a", "new", -1));
    assert!(world.told().is_empty(), "nobody watches");
}

#[test]
fn too_much_together_is_an_error_for_all_of_it() {
    let mut world = World::new();
    let at = world.open(1);
    world.create(at, "/a", &"x".repeat(700_000), 0);
    let large = asked(opcode::GET_DATA, watching("/a", false));
    assert_eq!(replies(read(&mut world, 1, at, &vec![large.clone(); 2])).len(), 2);
    let answer = read(&mut world, 1, at, &vec![large; 3]);
    let error = Code::MarshallingError.number();
    assert!(matches!(answer, Answer::Reply { error: of, body, .. } if of == error && body.is_empty()));
}

#[test]
fn nobody_reads_in_a_session_of_others_and_who_reads_in_the_order_lives() {
    let mut world = World::new();
    let at = world.open(1);
    let who = [asked(opcode::WHO_AM_I, Bytes::new())];
    let refusal = |answer| match answer {
        Answer::Reply { error, .. } => error,
        other => panic!("it was answered with {other:?}"),
    };
    assert_eq!(refusal(read(&mut world, 2, at, &who)), Code::SessionMoved.number());
    for _ in 0..4 {
        world.pass(8_000);
        assert_eq!(replies(world.run(1, &Operation::Reads { at, reads: who.to_vec() })).len(), 1);
    }
    assert_eq!(replies(read(&mut world, 1, at, &who)).len(), 1);
    world.pass(60_000);
    assert_eq!(refusal(read(&mut world, 1, at, &who)), Code::SessionExpired.number());
}
