//! The lines of the audit log.

use super::marks::covers;
use super::support::{Client, World, auth, create, get, hello, open_settings, record, set};
use crate::{Log, Place, Record, Settings};
use bytes::Bytes;
use serde_json::Value;
use troth_client::ClientError;
use troth_types::Wire;
use troth_zookeeper::{Answer, Code, opcode};

fn world() -> World {
    World::of(1, &Settings { audit: Some(Log::at(Place::Stdout)), ..open_settings() })
}

fn opened() -> (World, Client) {
    let mut world = world();
    let client = world.open(0);
    world.lines.clear();
    (world, client)
}

/// The lines since the last time, each one object.
fn lines(world: &mut World) -> Vec<Value> {
    let text = |line: Record| match line {
        Record::Audit(text) | Record::Refused(text) => text,
        other => panic!("of another log: {other:?}"),
    };
    let all: Vec<String> = std::mem::take(&mut world.lines).into_iter().map(text).collect();
    assert!(all.iter().all(|line| line.bytes().all(|byte| (0x20..0x7f).contains(&byte))));
    all.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Operation, path and result of each.
fn brief(world: &mut World) -> Vec<[String; 3]> {
    let text = |line: &Value, name: &str| line[name].as_str().unwrap_or("-").to_owned();
    let one = |line: &Value| ["operation", "path", "result"].map(|name| text(line, name));
    lines(world).iter().map(one).collect()
}

fn row(operation: &str, path: &str, result: &str) -> [String; 3] {
    [operation, path, result].map(str::to_owned)
}

#[test]
fn each_change_has_a_line_with_who_asked_and_what_came_of_it() {
    covers!("ZKG-W2");
    let (mut world, client) = opened();
    world.ask(client, 1, opcode::CREATE, &create("/a-", "secret data", 3));
    world.ask(client, 2, opcode::SET_DATA, &set("/none", "secret data"));
    world.ask(client, 3, opcode::GET_DATA, &get("/", true));
    world.ask(
        client,
        4,
        opcode::SYNC,
        &record(|out| {
            out.text("/").int(0);
        }),
    );
    let told = lines(&mut world);
    assert_eq!(told.len(), 2, "what reads and watches has none");
    let session = told[0]["session"].as_str().expect("a session").to_owned();
    let expected = serde_json::json!({
        "time": "2023-11-14T22:13:20.000000Z",
        "session": session,
        "client": "127.0.0.1:4000",
        "who": ["ip:127.0.0.1"],
        "operation": "create",
        "path": "/a-0000000000",
        "kind": "ephemeral_sequential",
        "result": "success",
        "zxid": "0x2",
    });
    assert_eq!(told[0], expected);
    assert!(session.starts_with("0x"));
    assert_eq!((&told[1]["result"], &told[1]["error"]), (&"failure".into(), &Value::from(-101)));
    assert!(!told.iter().any(|line| line.to_string().contains("secret")));
    world.ask(client, 5, opcode::CLOSE_SESSION, &Bytes::new());
    assert_eq!(brief(&mut world), [row("closeSession", "-", "success")]);
}

#[test]
fn nothing_is_written_down_where_nobody_asked_for_it() {
    let mut world = World::new();
    let client = world.open(0);
    world.ask(client, 1, opcode::CREATE, &create("/a", "", 0));
    assert!(world.lines.is_empty());
}

#[test]
fn who_a_client_proved_to_be_is_told_of_what_it_does_then_without_its_secret() {
    covers!("ZKG-W3");
    let (mut world, client) = opened();
    world.ask(client, -4, opcode::AUTH, &auth("digest", "me:secret"));
    world.ask(client, 1, opcode::CREATE, &create("/a", "", 0));
    let told = lines(&mut world);
    assert!(!told.iter().any(|line| line.to_string().contains("secret")));
    assert_eq!((&told[0]["operation"], &told[0]["as"]), (&"auth".into(), &"digest:me".into()));
    assert_eq!(told[0]["who"], serde_json::json!(["ip:127.0.0.1"]));
    assert_eq!(told[1]["who"], serde_json::json!(["ip:127.0.0.1", "digest:me"]));
    // One that is refused proves nothing, and is told.
    world.send(client, -4, opcode::AUTH, &auth("digest", "you"));
    world.send(client, -4, opcode::AUTH, &auth("nonsense", "secret"));
    world.settle();
    let told = lines(&mut world);
    assert_eq!(
        told.last().map(|line| (&line["result"], &line["as"])),
        Some((&"failure".into(), &"nonsense:".into()))
    );
    assert!(!told.iter().any(|line| line.to_string().contains("secret")));
}

#[test]
fn no_text_of_a_client_makes_a_line_of_its_own() {
    covers!("ZKG-W3");
    let (mut world, client) = opened();
    let forged = "/a\n{\"operation\":\"delete\"}\r\u{85}\u{2028}\u{202e}\u{7f}\u{1b}[2J\u{1f980}\"";
    world.ask(client, 1, opcode::CREATE, &create(forged, "", 0));
    let told = lines(&mut world);
    assert_eq!(told.len(), 1);
    assert_eq!((&told[0]["path"], &told[0]["operation"]), (&forged.into(), &"create".into()));
}

#[test]
fn of_a_transaction_that_was_done_every_part_is_told() {
    let (mut world, client) = opened();
    let part = |out: &mut troth_zookeeper::jute::Output, code: i32| {
        out.int(code).boolean(false).int(-1);
    };
    let transaction = |last: &str| {
        record(|out| {
            part(out, opcode::CREATE2);
            out.text("/a-").text("").length(1).int(31).text("world").text("anyone").int(2);
            part(out, opcode::CHECK);
            out.text("/").int(-1);
            part(out, opcode::SET_DATA);
            out.text("/").text("x").int(-1);
            part(out, opcode::DELETE);
            out.text(last).int(-1);
            out.int(-1).boolean(true).int(-1);
        })
    };
    world.ask(client, 1, opcode::CREATE, &create("/gone", "", 0));
    world.lines.clear();
    world.ask(client, 2, opcode::MULTI, &transaction("/gone"));
    let expected = [
        row("create", "/a-0000000001", "success"),
        row("setData", "/", "success"),
        row("delete", "/gone", "success"),
    ];
    assert_eq!(brief(&mut world), expected);
    world.ask(client, 3, opcode::MULTI, &transaction("/gone"));
    let told = lines(&mut world);
    let of = |line: &Value| {
        (line["result"].as_str().map(str::to_owned), line["error"].as_i64(), line["multi"].as_bool())
    };
    assert_eq!(told.iter().map(of).collect::<Vec<_>>(), [(Some("failure".to_owned()), Some(-101), None)]);
    let part = |line: &Value| ["parts", "part", "part_operation", "path"].map(|name| line[name].clone());
    assert_eq!(
        part(&told[0]),
        [Value::from(4), 3.into(), "delete".into(), "/gone".into()],
        "one for all of it"
    );
    world.send(client, 4, opcode::MULTI, &transaction("/gone"));
    world.fail(0, ClientError::TimedOut);
    let unknown =
        [row("create", "/a-", "unknown"), row("setData", "/", "unknown"), row("delete", "/gone", "unknown")];
    assert_eq!(brief(&mut world), unknown);
}

#[test]
fn what_nobody_knows_the_end_of_is_told_so_and_a_client_that_is_gone_is_told_of() {
    covers!("ZKG-W2");
    let (mut world, client) = opened();
    world.send(client, 1, opcode::CREATE, &create("/a", "", 0));
    world.gone(client);
    world.settle();
    assert_eq!(brief(&mut world), [row("create", "/a", "success")], "it is gone, and it was done");
    for (error, expected) in [
        (ClientError::TimedOut, "unknown"),
        (ClientError::Closed { sent: true }, "unknown"),
        (ClientError::Unsent, "not executed"),
        (ClientError::TooLarge, "not executed"),
    ] {
        let client = world.open(0);
        world.lines.clear();
        world.send(client, 1, opcode::SET_DATA, &set("/a", ""));
        world.fail(0, error);
        assert_eq!(brief(&mut world), [row("setData", "/a", expected)]);
    }
    // An answer that stands for another, or is none.
    let client = world.open(0);
    world.lines.clear();
    world.send(client, 1, opcode::SET_DATA, &set("/a", ""));
    world.execute(0);
    world.calls[0].answer.as_mut().expect("an answer").0[0] = Bytes::from_static(b"\xff");
    world.answer(0);
    assert_eq!(brief(&mut world), [row("setData", "/a", "unknown")]);
    let client = world.open(0);
    world.lines.clear();
    world.send(client, 1, opcode::SET_DATA, &set("/a", ""));
    world.execute(0);
    let error = Code::MarshallingError.number();
    let mark = Answer::Reply { zxid: 0, error, body: Bytes::new() }.to_wire();
    world.calls[0].answer.as_mut().expect("an answer").0[0] = mark;
    world.answer(0);
    assert_eq!(brief(&mut world), [row("setData", "/a", "unknown")]);
}

#[test]
fn sessions_are_told_of() {
    let mut world = world();
    let first = world.connect(0);
    world.packet(first, hello(0, 10_000, 0, &[]));
    world.settle();
    let session = world.session(first);
    assert_eq!(brief(&mut world), [row("createSession", "-", "success")]);
    let second = world.connect(0);
    world.packet(second, hello(0, 10_000, session, &super::support::PASSWORD));
    world.settle();
    let third = world.connect(0);
    world.packet(third, hello(0, 10_000, session, &[9; 16]));
    world.settle();
    let told = lines(&mut world);
    let of = |line: &Value| [&line["operation"], &line["result"], &line["session"]].map(Value::to_string);
    let expected =
        |result: &str| ["\"attachSession\"", result, &format!("\"{session:#x}\"")].map(str::to_owned);
    assert_eq!(told.iter().map(of).collect::<Vec<_>>(), [expected("\"success\""), expected("\"failure\"")]);
}
