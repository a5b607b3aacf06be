//! Sessions: passwords, attachments, ends, and what goes with them.

use super::support::{World, attaching, create, over, secret, set, watching};
use crate::message::{Answer, Attachment, Notice, Operation};
use crate::proof::{Carrier, key_of, prove};
use crate::{Code, ZooKeeper, opcode};
use bytes::Bytes;
use troth_exec::{Application, State, StateView};
use troth_types::{ClientId, GroupId, Signature, Time};

fn attach(world: &mut World, gateway: u64, session: i64, password: [u8; 16]) -> Result<Attachment, i32> {
    match world.run(gateway, &attaching(gateway, session, password)) {
        Answer::Attached { at, .. } => Ok(at),
        Answer::Reply { error, .. } => Err(error),
        other => panic!("attaching was answered with {other:?}"),
    }
}

#[test]
fn a_session_belongs_to_who_has_its_password() {
    let mut world = World::new();
    let at = world.open(1);
    assert_eq!(attach(&mut world, 2, at.session, [9; 16]), Err(Code::SessionExpired.number()));
    assert_eq!(attach(&mut world, 2, at.session + 1, secret(1)), Err(Code::SessionExpired.number()));
    assert!(world.told().is_empty());
    // What is kept of a password does not attach.
    let kept = key_of(&secret(1)).0[..16].try_into().expect("sixteen bytes");
    assert_eq!(attach(&mut world, 2, at.session, kept), Err(Code::SessionExpired.number()));
    let moved = attach(&mut world, 2, at.session, secret(1)).expect("the password");
    assert_eq!((moved.session, moved.number > at.number), (at.session, true));
    assert_eq!(world.told(), [(1, Notice::Over(at))]);
}

#[test]
fn a_proof_is_of_use_to_nobody_but_the_gateway_that_made_it() {
    let mut world = World::new();
    let group = GroupId([7; 16]);
    world.service.group = group;
    let (at, other) = (world.open(1), world.open(1));
    let run = |world: &mut World, gateway, session, proof| {
        let attach = Operation::Attach { session, proof, timeout: 10_000, who: Vec::new() };
        match world.run(gateway, &attach) {
            Answer::Attached { at, .. } => Ok(at),
            Answer::Reply { error, .. } => Err(error),
            other => panic!("attaching was answered with {other:?}"),
        }
    };
    let carrier = Carrier { group, gateway: ClientId(2) };
    let proof = prove(&secret(1), carrier, at.session);
    let expired = Err(Code::SessionExpired.number());
    // Whoever colludes with a replica has seen it, and so has who ran a replica of the group that this one was restored from.
    assert_eq!(run(&mut world, 3, at.session, proof), expired, "of another gateway");
    assert_eq!(run(&mut world, 2, other.session, proof), expired, "of another session");
    let elsewhere = prove(&secret(1), Carrier { group: GroupId([8; 16]), ..carrier }, at.session);
    assert_eq!(run(&mut world, 2, at.session, elsewhere), expired, "of another group");
    assert_eq!(run(&mut world, 2, at.session, Signature([0; 64])), expired, "of nobody");
    assert!(world.told().is_empty());
    let moved = run(&mut world, 2, at.session, proof).expect("who made it");
    assert_eq!(world.told(), [(1, Notice::Over(at))]);
    assert_eq!(moved.session, at.session);
}

#[test]
fn what_is_said_for_an_earlier_attachment_does_not_count() {
    let mut world = World::new();
    let at = world.open(1);
    world.ill(at, opcode::EXISTS, watching("/a", true));
    let moved = attach(&mut world, 2, at.session, secret(1)).expect("the password");
    for (gateway, at) in [(1, at), (2, at), (1, moved)] {
        let (error, _) = world.ask(gateway, at, opcode::CREATE, create("/a", "", 0));
        assert_eq!(error, Code::SessionMoved.number());
    }
    world.told();
    world.well(moved, opcode::CREATE, create("/a", "", 0));
    assert!(world.fired().is_empty(), "its watches were the connection's");
    assert_eq!(world.touch(1, vec![at; 3]), vec![at], "once");
    assert_eq!(world.touch(2, vec![moved]), vec![]);
}

#[test]
fn time_outs_stay_within_their_bounds() {
    let mut world = World::of(ZooKeeper { timeouts: (1_000, 5_000), ..ZooKeeper::default() });
    for (wished, given) in [(1, 1_000), (3_000, 3_000), (90_000, 5_000)] {
        let opened = Operation::Open { timeout: wished, key: key_of(&[1; 16]), who: Vec::new() };
        assert!(matches!(world.run(1, &opened), Answer::Attached { timeout, .. } if timeout == given));
    }
}

#[test]
fn a_session_without_a_sign_of_life_ends_and_its_ephemeral_nodes_go() {
    let mut world = World::new();
    let (at, other) = (world.open(1), world.open(2));
    world.create(at, "/mine", "", 1);
    world.create(other, "/mine-too", "", 1);
    assert_eq!(world.stat(at, "/mine").expect("a node").owner, at.session);
    world.well(other, opcode::GET_CHILDREN, watching("/", true));
    world.told();
    for _ in 0..4 {
        world.pass(4_000);
        assert_eq!(world.touch(2, vec![other]), vec![]);
    }
    let (error, _) = world.ask(1, at, opcode::PING, Bytes::new());
    assert_eq!(error, Code::SessionExpired.number());
    let told = world.told();
    assert!(told.contains(&(1, Notice::Over(at))), "{told:?}");
    assert!(
        told.iter()
            .any(|(to, notice)| *to == 2 && matches!(notice, Notice::Fired { path, .. } if path == "/"))
    );
    assert_eq!(world.get(other, "/mine"), Err(Code::NoNode.number()));
    world.get(other, "/mine-too").expect("it lives");
    assert_eq!(
        (world.entries(b's'), world.entries(b't'), world.entries(b'e'), world.entries(b'a')),
        (1, 1, 1, 1)
    );
}

#[test]
fn a_session_does_not_end_early() {
    let mut world = World::new();
    let at = world.open(1);
    // Its time-out and the grace.
    for _ in 0..2 {
        world.pass(13_900);
        world.well(at, opcode::PING, Bytes::new());
    }
    world.pass(14_600);
    assert_eq!(world.ask(1, at, opcode::PING, Bytes::new()).0, Code::SessionExpired.number());
}

#[test]
fn nothing_is_done_of_what_is_said_long_after_the_time_of_its_batch() {
    let mut world = World::new();
    let at = world.open(1);
    let (agreed, bound) = (world.now, 2_000_000);
    let open = || Operation::Open { timeout: 10_000, key: key_of(&secret(1)), who: Vec::new() };
    let attach = || attaching(1, at.session, secret(1));
    let ask = || Operation::Request { at, code: opcode::CREATE, body: create("/mine", "", 1) };
    let identify = || Operation::Identify { at, id: crate::acl::Id::new("sasl", "me") };
    let all = [open(), attach(), ask(), identify(), Operation::Touch(vec![at])];
    let before = world.map.tree_now().digest();
    for operation in &all {
        assert_eq!(world.run_said(1, agreed + bound + 1, operation), Answer::Ahead(Time(agreed)));
        assert_eq!(world.run_said(1, u64::MAX, operation), Answer::Ahead(Time(agreed)));
    }
    assert_eq!(world.map.tree_now().digest(), before);
    // The clocks may be so far apart, and what waited is as good as what is new.
    assert!(matches!(world.run_said(1, agreed + bound, &ask()), Answer::Reply { error: 0, .. }));
    assert_eq!(over(world.run_said(1, 0, &Operation::Touch(vec![at]))), vec![]);
}

#[test]
fn who_is_heard_as_early_as_may_be_lives_for_its_time_out() {
    let mut world = World::new();
    world.service.timeouts = (4_000, 40_000);
    let at = world.open(1);
    // The batch is dated back as far as the service bears; then come steps that are not taken for a standstill.
    let said = world.now + 2_000_000;
    assert_eq!(over(world.run_said(1, said, &Operation::Touch(vec![at]))), vec![]);
    // The clocks of replicas that vote, and the gateway's, are apart by so much.
    let apart = 375_000;
    let promised = said + 10_000_000;
    while world.now < promised + apart {
        world.now = (promised + apart).min(world.now + 2_000_000);
        world.deadline();
    }
    world.well(at, opcode::PING, Bytes::new());
}

/// A primary certifies what came after a standstill at the time of the last batch before it, and behind it, in steps that are
/// not taken for a standstill, batches up to the present. So it cannot end a session whose client gave a sign of life meanwhile.
#[test]
fn signs_of_life_are_not_dated_back() {
    let mut world = World::new();
    let at = world.open(1);
    world.create(at, "/mine", "", 1);
    let before = world.now;
    let present = before + 60_000_000;
    assert!(matches!(world.run_said(1, present, &Operation::Touch(vec![at])), Answer::Ahead(_)));
    while world.now < present {
        world.now = present.min(world.now + 2_000_000);
        world.deadline();
    }
    // It was told nothing that is not so: the sign of life was not answered.
    assert_eq!(world.ask(1, at, opcode::PING, Bytes::new()).0, Code::SessionExpired.number());
}

#[test]
fn who_could_not_be_heard_while_the_service_stood_still_loses_half_of_the_grace() {
    let mut world = World::new();
    let at = world.open(1);
    world.create(at, "/mine", "", 1);
    for _ in 0..2 {
        // No batch for a minute, in which everybody's time ran out.
        world.now += 60_000_000;
        world.deadline();
    }
    world.pass(9_900);
    world.get(at, "/mine").expect("still there");
    // Who is silent now ends after its time; the second session is not the first, so time starts with it.
    world.pass(14_600);
    assert_eq!(world.ask(1, at, opcode::PING, Bytes::new()).0, Code::SessionExpired.number());
    world.now += 60_000_000;
    let next = world.open(1);
    world.pass(13_900);
    world.well(next, opcode::PING, Bytes::new());
}

#[test]
fn time_goes_on_for_sessions_though_nobody_asks_for_anything() {
    let mut world = World::new();
    let due = |world: &World| world.service.next_deadline(&StateView::new(&world.map)).map(|due| due.0);
    assert_eq!(due(&world), None, "without sessions nothing is due");
    let at = world.open(1);
    assert_eq!(due(&world), Some(world.now + 500_000));
    world.pass(2_200);
    assert_eq!(due(&world), Some(world.now + 300_000));
    world.well(at, opcode::CLOSE_SESSION, Bytes::new());
    assert_eq!(due(&world), None);
}

#[test]
fn a_session_that_is_closed_takes_its_ephemeral_nodes_with_it() {
    let mut world = World::new();
    let (at, other) = (world.open(1), world.open(1));
    world.create(at, "/a", "", 0);
    let before = [b'n', b's', b't', b'e', b'w', b'o', b'a'].map(|letter| world.entries(letter));
    let third = world.open(1);
    for name in ["/one", "/a/two", "/a/three"] {
        world.create(third, name, &"x".repeat(2_000), 1);
    }
    world.well(third, opcode::GET_DATA, watching("/one", true));
    world.well(other, opcode::GET_DATA, watching("/one", true));
    world.told();
    world.well(third, opcode::CLOSE_SESSION, Bytes::new());
    assert_eq!(world.fired(), [(other.session, 2, "/one".to_owned())]);
    assert_eq!([b'n', b's', b't', b'e', b'w', b'o', b'a'].map(|letter| world.entries(letter)), before);
    assert_eq!((world.entries(b'd'), world.stat(at, "/a").expect("a node").children), (0, 0));
    assert_eq!(world.ask(1, third, opcode::PING, Bytes::new()).0, Code::SessionExpired.number());
}

#[test]
fn ephemeral_nodes_are_listed_and_have_no_children() {
    let mut world = World::new();
    let (at, other) = (world.open(1), world.open(2));
    world.create(at, "/a", "", 0);
    for name in ["/a/one", "/a/two", "/b"] {
        world.create(at, name, "", 1);
    }
    world.create(other, "/a/three", "", 1);
    assert_eq!(world.ill(at, opcode::CREATE, create("/b/c", "", 0)), Code::NoChildrenForEphemerals.number());
    let answer = world.read(at, opcode::GET_EPHEMERALS, super::support::path("/a")).expect("paths");
    let mut input = crate::jute::Input::new(&answer);
    let paths = input.vector(4, |input| Ok(input.text()?.expect("a path"))).expect("paths").expect("paths");
    assert_eq!(paths, ["/a/one", "/a/two"]);
}

#[test]
fn a_gateway_has_only_so_many_sessions() {
    let mut world = World::of(ZooKeeper { sessions: 2, ..ZooKeeper::default() });
    let (first, other) = (world.open(1), world.open(1));
    let opened = Operation::Open { timeout: 10_000, key: key_of(&secret(1)), who: Vec::new() };
    let refused =
        |answer| matches!(answer, Answer::Reply { error, .. } if error == Code::QuotaExceeded.number());
    assert!(refused(world.run(1, &opened)));
    world.open(2);
    assert!(!refused(world.run(2, &opened)));
    assert!(refused(world.run(2, &opened)));
    let moved = attach(&mut world, 2, first.session, secret(1)).expect("where its own gateway is gone");
    assert!(!refused(world.run(1, &opened)), "it left room there");
    attach(&mut world, 2, other.session, secret(1)).expect("and another one");
    let third = world.open(1);
    assert_eq!(attach(&mut world, 2, third.session, secret(1)), Err(Code::QuotaExceeded.number()));
    world.well(moved, opcode::CLOSE_SESSION, Bytes::new());
    assert!(refused(world.run(2, &opened)), "it has more than it may open");
    attach(&mut world, 2, third.session, secret(1)).expect("there is room again");
}

#[test]
fn sessions_outlive_the_gateways_of_a_group() {
    let mut world = World::new();
    let at = world.open(1);
    world.create(at, "/mine", "", 1);
    let service = world.service.clone();
    let gone: Vec<Vec<u8>> = {
        let view = StateView::new(&world.map);
        view.scan(b"").map(|(key, _)| key.to_vec()).filter(|key| !service.outlives_clients(key)).collect()
    };
    assert_eq!(gone.len(), 1);
    let mut state = State::new(&mut world.map);
    gone.iter().for_each(|key| state.remove(key));
    let moved = attach(&mut world, 7, at.session, secret(1)).expect("the password");
    world.well(moved, opcode::SET_DATA, set("/mine", "x", -1));
    world.well(moved, opcode::CLOSE_SESSION, Bytes::new());
    assert_eq!((world.entries(b'a'), world.entries(b's')), (0, 0));
}

/// In a group to which a backup was restored a number is another client's than before.
#[test]
fn who_has_the_number_of_a_gateway_of_the_old_group_has_none_of_its_sessions() {
    let mut world = World::of(ZooKeeper { sessions: 1, ..ZooKeeper::default() });
    let (at, other) = (world.open(1), world.open(3));
    world.ill(at, opcode::EXISTS, watching("/a", true));
    world.service.group = GroupId([9; 16]);
    let mut state = State::new(&mut world.map);
    for gateway in [1, 3] {
        state.remove(&crate::keys::attached(ClientId(gateway)));
    }
    world.told();
    let moved = Code::SessionMoved.number();
    for code in [opcode::PING, opcode::CLOSE_SESSION] {
        assert_eq!(world.ask(1, at, code, Bytes::new()).0, moved);
    }
    assert_eq!(world.read(at, opcode::EXISTS, watching("/", false)), Err(moved));
    assert_eq!(over(world.run(1, &Operation::Touch(vec![at]))), vec![at]);
    // Its events are not for the one who has its number, nor is its end.
    let own = world.open(1);
    world.create(own, "/a", "", 0);
    assert_eq!(world.told(), vec![]);
    world.run(1, &Operation::Touch(vec![own]));
    world.pass(9_000);
    world.run(1, &Operation::Touch(vec![own]));
    world.pass(9_000);
    let is_there = |world: &World, at: Attachment| {
        crate::sessions::Session::find(&mut &StateView::new(&world.map), at.session).is_some()
    };
    assert!(!is_there(&world, at) && is_there(&world, own));
    assert_eq!(world.told(), vec![]);
    // Nor do they count as those of others.
    let opened = Operation::Open { timeout: 10_000, key: key_of(&secret(1)), who: Vec::new() };
    let refused = Code::QuotaExceeded.number();
    assert!(matches!(world.run(1, &opened), Answer::Reply { error, .. } if error == refused));
    assert!(!is_there(&world, other), "its time is over too");
}

#[test]
fn the_number_that_an_attachment_would_have_next_is_of_no_use() {
    let mut world = World::new();
    let (at, watcher) = (world.open(1), world.open(2));
    world.ill(watcher, opcode::EXISTS, watching("/b", true));
    world.ill(at, opcode::EXISTS, watching("/a", true));
    let mut out = crate::jute::Output::new();
    out.long(0).length(0).length(1).text("no path").length(0);
    world.well(at, opcode::SET_WATCHES, out.finish());
    assert_eq!(world.told(), [(1, Notice::Over(at))]);
    let guessed = Attachment { number: watcher.number + 1, ..at };
    let mut out = crate::jute::Output::new();
    out.text("/a").int(3);
    assert_eq!(world.ask(1, guessed, opcode::REMOVE_WATCHES, out.finish()).0, Code::SessionMoved.number());
    assert_eq!(world.ask(1, guessed, opcode::CLOSE_SESSION, Bytes::new()).0, Code::SessionMoved.number());
    assert_eq!(world.tally().watches, 1, "that of the other");
    attach(&mut world, 1, at.session, secret(1)).expect("the password");
}
