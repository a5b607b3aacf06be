//! The settings of a coordination service: in the file, in the group's name, and in the group that a backup goes on in.

use super::config::{Scratch, plan};
use crate::config::{
    Cluster, ConfigError, Layout, MakeError, Plan, Service, TrustedKind, ZooKeeper, make, make_restored,
};
use troth_exec::{MerkleMap, Snapshot};
use troth_types::{Seq, Time};

const SUPERUSER: &str = "super:D/InIHSb7yEEbrWz8b9l71RjZJU=";

fn of(zookeeper: ZooKeeper) -> Plan {
    Plan { service: Service::ZooKeeper, zookeeper, ..plan(TrustedKind::Hmac) }
}

fn settings() -> ZooKeeper {
    ZooKeeper {
        superuser: Some(SUPERUSER.to_owned()),
        timeouts: (500, 90_000),
        grace: 3_500,
        sessions: 7,
        enforces_quotas: true,
        ..ZooKeeper::default()
    }
}

fn text(layout: &Layout) -> String {
    std::fs::read_to_string(layout.cluster()).expect("just made")
}

/// What is said of a file with this table.
fn with_table(layout: &Layout, table: &str) -> Result<Cluster, ConfigError> {
    let whole = text(layout);
    let cut = whole.split("\n[zookeeper]").next().expect("there is a first part").to_owned();
    let rest = whole.find("\n[[replica]]").map(|at| whole[at..].to_owned()).expect("there are replicas");
    let head = cut.split("\n[[replica]]").next().expect("there is a first part");
    std::fs::write(layout.cluster(), format!("{head}\n{table}{rest}")).expect("our own directory");
    let loaded = Cluster::load(&layout.cluster());
    std::fs::write(layout.cluster(), whole).expect("our own directory");
    loaded
}

/// What was set, without what follows from the rest of the group.
fn set(cluster: &Cluster) -> ZooKeeper {
    let usual = ZooKeeper::default();
    ZooKeeper { group: usual.group, config: usual.config, ..cluster.zookeeper.clone() }
}

#[test]
fn what_was_asked_for_is_what_the_replicas_serve() {
    let scratch = Scratch::new("zookeeper");
    let layout = Layout::new(&scratch.0);
    make(&layout, &of(settings())).expect("a fresh directory");
    let cluster = Cluster::load(&layout.cluster()).expect("just made");
    assert_eq!(cluster.service, Service::ZooKeeper);
    let config = String::from_utf8(cluster.zookeeper.config.to_vec()).expect("text");
    assert_eq!(set(&cluster), settings());
    assert_eq!(cluster.zookeeper.group, cluster.group.id());
    // All replicas are named, and no address is, to which a client would connect.
    for number in 0..3 {
        let key = crate::config::hex::encode(&cluster.replicas[number].host_key.0);
        assert!(config.contains(&format!("replica.{number}={key}\n")), "{config}");
    }
    assert!(!config.contains("server."), "{config}");
    assert!(config.ends_with("\nversion=0"), "{config}");
}

#[test]
fn a_packet_of_zookeepers_fits_with_what_is_around_it() {
    let scratch = Scratch::new("zookeeper-limits");
    let layout = Layout::new(&scratch.0);
    make(&layout, &of(ZooKeeper::default())).expect("a fresh directory");
    let limits = Cluster::load(&layout.cluster()).expect("just made").limits;
    assert!(limits.frame_bytes > (1 << 20) + 4096, "a packet is at most 1 MiB");
    assert!(limits.result_bytes <= 2 * troth_zookeeper::MAX_BODY, "no gateway takes a longer answer");
    assert!(limits.client_bytes >= 2 * limits.result_bytes);
    const { assert!(troth_zookeeper::MAX_PATH + 64 <= troth_exec::MAX_EVENT_BYTES, "an event names a path") };
}

#[test]
fn replicas_with_other_settings_are_another_group() {
    let scratch = Scratch::new("zookeeper-name");
    let layout = Layout::new(&scratch.0);
    make(&layout, &of(ZooKeeper::default())).expect("a fresh directory");
    let group = |table: &str| with_table(&layout, table).expect("good").group.id();
    let usual = group("");
    assert_eq!(
        group("[zookeeper]\nmin_session_timeout_ms = 4000\n"),
        usual,
        "what is said is what is so anyway"
    );
    let others = [
        format!("superuser = \"{SUPERUSER}\""),
        "min_session_timeout_ms = 4001".to_owned(),
        "max_session_timeout_ms = 40001".to_owned(),
        "session_grace_ms = 4001".to_owned(),
        "gateway_sessions = 99999".to_owned(),
        "enforce_quotas = true".to_owned(),
    ];
    for line in others {
        assert_ne!(group(&format!("[zookeeper]\n{line}\n")), usual, "{line}");
    }
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let scratch = Scratch::new("zookeeper-wrong");
    let layout = Layout::new(&scratch.0);
    make(&layout, &of(ZooKeeper::default())).expect("a fresh directory");
    let cases = [
        ("superuser = \"super\"", "superuser"),
        ("superuser = \"super:D/InIHSb7yEEbrWz8b9l71RjZJU\"", "superuser"),
        ("superuser = \":D/InIHSb7yEEbrWz8b9l71RjZJU=\"", "superuser"),
        ("min_session_timeout_ms = 0", "min_session_timeout_ms"),
        ("max_session_timeout_ms = 2147483648", "max_session_timeout_ms"),
        ("min_session_timeout_ms = 50000", "time-out"),
        ("max_session_timeout_ms = 3999", "time-out"),
        ("gateway_sessions = 0", "gateway_sessions"),
        ("session_grace_ms = 3499", "1750 ms"),
        ("session_grace_ms = 600001", "session_grace_ms"),
        ("[timing]\nclock_bound_ms = 334", "2002 ms"),
        ("[timing]\nsuspect_after_ms = 1251", "2001 ms"),
        ("session = 1", "session"),
    ];
    for (line, word) in cases {
        let error = with_table(&layout, &format!("[zookeeper]\n{line}\n")).expect_err(line);
        assert!(error.problem.contains(word), "{error}");
        assert!(!error.mend.is_empty());
    }

    let other = Scratch::new("zookeeper-kv");
    let layout = Layout::new(&other.0);
    make(&layout, &plan(TrustedKind::Hmac)).expect("a fresh directory");
    let error = with_table(&layout, "[zookeeper]\n").expect_err("keys and values have no sessions");
    assert!(error.problem.contains("\"kv\""), "{error}");
}

#[test]
fn a_superuser_who_would_be_something_else_in_the_file_is_refused_before_anything_is_written() {
    let scratch = Scratch::new("zookeeper-quote");
    let layout = Layout::new(&scratch.0);
    for name in ["a\"b", "a\\b", "a\nb", ""] {
        let superuser = Some(format!("{name}:D/InIHSb7yEEbrWz8b9l71RjZJU="));
        let refused = make(&layout, &of(ZooKeeper { superuser, ..ZooKeeper::default() }));
        assert!(matches!(refused, Err(MakeError::Plan(why)) if why.contains("superuser")), "{name:?}");
        assert!(!layout.root().exists());
    }
}

#[test]
fn a_restored_group_has_the_settings_of_the_old_one() {
    let (old, new) = (Scratch::new("zookeeper-old"), Scratch::new("zookeeper-new"));
    let layout = Layout::new(&old.0);
    make(&layout, &of(settings())).expect("a fresh directory");
    let before = Cluster::load(&layout.cluster()).expect("just made");
    let layout = Layout::new(&new.0);
    let content = Snapshot::of(Seq(1), Time(5), MerkleMap::new().tree_now());
    make_restored(&layout, &of(ZooKeeper::default()), &content, &before).expect("a fresh directory");
    let after = Cluster::load(&layout.cluster()).expect("just made");
    assert_eq!(set(&after), set(&before));
    assert_ne!(after.zookeeper.group, before.zookeeper.group, "proofs of sessions hold in one of them alone");
    assert_eq!(after.limits, before.limits);
}
