//! Configuration of a trusted component in a process of its own: its key is nowhere but with it.

use super::config::{Scratch, plan};
use crate::config::{
    Cluster, ConfigError, Durability, Layout, MakeError, Plan, ReplicaSecret, TrustedHome, TrustedKind,
    TrustedSecret, make,
};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use troth_types::ReplicaId;

fn apart() -> Plan {
    Plan { trusted_home: TrustedHome::Process, durability: Durability::Always, ..plan(TrustedKind::Ed25519) }
}

fn made(name: &str, plan: &Plan) -> (Scratch, Layout) {
    let scratch = Scratch::new(name);
    let layout = Layout::new(&scratch.0);
    make(&layout, plan).expect("a fresh directory");
    (scratch, layout)
}

fn change(file: &Path, from: &str, to: &str) {
    let good = std::fs::read_to_string(file).expect("just written");
    assert!(good.contains(from), "{} has {from}", file.display());
    std::fs::write(file, good.replacen(from, to, 1)).expect("our own file");
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("just made").permissions().mode() & 0o777
}

#[test]
fn the_key_is_in_a_file_of_its_own_and_nowhere_else() {
    let (_scratch, layout) = made("home-apart", &apart());
    let cluster = Cluster::load(&layout.cluster()).expect("just made");
    assert_eq!(cluster.trusted_home, TrustedHome::Process);
    for replica in (0..3).map(ReplicaId) {
        let secret = ReplicaSecret::load(&layout.replica_secret(replica), &cluster).expect("good");
        assert!(secret.trusted.is_none() && secret.mac.is_none());
        assert_eq!(
            TrustedSecret::load(&layout.trusted_secret(replica), &cluster).expect("good").replica,
            replica
        );
        assert_eq!((mode(&layout.trusted_secret(replica)), mode(&layout.trusted(replica))), (0o600, 0o700));
        assert_eq!(mode(&layout.counters(replica, cluster.trusted_home)), 0o700);
        assert_eq!(mode(layout.trusted_socket(replica).parent().expect("a directory")), 0o755);
    }
    assert_eq!(mode(layout.root()), 0o755, "two users go through it");
    assert_eq!(mode(&layout.replica(ReplicaId(0))), 0o700);
}

#[test]
fn a_replica_that_has_the_key_all_the_same_is_refused() {
    let (_scratch, layout) = made("home-both", &apart());
    let cluster = Cluster::load(&layout.cluster()).expect("just made");
    let (theirs, own) = (layout.trusted_secret(ReplicaId(1)), layout.replica_secret(ReplicaId(1)));
    let text = std::fs::read_to_string(theirs).expect("just written");
    let line = text.lines().find(|line| line.starts_with("trusted_secret")).expect("its key");
    change(&own, "link_secret", &format!("{line}\nlink_secret"));
    let error = ReplicaSecret::load(&own, &cluster).err().expect("it has the key");
    assert!(error.place.is_some() && error.mend.contains("trusted-N"), "{error}");
}

#[test]
fn a_key_of_another_component_is_refused() {
    let (_scratch, layout) = made("home-other", &apart());
    let cluster = Cluster::load(&layout.cluster()).expect("just made");
    let file = layout.trusted_secret(ReplicaId(1));
    change(&file, "replica = 1", "replica = 2");
    let error = TrustedSecret::load(&file, &cluster).err().expect("another's key");
    assert!(error.problem.contains("trusted_key"), "{error}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).expect("our own file");
    let error = TrustedSecret::load(&file, &cluster).err().expect("readable by a group");
    assert!(error.mend.contains("chmod 600"), "{error}");
}

#[test]
fn a_replica_without_its_key_is_told_what_is_missing() {
    let (_scratch, layout) = made("home-none", &plan(TrustedKind::Ed25519));
    let cluster = Cluster::load(&layout.cluster()).expect("just made");
    assert_eq!(cluster.trusted_home, TrustedHome::InProcess, "where nothing is said");
    let file = layout.replica_secret(ReplicaId(0));
    change(&file, "trusted_secret", "# trusted_secret");
    let error = ReplicaSecret::load(&file, &cluster).err().expect("the key is gone");
    assert!(error.mend.contains("trusted_home"), "{error}");
}

#[test]
fn the_home_is_no_part_of_the_groups_name() {
    let (_scratch, layout) = made("home-name", &apart());
    let group = |layout: &Layout| Cluster::load(&layout.cluster()).expect("good").group.id();
    let apart = group(&layout);
    change(&layout.cluster(), "trusted_home = \"process\"", "trusted_home = \"in-process\"");
    assert_eq!(group(&layout), apart);
    change(&layout.cluster(), "trusted_home = \"in-process\"\n", "");
    assert_eq!(group(&layout), apart);
}

#[test]
fn a_home_that_isolates_nothing_is_refused_at_its_line() {
    let (_scratch, layout) = made("home-hmac", &plan(TrustedKind::Hmac));
    change(&layout.cluster(), "nonce =", "trusted_home = \"process\"\nnonce =");
    let refused = |layout: &Layout| -> ConfigError { Cluster::load(&layout.cluster()).expect_err("refused") };
    let error = refused(&layout);
    assert!(error.problem.contains("isolates nothing") && error.mend.contains("ed25519"), "{error}");
    assert!(error.place.is_some(), "{error}");

    let (_scratch, layout) = made("home-memory", &plan(TrustedKind::Ed25519));
    change(&layout.cluster(), "nonce =", "trusted_home = \"process\"\nnonce =");
    let cluster =
        Cluster::load(&layout.cluster()).expect("it outlives the replica and so serves any durability");
    assert_eq!((cluster.trusted_home, cluster.durability), (TrustedHome::Process, Durability::Memory));
    change(&layout.cluster(), "\"process\"", "\"tpm\"");
    assert!(refused(&layout).mend.contains("\"in-process\" or \"process\""));

    let scratch = Scratch::new("home-plan");
    let bad = Plan { trusted: TrustedKind::Hmac, ..apart() };
    let error = make(&Layout::new(&scratch.0), &bad).expect_err("no isolation");
    assert!(matches!(error, MakeError::Config(_)), "{error}");
    assert!(!scratch.0.exists(), "nothing is left behind");
}
