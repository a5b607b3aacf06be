//! Configuration: what is written is read back, and every error points at its line.

use crate::config::{
    Auth, ClientSecret, Cluster, ConfigError, Durability, Layout, MakeError, Plan, Protocol, ReplicaSecret,
    Service, TrustedHome, TrustedKind, ZooKeeper, make,
};
use std::path::PathBuf;
use troth_types::{ClientId, ReplicaId};

/// A directory of this test alone, removed at its end.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("troth-config-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn plan(trusted: TrustedKind) -> Plan {
    Plan {
        protocol: Protocol::MinBft,
        auth: Auth::Signed,
        faults: 1,
        service: Service::Kv,
        zookeeper: ZooKeeper::default(),
        trusted,
        trusted_home: TrustedHome::InProcess,
        durability: Durability::Memory,
        clients: 2,
        addresses: (0..3)
            .map(|i| (format!("127.0.0.1:{}", 4700 + i), format!("127.0.0.1:{}", 4800 + i)))
            .collect(),
        timing: String::new(),
    }
}

/// The error that a change to a good file brings.
fn broken(name: &str, from: &str, to: &str) -> (ConfigError, usize) {
    let scratch = Scratch::new(name);
    let layout = Layout::new(&scratch.0);
    make(&layout, &plan(TrustedKind::Hmac)).expect("a fresh directory");
    let good = std::fs::read_to_string(layout.cluster()).expect("just written");
    assert!(good.contains(from), "the file has {from}");
    let bad = good.replacen(from, to, 1);
    let line = good[..good.find(from).expect("asserted above")].lines().count() + 1;
    std::fs::write(layout.cluster(), bad).expect("our own directory");
    (Cluster::load(&layout.cluster()).expect_err("it is broken"), line)
}

#[test]
fn what_is_made_is_read_back() {
    for trusted in [TrustedKind::Hmac, TrustedKind::Ed25519] {
        let scratch = Scratch::new(trusted.name());
        let layout = Layout::new(&scratch.0);
        make(&layout, &plan(trusted)).expect("a fresh directory");
        let cluster = Cluster::load(&layout.cluster()).expect("it was just made");
        assert_eq!((cluster.group.n(), cluster.group.f()), (3, 1));
        assert_eq!(cluster.trusted, trusted);
        assert_eq!(cluster.clients.len(), 2);
        for number in 0..3 {
            let file = layout.replica_secret(ReplicaId(number));
            assert_eq!(ReplicaSecret::load(&file, &cluster).expect("good").replica, ReplicaId(number));
        }
        ClientSecret::load(&layout.client_secret(ClientId(2)), &cluster).expect("good");
        assert!(make(&layout, &plan(trusted)).is_err(), "a cluster is never overwritten");
    }
}

#[test]
fn an_unknown_key_is_named_with_its_line() {
    let (error, _) =
        broken("unknown", "protocol = \"minbft\"", "protocol = \"minbft\"\nprotocl = \"minbft\"");
    assert_eq!(error.place, Some((5, 1)), "{error}");
    assert!(error.problem.contains("protocl"), "{error}");
    assert!(error.to_string().contains("cluster.toml:5:1: "), "{error}");
    assert!(error.to_string().contains("mend: "), "{error}");
}

#[test]
fn values_out_of_place_are_found_at_their_line() {
    let cases = [
        ("durability = \"memory\"", "durability = \"sometimes\"", "durability"),
        ("service = \"kv\"", "service = \"sql\"", "service"),
        ("address = \"127.0.0.1:4701\"", "address = \"127.0.0.1\"", "address"),
        ("address = \"127.0.0.1:4701\"", "address = \"127.0.0.1:4700\"", "same address"),
        ("id = 1\naddress", "id = 7\naddress", "number"),
        ("version = 1", "version = 2", "version"),
    ];
    for (index, (from, to, word)) in cases.into_iter().enumerate() {
        let (error, line) = broken(&format!("value-{index}"), from, to);
        assert_eq!(error.place.map(|(at, _)| at), Some(line), "{error}");
        assert!(error.problem.contains(word), "{error}");
        assert!(!error.mend.is_empty());
    }
}

#[test]
fn too_many_replicas_are_refused_and_not_cut_off() {
    let scratch = Scratch::new("many");
    let layout = Layout::new(&scratch.0);
    let mut large = plan(TrustedKind::Hmac);
    large.faults = 50;
    large.addresses = (0..101).map(|i| (format!("h{i}:4700"), format!("h{i}:4800"))).collect();
    make(&layout, &large).expect("101 are allowed");
    let mut text = std::fs::read_to_string(layout.cluster()).expect("just written");
    let line = text.lines().count() + 2;
    for id in 101..103 {
        let keys = format!("link_key = \"{id:064x}\"\nhost_key = \"{id:064x}\"");
        text += &format!("\n[[replica]]\nid = {id}\naddress = \"h{id}:1\"\n{keys}\nepoch = 1\n");
    }
    std::fs::write(layout.cluster(), text).expect("our own directory");
    let error = Cluster::load(&layout.cluster()).expect_err("103 replicas");
    assert!(error.problem.contains("103") && error.mend.contains("at most 101"), "{error}");
    assert_eq!(error.place.map(|(at, _)| at), Some(line), "{error}");
}

#[test]
fn what_the_protocol_judges_makes_another_group_and_patience_does_not() {
    let scratch = Scratch::new("group-id");
    let layout = Layout::new(&scratch.0);
    make(&layout, &plan(TrustedKind::Hmac)).expect("a fresh directory");
    let good = std::fs::read_to_string(layout.cluster()).expect("just written");
    let group = |timing: &str| {
        let text = good.replacen("\n[[replica]]", &format!("\n[timing]\n{timing}\n\n[[replica]]"), 1);
        std::fs::write(layout.cluster(), text).expect("our own directory");
        Cluster::load(&layout.cluster()).expect("good").group.id()
    };
    let default = group("");
    assert_eq!(group("checkpoint_interval = 64\nwindow = 256"), default, "written out or not");
    assert_eq!(group("suspect_after_ms = 5000\nstatus_interval_ms = 7\npipeline = 2"), default);
    assert_ne!(group("checkpoint_interval = 32"), default);
    assert_ne!(group("window = 512"), default);
}

/// What `make` says to a plan with these addresses for its three replicas; it must write nothing.
fn refused(name: &str, addresses: [(&str, &str); 3]) -> String {
    let scratch = Scratch::new(name);
    let mut bad = plan(TrustedKind::Hmac);
    bad.addresses = addresses.map(|(group, http)| (group.to_owned(), http.to_owned())).to_vec();
    let error = make(&Layout::new(&scratch.0), &bad).expect_err("no cluster can be made of it");
    assert!(!scratch.0.exists(), "nothing is left behind");
    error.to_string()
}

#[test]
fn a_plan_that_makes_no_cluster_is_refused_before_anything_is_written() {
    let same = refused("same", [("a:1", "a:2"), ("a:1", "a:2"), ("b:1", "b:2")]);
    assert!(same.contains("replica 0's group address and replica 1's group address are both a:1"), "{same}");
    let clash = refused("clash", [("a:1", "a:3"), ("a:2", "a:4"), ("a:3", "a:5")]);
    assert!(clash.contains("replica 0's /status address and replica 2's group address"), "{clash}");
    let empty = refused("empty", [("a:1", "a:2"), (":1", ":2"), ("b:1", "b:2")]);
    assert!(empty.contains("replica 1 has no host"), "{empty}");
    for (index, host) in ["a\"b", "a b", "a\\b", "a\nb", "ä"].into_iter().enumerate() {
        let address = format!("{host}:1");
        let strange =
            refused(&format!("strange-{index}"), [("a:1", "a:2"), ("b:1", "b:2"), (&address, "c:2")]);
        assert!(strange.contains("replica 2's host"), "{strange}");
    }
    // What only the file's checks know.
    let port = refused("port", [("a:1", "a:2"), ("b:0", "b:2"), ("c:1", "c:2")]);
    assert!(port.contains("b:0") && port.contains("mend"), "{port}");
    for faults in [0, 51, u16::MAX] {
        let scratch = Scratch::new("faults");
        let bad = Plan { faults, ..plan(TrustedKind::Hmac) };
        assert!(make(&Layout::new(&scratch.0), &bad).is_err_and(|why| why.to_string().contains("1 to 50")));
        assert!(!scratch.0.exists());
    }
    let few = Plan { faults: 2, ..plan(TrustedKind::Hmac) };
    let scratch = Scratch::new("few");
    let error = make(&Layout::new(&scratch.0), &few).expect_err("three addresses for five replicas");
    assert!(error.to_string().contains("5 replicas"), "{error}");
}

#[test]
fn an_unfinished_cluster_is_named_with_the_directory_to_remove() {
    let scratch = Scratch::new("unfinished");
    let layout = Layout::new(&scratch.0);
    make(&layout, &plan(TrustedKind::Hmac)).expect("a fresh directory");
    std::fs::remove_file(layout.cluster()).expect("just written");
    let error = make(&layout, &plan(TrustedKind::Hmac)).expect_err("the secrets are there");
    assert!(matches!(error, MakeError::Unfinished { .. }), "{error}");
    assert!(error.to_string().contains(&format!("remove {}, if", scratch.0.display())), "{error}");
}

#[test]
fn an_even_number_of_replicas_is_refused() {
    let scratch = Scratch::new("even");
    let layout = Layout::new(&scratch.0);
    make(&layout, &plan(TrustedKind::Hmac)).expect("a fresh directory");
    let text = std::fs::read_to_string(layout.cluster()).expect("just written");
    let start = text.find("\n[[replica]]\nid = 2").expect("three replicas");
    let end = text.find("\n[[client]]").expect("two clients");
    std::fs::write(layout.cluster(), format!("{}{}", &text[..start], &text[end..]))
        .expect("our own directory");
    let error = Cluster::load(&layout.cluster()).expect_err("two replicas");
    assert!(error.problem.contains("2 replicas"), "{error}");
}

#[test]
fn a_window_below_two_checkpoints_is_refused() {
    let (error, _) = broken(
        "window",
        "\n[[replica]]",
        "\n[timing]\ncheckpoint_interval = 100\nwindow = 150\n\n[[replica]]",
    );
    assert!(error.mend.contains("200"), "{error}");
}

#[test]
fn keys_of_another_group_are_refused() {
    let (one, other) = (Scratch::new("group-one"), Scratch::new("group-other"));
    for scratch in [&one, &other] {
        make(&Layout::new(&scratch.0), &plan(TrustedKind::Hmac)).expect("a fresh directory");
    }
    let cluster = Cluster::load(&Layout::new(&one.0).cluster()).expect("good");
    let foreign = Layout::new(&other.0).replica_secret(ReplicaId(0));
    let error = ReplicaSecret::load(&foreign, &cluster).err().expect("another group");
    assert!(error.problem.contains("another group"), "{error}");
}

#[test]
fn a_secret_that_others_may_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("mode");
    let layout = Layout::new(&scratch.0);
    make(&layout, &plan(TrustedKind::Hmac)).expect("a fresh directory");
    let cluster = Cluster::load(&layout.cluster()).expect("good");
    let file = layout.replica_secret(ReplicaId(0));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("our own file");
    let error = ReplicaSecret::load(&file, &cluster).err().expect("readable by all");
    assert!(error.mend.contains("chmod 600"), "{error}");
}

#[test]
fn how_often_is_synced_is_read_within_bounds_and_only_where_it_goes_by_the_clock() {
    let scratch = Scratch::new("interval");
    let layout = Layout::new(&scratch.0);
    let interval = Durability::interval();
    make(&layout, &Plan { durability: interval, ..plan(TrustedKind::Hmac) }).expect("a fresh directory");
    let read = || Cluster::load(&layout.cluster());
    assert_eq!(read().expect("just made").durability, interval);
    assert_eq!(interval.every(), Some(std::time::Duration::from_millis(10)));
    let text = std::fs::read_to_string(layout.cluster()).expect("just made");
    let write = |text: String| std::fs::write(layout.cluster(), text).expect("our own directory");
    write(text.replace("durability_interval_ms = 10\n", ""));
    assert_eq!(read().expect("absent is the default").durability, interval);
    for (number, good) in [("1", true), ("1000", true), ("0", false), ("1001", false)] {
        write(text.replace("_ms = 10", &format!("_ms = {number}")));
        assert_eq!(read().is_ok(), good, "{number}");
    }
    for name in ["always", "memory"] {
        write(text.replace("\"interval\"", &format!("\"{name}\"")));
        let error = read().expect_err("nothing would follow the clock");
        assert!(error.mend.contains("durability_interval_ms") && error.place.is_some(), "{error}");
    }
    write(text.replace("\"interval\"", "\"sometimes\""));
    let error = read().expect_err("there is none");
    assert!(error.mend.contains("\"always\" or \"interval\" or \"memory\""), "{error}");
}

#[test]
fn protocols_and_proofs_of_requests_are_known_by_their_names_in_the_configuration() {
    for protocol in Protocol::ALL {
        assert_eq!(protocol.name().parse(), Ok(protocol));
        assert_eq!(protocol.to_string(), protocol.name());
    }
    let refused = "raft".parse::<Protocol>().unwrap_err();
    assert_eq!(refused.to_string(), "say one of minbft, pbft, a2m-pbft-e, a2m-pbft-ea");
    for auth in Auth::ALL {
        assert_eq!(auth.to_string().parse(), Ok(auth));
    }
    let refused = "unsigned".parse::<Auth>().unwrap_err();
    assert_eq!(refused.to_string(), "say one of signed, mac, all-signed");
}

#[test]
fn every_protocol_gets_the_timing_and_limits_that_the_configuration_has() {
    let scratch = Scratch::new("timing");
    let layout = Layout::new(&scratch.0);
    make(&layout, &plan(TrustedKind::Hmac)).unwrap();
    let mut cluster = Cluster::load(&layout.cluster()).unwrap();
    cluster.timing.primary_slower_by = 7;
    cluster.timing.window = 512;
    cluster.timing.view_timeout_ms = 1234;
    cluster.limits.batch_frames = 99;
    let (minbft, pbft) = (cluster.minbft(), cluster.pbft());
    assert_eq!((minbft.slower_by, minbft.window, minbft.view_timeout), (7, 512, 1_234_000));
    assert_eq!((pbft.slower_by, pbft.window, pbft.view_timeout), (7, 512, 1_234_000));
    assert_eq!((minbft.limits.batch_frames, pbft.limits.batch_frames), (99, 99));
}
