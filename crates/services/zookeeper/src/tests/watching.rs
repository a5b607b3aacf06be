//! Watches: who is told what, once or each time.

use super::support::{World, create_for, path, set, versioned, watching, world};
use crate::acl::{Acl, Id, perms};
use crate::jute::Output;
use crate::{Code, Kind, MAX_WATCHES, opcode};
use bytes::Bytes;

const CREATED: i32 = Kind::Created as i32;
const DELETED: i32 = Kind::Deleted as i32;
const CHANGED: i32 = Kind::DataChanged as i32;
const CHILDREN: i32 = Kind::ChildrenChanged as i32;

fn add_watch(path: &str, mode: i32) -> Bytes {
    let mut out = Output::new();
    out.text(path).int(mode);
    out.finish()
}

fn rewatch(seen: i64, lists: &[&[&str]]) -> Bytes {
    let mut out = Output::new();
    out.long(seen);
    for list in lists {
        out.length(list.len());
        list.iter().for_each(|path| {
            out.text(path);
        });
    }
    out.finish()
}

#[test]
fn a_watch_is_told_of_the_next_change_and_of_no_more() {
    let mut world = World::new();
    let (at, other) = (world.open(1), world.open(2));
    world.create(at, "/a", "", 0);
    world.told();
    world.well(other, opcode::GET_DATA, watching("/a", true));
    world.well(at, opcode::SET_DATA, set("/a", "x", -1));
    world.well(at, opcode::SET_DATA, set("/a", "y", -1));
    assert_eq!(world.fired(), [(other.session, CHANGED, "/a".to_owned())]);
    assert_eq!(world.entries(b'w') + world.entries(b'o'), 0);
}

#[test]
fn a_node_that_is_not_there_is_watched_by_asking_whether_it_is() {
    let mut world = World::new();
    let at = world.open(1);
    assert_eq!(world.ill(at, opcode::EXISTS, watching("/a", true)), Code::NoNode.number());
    assert_eq!(world.ill(at, opcode::GET_DATA, watching("/b", true)), Code::NoNode.number());
    world.create(at, "/a", "", 0);
    world.create(at, "/b", "", 0);
    assert_eq!(world.fired(), [(at.session, CREATED, "/a".to_owned())]);
}

#[test]
fn children_are_watched_by_asking_for_them() {
    let mut world = World::new();
    let at = world.open(1);
    world.create(at, "/a", "", 0);
    world.well(at, opcode::GET_CHILDREN, watching("/a", true));
    world.well(at, opcode::SET_DATA, set("/a", "x", -1));
    world.create(at, "/a/b", "", 0);
    world.create(at, "/a/c", "", 0);
    assert_eq!(world.fired(), [(at.session, CHILDREN, "/a".to_owned())]);
    // One that is deleted ends both watches, and says so once.
    world.well(at, opcode::GET_CHILDREN2, watching("/a/b", true));
    world.well(at, opcode::GET_DATA, watching("/a/b", true));
    world.well(at, opcode::DELETE, versioned("/a/b", -1));
    assert_eq!(world.fired(), [(at.session, DELETED, "/a/b".to_owned())]);
    assert_eq!(world.entries(b'w'), 0);
}

#[test]
fn persistent_watches_stay() {
    let mut world = World::new();
    let at = world.open(1);
    world.create(at, "/a", "", 0);
    let answer = world.well(at, opcode::ADD_WATCH, add_watch("/a", 0));
    assert_eq!(&answer[..], [0; 4], "an error number of its own, as the answers to other watches have none");
    for _ in 0..2 {
        world.well(at, opcode::SET_DATA, set("/a", "x", -1));
    }
    world.create(at, "/a/b", "", 0);
    world.well(at, opcode::SET_DATA, set("/a/b", "x", -1));
    world.well(at, opcode::DELETE, versioned("/a/b", -1));
    world.well(at, opcode::DELETE, versioned("/a", -1));
    world.create(at, "/a", "", 0);
    let kinds: Vec<i32> = world.fired().iter().map(|(_, kind, _)| *kind).collect();
    assert_eq!(kinds, [CHANGED, CHANGED, CHILDREN, CHILDREN, DELETED, CREATED]);
}

#[test]
fn recursive_watches_see_all_below_but_no_lists_of_children() {
    let mut world = World::new();
    let at = world.open(1);
    world.well(at, opcode::ADD_WATCH, add_watch("/a", 1));
    world.create(at, "/a", "", 0);
    world.create(at, "/a/b", "", 0);
    world.create(at, "/a/b/c", "", 0);
    world.create(at, "/ab", "", 0);
    world.well(at, opcode::SET_DATA, set("/a/b/c", "x", -1));
    world.well(at, opcode::DELETE, versioned("/a/b/c", -1));
    let told: Vec<(i32, String)> = world.fired().into_iter().map(|(_, kind, path)| (kind, path)).collect();
    let expected =
        [(CREATED, "/a"), (CREATED, "/a/b"), (CREATED, "/a/b/c"), (CHANGED, "/a/b/c"), (DELETED, "/a/b/c")];
    assert_eq!(told, expected.map(|(kind, path)| (kind, path.to_owned())));
    world.well(at, opcode::REMOVE_WATCHES, add_watch("/a", 3));
    world.create(at, "/a/z", "", 0);
    assert!(world.fired().is_empty());
}

#[test]
fn watches_are_looked_for_and_removed_by_their_kind() {
    let mut world = World::new();
    let at = world.open(1);
    world.create(at, "/a", "", 0);
    assert_eq!(world.ill(at, opcode::CHECK_WATCHES, add_watch("/a", 3)), Code::NoWatcher.number());
    world.well(at, opcode::GET_DATA, watching("/a", true));
    assert_eq!(world.ill(at, opcode::REMOVE_WATCHES, add_watch("/a", 1)), Code::NoWatcher.number());
    world.well(at, opcode::CHECK_WATCHES, add_watch("/a", 2));
    world.well(at, opcode::GET_CHILDREN, watching("/a", true));
    world.well(at, opcode::REMOVE_WATCHES, add_watch("/a", 2));
    world.create(at, "/a/b", "", 0);
    world.well(at, opcode::SET_DATA, set("/a", "x", -1));
    assert_eq!(world.fired(), [(at.session, CHILDREN, "/a".to_owned())]);
}

#[test]
fn those_that_stay_have_kinds_of_their_own() {
    let mut world = World::new();
    let at = world.open(1);
    let none = Code::NoWatcher.number();
    world.well(at, opcode::ADD_WATCH, add_watch("/a", 0));
    world.well(at, opcode::CHECK_WATCHES, add_watch("/a", 4));
    assert_eq!(world.ill(at, opcode::REMOVE_WATCHES, add_watch("/a", 5)), none);
    world.well(at, opcode::ADD_WATCH, add_watch("/a", 1));
    world.well(at, opcode::REMOVE_WATCHES, add_watch("/a", 4));
    assert_eq!(world.ill(at, opcode::CHECK_WATCHES, add_watch("/a", 4)), none);
    world.well(at, opcode::CHECK_WATCHES, add_watch("/a", 5));
    world.well(at, opcode::REMOVE_WATCHES, add_watch("/a", 5));
    assert_eq!((world.entries(b'w'), world.entries(b'o')), (0, 0));
    assert_eq!(world.ill(at, opcode::CHECK_WATCHES, add_watch("/a", 6)), Code::BadArguments.number());
}

#[test]
fn a_client_that_connects_anew_is_told_what_it_missed() {
    let mut world = World::new();
    let at = world.open(1);
    for name in ["/same", "/changed", "/gone", "/parent"] {
        world.create(at, name, "", 0);
    }
    let seen = world.stat(at, "/parent").expect("a node").created_zxid;
    world.well(at, opcode::SET_DATA, set("/changed", "x", -1));
    world.well(at, opcode::DELETE, versioned("/gone", -1));
    world.create(at, "/parent/child", "", 0);
    world.create(at, "/came", "", 0);
    let lists: [&[&str]; 5] =
        [&["/same", "/changed", "/gone"], &["/came", "/never"], &["/parent", "/same"], &["/p"], &["/r"]];
    world.well(at, opcode::SET_WATCHES2, rewatch(seen, &lists));
    let told: Vec<(i32, String)> = world.fired().into_iter().map(|(_, kind, path)| (kind, path)).collect();
    let expected = [(CHANGED, "/changed"), (DELETED, "/gone"), (CREATED, "/came"), (CHILDREN, "/parent")];
    assert_eq!(told, expected.map(|(kind, path)| (kind, path.to_owned())));
    // What did not change is watched from now on.
    world.well(at, opcode::SET_DATA, set("/same", "x", -1));
    world.create(at, "/never", "", 0);
    world.create(at, "/p", "", 0);
    world.create(at, "/r", "", 0);
    world.create(at, "/r/below", "", 0);
    let told: Vec<String> = world.fired().into_iter().map(|(_, _, path)| path).collect();
    assert_eq!(told, ["/same", "/never", "/p", "/r", "/r/below"]);
}

#[test]
fn only_who_may_read_a_node_is_told_of_it() {
    let mut world = World::new();
    let (owner, stranger) = (world.open_as(1, vec![Id::new("ip", "10.0.0.1")]), world.open(2));
    let mine = [Acl { perms: perms::ALL, id: Id::new("ip", "10.0.0.1") }];
    for at in [owner, stranger] {
        world.ill(at, opcode::EXISTS, watching("/mine", true));
    }
    world.well(owner, opcode::CREATE, create_for("/mine", "", &mine, 0));
    assert_eq!(world.fired(), [(owner.session, CREATED, "/mine".to_owned())]);
    // Who is told nothing believes that it watches, and does.
    assert_eq!(world.tally().watches, 1);
    let mut all = Output::new();
    all.text("/mine");
    super::support::put_acl(&mut all, &self::world());
    all.int(-1);
    world.well(owner, opcode::SET_ACL, all.finish());
    world.well(owner, opcode::SET_DATA, set("/mine", "x", -1));
    assert_eq!(world.fired(), [(stranger.session, CHANGED, "/mine".to_owned())]);
    assert_eq!(world.entries(b'w'), 0);
}

#[test]
fn a_transaction_fires_the_watches_of_all_its_changes_in_order() {
    let mut world = World::new();
    let at = world.open(1);
    world.ill(at, opcode::EXISTS, watching("/a", true));
    world.well(at, opcode::GET_CHILDREN, watching("/", true));
    let mut out = Output::new();
    out.int(opcode::CREATE).boolean(false).int(-1).text("/a").text("");
    super::support::put_acl(&mut out, &self::world());
    out.int(0).int(opcode::DELETE).boolean(false).int(-1).text("/a").int(-1).int(-1).boolean(true).int(-1);
    world.well(at, opcode::MULTI, out.finish());
    assert_eq!(
        world.fired(),
        [(at.session, CREATED, "/a".to_owned()), (at.session, CHILDREN, "/".to_owned())]
    );
}

#[test]
fn a_session_watches_only_so_much() {
    let mut world = World::new();
    let at = world.open(1);
    let mut session =
        crate::sessions::Session::find(&mut &troth_exec::StateView::new(&world.map), at.session)
            .expect("open");
    session.watches = MAX_WATCHES - 1;
    let mut state = troth_exec::State::new(&mut world.map);
    let mut changes = crate::store::Changes::over(&mut state);
    session.keep(&mut changes);
    changes.apply();
    world.ill(at, opcode::EXISTS, watching("/a", true));
    assert_eq!(world.ill(at, opcode::EXISTS, watching("/b", true)), Code::QuotaExceeded.number());
    assert_eq!(world.ill(at, opcode::SYNC, path("a")), Code::BadArguments.number());
    world.well(at, opcode::SYNC, path("/a"));
    assert_eq!(world.entries(b'w'), 1);
    // What a client watches that connects anew is watched as a whole, or it has to connect once more.
    let too_many = rewatch(0, &[&[], &[], &[], &[], &["/one", "/two"]]);
    world.well(at, opcode::SET_WATCHES2, too_many);
    let counters = crate::counters::Counters::of(&mut &troth_exec::StateView::new(&world.map)).expect("kept");
    assert_eq!((counters.recursive, world.entries(b'w')), (0, 1), "none of them counts");
    assert_eq!(world.told(), [(1, crate::Notice::Over(at))]);
    assert_eq!(world.ill(at, opcode::SYNC, path("/a")), Code::SessionMoved.number());
}

#[test]
fn a_client_that_watches_again_what_is_no_path_connects_anew() {
    let mut world = World::new();
    let at = world.open(1);
    world.well(at, opcode::SET_WATCHES2, rewatch(0, &[&[], &[], &[], &["/one"], &["two"]]));
    assert_eq!((world.entries(b'w'), world.told()), (0, vec![(1, crate::Notice::Over(at))]));
}
