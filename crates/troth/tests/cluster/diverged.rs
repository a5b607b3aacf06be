//! A replica whose state goes wrong: alarm, silence and repair, seen from outside.

use crate::support::{Running, Scratch, good, init_with, run, status, troth, until};
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

fn replica(dir: &Path, id: u16, further: &[&str]) -> Running {
    let mut command = troth(dir);
    command.args(["replica", "--id", &id.to_string()]).args(further);
    Running(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the command starts"))
}

#[test]
fn a_replica_whose_state_goes_wrong_says_so_and_repairs_itself() {
    let scratch = Scratch::new("diverged");
    let dir = scratch.0.as_path();
    init_with(dir, &[]);
    // Checkpoints come soon.
    let file = dir.join("cluster.toml");
    let text = std::fs::read_to_string(&file).expect("just made");
    let timing = "[timing]\ncheckpoint_interval = 8\nwindow = 16\n\n[[replica]]";
    std::fs::write(&file, text.replacen("[[replica]]", timing, 1)).expect("our own file");
    // The group has another name with it, which the secrets hold.
    let group = run(dir, &["replica", "--id", "0"]);
    let words = String::from_utf8_lossy(&group.stderr).into_owned();
    let new = words.split("which defines ").nth(1).expect("the group that it defines now");
    rename(dir, new.get(..32).expect("its name"));

    let mut wrong = replica(dir, 2, &["--adversary", "miscompute"]);
    let _others = [replica(dir, 0, &[]), replica(dir, 1, &[])];
    until("all serve", || {
        let up = status(dir).iter().filter(|replica| replica["pid"].is_u64()).count();
        (up == 3).then_some(())
    });
    for number in 0..6 {
        good(dir, &["kv", "put", &format!("key{number}"), "value"]);
    }
    let mut further = 0;
    let repaired = until("the alarm was raised and the state repaired", || {
        good(dir, &["kv", "put", "further", &further.to_string()]);
        further += 1;
        let replica = status(dir)[2].clone();
        let alarmed = replica["counters"]["divergences"].as_u64() == Some(1);
        (alarmed && replica["diverged"].is_null()).then_some(replica)
    });
    assert_eq!(repaired["counters"]["transfers"].as_u64(), Some(1));
    // From now on its checkpoints are the group's: nothing is raised again, and it answers as they do. A fast
    // read needs all three.
    let stable = repaired["stable"].as_u64().expect("a number");
    until("later checkpoints are stable", || {
        good(dir, &["kv", "put", "further", "more"]);
        (status(dir)[2]["stable"].as_u64() > Some(stable + 16)).then_some(())
    });
    assert_eq!(status(dir)[2]["counters"]["divergences"].as_u64(), Some(1));
    for number in 0..6 {
        assert_eq!(good(dir, &["kv", "get", &format!("key{number}")]).trim(), "value");
    }
    assert!(good(dir, &["status"]).contains("alarm"));
    wrong.signal("TERM");
    assert_eq!(wrong.ends(), Some(0));
    let mut log = String::new();
    wrong.0.stderr.take().expect("piped").read_to_string(&mut log).expect("text");
    assert!(log.contains("ERROR") && log.contains("ALARM") && log.contains("is repaired"), "{log}");
}

/// Gives all secrets the name of the group.
fn rename(dir: &Path, new: &str) {
    let secrets = (0..3).map(|id| dir.join(format!("replica-{id}/secret.toml")));
    let clients = (1..=16).map(|id| dir.join(format!("clients/client-{id}.toml")));
    for file in secrets.chain(clients) {
        let text = std::fs::read_to_string(&file).expect("its secret");
        let old = text.lines().find(|line| line.starts_with("group = ")).expect("its group");
        std::fs::write(&file, text.replace(old, &format!("group = \"{new}\""))).expect("our own file");
    }
}
