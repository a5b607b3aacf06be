//! Four-letter words.

use super::marks::covers;
use super::support::{World, create, open_settings};
use crate::{Settings, is_word};
use bytes::Bytes;
use troth_zookeeper::opcode;

#[test]
fn words_are_answered_as_tools_expect() {
    covers!("ZKG-W1");
    let settings =
        Settings { environment: vec![("os.name".to_owned(), "Linux".to_owned())], ..open_settings() };
    let mut world = World::of(1, &settings);
    let client = world.open(0);
    world.ask(client, 1, opcode::CREATE, &create("/a", "", 0));
    let mut say = |word| {
        let asks = world.connect(0);
        world.word(asks, word)
    };
    assert_eq!(say(b"ruok"), "imok");
    assert_eq!(say(b"isro"), "rw");
    let version = format!("3.9.5-troth-{}, built on ", env!("CARGO_PKG_VERSION"));
    let srvr = say(b"srvr");
    assert!(srvr.starts_with(&format!("Zookeeper version: {version}")), "{srvr}");
    let value = |name: &str| {
        let line = srvr.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {srvr}")).to_owned()
    };
    assert_eq!(
        (value("Zxid: 0x"), value("Mode: "), value("Connections: ")),
        ("2".into(), "standalone".into(), "2".into())
    );
    assert_eq!(value("Latency min/avg/max: "), "0/0.0/0");
    assert_eq!(value("Received: "), "5", "two packets of the client, and three words");
    let stat = say(b"stat");
    assert!(stat.contains("Clients:\n /127.0.0.1:4000[1](queued=0,recved=2,sent=2)\n"), "{stat}");
    let cons = say(b"cons");
    assert!(
        cons.contains(",sid=0x") && cons.contains(",lop=CREA,") && cons.contains(",lcxid=0x1,lzxid=0x2,"),
        "{cons}"
    );
    let mntr = say(b"mntr");
    assert!(mntr.starts_with(&format!("zk_version\t{version}")), "{mntr}");
    assert!(mntr.lines().all(|line| line.split('\t').count() == 2), "{mntr}");
    assert!(
        mntr.contains("\nzk_server_state\tstandalone\n") && mntr.contains("\nzk_global_sessions\t1\n"),
        "{mntr}"
    );
    let envi = say(b"envi");
    assert!(envi.starts_with("Environment:\nzookeeper.version=3.9.5-troth"), "{envi}");
    assert!(envi.ends_with("\nos.name=Linux\n"), "{envi}");
    assert_eq!(say(b"conf"), "clientPort=0\nmaxClientCnxns=60\n");
    assert_eq!(say(b"crst"), "Connection stats reset.\n");
    assert!(say(b"stat").contains("[1](queued=0,recved=0,sent=0)"));
    assert_eq!(say(b"srst"), "Server stats reset.\n");
    assert!(say(b"srvr").contains("\nReceived: 1\nSent: 1\n"));
}

#[test]
fn words_tell_how_much_there_is_as_the_group_said_last() {
    covers!("ZKG-W1");
    covers!("ZKG-L6");
    let mut world = World::new();
    let word = |world: &mut World, word| {
        let asks = world.connect(0);
        world.word(asks, word)
    };
    assert!(!word(&mut world, b"srvr").contains("Node count"), "it has not said so yet");
    assert!(!word(&mut world, b"mntr").contains("znode"));
    // Asked at once, and then now and then, though nobody is here.
    let now = world.time();
    world.gateways[0].begin(now);
    world.pass(1);
    assert!(word(&mut world, b"srvr").ends_with("Mode: standalone\nNode count: 4\n"));
    let mut other = World::new();
    let client = other.open(0);
    other.ask(client, 1, opcode::CREATE, &create("/a", "four", 1));
    (world.map, other.map) = (other.map, world.map);
    world.pass(9_000);
    assert!(word(&mut world, b"srvr").ends_with("Node count: 4\n"), "not yet");
    world.pass(1_500);
    let mntr = word(&mut world, b"mntr");
    for line in ["zk_znode_count\t5\n", "zk_ephemerals_count\t1\n", "zk_watch_count\t0\n"] {
        assert!(mntr.contains(line), "no {line} in {mntr}");
    }
    assert!(mntr.contains("\nzk_approximate_data_size\t"), "{mntr}");
    let now = world.time();
    let page = world.gateways[0].report(now, "srvr").expect("a page");
    assert!(page.contains("\"node_count\":5"), "{page}");
    // Where the group does not answer, one question is on its way.
    world.now += 11_000_000;
    world.tick();
    world.now += 11_000_000;
    world.tick();
    assert_eq!(world.calls.len(), 1);
    assert!(
        world.gateways[0].next_wake().is_some_and(|at| at > world.time()),
        "nor does it wake without end"
    );
    world.fail(0, troth_client::ClientError::TimedOut);
    world.now += 11_000_000;
    world.tick();
    assert_eq!(world.calls.len(), 1);
}

#[test]
fn a_gateway_that_the_group_does_not_answer_says_that_it_does_not_serve() {
    covers!("ZKG-L7");
    let mut world = World::new();
    let now = world.time();
    world.gateways[0].begin(now);
    world.pass(1);
    let say = |world: &mut World, word| {
        let asks = world.connect(0);
        world.word(asks, word)
    };
    let silence = "This ZooKeeper instance is not currently serving requests\n";
    let serves = |world: &World| world.gateways[0].measured(world.time()).1.serves;
    // A question is on its way.
    world.now += 10_500_000;
    world.tick();
    world.now += 4_999_999;
    assert!(serves(&world) && say(&mut world, b"srvr").contains("Node count"));
    let now = world.time();
    assert_eq!(world.gateways[0].take_cut_off(now), None);
    world.now += 1;
    let now = world.time();
    assert_eq!(world.gateways[0].take_cut_off(now), Some(true));
    assert_eq!(world.gateways[0].take_cut_off(now), None, "once");
    for word in [b"srvr", b"stat", b"mntr", b"cons", b"conf"] {
        assert_eq!(say(&mut world, word), silence);
    }
    assert_eq!((say(&mut world, b"isro"), say(&mut world, b"ruok")), ("null".to_owned(), "imok".to_owned()));
    let page = world.gateways[0].report(now, "mntr").expect("a page");
    assert!(page.contains(silence.trim_end()) && !page.contains("znode"), "{page}");
    assert!(!serves(&world));
    // That the question came to nothing is no answer; one to anything is.
    world.fail(0, troth_client::ClientError::TimedOut);
    assert!(!serves(&world));
    world.pass(10_500);
    assert!(serves(&world) && say(&mut world, b"srvr").contains("Node count"));
    let now = world.time();
    assert_eq!(world.gateways[0].take_cut_off(now), Some(false));
}

#[test]
fn a_word_that_is_not_allowed_is_refused_as_zookeeper_does() {
    covers!("ZKG-W1");
    let mut world = World::of(1, &Settings::default());
    for (word, allowed) in [(b"srvr", true), (b"ruok", false), (b"mntr", false), (b"wchs", false)] {
        let asks = world.connect(0);
        let said = world.word(asks, word);
        let refusal = "is not executed because it is not in the whitelist.\n";
        assert_eq!(said.ends_with(refusal), !allowed, "{said}");
    }
    // What this gateway cannot know it does not say, whoever asks.
    let mut world = World::new();
    let asks = world.connect(0);
    assert!(world.word(asks, b"dump").ends_with("in the whitelist.\n"));
    assert!(!is_word(*b"help") && !is_word([0, 0, 0, 44]));
}

#[test]
fn reports_say_what_the_words_say() {
    let mut world = World::new();
    let client = world.open(0);
    world.ask(client, 1, opcode::CREATE, &create("/a", "", 0));
    let now = world.time();
    let mut report = |name: &str| {
        let report = world.gateways[0].report(now, name)?;
        Some(serde_json::from_str::<serde_json::Value>(&report).expect("JSON"))
    };
    assert_eq!(report("ruok"), Some(serde_json::json!({ "command": "ruok", "error": null })));
    assert_eq!(report("isro").expect("a page")["read_only"], false);
    let monitor = report("mntr").expect("a page");
    assert_eq!((&monitor["command"], &monitor["packets_received"]), (&"monitor".into(), &2.into()));
    let stats = report("stats").expect("a page");
    assert_eq!(stats["server_stats"]["last_processed_zxid"], 2);
    assert_eq!(stats["connections"][0]["last_operation"], "CREA");
    assert_eq!(stats["connections"][0]["remote_socket_address"], "127.0.0.1:4000");
    assert!(
        report("env").expect("a page")["zookeeper.version"]
            .as_str()
            .is_some_and(|is| is.starts_with("3.9.5-"))
    );
    assert_eq!(report("conf").expect("a page")["max_client_cnxns"], 60);
    report("crst").expect("a page");
    assert_eq!(report("cons").expect("a page")["connections"][0]["packets_received"], 0);
    report("srst").expect("a page");
    assert_eq!(report("srvr").expect("a page")["server_stats"]["packets_sent"], 0);
    assert_eq!(report("wchs"), None);
}

#[test]
fn requests_without_a_reply_are_counted_as_they_come_and_go() {
    covers!("ZKG-W1");
    let mut world = World::new();
    let outstanding = |world: &mut World| {
        let asks = world.connect(0);
        let said = world.word(asks, b"srvr");
        let line = said.lines().find_map(|line| line.strip_prefix("Outstanding: "));
        line.and_then(|count| count.parse::<usize>().ok()).expect("a number")
    };
    let clients = [0; 3].map(|gateway| world.open(gateway));
    assert_eq!(outstanding(&mut world), 0);
    for client in clients {
        world.send(client, 1, opcode::CREATE, &create("/a", "", 0));
        world.send(client, 2, opcode::CREATE, &create("/b", "", 0));
    }
    // One of SASL that is answered without the group waits as the others do.
    world.send(clients[2], 3, opcode::SASL, &Bytes::from_static(&[0; 4]));
    assert_eq!(outstanding(&mut world), 7);
    world.execute(0);
    world.answer(0);
    assert_eq!(outstanding(&mut world), 6);
    world.gone(clients[1]);
    assert_eq!(outstanding(&mut world), 6, "they are done without it");
    world.packet(clients[2], Bytes::from_static(b"?"));
    assert_eq!((world.closed(clients[2]), outstanding(&mut world)), (Some(false), 3));
    world.settle();
    assert_eq!(outstanding(&mut world), 0);
}
