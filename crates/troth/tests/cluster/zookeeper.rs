//! A coordination service on real replicas, spoken to as a gateway does.

use crate::killed::all;
use crate::pbft_reads::{runtime, session_of};
use crate::support::{PATIENCE, Scratch, good, init_with, made_by, run};
use bytes::Bytes;
use std::path::Path;
use tokio::sync::mpsc::Receiver;
use troth_client::front::Client;
use troth_types::{ClientId, Event, Time, Wire};
use troth_zookeeper::jute::{Input, Output};
use troth_zookeeper::{
    Answer, Attachment, Carrier, Code, Kind, Notice, Operation, Password, Said, key_of, opcode, prove,
};

const PASSWORD: Password = *b"the old password";
/// Milliseconds; longer than any of these tests.
const TIMEOUT: u32 = 600_000;
/// How `troth init` is told of it.
const LONG: [&str; 4] = ["--service", "zookeeper", "--max-session-timeout", "600000"];

async fn ordered(client: &Client, operation: Operation) -> Answer {
    // Nobody's clock is behind that.
    let said = Said { when: Time(0), operation }.to_wire();
    let answer = client.execute(said).await.expect("it is ordered");
    Answer::from_wire(&answer).expect("an answer")
}

/// To attach a session that has this password through this client.
fn attaching(client: &Client, session: i64, password: Password) -> Operation {
    let carrier = Carrier { group: client.group(), gateway: client.id() };
    let proof = prove(&password, carrier, session);
    Operation::Attach { session, proof, timeout: TIMEOUT, who: Vec::new() }
}

async fn open(client: &Client) -> Attachment {
    let open = Operation::Open { timeout: TIMEOUT, key: key_of(&PASSWORD), who: Vec::new() };
    attached(ordered(client, open).await)
}

fn attached(answer: Answer) -> Attachment {
    match answer {
        Answer::Attached { at, timeout: TIMEOUT } => at,
        other => panic!("attached: {other:?}"),
    }
}

/// What a request is answered: its record, or why there is none.
async fn ask(client: &Client, at: Attachment, code: i32, body: Bytes) -> Result<Bytes, i32> {
    match ordered(client, Operation::Request { at, code, body }).await {
        Answer::Reply { error: 0, body, .. } => Ok(body),
        Answer::Reply { error, .. } => Err(error),
        other => panic!("replied: {other:?}"),
    }
}

fn create(path: &str, data: &[u8], flags: i32) -> Bytes {
    let mut out = Output::new();
    out.text(path).buffer(data);
    // Everybody may do everything.
    out.length(1).int(31).text("world").text("anyone").int(flags);
    out.finish()
}

fn set(path: &str, data: &[u8]) -> Bytes {
    let mut out = Output::new();
    out.text(path).buffer(data).int(-1);
    out.finish()
}

fn look(path: &str, watch: bool) -> Bytes {
    let mut out = Output::new();
    out.text(path).boolean(watch);
    out.finish()
}

async fn data(client: &Client, at: Attachment, path: &str) -> Result<Bytes, i32> {
    let record = ask(client, at, opcode::GET_DATA, look(path, false)).await?;
    Ok(Input::new(&record).buffer().expect("a record").expect("data"))
}

async fn next(events: &mut Receiver<Event>) -> Notice {
    let event =
        tokio::time::timeout(PATIENCE, events.recv()).await.expect("it comes").expect("the session goes on");
    Notice::from_wire(&event.payload).expect("a notice")
}

fn client(dir: &Path, number: u64) -> impl Future<Output = Client> {
    session_of(dir, ClientId(number))
}

#[test]
fn sessions_nodes_and_watches_outlive_killed_replicas() {
    let scratch = Scratch::new("zookeeper");
    let dir = scratch.0.as_path();
    init_with(dir, &LONG);
    let mut replicas = all(dir);
    let runtime = runtime();
    let largest = vec![7; (1 << 20) - 1024];
    let (first, lock) = runtime.block_on(async {
        let (one, two) = (client(dir, 1).await, client(dir, 2).await);
        let (mut told, other) = (two.events().await.expect("it runs"), open(&two).await);
        let at = open(&one).await;
        ask(&one, at, opcode::CREATE, create("/kept", b"first", 0)).await.expect("created");
        let lock = ask(&one, at, opcode::CREATE, create("/lock-", b"", 3)).await.expect("created");
        let lock = Input::new(&lock).text().expect("a record").expect("its path");
        assert_eq!(lock, "/lock-0000000001");
        // As large as ZooKeeper's clients may send, there and back.
        ask(&one, at, opcode::CREATE, create("/large", &largest, 0)).await.expect("created");
        assert_eq!(data(&two, other, "/large").await.expect("it is there"), largest);

        ask(&two, other, opcode::GET_DATA, look("/kept", true)).await.expect("it is there");
        // Whoever leads, one of them is the primary, and the service goes on without.
        drop(replicas.remove(0));
        ask(&one, at, opcode::SET_DATA, set("/kept", b"second")).await.expect("set");
        let Notice::Fired { at: whose, kind, path, .. } = next(&mut told).await else { panic!("fired") };
        assert_eq!((whose, kind, path.as_str()), (other, Kind::DataChanged as i32, "/kept"));
        assert_eq!(&data(&two, other, "/kept").await.expect("it is there")[..], b"second");
        one.close().await;
        two.close().await;
        (at, lock)
    });

    // All at once.
    replicas.iter().for_each(|replica| replica.signal("KILL"));
    drop(replicas);
    let _replicas = all(dir);
    runtime.block_on(async {
        // Through another gateway: the first is gone for good.
        let gateway = client(dir, 3).await;
        let attach = |password| attaching(&gateway, first.session, password);
        let wrong = ordered(&gateway, attach(*b"another password")).await;
        assert!(
            matches!(wrong, Answer::Reply { error, .. } if error == Code::SessionExpired.number()),
            "{wrong:?}"
        );
        let at = attached(ordered(&gateway, attach(PASSWORD)).await);
        assert_eq!(at.session, first.session);
        assert_eq!(&data(&gateway, at, "/kept").await.expect("it is there")[..], b"second");
        assert_eq!(data(&gateway, at, "/large").await.expect("it is there"), largest);
        // The ephemeral node lives with its session, and ends with it.
        ask(&gateway, at, opcode::EXISTS, look(&lock, false)).await.expect("its session lives");
        ask(&gateway, at, opcode::CLOSE_SESSION, Bytes::new()).await.expect("closed");
        let after = open(&gateway).await;
        let gone = ask(&gateway, after, opcode::EXISTS, look(&lock, false)).await;
        assert_eq!(gone, Err(Code::NoNode.number()));
        gateway.close().await;
    });
}

#[test]
fn a_session_goes_on_in_the_group_that_a_backup_was_restored_to() {
    let scratch = Scratch::new("zookeeper-backup");
    let (old, new) = (scratch.0.join("old"), scratch.0.join("new"));
    let digest = "super:D/InIHSb7yEEbrWz8b9l71RjZJU=";
    init_with(&old, &[&LONG[..], &["--superuser", digest]].concat());
    let replicas = all(&old);
    let runtime = runtime();
    let before = runtime.block_on(async {
        let gateway = client(&old, 1).await;
        let at = open(&gateway).await;
        ask(&gateway, at, opcode::CREATE, create("/own", b"mine", 1)).await.expect("created");
        gateway.close().await;
        at
    });
    let saved = scratch.0.join("saved");
    let from = saved.to_str().expect("plain");
    let said = good(&old, &["backup", "--to", from, "--wait", "60"]);
    assert!(said.contains("sessions"), "{said}");
    drop(replicas);

    // As a build in which the service has another form finds it: the group has another name there.
    let config = saved.join("cluster.toml");
    let written = std::fs::read_to_string(&config).expect("a backup has one");
    std::fs::write(&config, written.replace("super:D", "super:E")).expect("our own");
    let refused = run(&scratch.0.join("refused"), &["restore", "--from", from]);
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{words}");
    assert!(words.contains("troth import zookeeper"), "{words}");
    std::fs::write(&config, written).expect("our own");

    made_by("restore", &new, &["--from", from]);
    let _replicas = all(&new);
    runtime.block_on(async {
        let gateway = client(&new, 2).await;
        let at = attached(ordered(&gateway, attaching(&gateway, before.session, PASSWORD)).await);
        assert_eq!(&data(&gateway, at, "/own").await.expect("its session lives")[..], b"mine");
        // Who was superuser is.
        let mut out = Output::new();
        out.int(0).text("digest").buffer(b"super:test");
        ask(&gateway, at, opcode::AUTH, out.finish()).await.expect("known");
        let who = ask(&gateway, at, opcode::WHO_AM_I, Bytes::new()).await.expect("somebody");
        assert!(String::from_utf8_lossy(&who).contains("super"), "{who:?}");
        gateway.close().await;
    });
}

#[test]
fn a_session_that_gives_no_sign_of_life_ends_by_the_groups_time() {
    let scratch = Scratch::new("zookeeper-ends");
    let dir = scratch.0.as_path();
    init_with(dir, &["--service", "zookeeper", "--min-session-timeout", "500"]);
    let replicas = all(dir);
    runtime().block_on(async {
        let gateway = client(dir, 1).await;
        let mut told = gateway.events().await.expect("it runs");
        let quick = Operation::Open { timeout: 1, key: key_of(&PASSWORD), who: Vec::new() };
        let Answer::Attached { at, timeout: 500 } = ordered(&gateway, quick).await else {
            panic!("attached")
        };
        ask(&gateway, at, opcode::CREATE, create("/own", b"", 1)).await.expect("created");
        // Nobody asks for anything: the service itself has it ended.
        assert_eq!(next(&mut told).await, Notice::Over(at));
        let gone = ask(&gateway, at, opcode::EXISTS, look("/own", false)).await;
        assert_eq!(gone, Err(Code::SessionExpired.number()));
        gateway.close().await;
    });
    drop(replicas);
}

#[test]
fn settings_of_another_service_are_refused() {
    let scratch = Scratch::new("zookeeper-usage");
    let said = run(&scratch.0, &["init", "--enforce-quotas"]);
    assert_eq!(said.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&said.stderr).contains("--service zookeeper"));
    assert!(!scratch.0.exists());
}
