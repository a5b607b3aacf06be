//! What the log says of notes.

use crate::notes::Suspicions;
use troth_types::{ReplicaId, Time};

/// A primary that breaks a rule with each of thousands of small messages would fill a disk with what is said of it.
#[test]
fn the_same_is_said_of_a_replica_once_in_ten_seconds() {
    let (mut suspicions, second) = (Suspicions::default(), 1_000_000);
    let mut say = |replica, reason, at| suspicions.say(ReplicaId(replica), reason, Time(at));
    assert_eq!(say(1, "two proposals", 5), Some(0));
    assert_eq!(say(1, "two proposals", 5), None);
    assert_eq!(
        (say(1, "a large batch", 5), say(2, "two proposals", 6)),
        (Some(0), Some(0)),
        "something else"
    );
    for at in 1..10 {
        assert_eq!(say(1, "two proposals", at * second), None);
    }
    assert_eq!(say(1, "two proposals", 5 + 10 * second), Some(10), "what was left out is counted");
    assert_eq!(say(1, "two proposals", 6 + 10 * second), None);
    assert_eq!(say(1, "two proposals", 40 * second), Some(1));
}
