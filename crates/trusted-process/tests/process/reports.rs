//! What hardening does, says and refuses, on this kernel and on lesser ones.

use crate::place::{Place, STRANGER, TRUSTED, is_root};
use crate::support::{attest, step};
use crate::{Ran, Test};
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use troth_trusted_host::TrustedComponent;

pub const TESTS: &[Test] = &[
    ("reports::as_root_every_wall_stands_but_secret_memory", as_root_every_wall_stands_but_secret_memory),
    ("reports::the_kernel_confirms_what_is_reported", the_kernel_confirms_what_is_reported),
    (
        "reports::what_a_kernel_lacks_is_said_and_the_rest_holds",
        what_a_kernel_lacks_is_said_and_the_rest_holds,
    ),
    ("reports::the_replicas_own_user_is_no_isolation", the_replicas_own_user_is_no_isolation),
    ("reports::it_does_not_stay_root", it_does_not_stay_root),
    ("reports::a_directory_that_others_reach_is_refused", a_directory_that_others_reach_is_refused),
    ("reports::a_process_with_threads_is_refused", a_process_with_threads_is_refused),
    ("reports::only_root_becomes_another_user", only_root_becomes_another_user),
];

fn line<'a>(report: &'a [String], step: &str) -> &'a str {
    let found = report.iter().find_map(|line| line.strip_prefix(step)?.strip_prefix(": "));
    found.unwrap_or_else(|| panic!("no line on {step}: {report:#?}"))
}

fn as_root_every_wall_stands_but_secret_memory() -> Ran {
    crate::needs_root!();
    let place = Place::new();
    let mut task = place.task();
    task.client = STRANGER;
    let report = place.spawn(&task).wait_for("ready");
    println!("{}", report.join("\n"));
    for step in ["own user", "not dumpable", "no core files", "no new privileges", "seccomp"] {
        assert_eq!(line(&report, step), "done", "{step}");
    }
    let (locked, secret) = (line(&report, "locked memory"), line(&report, "secret memory"));
    // Root of a container may be unable to raise the limit on locked memory.
    let kept = if locked == "done" { "locked" } else { "ordinary" };
    assert!(locked == "done" || locked.contains("the limit of"), "{locked}");
    assert!(secret.starts_with(&format!("not available: keys are in {kept} memory")), "{secret}");
    assert!(report.iter().any(|line| line.starts_with("isolated from the replica's process as user 64101")));
    if line(&report, "landlock").starts_with("not available") {
        return Ran::Skipped("this kernel has no Landlock; all other walls stand");
    }
    Ran::Through
}

fn the_kernel_confirms_what_is_reported() -> Ran {
    let place = Place::new();
    let trusted = place.spawn(&place.task());
    let report = trusted.wait_for("ready");
    let path = format!("/proc/{}/status", trusted.pid());
    if !is_root() {
        return Ran::Skipped("a process that is not dumpable shows its status to root only");
    }
    let status = std::fs::read_to_string(path).expect("a living child");
    let field = |name: &str| {
        let found = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        found.unwrap_or_else(|| panic!("no {name}")).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let four = format!("{TRUSTED} {TRUSTED} {TRUSTED} {TRUSTED}");
    assert_eq!((field("Uid"), field("Gid"), field("Groups")), (four.clone(), four, String::new()));
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(field(set), "0000000000000000", "{set}");
    }
    assert_eq!(
        (field("NoNewPrivs"), field("Seccomp"), field("Threads")),
        ("1".into(), "2".into(), "1".into())
    );
    assert_eq!(field("VmLck") != "0 kB", line(&report, "locked memory") == "done");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", trusted.pid())).expect("its limits");
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).expect("a line");
    assert_eq!(core.split_whitespace().nth(4), Some("0"));
    Ran::Through
}

fn what_a_kernel_lacks_is_said_and_the_rest_holds() -> Ran {
    for (missing, wall, said) in [
        (&["landlock"][..], "landlock", "not available: this kernel has no Landlock"),
        (&["seccomp"], "seccomp", "not available: "),
        (&["mlockall"], "locked memory", "not available: "),
        (&["landlock", "seccomp", "mlockall"], "landlock", "not available: "),
    ] {
        let place = Place::new();
        let mut task = place.task();
        task.without = missing.iter().map(|what| (*what).to_owned()).collect();
        let trusted = place.spawn(&task);
        let report = trusted.wait_for("ready");
        assert!(line(&report, wall).starts_with(said), "{missing:?}: {report:#?}");
        assert_eq!(line(&report, "no new privileges"), "done");
        let answers = place.connect().call(&[attest(step(0, 0, 1), [1; 32])]);
        assert!(answers[0].attested().is_some(), "{missing:?}");
    }
    Ran::Through
}

fn the_replicas_own_user_is_no_isolation() -> Ran {
    let place = Place::new();
    let mut task = place.task();
    if is_root() {
        task.client = TRUSTED;
    }
    let report = place.spawn(&task).wait_for("ready");
    let said = "no isolation: the trusted process runs as the replica's own user";
    assert!(line(&report, "own user").starts_with(&format!("not available: {said}")));
    assert!(report.iter().any(|line| line.starts_with(said)), "{report:#?}");
    if is_root() {
        task.client = 0;
        let report = place.spawn(&task).wait_for("ready");
        assert!(report.iter().any(|line| line.starts_with("no isolation: the replica runs as root")));
    }
    Ran::Through
}

/// What a child says that refuses to serve.
fn refusal(place: &Place, task: &crate::child::Task) -> String {
    let trusted = place.spawn(task);
    let said = trusted.wait_for("refused: ").pop().expect("a line");
    assert_eq!(trusted.end().code(), Some(3));
    said
}

fn it_does_not_stay_root() -> Ran {
    crate::needs_root!();
    let place = Place::new();
    for user in [None, Some(0)] {
        let mut task = place.task();
        task.user = user;
        let said = refusal(&place, &task);
        assert!(said.contains("does not run as root"), "{said}");
    }
    Ran::Through
}

fn a_directory_that_others_reach_is_refused() -> Ran {
    for mode in [0o750, 0o701, 0o777] {
        let place = Place::new();
        set_permissions(place.state(), Permissions::from_mode(mode)).expect("a mode");
        let said = refusal(&place, &place.task());
        assert!(said.contains(&format!("with mode {mode:o}")), "{said}");
    }
    if is_root() {
        let place = Place::new();
        let mut task = place.task();
        task.user = Some(STRANGER);
        let said = refusal(&place, &task);
        assert!(said.contains("belongs to user 64101"), "{said}");
    }
    Ran::Through
}

fn a_process_with_threads_is_refused() -> Ran {
    let place = Place::new();
    let mut task = place.task();
    task.threads = true;
    let said = refusal(&place, &task);
    assert!(said.contains("has 2 threads"), "{said}");
    Ran::Through
}

fn only_root_becomes_another_user() -> Ran {
    if is_root() {
        return Ran::Skipped("this is root");
    }
    let place = Place::new();
    let mut task = place.task();
    task.user = Some(task.client + 1);
    let said = refusal(&place, &task);
    assert!(said.contains("cannot become user"), "{said}");
    Ran::Through
}
