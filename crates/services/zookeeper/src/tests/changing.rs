use super::support::{create as plain, versioned};
use crate::jute::Output;
use crate::{changes, may_change, opcode, path_of};
use bytes::Bytes;

fn create(path: &str, flags: i32) -> Bytes {
    let mut out = Output::new();
    out.text(path).buffer(b"data").length(1).int(31).text("digest").text("me:hash").int(flags);
    out.finish()
}

#[test]
fn changes_are_told_with_their_paths_and_without_secrets() {
    let told = changes(opcode::CREATE, &create("/a\nb", 3));
    assert_eq!((told[0].operation, told[0].path.as_deref()), ("create", Some("/a\nb")));
    assert_eq!(told[0].kind, Some("ephemeral_sequential"));

    let mut out = Output::new();
    out.text("/a").length(2).int(5).text("digest").text("me:hash").int(31).text("ip").text("::1").int(-1);
    let told = changes(opcode::SET_ACL, &out.finish());
    assert_eq!(told[0].acl.as_deref(), Some("digest:me:cr,ip:::1:cdrwa"));

    let mut out = Output::new();
    let entries = [
        ("auth", "me:secret"),
        ("Digest", "me:hash"),
        ("diggest", "me:hash"),
        ("world", "anyone"),
        ("sasl", "me@a"),
    ];
    out.text("/a").length(entries.len());
    for (scheme, id) in entries {
        out.int(1).text(scheme).text(id);
    }
    out.int(-1);
    let told = changes(opcode::SET_ACL, &out.finish());
    assert_eq!(told[0].acl.as_deref(), Some("auth::r,Digest::r,diggest::r,world:anyone:r,sasl:me@a:r"));

    let auth = |scheme: &str, credentials: &[u8]| {
        let mut out = Output::new();
        out.int(0).text(scheme).buffer(credentials);
        changes(opcode::AUTH, &out.finish())[0].who.clone()
    };
    assert_eq!(auth("digest", b"me:secret:more").as_deref(), Some("digest:me"));
    assert_eq!(auth("digest", b"secret").as_deref(), Some("digest:"), "nobody knows which of both it is");
    assert_eq!(auth("other", b"secret").as_deref(), Some("other:"));

    assert_eq!(changes(opcode::SET_DATA, &Bytes::new())[0].operation, "setData");
    assert_eq!(changes(opcode::SET_DATA, &Bytes::new())[0].path, None, "it cannot be read");
    let long = changes(opcode::CREATE, &create(&"ü".repeat(9_000), 0))[0].path.clone();
    assert_eq!(long.map(|path| path.len()), Some(crate::MAX_PATH));
    for code in [opcode::GET_DATA, opcode::SET_WATCHES, opcode::PING, opcode::SYNC] {
        assert!(!may_change(code) && changes(code, &Bytes::new()).is_empty());
    }
}

#[test]
fn of_a_transaction_each_part_is_told() {
    let mut out = Output::new();
    out.int(opcode::CREATE).boolean(false).int(-1);
    let first = [&out.finish()[..], &plain("/a", "data", 0)].concat();
    let mut out = Output::new();
    out.int(opcode::DELETE).boolean(false).int(-1);
    let second = [&out.finish()[..], &versioned("/b", -1)].concat();
    let mut out = Output::new();
    out.int(-1).boolean(true).int(-1);
    let body = Bytes::from([first, second, out.finish().to_vec()].concat());
    let told = changes(opcode::MULTI, &body);
    let told: Vec<_> = told.iter().map(|change| (change.operation, change.path.as_deref())).collect();
    assert_eq!(told, [("create", Some("/a")), ("delete", Some("/b"))]);
    assert_eq!(path_of(opcode::MULTI, &body).as_deref(), Some("/a"));
    assert_eq!(path_of(opcode::PING, &Bytes::new()), None);
}
