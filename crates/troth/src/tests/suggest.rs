//! Commands that are suggested to somebody who named a directory.

use crate::suggest::{quoted, with_dir};

const DIR: &str = " --dir my/cluster";

fn shown(said: &str) -> String {
    with_dir(said, DIR, true)
}

#[test]
fn each_command_for_a_cluster_names_its_directory() {
    for (said, expected) in [
        ("look with `troth status`; `troth up` starts", "look with `troth status@`; `troth up@` starts"),
        ("(`troth admin show` lists)", "(`troth admin show@` lists)"),
        (
            "to bring it back: troth admin readmit --replica 2 (docs)",
            "to bring it back: troth admin readmit@ --replica 2 (docs)",
        ),
        ("troth kv get key", "troth kv@ get key"),
        ("`troth gateway zookeeper` starts one", "`troth gateway zookeeper@` starts one"),
        ("run `troth doctor` as root\n`troth status`", "run `troth doctor@` as root\n`troth status@`"),
    ] {
        assert_eq!(shown(said), expected.replace('@', DIR));
    }
}

#[test]
fn what_is_no_such_command_stays_as_it_is() {
    for said in [
        "troth: no cluster",
        "another `troth admin` runs; wait for its end",
        "its `troth trusted` where it has one",
        "the directory that `troth backup --to` made",
        "troth replica --dir elsewhere --id 2",
        "docs/troth status",
        "stroth status",
        "troth statusquo",
        "troth gateway",
        "troth gateway zookeepers",
        "troth ",
        "",
    ] {
        assert_eq!(shown(said), said);
    }
}

#[test]
fn a_cluster_is_made_where_there_is_none() {
    assert_eq!(
        with_dir("make one with `troth init`", DIR, false),
        format!("make one with `troth init{DIR}`")
    );
    assert_eq!(shown("make a new cluster with `troth init`"), "make a new cluster with `troth init`");
}

#[test]
fn a_shell_reads_a_directory_as_one_word() {
    assert_eq!(quoted("/srv/troth-1.0/a_b"), "/srv/troth-1.0/a_b");
    assert_eq!(quoted("my cluster"), "'my cluster'");
    assert_eq!(quoted("it's"), "'it'\\''s'");
    assert_eq!(quoted(""), "''");
}
