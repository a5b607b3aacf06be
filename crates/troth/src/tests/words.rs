//! Numbers and names in sentences.

use crate::words::{answering, count, count_of, replicas};
use troth_types::ReplicaId;

#[test]
fn one_is_not_said_as_several_are() {
    assert_eq!(
        [0, 1, 2].map(|number: u16| count(number, "replica")),
        ["0 replicas", "1 replica", "2 replicas"]
    );
    assert_eq!([1, 2].map(|number: usize| count_of(number, "entry", "entries")), ["1 entry", "2 entries"]);
    assert_eq!(
        [0, 1, 2].map(|up| answering(up, 3)),
        ["0 of 3 replicas answer", "1 of 3 replicas answers", "2 of 3 replicas answer"]
    );
    let named = |ids: &[u16]| replicas(&ids.iter().copied().map(ReplicaId).collect::<Vec<_>>());
    assert_eq!(
        [named(&[]), named(&[3]), named(&[0, 2]), named(&[0, 1, 5])],
        ["no replica", "replica 3", "replicas 0 and 2", "replicas 0, 1 and 5"]
    );
}
