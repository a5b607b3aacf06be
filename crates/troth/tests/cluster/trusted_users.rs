//! Trusted components of a user of their own, as an operator with root sets them up.

use crate::doctor::refusal_of_replica_0;
use crate::support::{
    Running, Scratch, copy_of_troth, good, init_with, made_by_saying, pid, run, status, troth, until,
};
use crate::trusted::{all_executed, is_root, trusted_processes};
use std::fs::File;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Users that nobody else has.
const TRUSTED: u32 = 64_101;
const REPLICA: u32 = 64_102;

/// A cluster's directory as it is on a machine: the replica's files are its user's, the component's are
/// its user's.
fn prepare(dir: &Path) {
    init_with(dir, &["--trusted-home", "process", "--trusted-user", &TRUSTED.to_string()]);
    for id in 0..3 {
        let replica = dir.join(format!("replica-{id}"));
        for path in [replica.clone(), replica.join("secret.toml")] {
            chown(&path, Some(REPLICA), Some(REPLICA)).expect("its owner");
        }
    }
    copy_of_troth(&program(dir));
}

fn program(dir: &Path) -> PathBuf {
    dir.join("troth")
}

/// Starts the component of a replica as root does, with what it says in a file.
fn component(dir: &Path, id: u16) -> Running {
    let log = File::create(dir.join(format!("component-{id}.log"))).expect("our own directory");
    let mut command = troth(dir);
    command.args(["trusted", "--dir"]).arg(dir).args(["--id", &id.to_string()]);
    Running(command.stdout(Stdio::null()).stderr(log).spawn().expect("the command starts"))
}

fn said(dir: &Path, id: u16) -> String {
    std::fs::read_to_string(dir.join(format!("component-{id}.log"))).expect("its log")
}

fn serves(dir: &Path, id: u16) {
    until("the component serves", || said(dir, id).contains("isolated from").then_some(()));
}

/// Starts a replica as its own user.
fn replica(dir: &Path, id: u16) -> Running {
    let log = File::create(dir.join(format!("replica-{id}.log"))).expect("our own directory");
    let mut command = Command::new(program(dir));
    command.args(["replica", "--dir"]).arg(dir).args(["--id", &id.to_string(), "--trusted-socket"]);
    command
        .arg(dir.join(format!("socket-{id}")).join("trusted.sock"))
        .current_dir("/")
        .env_remove("RUST_LOG");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).uid(REPLICA).gid(REPLICA);
    Running(command.spawn().expect("the command starts"))
}

/// Whether this user can read the file.
fn reads(user: u32, file: &Path) -> bool {
    let mut command = Command::new("cat");
    command.arg(file).stdout(Stdio::null()).stderr(Stdio::null()).uid(user).gid(user);
    command.status().expect("cat runs").success()
}

#[test]
fn a_component_of_its_own_user_is_out_of_its_replicas_reach() {
    if !is_root() {
        eprintln!("SKIPPED: only root starts processes of other users");
        return;
    }
    let scratch = Scratch::new("trusted-user");
    let dir = scratch.0.as_path();
    prepare(dir);
    let mut components: Vec<Running> = (0..3).map(|id| component(dir, id)).collect();
    (0..3).for_each(|id| serves(dir, id));
    let _replicas: Vec<Running> = (0..3).map(|id| replica(dir, id)).collect();
    let pids = until("all replicas serve", || {
        let now = status(dir);
        now.iter()
            .all(|replica| replica["peers"].as_array().is_some_and(|peers| peers.len() == 2))
            .then_some(now)
    });
    let pids: Vec<u32> = pids.iter().map(pid).collect();
    good(dir, &["kv", "put", "key", "value"]);

    for (id, pid) in trusted_processes(dir) {
        let of = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        assert!(of.contains(&format!("Uid:\t{TRUSTED}\t{TRUSTED}\t{TRUSTED}\t{TRUSTED}")), "{id}: {of}");
        assert!(said(dir, id).contains("seccomp: done"), "{}", said(dir, id));
        assert!(!said(dir, id).contains("no isolation"), "{}", said(dir, id));
    }
    let (own, theirs) = (dir.join("replica-0/secret.toml"), dir.join("trusted-0/secret.toml"));
    assert!(reads(REPLICA, &own) && reads(TRUSTED, &theirs), "each reads its own");
    assert!(!reads(REPLICA, &theirs) && !reads(TRUSTED, &own), "and not the other's");
    let counters = std::fs::read_dir(dir.join("trusted-0/counters")).expect("root reads all");
    for file in counters.map(|file| file.expect("a file").path()) {
        assert!(reads(TRUSTED, &file) && !reads(REPLICA, &file), "{}", file.display());
    }
    let socket = std::fs::metadata(dir.join("socket-0/trusted.sock")).expect("it is served");
    assert_eq!((socket.uid(), socket.mode() & 0o777), (REPLICA, 0o600));

    // Its supervisor starts it again, and the replica that only connects goes on.
    components[0].signal("KILL");
    components[0].ends();
    components[0] = component(dir, 0);
    good(dir, &["kv", "put", "key", "still here"]);
    all_executed(dir);
    assert_eq!(status(dir).iter().map(pid).collect::<Vec<u32>>(), pids, "no replica ended");
}

#[test]
fn what_init_prints_to_root_works_as_it_is_printed() {
    if !is_root() {
        eprintln!("SKIPPED: only root starts processes of other users");
        return;
    }
    let scratch = Scratch::new("trusted-printed");
    let dir = scratch.0.as_path();
    let (_, said) = made_by_saying("init", dir, &["--trusted-home", "process"]);
    let directory = dir.to_str().expect("text");
    let lines: Vec<String> =
        said.lines().skip_while(|line| !line.contains("once, as root")).map(str::to_owned).collect();
    // No user is made for a test: the first line would.
    let commands: Vec<&String> = lines.iter().filter(|line| line.starts_with("  ")).skip(1).collect();
    assert_eq!(commands.len(), 3, "{said}");
    let path = Path::new(env!("CARGO_BIN_EXE_troth")).parent().expect("a directory");
    let shell = |line: &str, id: u16| {
        let numbered = line.replace("-N", &format!("-{id}")).replace("--id N", &format!("--id {id}"));
        // It may not stand in the directory's name.
        let (before, after) = numbered.split_once(directory).expect("it names the directory");
        // The group of a user whom nobody made is not known.
        let (user, both) = (TRUSTED.to_string(), format!("{TRUSTED}:{TRUSTED}"));
        let user = |part: &str| part.replace("troth-trusted:", &both).replace("troth-trusted", &user);
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec {}{directory}{}", user(before).trim_start(), user(after))]);
        shell.env("PATH", format!("{}:{}", path.display(), std::env::var("PATH").expect("a path")));
        shell.env_remove("TROTH_DIR").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        shell
    };
    let mut running = Vec::new();
    for id in 0..3 {
        assert!(shell(commands[0], id).status().expect("sh runs").success(), "{}", commands[0]);
        for command in &commands[1..] {
            running.push(Running(shell(command, id).spawn().expect("sh runs")));
        }
    }
    until("all replicas serve", || status(dir).iter().all(|replica| replica["pid"].is_u64()).then_some(()));
    good(dir, &["kv", "put", "key", "value"]);
    for id in 0..3 {
        let owner =
            std::fs::metadata(dir.join(format!("trusted-{id}/secret.toml"))).expect("it is there").uid();
        assert_eq!(owner, TRUSTED);
    }
}

/// What goes wrong is said once, with the mend, also by the doctor, which fails.
fn does_not_start(dir: &Path, wrong: &str, mend: &str) {
    // What an earlier try said is not said again.
    run(dir, &["up"]);
    let up = run(dir, &["up"]);
    let said = String::from_utf8_lossy(&up.stderr).into_owned();
    assert_ne!(up.status.code(), Some(0), "{said}");
    assert_eq!(said.matches(wrong).count(), 1, "{said}");
    // Any of them may be the first to end.
    let ended = (0..3).find(|id| said.contains(&format!("replica {id} ended"))).expect(&said);
    let its = mend.replace("trusted-0", &format!("trusted-{ended}"));
    assert_eq!(said.matches(&its).count(), 1, "{said}");
    assert_eq!(said.matches("the trusted process ended with").count(), 1, "{said}");
    let doctor = run(dir, &["doctor"]);
    let found = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert_eq!(doctor.status.code(), Some(1), "{found}");
    let failed: Vec<&str> = found.lines().filter(|line| line.starts_with("fail")).collect();
    assert_eq!(failed.len(), 1, "{found}");
    assert!(failed[0].contains("replicas 0, 1 and 2") && failed[0].contains(mend), "{found}");
}

#[test]
fn a_component_that_cannot_start_is_found_with_its_mend() {
    if !is_root() {
        eprintln!("SKIPPED: only root starts processes of other users");
        return;
    }
    let scratch = Scratch::new("trusted-root");
    let (of_root, closed) = (scratch.0.join("root"), scratch.0.join("closed"));
    init_with(&of_root, &["--trusted-home", "process"]);
    does_not_start(
        &of_root,
        "does not run as root, and",
        &format!("chown -R troth-trusted: {}/trusted-0", of_root.display()),
    );

    let dir = closed.join("cluster");
    init_with(&dir, &["--trusted-home", "process", "--trusted-user", &TRUSTED.to_string()]);
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).expect("our own");
    does_not_start(&dir, "closed is closed to it", &format!("chmod o+x {}", closed.display()));
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o755)).expect("our own");
    let _cluster = crate::support::up(&dir, &[]);
    good(&dir, &["kv", "put", "key", "value"]);
}

#[test]
fn the_doctor_says_what_a_user_may_not_look_at() {
    if !is_root() {
        eprintln!("SKIPPED: only root starts processes of other users");
        return;
    }
    let scratch = Scratch::new("trusted-doctor");
    let dir = scratch.0.as_path();
    prepare(dir);
    let mut doctor = Command::new(program(dir));
    doctor.args(["doctor", "--dir"]).arg(dir).current_dir("/").uid(REPLICA).gid(REPLICA);
    let output = doctor.output().expect("the command runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = said.lines().find(|line| line.contains("trusted-0 may not be read")).expect(&said);
    assert!(line.starts_with("warn") && line.contains("as root"), "{line}");
}

#[test]
fn root_serves_no_socket_where_others_may_write() {
    if !is_root() {
        eprintln!("SKIPPED: only root starts processes of other users");
        return;
    }
    let scratch = Scratch::new("trusted-socket");
    let dir = scratch.0.as_path();
    prepare(dir);
    let place = dir.join("replica-0").join("trusted.sock");
    let refused = run(dir, &["trusted", "--id", "0", "--socket", place.to_str().expect("text")]);
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{words}");
    assert!(words.contains("chown it to root") && words.contains("replica-0"), "{words}");
    assert!(!place.exists());

    let root = run(dir, &["trusted", "--id", "0", "--user", "0"]);
    let words = String::from_utf8_lossy(&root.stderr).into_owned();
    assert_eq!(root.status.code(), Some(2), "{words}");
    assert!(words.contains("does not run as root"), "{words}");
}

#[test]
fn a_replica_waits_for_a_socket_that_is_not_its_own_yet() {
    if !is_root() {
        eprintln!("SKIPPED: only root starts processes of other users");
        return;
    }
    let scratch = Scratch::new("trusted-early");
    let dir = scratch.0.as_path();
    prepare(dir);
    // As it is between being made by a process that starts as root and being given away.
    let socket = dir.join("socket-0/trusted.sock");
    let making = std::os::unix::net::UnixListener::bind(&socket).expect("a fresh socket");
    std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o600)).expect("our own");
    let mut early = replica(dir, 0);
    let said = || std::fs::read_to_string(dir.join("replica-0.log")).expect("its log");
    until("the replica waits", || said().contains("waiting for the trusted process").then_some(()));
    drop(making);
    let _component = component(dir, 0);
    until("the replica serves", || said().contains(" serves").then_some(()));
    assert!(early.0.try_wait().expect("our own child").is_none(), "{}", said());
}

#[test]
fn a_replica_whose_component_is_set_up_wrongly_is_not_started_again_for_it() {
    if !is_root() {
        eprintln!("SKIPPED: only root has components that belong to root");
        return;
    }
    let scratch = Scratch::new("trusted-root");
    let dir = scratch.0.as_path();
    let (_, said) = made_by_saying("init", dir, &["--trusted-home", "process"]);
    assert!(said.contains("`troth init --trusted-user troth-trusted`"), "{said}");
    let words = refusal_of_replica_0(dir);
    assert!(words.contains("does not run as root"), "{words}");
}
