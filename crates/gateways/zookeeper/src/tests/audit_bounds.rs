//! Clients that make the audit log long, or would have it say what is not so.

use super::marks::covers;
use super::support::{Client, World, auth, create, open_settings, record, set};
use crate::{Log, Place, Record, Settings};
use bytes::Bytes;
use serde_json::Value;
use troth_zookeeper::opcode;

fn opened() -> (World, Client) {
    let users = [("me".to_owned(), "secret".to_owned())].into();
    let audit = Some(Log::at(Place::Stdout));
    let mut world = World::of(1, &Settings { audit, users, ..open_settings() });
    let client = world.open(0);
    world.lines.clear();
    (world, client)
}

/// Lines of what was done or may have been, of what was not done, and how many were lost.
fn lines(world: &mut World) -> (Vec<String>, Vec<String>, u64) {
    let (mut told, mut refused, mut lost) = (Vec::new(), Vec::new(), 0);
    for line in std::mem::take(&mut world.lines) {
        match line {
            Record::Audit(text) => told.push(text),
            Record::Refused(text) => refused.push(text),
            Record::Lost(lines) => lost += lines,
            Record::Slow(_) => panic!("of another log"),
        }
    }
    (told, refused, lost)
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).expect("JSON")
}

/// A transaction of so many parts.
fn transaction(parts: usize, code: i32, part: &[u8]) -> Bytes {
    let header = |code, done| {
        record(|out| {
            out.int(code).boolean(done).int(-1);
        })
    };
    let mut body = Vec::new();
    for _ in 0..parts {
        body.extend_from_slice(&header(code, false));
        body.extend_from_slice(part);
    }
    body.extend_from_slice(&header(-1, true));
    body.into()
}

/// Lets the client prove that it is many, with long names of signs that take the most room.
fn become_many(world: &mut World, client: Client) {
    for number in 0..26 {
        let credentials = format!("{number:02}{}:x", "\u{1}".repeat(250));
        world.ask(client, -4, opcode::AUTH, &auth("digest", &credentials));
    }
    world.lines.clear();
}

#[test]
fn a_transaction_that_fails_has_one_line_however_many_parts_it_has() {
    covers!("ZKG-W5");
    let (mut world, client) = opened();
    become_many(&mut world, client);
    let no_path = record(|out| {
        out.int(-1).int(-1);
    });
    let (error, _) = world.ask(client, 1, opcode::MULTI, &transaction(60_000, opcode::DELETE, &no_path));
    assert_eq!(error, 0, "the group answers of each part");
    let (told, refused, lost) = lines(&mut world);
    assert_eq!((told.len(), refused.len(), lost), (0, 1, 0));
    let line = json(&refused[0]);
    assert_eq!((&line["parts"], &line["part"]), (&60_000.into(), &0.into()));
    assert_eq!((&line["result"], &line["part_operation"]), (&"failure".into(), &"delete".into()));
    assert!(line["error"].as_i64().expect("a number") < 0);
    // Who asked is told in a bounded space, and the newest of it.
    assert!(refused[0].len() < 2048, "{}", refused[0].len());
    let who = line["who"].as_array().expect("a list");
    assert_eq!(who[0], "ip:127.0.0.1");
    assert!(who.last().and_then(Value::as_str).expect("a text").starts_with("digest:25\u{1}"));
    assert_eq!(line["who_more"].as_u64().expect("a number") + who.len() as u64, 27);
}

#[test]
fn the_lines_of_one_transaction_are_bounded_and_what_has_none_is_counted() {
    covers!("ZKG-W5");
    let (mut world, client) = opened();
    let part = set("/", "");
    world.ask(client, 1, opcode::MULTI, &transaction(6_000, opcode::SET_DATA, &part));
    let (told, refused, lost) = lines(&mut world);
    assert_eq!((told.len(), refused.len(), lost), (4096 + 1, 0, 6_000 - 4096));
    let last = json(told.last().expect("a line"));
    assert_eq!((&last["parts"], &last["parts_untold"]), (&6_000.into(), &(6_000 - 4096).into()));
    assert_eq!(last["result"], "success");
    // The same with long lines.
    become_many(&mut world, client);
    world.ask(client, 2, opcode::MULTI, &transaction(5_000, opcode::SET_DATA, &part));
    let (told, _, lost) = lines(&mut world);
    assert!(told.len() < 4096 && told.iter().map(String::len).sum::<usize>() < (2 << 20) + 4096);
    assert_eq!(told.len() as u64 - 1 + lost, 5_000);
}

#[test]
fn what_is_not_done_has_so_many_lines_a_second_and_what_is_done_has_them_all() {
    covers!("ZKG-W5");
    let (mut world, client) = opened();
    world.ask(client, 1, opcode::CREATE, &create("/a", "", 0));
    for xid in 2..302 {
        world.ask(client, xid, opcode::SET_DATA, &set("/none", ""));
        world.ask(client, xid, opcode::SET_DATA, &set("/a", ""));
    }
    let (told, refused, lost) = lines(&mut world);
    assert_eq!((told.len(), refused.len(), lost), (301, 200, 100));
    world.now += 1_000_000;
    world.ask(client, 302, opcode::SET_DATA, &set("/none", ""));
    assert_eq!(lines(&mut world).1.len(), 1);
}

#[test]
fn one_name_with_two_passwords_is_told_apart_and_shows_none() {
    covers!("ZKG-W3");
    let (mut world, _) = opened();
    let mut named = |key: u8, credentials: &str| {
        world.gateways[0].fingerprint_with([key; 32]);
        let client = world.open(0);
        world.ask(client, -4, opcode::AUTH, &auth("digest", credentials));
        let line = lines(&mut world).0.pop().expect("a line");
        json(&line)["as"].as_str().expect("a text").to_owned()
    };
    let all = [(1, "me:secret"), (1, "me:other"), (1, "me:secret"), (2, "me:secret")];
    let [first, other, again, keyed] = all.map(|(key, credentials)| named(key, credentials));
    assert_eq!((first.len(), first.starts_with("digest:me#")), ("digest:me#".len() + 8, true));
    assert_eq!(first, again);
    assert!(first != other && first != keyed);
}

#[test]
fn a_proof_that_does_not_hold_has_a_line() {
    covers!("ZKG-W2");
    let (mut world, client) = opened();
    let token = |words: &str| {
        record(|out| {
            out.buffer(words.as_bytes());
        })
    };
    world.ask(client, 1, opcode::SASL, &token(""));
    assert!(world.lines.is_empty());
    world.ask(client, 2, opcode::SASL, &token("username=\"me\",response=0"));
    let (_, refused, _) = lines(&mut world);
    let line = json(&refused[0]);
    assert_eq!((&line["operation"], &line["as"]), (&"auth".into(), &"sasl:me".into()));
    assert_eq!((&line["result"], &line["error"]), (&"failure".into(), &Value::from(-115)));
}

#[test]
fn what_is_under_way_at_the_end_is_told_as_unknown() {
    covers!("ZKG-W2");
    let (mut world, client) = opened();
    world.send(client, 1, opcode::CREATE, &create("/a", "", 0));
    let now = world.time();
    assert!(world.gateways[0].give_up_one(now) && !world.gateways[0].give_up_one(now));
    let Some(Record::Audit(line)) = world.gateways[0].poll_record() else { panic!("a line") };
    assert_eq!((&json(&line)["path"], &json(&line)["result"]), (&"/a".into(), &"unknown".into()));
}
