//! Stopping before it has started, and while the group does not answer.

use crate::support::{Running, Scratch, init, lives, pid, run, serving, signal, status, troth, until, up};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Replicas that are stopped, and killed where the test leaves them: they would never end otherwise.
struct Frozen(Vec<u32>);

impl Frozen {
    fn freeze(pids: &[u32]) -> Self {
        pids.iter().for_each(|pid| signal(*pid, "STOP"));
        Self(pids.to_vec())
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.0.iter().filter(|pid| lives(**pid)).for_each(|pid| signal(*pid, "KILL"));
    }
}

fn piped(dir: &Path, arguments: &[&str]) -> Running {
    Running(
        troth(dir)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts"),
    )
}

/// What a process that has ended printed.
fn said(child: &mut Child) -> String {
    let mut words = String::new();
    let (out, err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    out.chain(err).read_to_string(&mut words).expect("text");
    words
}

#[test]
fn ctrl_c_ends_a_watch_although_the_group_does_not_answer() {
    let scratch = Scratch::new("interrupt");
    let dir = scratch.0.as_path();
    let _cluster = up(dir, &[]);
    let pids: Vec<u32> = status(dir).iter().map(pid).collect();
    // Far longer than the test waits.
    let mut watch = piped(dir, &["kv", "--wait", "3600", "watch", "greeting"]);
    let mut first = [0; 1];
    watch.0.stderr.as_mut().expect("piped").read_exact(&mut first).expect("it says that it watches");
    let _frozen = Frozen::freeze(&pids[1..]);
    watch.signal("INT");
    assert_eq!(watch.ends(), Some(4), "{}", said(&mut watch.0));
}

/// Replica 2 serves no `/status`, so `troth up` waits for it in vain.
fn incomplete(dir: &Path) {
    init(dir);
    let file = dir.join("cluster.toml");
    let text = std::fs::read_to_string(&file).expect("just made");
    let last = text.rfind("http = ").expect("each replica has one");
    let end = last + text[last..].find('\n').expect("a line") + 1;
    std::fs::write(&file, format!("{}{}", &text[..last], &text[end..])).expect("our own file");
}

#[test]
fn a_signal_ends_a_cluster_that_is_still_starting() {
    let scratch = Scratch::new("starting");
    let dir = scratch.0.as_path();
    incomplete(dir);
    let mut cluster = piped(dir, &["up"]);
    until("replica 0 serves", || status(dir)[0]["pid"].as_u64());
    cluster.signal("TERM");
    assert_eq!((cluster.ends(), said(&mut cluster.0).as_str()), (Some(0), "\nStopping.\n"));
}

/// A cluster that does with SIGHUP as `env` is told, whatever whoever runs the tests does with it.
fn up_with(dir: &Path, hangup: &str) -> Running {
    let mut command = Command::new("env");
    command.args([hangup, env!("CARGO_BIN_EXE_troth"), "up"]).env("TROTH_DIR", dir).stdin(Stdio::null());
    let (running, lines) = serving(&mut command);
    std::thread::spawn(move || lines.for_each(drop));
    running
}

#[test]
fn a_closed_terminal_ends_a_cluster_as_ctrl_c_does() {
    let scratch = Scratch::new("hangup");
    let dir = scratch.0.as_path();
    let mut cluster = up_with(dir, "--default-signal=HUP");
    cluster.signal("HUP");
    assert_eq!(cluster.ends(), Some(0));
    assert!(!dir.exists(), "what it made went with it");
}

#[test]
fn a_cluster_that_was_started_to_outlive_its_terminal_does() {
    let scratch = Scratch::new("nohup");
    let dir = scratch.0.as_path();
    let mut cluster = up_with(dir, "--ignore-signal=HUP");
    let status = std::fs::read_to_string(format!("/proc/{}/status", cluster.0.id())).expect("it runs");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("as the kernel has it");
    let ignored = u64::from_str_radix(ignored.trim(), 16).expect("a mask");
    assert_eq!(ignored & 1, 1, "SIGHUP is still ignored: {ignored:x}");
    cluster.signal("HUP");
    cluster.signal("INT");
    assert_eq!(cluster.ends(), Some(0));
}

#[test]
fn up_leaves_a_directory_that_was_there_and_takes_one_that_it_made() {
    let scratch = Scratch::new("was-there");
    let dir = scratch.0.as_path();
    // One that ended without clearing up left the directory, and it is still the command's own.
    for (was_there, is_killed) in [(true, false), (true, true), (false, true)] {
        if was_there {
            std::fs::create_dir_all(dir).expect("our own directory");
        }
        if is_killed {
            let mut killed = up(dir, &[]);
            killed.signal("KILL");
            killed.ends();
        }
        let mut cluster = up(dir, &[]);
        cluster.signal("INT");
        assert_eq!(cluster.ends(), Some(0));
        assert_eq!(dir.exists(), was_there, "killed before: {is_killed}");
        let _ = std::fs::remove_dir(dir);
    }
}

#[test]
fn a_cluster_that_does_not_come_to_serve_is_no_success() {
    let scratch = Scratch::new("halfway");
    let dir = scratch.0.as_path();
    incomplete(dir);
    let mut cluster = piped(dir, &["up"]);
    let replica = until("replica 0 serves", || status(dir)[0]["pid"].as_u64());
    signal(u32::try_from(replica).expect("a pid"), "TERM");
    assert_eq!(cluster.ends(), Some(5), "the replica ended cleanly, the command did not");
}

#[test]
fn up_removes_nothing_that_it_did_not_make() {
    let scratch = Scratch::new("theirs");
    let dir = scratch.0.as_path();
    let theirs = dir.join("clients").join("client-1.toml");
    std::fs::create_dir_all(dir.join("clients")).expect("our own directory");
    std::fs::write(&theirs, "a client's machine").expect("our own file");
    for _ in 0..2 {
        assert_eq!(piped(dir, &["up"]).ends(), Some(2));
    }
    assert!(theirs.exists());
    assert!(!dir.join("made-by-troth-up").exists());
}

#[test]
fn init_makes_nothing_that_up_would_remove() {
    let scratch = Scratch::new("marked");
    let dir = scratch.0.as_path();
    std::fs::create_dir_all(dir).expect("our own directory");
    std::fs::write(dir.join("made-by-troth-up"), "").expect("our own file");
    assert_eq!(run(dir, &["init"]).status.code(), Some(2));
    assert!(!dir.join("cluster.toml").exists());
}
