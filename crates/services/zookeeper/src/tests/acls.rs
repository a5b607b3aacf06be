//! Who may do what.

use super::support::{World, create, create_for, path, put_acl, set, versioned, watching};
use crate::acl::{Acl, Id, digest_id, permits, perms, settle};
use crate::jute::{Input, Output};
use crate::message::Operation;
use crate::proof::{Carrier, key_of, prove};
use crate::{Code, MAX_WHO, ZooKeeper, acl, opcode};
use bytes::Bytes;
use troth_types::{ClientId, GroupId};

fn auth(scheme: &str, credentials: &str) -> Bytes {
    let mut out = Output::new();
    out.int(0).text(scheme).text(credentials);
    out.finish()
}

fn only(scheme: &str, id: &str) -> Vec<Acl> {
    vec![Acl { perms: perms::ALL, id: Id::new(scheme, id) }]
}

#[test]
fn a_password_makes_its_user_by_the_digest_that_zookeeper_computes() {
    assert_eq!(digest_id("super:test"), "super:D/InIHSb7yEEbrWz8b9l71RjZJU=");
    let mut world = World::new();
    let (at, other) = (world.open(1), world.open(2));
    world.well(at, opcode::AUTH, auth("digest", "user:secret"));
    world.well(at, opcode::CREATE, create_for("/mine", "x", &only("auth", ""), 0));
    assert_eq!(world.get(at, "/mine").expect("own").0, Bytes::from("x"));
    for (code, body) in [
        (opcode::GET_DATA, watching("/mine", false)),
        (opcode::GET_CHILDREN, watching("/mine", false)),
        (opcode::SET_DATA, set("/mine", "y", -1)),
        (opcode::CREATE, create("/mine/child", "", 0)),
        (opcode::GET_ACL, path("/mine")),
        (opcode::GET_ALL_CHILDREN_NUMBER, path("/mine")),
    ] {
        assert_eq!(world.ill(other, code, body), Code::NoAuth.number(), "operation {code}");
    }
    // That it is there anybody may know, and who may delete it says its parent.
    world.stat(other, "/mine").expect("a node");
    world.well(other, opcode::AUTH, auth("digest", "user:wrong"));
    assert_eq!(world.get(other, "/mine"), Err(Code::NoAuth.number()));
    world.well(other, opcode::AUTH, auth("digest", "user:secret"));
    world.get(other, "/mine").expect("the same user");
    assert_eq!(world.ill(at, opcode::AUTH, auth("unheard-of", "x")), Code::AuthFailed.number());
}

#[test]
fn an_identity_that_is_none_at_all_is_an_empty_one() {
    let mut world = World::new();
    let at = world.open(1);
    world.well(at, opcode::AUTH, auth("digest", "user:secret"));
    let created = |scheme: i32| {
        let mut out = Output::new();
        out.text("/mine").text("x").length(1).int(perms::ALL);
        match scheme {
            -1 => out.int(-1).text(""),
            _ => out.text("auth").int(-1),
        };
        out.int(0);
        out.finish()
    };
    assert_eq!(world.ill(at, opcode::CREATE, created(-1)), Code::InvalidAcl.number());
    world.well(at, opcode::CREATE, created(0));
    let shown = world.well(at, opcode::GET_ACL, path("/mine"));
    let list = Input::new(&shown).vector(12, Acl::read).expect("a list").expect("a list");
    assert_eq!(list, only("digest", &digest_id("user:secret")));
}

#[test]
fn the_superuser_may_do_everything() {
    let superuser = Some(digest_id("super:test"));
    let mut world = World::of(ZooKeeper { superuser, ..ZooKeeper::default() });
    let (at, boss) = (world.open(1), world.open(2));
    world.well(at, opcode::AUTH, auth("digest", "user:secret"));
    world.well(at, opcode::CREATE, create_for("/mine", "x", &only("auth", ""), 0));
    assert_eq!(world.get(boss, "/mine"), Err(Code::NoAuth.number()));
    world.well(boss, opcode::AUTH, auth("digest", "super:test"));
    world.get(boss, "/mine").expect("everything");
}

#[test]
fn nobody_says_of_themselves_that_they_are_super() {
    let mut world = World::new();
    let at = world.open_as(1, vec![Id::new("super", ""), Id::new("digest", "a:b"), Id::new("x509", "CN=me")]);
    let answer = world.read(at, opcode::WHO_AM_I, Bytes::new()).expect("an answer");
    let mut input = Input::new(&answer);
    let who = input.vector(8, |input| Ok((input.text()?, input.text()?))).expect("a list").expect("a list");
    assert_eq!(who, [(Some("x509".to_owned()), Some("CN=me".to_owned()))]);
    let identify = |scheme, id| Operation::Identify { at, id: Id::new(scheme, id) };
    for (scheme, well) in [("super", false), ("world", false), ("sasl", true)] {
        let answer = world.run(1, &identify(scheme, "somebody"));
        let expected = if well { 0 } else { Code::AuthFailed.number() };
        assert!(matches!(answer, crate::Answer::Reply { error, .. } if error == expected), "{scheme}");
    }
}

#[test]
fn a_session_is_no_more_than_can_be_read_again() {
    let mut world = World::new();
    let at = world.open(1);
    let refused = Code::AuthFailed.number();
    let long = "x".repeat(5_000);
    assert_eq!(world.ill(at, opcode::AUTH, auth("digest", &long)), refused);
    assert_eq!(world.ill(at, opcode::AUTH, auth("digest", &long[..acl::MAX_ID - 28])), refused, "by a byte");
    world.well(at, opcode::AUTH, auth("digest", &long[..acl::MAX_ID - 29]));
    // Nor more of them than that.
    for number in 0..3 {
        let credentials = format!("{number:04}{}", &long[..1_000]);
        world.well(at, opcode::AUTH, auth("digest", &credentials));
    }
    assert_eq!(world.ill(at, opcode::AUTH, auth("digest", &long[..4_000])), refused, "too many bytes");
    world.stat(at, "/").expect("the session is there");
    let other = world.open(1);
    for number in 0..MAX_WHO {
        world.well(other, opcode::AUTH, auth("digest", &format!("{number}")));
    }
    assert_eq!(world.ill(other, opcode::AUTH, auth("digest", "one more")), refused);
    let who = vec![Id::new("x509", &long[..4_000]); 17];
    let open = Operation::Open { timeout: 1, key: key_of(&[1; 16]), who: who.clone() };
    let carrier = Carrier { group: GroupId::default(), gateway: ClientId(1) };
    let proof = prove(&super::support::secret(1), carrier, at.session);
    let attach = Operation::Attach { session: at.session, proof, timeout: 1, who };
    for operation in [open, attach] {
        let answer = world.run(1, &operation);
        assert!(matches!(answer, crate::Answer::Reply { error, .. } if error == refused), "{answer:?}");
    }
    world.decodes();
}

#[test]
fn lists_make_sense_or_are_refused() {
    let who = [Id::new("ip", "10.0.0.1"), Id::new("digest", "me:x")];
    let good = |list: Vec<Acl>| settle(Some(list), &who);
    assert_eq!(settle(None, &who), Err(Code::InvalidAcl));
    assert_eq!(good(vec![]), Err(Code::InvalidAcl));
    assert_eq!(good(only("auth", "whatever")), Ok(only("digest", "me:x")));
    assert_eq!(settle(Some(only("auth", "")), &who[..1]), Err(Code::InvalidAcl), "an address is no proof");
    for (scheme, id) in [
        ("world", "all"),
        ("digest", "no colon"),
        ("ip", "here"),
        ("ip", "10.0.0.1/33"),
        ("sasl", ""),
        ("new", "x"),
    ] {
        assert_eq!(good(only(scheme, id)), Err(Code::InvalidAcl), "{scheme}:{id}");
    }
    // Refused at the bound, not behind it: a thousand times everybody would be many.
    let crowd: Vec<Id> =
        (0..acl::MAX_ENTRIES).map(|number| Id::new("digest", &format!("{number}:x"))).collect();
    let times =
        |perms: i32| (0..1024).map(move |at| Acl { perms: perms * at, id: Id::new("auth", "") }).collect();
    assert_eq!(settle(Some(times(0)), &crowd).map(|list| list.len()), Ok(acl::MAX_ENTRIES), "each once");
    assert_eq!(settle(Some(times(1)), &crowd), Err(Code::InvalidAcl));
    let long =
        |count: usize| (0..count).map(|at| only("sasl", &format!("{at:04000}"))).collect::<Vec<_>>().concat();
    assert_eq!(good(long(2)).map(|list| list.len()), Ok(2));
    assert_eq!(good(long(3)), Err(Code::InvalidAcl), "in bytes");
    let twice = [only("digest", "a:b"), only("digest", "a:b")].concat();
    assert_eq!(good(twice), Ok(only("digest", "a:b")));
}

#[test]
fn who_has_one_of_many_identities_in_one_of_many_entries_may() {
    let many = |scheme: &str, count: usize| -> Vec<Id> {
        (0..count).map(|number| Id::new(scheme, &format!("{number}"))).collect()
    };
    let list: Vec<Acl> = many("sasl", 50).into_iter().map(|id| Acl { perms: perms::READ, id }).collect();
    let own = |id: Id| many("x509", 50).into_iter().chain([id]).collect::<Vec<_>>();
    assert!(permits(&list, perms::READ, &own(Id::new("sasl", "49"))));
    assert!(!permits(&list, perms::WRITE, &own(Id::new("sasl", "49"))), "something else");
    assert!(!permits(&list, perms::READ, &own(Id::new("sasl", "50"))));
    assert!(!permits(&list, perms::READ, &own(Id::new("digest", "49"))), "by another scheme");
    // An address by its network alone, and no other identity by that.
    let network = only("ip", "10.0.0.0/8");
    assert!(permits(&network, perms::READ, &own(Id::new("ip", "10.9.9.9"))));
    assert!(!permits(&network, perms::READ, &own(Id::new("ip", "10.0.0.0/8"))));
    assert!(!permits(&network, perms::READ, &own(Id::new("sasl", "10.9.9.9"))));
}

#[test]
fn networks_have_their_bits() {
    let may = |address: &str, of: &str| permits(&only("ip", of), perms::READ, &[Id::new("ip", address)]);
    assert!(may("10.1.2.3", "10.1.2.3") && may("10.1.2.3", "10.1.0.0/16") && may("10.1.2.3", "0.0.0.0/0"));
    assert!(!may("10.1.2.3", "10.1.2.4") && !may("10.2.2.3", "10.1.0.0/16") && !may("::1", "0.0.0.0/0"));
    assert!(may("fe80::1", "fe80::/10") && !may("ff80::1", "fe80::/10"));
}

#[test]
fn a_list_is_changed_by_who_may_and_shown_masked_to_others() {
    let mut world = World::new();
    let (at, other) = (world.open(1), world.open(2));
    world.well(at, opcode::AUTH, auth("digest", "user:secret"));
    world.create(at, "/a", "", 0);
    let body = |list: &[Acl], version| {
        let mut out = Output::new();
        out.text("/a");
        put_acl(&mut out, list);
        out.int(version);
        out.finish()
    };
    let mut list = only("auth", "");
    list.push(Acl::world(perms::READ));
    world.well(at, opcode::SET_ACL, body(&list, 0));
    assert_eq!(world.ill(at, opcode::SET_ACL, body(&list, 0)), Code::BadVersion.number());
    assert_eq!(world.ill(other, opcode::SET_ACL, body(&list, 1)), Code::InvalidAcl.number());
    assert_eq!(world.ill(other, opcode::SET_ACL, body(&list[1..], 1)), Code::NoAuth.number());
    assert_eq!(world.stat(at, "/a").expect("a node").acl_version, 1);
    let mut shown = |at| {
        let answer = world.read(at, opcode::GET_ACL, path("/a")).expect("a list");
        let list = Input::new(&answer).vector(12, Acl::read).expect("a list").expect("a list");
        list[0].id.id.clone()
    };
    assert_eq!((shown(at), shown(other)), (digest_id("user:secret"), "user:x".to_owned()));
    assert_eq!(world.ill(other, opcode::SET_DATA, set("/a", "x", -1)), Code::NoAuth.number());
    world.well(other, opcode::DELETE, versioned("/a", -1));
}

#[test]
fn credentials_are_a_text_whatever_their_bytes() {
    let mut world = World::new();
    let at = world.open(1);
    let mut out = Output::new();
    out.int(0).text("digest").buffer(b"user:p\xe4ss");
    world.well(at, opcode::AUTH, out.finish());
    world.well(at, opcode::AUTH, auth("digest", "user:p\u{fffd}ss"));
    let session = crate::sessions::Session::find(&mut &troth_exec::StateView::new(&world.map), at.session);
    let who = session.expect("open").who;
    assert_eq!(who.iter().filter(|id| id.scheme == "digest").count(), 1, "one and the same: {who:?}");
}

#[test]
fn nobody_changes_the_servers_and_each_is_told_why() {
    let superuser = Some(digest_id("super:test"));
    let mut world = World::of(ZooKeeper { superuser, ..ZooKeeper::default() });
    let at = world.open(1);
    let request = |joining: &str, leaving: &str| {
        let mut out = Output::new();
        out.text(joining).text(leaving).text("").long(-1);
        out.finish()
    };
    let wanted = request("server.9=h:1:2:observer;0.0.0.0:3", "");
    for wrong in [request("some thing", ""), request("", "one"), request("server.x=h:1:2", "")] {
        assert_eq!(world.ill(at, opcode::RECONFIG, wrong), Code::BadArguments.number());
    }
    assert_eq!(world.ill(at, opcode::RECONFIG, wanted.clone()), Code::NoAuth.number());
    world.well(at, opcode::AUTH, auth("digest", "super:test"));
    for good in [wanted, request("", "1, 2")] {
        assert_eq!(world.ill(at, opcode::RECONFIG, good), Code::ReconfigDisabled.number());
    }
}
