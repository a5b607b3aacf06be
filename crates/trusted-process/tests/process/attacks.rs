//! What another user can do to the process from outside, the replica's user first of all.

use crate::attacker::{self, KEPT_OUT, ON_MEMORY, THROUGH};
use crate::child;
use crate::place::{Place, REPLICA, STRANGER, TRUSTED, Trusted};
use crate::{Ran, Test};
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

pub const TESTS: &[Test] = &[
    ("attacks::other_users_reach_neither_memory_nor_files", other_users_reach_neither_memory_nor_files),
    ("attacks::the_attacks_work_where_nothing_protects", the_attacks_work_where_nothing_protects),
    ("attacks::other_users_cannot_speak_to_it", other_users_cannot_speak_to_it),
    ("attacks::the_same_user_reaches_the_files", the_same_user_reaches_the_files),
];

/// Runs an attacker of a user; whether it got through, and what it said.
fn attack(place: &Place, uid: u32, attack: &str, trusted: &Trusted, path: &Path) -> (bool, String) {
    let output = Command::new(place.program())
        .args([attacker::ROLE, attack, &trusted.pid().to_string()])
        .arg(path)
        .uid(uid)
        .gid(uid)
        .output()
        .expect("an attacker");
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match output.status.code().map(|code| code as u8) {
        Some(THROUGH) => (true, said),
        Some(KEPT_OUT) => (false, said),
        _ => panic!("the attacker itself failed: {output:?}"),
    }
}

/// A hardened process for the user of the replica, with something in its store.
fn served(place: &Place) -> Trusted {
    let mut task = place.task();
    task.client = REPLICA;
    place.start(&task)
}

fn other_users_reach_neither_memory_nor_files() -> Ran {
    crate::needs_root!();
    let place = Place::new();
    let trusted = served(&place);
    let (state, store) = (place.state(), place.state().join("store"));
    assert!(store.exists());
    let on_files = [("list", &state), ("read", &store), ("write", &store), ("signal", &state)];
    for uid in [REPLICA, STRANGER] {
        for (what, path) in ON_MEMORY.map(|what| (what, &state)).into_iter().chain(on_files) {
            let (through, said) = attack(&place, uid, what, &trusted, path);
            assert!(!through, "user {uid} got through with {what}");
            let refused = ["EACCES", "EPERM", "Permission denied", "not permitted"];
            assert!(
                refused.iter().any(|word| said.contains(word)),
                "{what} failed for another reason: {said}"
            );
        }
    }
    // Its own user is kept from its memory as well.
    for what in ON_MEMORY {
        assert!(!attack(&place, TRUSTED, what, &trusted, &state).0, "its own user got through with {what}");
    }
    assert!(attack(&place, REPLICA, "connect", &trusted, &place.socket()).0, "it still serves");
    Ran::Through
}

/// The control: a process of the same user that is not hardened is open to every one of these attacks.
fn the_attacks_work_where_nothing_protects() -> Ran {
    crate::needs_root!();
    let yama = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    if !matches!(yama.trim(), "" | "0") {
        return Ran::Skipped("this kernel forbids tracing to everybody (yama)");
    }
    let place = Place::new();
    let run = place.scratch.path("run");
    for directory in [place.state(), run] {
        chown(directory, Some(REPLICA), Some(REPLICA)).expect("an owner");
    }
    let mut task = place.task();
    (task.plain, task.client, task.user) = (true, REPLICA, None);
    let mut command = Command::new(place.program());
    command.arg(child::ROLE).args(task.to_arguments()).uid(REPLICA).gid(REPLICA);
    let trusted = Trusted::spawn(command);
    trusted.wait_for("ready");
    let (state, store) = (place.state(), place.state().join("store"));
    let on_files = [("list", &state), ("read", &store), ("write", &store), ("signal", &state)];
    for (what, path) in ON_MEMORY.map(|what| (what, &state)).into_iter().chain(on_files) {
        let (through, said) = attack(&place, REPLICA, what, &trusted, path);
        assert!(through, "{what} shows nothing: {said}");
    }
    Ran::Through
}

fn other_users_cannot_speak_to_it() -> Ran {
    crate::needs_root!();
    let place = Place::new();
    let trusted = served(&place);
    let socket = place.socket();
    let (through, said) = attack(&place, STRANGER, "connect", &trusted, &socket);
    assert!(!through && said.contains("Permission denied"), "{said}");
    // With the socket open to everybody the kernel's word on the peer still decides.
    set_permissions(&socket, Permissions::from_mode(0o666)).expect("a mode");
    let (through, said) = attack(&place, STRANGER, "connect", &trusted, &socket);
    assert!(!through && said.contains("does not serve this user"), "{said}");
    trusted.wait_for("event: refused process");
    // Not even for root, which is this test.
    let refused = troth_trusted_process::RemoteComponent::connect(&socket, crate::place::PATIENCE);
    assert!(refused.is_err_and(|why| why.to_string().contains("does not serve this user")));
    assert!(attack(&place, REPLICA, "connect", &trusted, &socket).0);
    Ran::Through
}

/// Why the report calls it no isolation.
fn the_same_user_reaches_the_files() -> Ran {
    crate::needs_root!();
    let place = Place::new();
    let mut task = place.task();
    task.client = TRUSTED;
    let trusted = place.start(&task);
    for (what, path) in [("read", place.state().join("store")), ("write", place.state().join("store"))] {
        assert!(attack(&place, TRUSTED, what, &trusted, &path).0, "{what}");
    }
    Ran::Through
}
