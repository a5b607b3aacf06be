//! How the group does, as a table.

use crate::ask::of_this_group;
use crate::status::{missing, render};
use crate::tests::cluster;
use troth_node::Snapshot;
use troth_node::config::{Protocol, hex};
use troth_types::ReplicaId;

#[test]
fn who_answers_for_another_group_is_none_of_this_ones_replicas() {
    let cluster = cluster("strangers", Protocol::MinBft);
    let of = |group: String| Ok(Snapshot { group, pid: 7, ..Snapshot::default() });
    let own = hex::encode(&cluster.group.id().0);
    let answers = of_this_group(&cluster, vec![of(own), of("00".to_owned()), Err("refused".to_owned())]);
    assert!(answers[0].is_ok());
    let said = answers[1].as_ref().expect_err("another group's");
    assert!(
        said.contains("another group answers there (process 7)") && said.contains("other ports"),
        "{said}"
    );
    assert_eq!(answers[2].as_ref().err().map(String::as_str), Some("refused"));
}

#[test]
fn who_is_missing_is_named_with_what_the_group_bears_without_it() {
    let cluster = cluster("missing", Protocol::MinBft);
    assert_eq!(missing(&cluster, &[]), None);
    let said = missing(&cluster, &[ReplicaId(1)]).expect("one is missing");
    assert!(said.starts_with("replica 1 does not answer") && said.contains("no other that fails"), "{said}");
    assert!(said.contains("`troth doctor`"), "{said}");
}

#[test]
fn what_stands_in_no_column_makes_none_wider_and_all_others_do() {
    let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
    let rows =
        [row(&["replica", "address", "pid"]), row(&["0", "127.0.0.1:27000"]), row(&["10", "far away"])];
    let shown = "replica  address  pid\n0        127.0.0.1:27000\n10       far away\n";
    assert_eq!(render(&rows), shown);
    let rows =
        [row(&["id", "address", "pid"]), row(&["0", "127.0.0.1:27000", "7"]), row(&["1", "unreachable"])];
    assert_eq!(render(&rows), "id  address          pid\n0   127.0.0.1:27000  7\n1   unreachable\n");
    let rows =
        [row(&["id", "address", "pid", "view"]), row(&["0", "127.0.0.1:27000", "unreachable: refused"])];
    let shown = "id  address          pid  view\n0   127.0.0.1:27000  unreachable: refused\n";
    assert_eq!(render(&rows), shown, "where nobody answers");
}
