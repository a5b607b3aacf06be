//! How the group does, as a table.

use crate::status::render;

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
