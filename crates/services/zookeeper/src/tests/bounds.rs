//! What one operation may cost, however it is asked for.

use super::support::{World, attaching, create_for, put_acl, set, watching, world};
use crate::acl::{Acl, Id, MAX_ENTRIES, perms};
use crate::events::{IDENTITY, LOOK, MAX_EVENTS, MAX_MISSED, MAX_WORK};
use crate::jute::{Input, Output};
use crate::message::{Answer, Asked, Attachment, Notice, Operation};
use crate::store::SCANS;
use crate::watches::{MAX_WATCHED_BYTES, NOBODYS};
use crate::{Code, Kind, MAX_LOOKED, MAX_WATCHES, opcode};
use bytes::Bytes;

pub(super) fn add_watch(path: &str, mode: i32) -> Bytes {
    let mut out = Output::new();
    out.text(path).int(mode);
    out.finish()
}

/// A transaction of so many times the same operation, but for its header.
pub(super) fn times(count: usize, code: i32, body: &Bytes) -> Bytes {
    let mut out = Output::new();
    for _ in 0..count {
        out.int(code).boolean(false).int(-1).raw(body);
    }
    out.int(-1).boolean(true).int(-1);
    out.finish()
}

/// The operation at which a transaction failed, and why.
pub(super) fn failed(answer: &Bytes) -> Option<(usize, i32)> {
    let mut input = Input::new(answer);
    let mut at = 0;
    while input.remaining() == answer.len() || at > 0 {
        let (code, last, error) = (input.int().ok()?, input.boolean().ok()?, input.int().ok()?);
        if last || code != opcode::ERROR {
            return None;
        }
        input.int().ok()?;
        if error != 0 {
            return Some((at, error));
        }
        at += 1;
    }
    None
}

pub(super) fn rewatch(paths: impl Iterator<Item = String>) -> Bytes {
    watches_since(0, paths, [].into_iter())
}

/// What a client watches that saw this transaction last: data, and nodes that were not there.
fn watches_since(
    seen: i64,
    data: impl Iterator<Item = String>,
    exists: impl Iterator<Item = String>,
) -> Bytes {
    let mut out = Output::new();
    out.long(seen);
    for list in [data.collect::<Vec<_>>(), exists.collect()] {
        out.length(list.len());
        for path in &list {
            out.text(path);
        }
    }
    out.length(0);
    out.finish()
}

fn over(world: &World, at: Attachment) -> bool {
    let view = troth_exec::StateView::new(&world.map);
    let session = crate::sessions::Session::find(&mut &view, at.session).expect("the session stays");
    session.at() != at && session.watches == NOBODYS
}

#[test]
fn a_session_that_would_hear_too_much_of_one_operation_hears_that_it_is_to_connect_anew() {
    let mut world = World::new();
    let (at, other, third) = (world.open(1), world.open(2), world.open(2));
    world.create(at, "/a", "", 0);
    world.well(other, opcode::ADD_WATCH, add_watch("/a", 0));
    world.well(third, opcode::GET_DATA, watching("/a", true));
    world.told();
    world.well(at, opcode::MULTI, times(MAX_EVENTS, opcode::SET_DATA, &set("/a", "x", -1)));
    assert_eq!(world.fired().len(), MAX_EVENTS + 1);
    world.well(third, opcode::GET_DATA, watching("/a", true));
    let seen = world.stat(third, "/a").expect("a node").modified_zxid;
    world.well(at, opcode::MULTI, times(MAX_EVENTS + 1, opcode::SET_DATA, &set("/a", "x", -1)));
    let told = world.told();
    let [(2, Notice::Fired { at: fired, .. }), (2, Notice::Over(ended))] = &told[..] else {
        panic!("nothing by halves: {told:?}")
    };
    assert_eq!((*fired, *ended), (third, other));
    assert!(over(&world, other));
    // What it watched is nobody's, and goes where it is found.
    world.well(at, opcode::SET_DATA, set("/a", "y", -1));
    assert_eq!(world.told(), vec![]);
    assert_eq!((world.entries(b'w'), world.entries(b'o')), (0, 0));
    world.well(third, opcode::GET_DATA, watching("/a", true));
    assert_eq!(world.tally().watches, 1, "nobody's count for nothing");
    let ping = Operation::Request { at: other, code: opcode::PING, body: Bytes::new() };
    let moved = Code::SessionMoved.number();
    assert!(matches!(world.run(2, &ping), Answer::Reply { error, .. } if error == moved));
    // The client connects anew, and nothing is lost.
    let (session, password) = (other.session, super::support::secret(2));
    let attach = attaching(2, session, password);
    let Answer::Attached { at: anew, .. } = world.run(2, &attach) else { panic!("it attaches") };
    assert!(anew.number > other.number);
    assert_eq!(world.tally().watches, 1);
    world.told();
    let mut out = Output::new();
    out.long(seen).length(1).text("/a").length(0).length(0);
    world.well(anew, opcode::SET_WATCHES, out.finish());
    assert_eq!(world.fired(), [(session, Kind::DataChanged as i32, "/a".to_owned())]);
}

#[test]
fn what_a_client_that_connects_anew_has_missed_is_told_once_and_not_without_end() {
    let mut world = World::new();
    let (at, other) = (world.open(1), world.open(1));
    world.well(at, opcode::SET_WATCHES, rewatch((0..60_000).map(|_| "/gone".to_owned())));
    assert_eq!(world.fired(), [(at.session, Kind::Deleted as i32, "/gone".to_owned())]);
    world.well(at, opcode::SET_WATCHES, rewatch((0..MAX_MISSED).map(|number| format!("/gone{number}"))));
    assert_eq!(world.fired().len(), MAX_MISSED);
    world.well(at, opcode::SET_WATCHES, rewatch((0..=MAX_MISSED).map(|number| format!("/gone{number}"))));
    assert_eq!(world.told(), [(1, Notice::Over(at))], "one word, and the gateway's other sessions stay");
    assert!(over(&world, at) && !over(&world, other));
}

#[test]
fn a_transaction_that_is_too_much_to_tell_does_not_happen_and_a_single_change_does() {
    let mut world = World::new();
    let at = world.open(1);
    let long = format!("/{}", "x".repeat(3_900));
    let looks = MAX_WORK / (LOOK + long.len() + IDENTITY);
    world.create(at, &long, "", 0);
    let sessions: Vec<Attachment> = (0..looks / MAX_EVENTS + 1).map(|_| world.open(2)).collect();
    for session in &sessions {
        world.well(*session, opcode::ADD_WATCH, add_watch(&long, 0));
    }
    world.told();
    let before = world.stat(at, &long);
    let changes = looks / sessions.len() + 1;
    assert!(changes <= MAX_EVENTS);
    let body = times(changes, opcode::SET_DATA, &set(&long, "x", -1));
    let answer = world.well(at, opcode::MULTI, body);
    assert_eq!(failed(&answer), Some((changes - 1, Code::QuotaExceeded.number())));
    assert_eq!((world.told(), world.stat(at, &long)), (vec![], before), "as a whole, or not at all");
    let body = times(changes - 1, opcode::SET_DATA, &set(&long, "x", -1));
    assert_eq!(failed(&world.well(at, opcode::MULTI, body)), None);
    assert_eq!(world.fired().len(), (changes - 1) * sessions.len());
    // Nobody keeps others from changing a node by watching it: those who are too many connect anew.
    for _ in sessions.len()..looks + 10 {
        let session = world.open(2);
        world.well(session, opcode::ADD_WATCH, add_watch(&long, 0));
    }
    world.told();
    world.well(at, opcode::SET_DATA, set(&long, "y", -1));
    let told = world.told();
    let fired = told.iter().filter(|(_, notice)| matches!(notice, Notice::Fired { .. })).count();
    assert_eq!((fired, told.len(), world.entries(b'w')), (looks, looks + 10, looks));
}

#[test]
fn a_transaction_looks_at_only_so_many_entries_of_lists() {
    let mut world = World::new();
    let at = world.open(1);
    let list = world_and(MAX_ENTRIES - 1);
    world.well(at, opcode::CREATE, create_for("/a", "", &list, 0));
    let most = MAX_LOOKED / list.len();
    let check = super::support::versioned("/a", -1);
    let answer = world.well(at, opcode::MULTI, times(most, opcode::CHECK, &check));
    assert_eq!(failed(&answer), None);
    let answer = world.well(at, opcode::MULTI, times(most + 1, opcode::CHECK, &check));
    assert_eq!(failed(&answer), Some((most, Code::QuotaExceeded.number())));
}

/// What looks at nodes without changing them is bounded as transactions are.
#[test]
fn reads_look_at_only_so_many_entries_of_lists() {
    let mut world = World::new();
    let at = world.open(1);
    let list = world_and(MAX_ENTRIES - 1);
    world.well(at, opcode::CREATE, create_for("/a", "", &list, 0));
    let quota = Code::QuotaExceeded.number();
    let most = MAX_LOOKED / (1 + list.len());
    let reads = |count| times(count, opcode::GET_DATA, &watching("/a", false));
    assert!(world.read(at, opcode::MULTI_READ, reads(most)).is_ok());
    assert_eq!(world.read(at, opcode::MULTI_READ, reads(most + 1)), Err(quota));
    // Reads in one operation: each by itself shows it.
    let asked = |count| vec![Asked { code: opcode::EXISTS, body: watching("/a", false) }; count];
    let together = 4096 / (1 + list.len());
    let answer = world.run(1, &Operation::Reads { at, reads: asked(together) });
    assert!(matches!(answer, Answer::Replies { replies, .. } if replies.len() == together));
    let answer = world.run(1, &Operation::Reads { at, reads: asked(together + 1) });
    assert!(matches!(answer, Answer::Reply { error, .. } if error == quota));
}

/// Lists that others made long keep nobody from watching again what it watched: clients hear of no error there.
#[test]
fn watches_are_set_again_on_nodes_with_any_lists() {
    let mut world = World::new();
    let at = world.open(1);
    let list = world_and(MAX_ENTRIES - 1);
    let nodes = MAX_LOOKED / MAX_ENTRIES + 2;
    for number in 0..nodes {
        world.well(at, opcode::CREATE, create_for(&format!("/{number}"), "", &list, 0));
    }
    let seen = world.stat(at, "/").expect("the root").children_zxid;
    let watches = (0..nodes).map(|number| format!("/{number}"));
    world.well(at, opcode::SET_WATCHES, watches_since(seen, watches, [].into_iter()));
    assert_eq!((world.told(), world.entries(b'w')), (vec![], nodes));
    world.well(at, opcode::SET_DATA, set("/7", "y", -1));
    assert_eq!(world.fired().len(), 1);
}

/// As many as a session may have; what is said twice is one.
#[test]
fn more_watches_than_a_session_may_have_are_not_set_again_and_end_its_attachment() {
    let mut world = World::new();
    let (at, other) = (world.open(1), world.open(1));
    let most = usize::try_from(MAX_WATCHES).expect("few");
    let paths = |count: usize| (0..count).map(|number| format!("/{number:x}"));
    let missing = |paths: &mut dyn Iterator<Item = String>| watches_since(0, [].into_iter(), paths);
    world.well(at, opcode::SET_WATCHES, missing(&mut paths(most).chain(paths(most))));
    assert_eq!((world.entries(b'w'), world.told()), (most, vec![]));
    world.well(other, opcode::SET_WATCHES, missing(&mut paths(most + 1)));
    assert!(over(&world, other), "it has to connect anew");
    assert_eq!(world.told(), [(1, Notice::Over(other))], "and nobody else");
    assert_eq!(world.entries(b'w'), most);
}

/// Who watches what others change makes each change dearer by what is compared for that.
#[test]
fn watchers_with_many_identities_of_nodes_with_long_lists_are_told_less() {
    let mut world = World::new();
    let at = world.open(1);
    let list = world_and(MAX_ENTRIES - 1);
    world.well(at, opcode::CREATE, create_for("/a", "", &list, 0));
    let each = LOOK + 2 + IDENTITY * MAX_ENTRIES;
    let looks = MAX_WORK / each;
    for _ in 0..looks + 5 {
        let session = world.open(2);
        world.well(session, opcode::ADD_WATCH, add_watch("/a", 0));
    }
    world.well(at, opcode::SET_DATA, set("/a", "y", -1));
    let told = world.told();
    let fired = told.iter().filter(|(_, notice)| matches!(notice, Notice::Fired { .. })).count();
    assert!((looks..=looks + 1).contains(&fired), "{fired} of {looks}");
    assert_eq!(told.len(), looks + 5, "the others connect anew");
}

fn world_and(others: usize) -> Vec<Acl> {
    let other = |number| Acl { perms: perms::ALL, id: Id::new("sasl", &format!("{number}")) };
    world().into_iter().chain((0..others).map(other)).collect()
}

#[test]
fn a_transaction_begins_one_quota() {
    let mut world = World::new();
    let at = world.open(1);
    world.create(at, "/zookeeper/quota/a", "", 0);
    let stats = |out: &mut Output| {
        out.text("/zookeeper/quota/a/zookeeper_stats").text("");
        put_acl(out, &self::world());
        out.int(0);
    };
    let mut out = Output::new();
    stats(&mut out);
    let create = out.finish();
    let mut out = Output::new();
    out.int(opcode::CREATE).boolean(false).int(-1).raw(&create);
    out.int(opcode::DELETE).boolean(false).int(-1).text("/zookeeper/quota/a/zookeeper_stats").int(-1);
    out.int(opcode::CREATE).boolean(false).int(-1).raw(&create);
    out.int(-1).boolean(true).int(-1);
    let answer = world.well(at, opcode::MULTI, out.finish());
    assert_eq!(failed(&answer), Some((2, Code::QuotaExceeded.number())));
    assert_eq!(failed(&world.well(at, opcode::MULTI, times(1, opcode::CREATE, &create))), None);
}

/// What a transaction took away the first time it does not look at again each time.
#[test]
fn a_transaction_that_changes_a_watched_node_again_and_again_looks_at_the_watches_once() {
    let mut world = World::new();
    let at = world.open(1);
    world.create(at, "/a", "", 0);
    for _ in 0..10 {
        let session = world.open(2);
        world.well(session, opcode::GET_DATA, watching("/a", true));
    }
    world.told();
    SCANS.set(0);
    let answer = world.well(at, opcode::MULTI, times(5_000, opcode::SET_DATA, &set("/a", "y", -1)));
    assert_eq!(failed(&answer), None);
    assert_eq!((world.fired().len(), SCANS.get()), (10, 1));
    // Who watches meanwhile is found.
    world.well(at, opcode::GET_DATA, watching("/a", true));
    world.well(at, opcode::SET_DATA, set("/a", "z", -1));
    assert_eq!((world.fired().len(), SCANS.get()), (1, 2));
}

/// One operation may end many attachments, and takes nothing of theirs away but what it finds.
#[test]
fn what_one_who_would_hear_too_much_watched_is_taken_away_when_it_is_attached_again() {
    let mut world = World::new();
    let (at, other) = (world.open(1), world.open(2));
    world.create(at, "/a", "", 0);
    let missing = (0..1_000).map(|number| format!("/missing{number}"));
    let mut out = Output::new();
    let paths: Vec<String> = missing.collect();
    out.long(i64::MAX).length(0).length(paths.len());
    for path in &paths {
        out.text(path);
    }
    out.length(0);
    world.well(other, opcode::SET_WATCHES, out.finish());
    world.well(other, opcode::ADD_WATCH, add_watch("/a", 0));
    world.well(at, opcode::MULTI, times(MAX_EVENTS + 1, opcode::SET_DATA, &set("/a", "x", -1)));
    assert!(over(&world, other));
    assert_eq!(world.entries(b'w'), 1_001, "not in the operation of somebody else");
    world.told();
    world.create(at, "/missing7", "", 0);
    assert_eq!((world.fired(), world.entries(b'w')), (vec![], 1_000));
    let (session, password) = (other.session, super::support::secret(2));
    let attach = attaching(2, session, password);
    assert!(matches!(world.run(2, &attach), Answer::Attached { .. }));
    assert_eq!((world.entries(b'w'), world.entries(b'o')), (0, 0));
}

#[test]
fn numbers_of_a_quota_are_read_from_few_bytes_only() {
    let mut world = World::of(crate::ZooKeeper { enforces_quotas: true, ..crate::ZooKeeper::default() });
    let at = world.open(1);
    for path in ["/q", "/zookeeper/quota/q"] {
        world.create(at, path, "", 0);
    }
    let limits = format!("{}countHardLimit=1", "x=1,".repeat(100));
    world.create(at, "/zookeeper/quota/q/zookeeper_limits", &limits, 0);
    world.create(at, "/zookeeper/quota/q/zookeeper_stats", "", 0);
    world.create(at, "/q/one", "", 0);
    world.well(at, opcode::SET_DATA, set("/zookeeper/quota/q/zookeeper_limits", "countHardLimit=2", -1));
    let refused = world.ill(at, opcode::CREATE, create_for("/q/two", "", &super::support::world(), 0));
    assert_eq!(refused, Code::QuotaExceeded.number());
}

#[test]
fn identities_that_are_compared_with_a_list_count_as_its_entries() {
    let mut world = World::new();
    let who: Vec<Id> = (0..60).map(|number| Id::new("sasl", &format!("{number}"))).collect();
    let at = world.open_as(1, who);
    let list = vec![Acl { perms: perms::ALL, id: Id::new("sasl", "7") }];
    world.well(at, opcode::CREATE, create_for("/a", "", &list, 0));
    let most = MAX_LOOKED / 61;
    let check = super::support::versioned("/a", -1);
    assert_eq!(failed(&world.well(at, opcode::MULTI, times(most, opcode::CHECK, &check))), None);
    let answer = world.well(at, opcode::MULTI, times(most + 1, opcode::CHECK, &check));
    assert_eq!(failed(&answer), Some((most, Code::QuotaExceeded.number())));
}

#[test]
fn paths_that_a_session_watches_take_only_so_many_bytes() {
    let mut world = World::new();
    let at = world.open(1);
    let long = |number: usize| format!("/{number:0>3999}");
    let most = MAX_WATCHED_BYTES as usize / 4000;
    for number in 0..most {
        world.ill(at, opcode::EXISTS, watching(&long(number), true));
    }
    assert_eq!(world.tally().watches, most as u64);
    let one_more = watching(&long(most), true);
    assert_eq!(world.ill(at, opcode::EXISTS, one_more.clone()), Code::QuotaExceeded.number());
    // What it watches already takes nothing more, and what it watches no longer leaves room.
    assert_eq!(world.ill(at, opcode::EXISTS, watching(&long(0), true)), Code::NoNode.number());
    let mut out = Output::new();
    out.text(&long(0)).int(3);
    world.well(at, opcode::REMOVE_WATCHES, out.finish());
    assert_eq!(world.ill(at, opcode::EXISTS, one_more), Code::NoNode.number());
}
