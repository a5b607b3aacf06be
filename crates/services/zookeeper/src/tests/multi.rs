//! Transactions: all or nothing.

use super::support::{Stat, World, put_acl, world};
use crate::jute::{Input, Output};
use crate::{Code, MAX_SHOWN, opcode};

fn header(out: &mut Output, code: i32) -> &mut Output {
    out.int(code).boolean(false).int(-1)
}

fn end(mut out: Output) -> bytes::Bytes {
    out.int(-1).boolean(true).int(-1);
    out.finish()
}

fn create(out: &mut Output, code: i32, path: &str, flags: i32) {
    header(out, code).text(path).text("data");
    put_acl(out, &world());
    out.int(flags);
}

#[test]
fn a_transaction_happens_as_a_whole_under_one_number() {
    let mut world = World::new();
    let at = world.open(1);
    let mut out = Output::new();
    create(&mut out, opcode::CREATE, "/a", 0);
    create(&mut out, opcode::CREATE2, "/a/b-", 2);
    header(&mut out, opcode::SET_DATA).text("/a").text("new").int(0);
    header(&mut out, opcode::CHECK).text("/a").int(1);
    header(&mut out, opcode::DELETE).text("/a/b-0000000000").int(-1);
    let answer = world.well(at, opcode::MULTI, end(out));
    let mut input = Input::new(&answer);
    let head = |input: &mut Input<'_>, code, done| {
        assert_eq!((input.int(), input.boolean()), (Ok(code), Ok(done)));
        input.int().expect("an error")
    };
    assert_eq!(head(&mut input, opcode::CREATE, false), 0);
    assert_eq!(input.text(), Ok(Some("/a".to_owned())));
    head(&mut input, opcode::CREATE2, false);
    assert_eq!(input.text(), Ok(Some("/a/b-0000000000".to_owned())));
    // As it was then: the same transaction deletes it.
    assert_eq!(Stat::read(&mut input).length, 4);
    head(&mut input, opcode::SET_DATA, false);
    let stat = Stat::read(&mut input);
    assert_eq!((stat.version, stat.length), (1, 3));
    head(&mut input, opcode::CHECK, false);
    head(&mut input, opcode::DELETE, false);
    head(&mut input, opcode::ERROR, true);
    assert_eq!(input.remaining(), 0);
    let after = world.stat(at, "/a").expect("a node");
    assert_eq!((after.created_zxid, after.modified_zxid), (after.children_zxid, after.children_zxid));
}

#[test]
fn one_that_fails_changes_nothing_and_says_where() {
    let mut world = World::new();
    let at = world.open(1);
    let before = world.map.tree_now().digest();
    let mut out = Output::new();
    create(&mut out, opcode::CREATE, "/a", 1);
    create(&mut out, opcode::CREATE, "/a/b", 0);
    create(&mut out, opcode::CREATE, "/c", 0);
    let answer = world.well(at, opcode::MULTI, end(out));
    assert_eq!(world.map.tree_now().digest(), before);
    let mut input = Input::new(&answer);
    let mut errors = Vec::new();
    for _ in 0..3 {
        assert_eq!((input.int(), input.boolean()), (Ok(opcode::ERROR), Ok(false)));
        let error = input.int().expect("an error");
        assert_eq!(input.int(), Ok(error));
        errors.push(error);
    }
    let no_children = Code::NoChildrenForEphemerals.number();
    assert_eq!(errors, [0, no_children, Code::RuntimeInconsistency.number()]);
    assert_eq!((input.int(), input.boolean(), input.int()), (Ok(-1), Ok(true), Ok(-1)));
    assert!(world.fired().is_empty());
}

#[test]
fn several_reads_are_one_and_each_has_its_own_error() {
    let mut world = World::new();
    let at = world.open(1);
    world.create(at, "/a", "x", 0);
    let mut out = Output::new();
    header(&mut out, opcode::GET_DATA).text("/a").boolean(false);
    header(&mut out, opcode::GET_CHILDREN).text("/").boolean(false);
    header(&mut out, opcode::GET_DATA).text("/b").boolean(false);
    let answer = world.read(at, opcode::MULTI_READ, end(out)).expect("answers");
    let mut input = Input::new(&answer);
    assert_eq!((input.int(), input.boolean(), input.int()), (Ok(opcode::GET_DATA), Ok(false), Ok(0)));
    assert_eq!(input.text(), Ok(Some("x".to_owned())));
    Stat::read(&mut input);
    assert_eq!((input.int(), input.boolean(), input.int()), (Ok(opcode::GET_CHILDREN), Ok(false), Ok(0)));
    let names = input.vector(4, Input::text).expect("names").expect("names");
    assert_eq!(names.len(), 2);
    let no_node = Ok(Code::NoNode.number());
    assert_eq!(
        (input.int(), input.boolean(), input.int(), input.int()),
        (Ok(-1), Ok(false), no_node, no_node)
    );
}

#[test]
fn what_reads_show_together_is_bounded_and_nothing_is_shown_past_it() {
    let mut world = World::new();
    let at = world.open(1);
    let data = "x".repeat(1_000_000);
    world.create(at, "/a", &data, 0);
    let reads = |times| {
        let mut out = Output::new();
        for _ in 0..times {
            header(&mut out, opcode::GET_DATA).text("/a").boolean(false);
        }
        end(out)
    };
    assert!(world.read(at, opcode::MULTI_READ, reads(2)).expect("two").len() > 2_000_000);
    let refused = Err(Code::MarshallingError.number());
    assert_eq!(world.read(at, opcode::MULTI_READ, reads(3)), refused);
    // 60 GB, and no replica makes more of it than is shown.
    assert_eq!(world.read(at, opcode::MULTI_READ, reads(60_000)), refused);
}

#[test]
fn a_list_of_names_is_bounded() {
    let mut world = World::new();
    let at = world.open(1);
    let name = "x".repeat(3_900);
    for number in 0..MAX_SHOWN / 3_900 - 1 {
        world.create(at, &format!("/zookeeper/{name}{number:04}"), "", 1);
    }
    let asked = |prefix: &str| super::support::path(prefix);
    world.read(at, opcode::GET_CHILDREN, super::support::watching("/zookeeper", false)).expect("as much");
    for number in 0..3 {
        world.create(at, &format!("/zookeeper/{name}last{number}"), "", 1);
    }
    let refused = Err(Code::MarshallingError.number());
    let children = super::support::watching("/zookeeper", false);
    assert_eq!(world.read(at, opcode::GET_CHILDREN, children.clone()), refused);
    assert_eq!(world.read(at, opcode::GET_CHILDREN2, children), refused);
    assert_eq!(world.read(at, opcode::GET_EPHEMERALS, asked("/")), refused);
    let few =
        world.read(at, opcode::GET_EPHEMERALS, asked(&format!("/zookeeper/{name}last"))).expect("three");
    let paths = Input::new(&few).vector(4, Input::text).expect("paths").expect("paths");
    assert_eq!((paths.len(), paths[2].as_deref()), (3, Some(&*format!("/zookeeper/{name}last2"))));
}

#[test]
fn what_does_not_belong_in_a_transaction_is_refused() {
    let mut world = World::new();
    let at = world.open(1);
    for code in [opcode::GET_DATA, opcode::SET_ACL, opcode::MULTI] {
        let mut out = Output::new();
        header(&mut out, code).text("/").boolean(false);
        assert_eq!(world.ill(at, opcode::MULTI, end(out)), Code::MarshallingError.number());
    }
    // Nor is one without an end.
    let mut out = Output::new();
    create(&mut out, opcode::CREATE, "/a", 0);
    assert_eq!(world.ill(at, opcode::MULTI, out.finish()), Code::MarshallingError.number());
    assert_eq!(world.well(at, opcode::MULTI, end(Output::new())).len(), 9);
}
