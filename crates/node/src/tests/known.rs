//! What is known of a group that has changed, the secret files of such replicas, and what a former life left.

use super::config::{Scratch, plan};
use crate::aside::same_owner_directory;
use crate::config::{ClientSecret, Cluster, Known, Layout, ReplicaKeys, ReplicaSecret, TrustedKind, make};
use crate::{AsideError, Stopped, put_aside, remains};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use troth_disk::RealDisk;
use troth_trusted::Epoch;
use troth_types::{Change, OPERATOR, ReplicaId, Seq};

fn made(name: &str, trusted: TrustedKind) -> (Scratch, Layout, Cluster) {
    let scratch = Scratch::new(name);
    let layout = Layout::new(&scratch.0);
    make(&layout, &plan(trusted)).expect("a fresh directory");
    let cluster = Cluster::load(&layout.cluster()).expect("just made");
    (scratch, layout, cluster)
}

#[test]
fn a_cluster_has_an_operator_of_its_own_and_may_have_none() {
    let (_scratch, layout, cluster) = made("operator", TrustedKind::Hmac);
    assert!(cluster.configuration().client(OPERATOR).is_some());
    let secret = ClientSecret::load_operator(&layout.operator_secret(), &cluster).expect("just made");
    assert_eq!(secret.client, OPERATOR);
    let mode = std::fs::metadata(layout.operator_secret()).expect("just made").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let text = std::fs::read_to_string(layout.cluster()).expect("just made");
    let without = text.split("\n[operator]").next().expect("it has one").to_owned() + "\n";
    std::fs::write(layout.cluster(), without).expect("our own file");
    let other = Cluster::load(&layout.cluster()).expect("nobody may change it, and it serves");
    assert!(other.operator.is_none() && other.configuration().client(OPERATOR).is_none());
    assert_ne!(other.group.id(), cluster.group.id(), "who may change a group is part of its name");
}

#[test]
fn addresses_are_no_part_of_what_a_group_begins_with() {
    let (_scratch, layout, cluster) = made("addresses", TrustedKind::Hmac);
    let text = std::fs::read_to_string(layout.cluster()).expect("just made");
    std::fs::write(layout.cluster(), text.replace("127.0.0.1:4701", "10.0.0.7:99")).expect("our own file");
    let elsewhere = Cluster::load(&layout.cluster()).expect("another way to replica 1");
    assert_eq!(elsewhere.group.id(), cluster.group.id());
    assert_eq!(elsewhere.configuration(), cluster.configuration(), "it becomes replicated state");
}

#[test]
fn what_is_known_is_read_back_and_leads_to_the_present_hosts() {
    let (_scratch, layout, cluster) = made("known", TrustedKind::Ed25519);
    let mut known = Known::load(&layout, &cluster).expect("there is none, and that is known");
    assert_eq!(known.configuration, cluster.configuration());
    let mut keys = ReplicaKeys::new(ReplicaId(2), Epoch(2), None).expect("randomness");
    keys.address = Some("10.0.0.9:4700".to_owned());
    let admit = Change::Admit {
        replica: ReplicaId(2),
        epoch: 2,
        component: keys.component(&cluster),
        host: Some(keys.host()),
    };
    let mut next = (*known.configuration).clone();
    next.apply(&admit, Seq(7), 1, 1).expect("it fits");
    known.configuration = next.into();
    known.http.insert(ReplicaId(2), "10.0.0.9:4800".to_owned());
    known.save(&layout, &cluster).expect("our own directory");
    assert_eq!(Known::load(&layout, &cluster).expect("just written"), known);
    let present = known.present(&cluster);
    assert_eq!(present.replicas[2].address, "10.0.0.9:4700");
    assert_eq!(present.replicas[2].http.as_deref(), Some("10.0.0.9:4800"));
    assert_eq!(present.replicas[2].link_key, keys.host().link);
    assert_eq!(present.replicas[1].address, cluster.replicas[1].address);
    assert_eq!(present.clients.len(), 2, "the operator is none of those that anybody may be");

    let text = std::fs::read_to_string(layout.known()).expect("just written");
    for (from, to, word) in [
        ("group = \"", "group = \"00", "another group"),
        ("configuration = \"", "configuration = \"zz", "hexadecimal"),
        ("configuration = \"", "configuration = \"00", "no configuration"),
    ] {
        std::fs::write(layout.known(), text.replacen(from, to, 1)).expect("our own file");
        let error = Known::load(&layout, &cluster).expect_err(word);
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn a_renewed_secret_is_of_its_epoch_and_private() {
    for trusted in [TrustedKind::Hmac, TrustedKind::Ed25519] {
        let (_scratch, layout, cluster) = made(&format!("renew-{}", trusted.name()), trusted);
        let file = layout.replica_secret(ReplicaId(1));
        let mut keys = ReplicaKeys::load(&layout, &cluster, ReplicaId(1)).expect("just made");
        assert_eq!(keys.host().link, cluster.replicas[1].link_key);
        let before = keys.component(&cluster);
        keys.renew_component(&cluster, Epoch(5)).expect("randomness");
        assert_eq!(keys.component(&cluster) == before, trusted == TrustedKind::Hmac);
        keys.write(&layout, &cluster).expect("our own directory");
        let secret = ReplicaSecret::load(&file, &cluster).expect("just written");
        assert_eq!((secret.replica, secret.epoch), (ReplicaId(1), Epoch(5)));
        let again = ReplicaKeys::load(&layout, &cluster, ReplicaId(1)).expect("just written");
        assert_eq!((again.host(), again.component(&cluster)), (keys.host(), keys.component(&cluster)));
        let mode = std::fs::metadata(&file).expect("just written").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

/// Whom somebody else's files belong to, where this may give files away.
const SOMEBODY: u32 = 12_345;

#[test]
fn a_link_that_is_laid_where_a_secret_is_written_is_not_followed() {
    let (scratch, layout, cluster) = made("laid-link", TrustedKind::Ed25519);
    let (me, root) = (ReplicaId(1), rustix::process::geteuid().is_root());
    let (file, victim) = (layout.replica_secret(me), scratch.0.join("victim"));
    std::fs::write(&victim, "root's own").expect("our own directory");
    std::fs::set_permissions(&victim, PermissionsExt::from_mode(0o644)).expect("our own file");
    let before = std::fs::metadata(&victim).expect("just made");
    let mut keys = ReplicaKeys::load(&layout, &cluster, me).expect("just made");
    if root {
        chown(&file, Some(SOMEBODY), Some(SOMEBODY)).expect("root may");
    }
    let new = file.with_extension("toml.new");
    for hard in [false, true] {
        match hard {
            false => symlink(&victim, &new).expect("our own directory"),
            true => std::fs::hard_link(&victim, &new).expect("our own directory"),
        }
        keys.renew_component(&cluster, Epoch(5)).expect("randomness");
        keys.write(&layout, &cluster).expect("what was laid there is in nobody's way");
        let after = std::fs::metadata(&victim).expect("it is left alone");
        assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
        assert_eq!(std::fs::read_to_string(&victim).expect("it is left alone"), "root's own");
        let written = std::fs::symlink_metadata(&file).expect("just written");
        assert!(written.is_file() && written.mode() & 0o777 == 0o600);
        assert!(!root || (written.uid(), written.gid()) == (SOMEBODY, SOMEBODY), "it keeps its owner");
        let again = ReplicaKeys::load(&layout, &cluster, me).expect("just written");
        assert_eq!(again.component(&cluster), keys.component(&cluster));
        assert!(std::fs::symlink_metadata(&new).is_err(), "nothing is left there");
    }
}

#[test]
fn a_directory_is_given_to_whom_its_like_belongs_to_and_through_no_link() {
    let (scratch, root) = (Scratch::new("given-directory"), rustix::process::geteuid().is_root());
    let [like, new, victim, link] = ["like", "new", "victim", "link"].map(|name| scratch.0.join(name));
    for directory in [&like, &victim] {
        std::fs::create_dir_all(directory).expect("our own directory");
    }
    let own = std::fs::metadata(&victim).expect("just made").uid();
    if root {
        chown(&like, Some(SOMEBODY), Some(SOMEBODY)).expect("root may");
    }
    same_owner_directory(&new, &like).expect("our own directory");
    let made = std::fs::metadata(&new).expect("just made");
    assert_eq!((made.mode() & 0o777, made.uid()), (0o700, if root { SOMEBODY } else { own }));
    symlink(&victim, &link).expect("our own directory");
    same_owner_directory(&link, &like).expect_err("something is there");
    assert_eq!(std::fs::metadata(&victim).expect("just made").uid(), own);
}

#[test]
fn what_a_life_left_is_put_aside_and_nothing_of_a_running_replica() {
    let (_scratch, layout, cluster) = made("aside", TrustedKind::Hmac);
    let me = ReplicaId(0);
    assert!(remains(&layout, &cluster, me).is_empty());
    for directory in [layout.data(me), layout.counters(me, cluster.trusted_home)] {
        std::fs::create_dir(&directory).expect("our own directory");
        std::fs::write(directory.join("file"), "content").expect("our own directory");
    }
    std::fs::write(layout.started(me), "ran").expect("our own directory");
    let running = RealDisk::open(&layout.data(me)).expect("nobody else");
    assert!(matches!(Stopped::hold(&layout, me), Err(AsideError::Running(0, _))));
    drop(running);
    let socket = layout.trusted_socket(me);
    std::fs::create_dir(socket.parent().expect("its directory")).expect("our own directory");
    let trusted = UnixListener::bind(&socket).expect("a short path");
    assert!(matches!(Stopped::hold(&layout, me), Err(AsideError::ComponentRuns(0, at)) if at == socket));
    drop(trusted);
    let stopped = Stopped::hold(&layout, me).expect("it is stopped");
    let started = RealDisk::open(&layout.data(me));
    assert!(started.is_err(), "it cannot be started meanwhile");
    let moved = put_aside(&layout, &cluster, &stopped, Epoch(1)).expect("it is stopped");
    assert_eq!(moved.len(), 3);
    assert!(remains(&layout, &cluster, me).is_empty());
    let kept = layout.replica(me).join("data.old-1").join("file");
    assert_eq!(std::fs::read_to_string(kept).expect("nothing is deleted"), "content");
}
