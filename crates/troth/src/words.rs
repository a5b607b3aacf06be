//! Numbers and names in sentences.

use troth_types::ReplicaId;

/// So many of something, whose word for several ends in an s.
pub(crate) fn count(number: impl TryInto<u64>, one: &str) -> String {
    count_of(number, one, &format!("{one}s"))
}

/// So many of something, with the words for one and for several.
pub(crate) fn count_of(number: impl TryInto<u64>, one: &str, several: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{number} {}", if number == 1 { one } else { several })
}

/// Replicas by their numbers.
pub(crate) fn replicas(which: &[ReplicaId]) -> String {
    let mut names: Vec<String> = which.iter().map(|replica| replica.0.to_string()).collect();
    let Some(last) = names.pop() else { return "no replica".to_owned() };
    if names.is_empty() {
        format!("replica {last}")
    } else {
        format!("replicas {} and {last}", names.join(", "))
    }
}

/// How many of a group's replicas answer.
pub(crate) fn answering(up: usize, n: usize) -> String {
    format!("{up} of {n} replicas {}", if up == 1 { "answers" } else { "answer" })
}
