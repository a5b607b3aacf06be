//! Stopping before it has started, and while the group does not answer.

use crate::support::{Running, Scratch, lives, pid, signal, status, troth, up};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};

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
