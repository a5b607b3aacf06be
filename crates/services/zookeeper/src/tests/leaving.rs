//! What goes by itself goes in bounded steps, however much it is.

use super::support::{World, create, watching};
use crate::events::MAX_EVENTS;
use crate::message::Notice;
use crate::sessions::MAX_GOES;
use crate::{Code, MAX_LOOKED, opcode};
use bytes::Bytes;
use troth_exec::{Application, State, StateView};

/// Ephemeral nodes of a session below `/a`.
fn with_nodes(world: &mut World, gateway: u64, count: usize) -> crate::Attachment {
    let at = world.open(gateway);
    for number in 0..count {
        world.create(at, &format!("/a/{}-{number}", at.session), "", 1);
    }
    at
}

/// The next batch, if one is due at once.
fn next_batch(world: &mut World) -> bool {
    let due = world.service.next_deadline(&StateView::new(&world.map));
    let is_due = due.is_some_and(|due| due.0 == world.now + 1);
    if is_due {
        world.now += 1;
        world.deadline();
    }
    is_due
}

#[test]
fn a_session_with_very_many_nodes_takes_them_away_in_steps_and_nobody_waits_for_all_of_them() {
    let mut world = World::new();
    let other = world.open(1);
    world.create(other, "/a", "", 0);
    let empty = [b'n', b's', b't', b'e', b'x', b'l'].map(|letter| world.entries(letter));
    let at = with_nodes(&mut world, 1, 2 * MAX_GOES + 1);
    world.well(at, opcode::CLOSE_SESSION, Bytes::new());
    // It is over at once, whatever it has left.
    assert_eq!(world.ask(1, at, opcode::PING, Bytes::new()).0, Code::SessionExpired.number());
    assert_eq!(world.children(other, "/a").len(), MAX_GOES + 1);
    assert!(next_batch(&mut world));
    assert_eq!(world.children(other, "/a").len(), 1);
    // Meanwhile everybody is served.
    world.create(other, "/a/mine", "", 1);
    assert!(next_batch(&mut world));
    assert_eq!(world.children(other, "/a"), ["mine"]);
    assert!(!next_batch(&mut world), "nothing is left");
    world.well(other, opcode::DELETE, super::support::versioned("/a/mine", -1));
    assert_eq!([b'n', b's', b't', b'e', b'x', b'l'].map(|letter| world.entries(letter)), empty);
}

#[test]
fn one_that_has_as_many_as_go_at_once_takes_them_all_with_it() {
    let mut world = World::new();
    let other = world.open(1);
    world.create(other, "/a", "", 0);
    let at = with_nodes(&mut world, 1, MAX_GOES);
    world.well(at, opcode::CLOSE_SESSION, Bytes::new());
    assert_eq!(world.children(other, "/a").len(), 0);
    assert_eq!(world.entries(b'x') + world.entries(b'l'), 0);
    assert!(!next_batch(&mut world));
}

#[test]
fn sessions_whose_time_is_over_together_end_in_steps_and_each_is_told() {
    let mut world = World::new();
    let other = world.open(2);
    world.create(other, "/a", "", 0);
    let all: Vec<_> = (0..4).map(|_| with_nodes(&mut world, 1, MAX_GOES / 2 + 1)).collect();
    world.told();
    let end = world.now + 20_000_000;
    while world.now < end {
        world.now += 1_000_000;
        assert_eq!(world.touch(2, vec![other]), vec![]);
        let before = world.entries(b's');
        world.deadline();
        let mut steps = vec![before - world.entries(b's')];
        while next_batch(&mut world) {
            steps.push(4 - world.entries(b's').saturating_sub(1) - steps.iter().sum::<usize>());
        }
        if steps[0] > 0 {
            assert_eq!(steps, [2, 2], "two go beyond what goes at once");
        }
    }
    let over = |(to, notice): (u64, Notice)| match notice {
        Notice::Over(at) => Some((to, at)),
        _ => None,
    };
    let mut told: Vec<_> =
        world.told().into_iter().filter_map(over).map(|(to, at)| (to, at.session)).collect();
    told.sort_unstable();
    let mut wanted: Vec<_> = all.iter().map(|at| (1, at.session)).collect();
    wanted.sort_unstable();
    assert_eq!(told, wanted);
    assert_eq!(world.children(other, "/a").len(), 0);
}

#[test]
fn nodes_whose_time_is_over_together_go_in_steps() {
    let mut world = World::new();
    let at = world.open(1);
    for number in 0..=MAX_GOES {
        let mut body = create(&format!("/{number}"), "", 5).to_vec();
        body.extend_from_slice(&1_000_i64.to_be_bytes());
        world.well(at, opcode::CREATE_TTL, Bytes::from(body));
    }
    let nodes = world.entries(b'n');
    world.now += 2_000_000;
    world.deadline();
    assert_eq!(nodes - world.entries(b'n'), MAX_GOES);
    assert!(next_batch(&mut world));
    assert_eq!(nodes - world.entries(b'n'), MAX_GOES + 1);
    assert!(!next_batch(&mut world));
}

#[test]
fn nobody_counts_more_nodes_than_one_operation_looks_at() {
    let mut world = World::new();
    let at = world.open(1);
    world.create(at, "/a", "", 0);
    // Put into the state as they are: a quarter of a million transactions take their time.
    let node = StateView::new(&world.map).get(&crate::keys::node("/a")).expect("a node");
    let mut state = State::new(&mut world.map);
    for number in 0..=MAX_LOOKED {
        state.insert(&crate::keys::node(&format!("/a/{number}")), node.clone());
    }
    let count =
        |world: &mut World| world.read(at, opcode::GET_ALL_CHILDREN_NUMBER, super::support::path("/a"));
    assert_eq!(count(&mut world), Err(Code::QuotaExceeded.number()));
    // Nor is there a quota below which there are more: they are counted when it begins.
    world.create(at, "/zookeeper/quota/a", "", 0);
    let stats = create("/zookeeper/quota/a/zookeeper_stats", "", 0);
    assert_eq!(world.ill(at, opcode::CREATE, stats), Code::QuotaExceeded.number());
    State::new(&mut world.map).remove(&crate::keys::node("/a/0"));
    let counted = count(&mut world).expect("as many as may be");
    assert_eq!(counted, Bytes::from((MAX_LOOKED as i32).to_be_bytes().to_vec()));
    world.read(at, opcode::EXISTS, watching("/a", false)).expect("others are served");
}

/// Sessions whose attachments ended watch nothing by their own word, whatever they have left: they go as others do.
#[test]
fn sessions_that_heard_too_much_go_together_when_their_time_is_over() {
    let mut world = World::new();
    let other = world.open(2);
    world.create(other, "/a", "", 0);
    let all: Vec<_> = (0..9).map(|_| world.open(1)).collect();
    for at in &all {
        world.well(*at, opcode::ADD_WATCH, super::bounds::add_watch("/a", 0));
    }
    let set = super::support::set("/a", "x", -1);
    world.well(other, opcode::MULTI, super::bounds::times(MAX_EVENTS + 1, opcode::SET_DATA, &set));
    let end = world.now + 30_000_000;
    while world.entries(b's') > 1 {
        assert!(world.now < end, "they end");
        world.now += 1_000_000;
        assert_eq!(world.touch(2, vec![other]), vec![]);
        world.deadline();
        assert!([1, 10].contains(&world.entries(b's')), "all at once, and none before");
    }
    assert!(!next_batch(&mut world));
}
