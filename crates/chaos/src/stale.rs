//! A history made wrong on purpose, to see the judge find it; and acknowledged writes that are gone,
//! which need no search: versions of a key only grow.

use crate::history::{Outcome, Record, Verb};
use std::collections::BTreeMap;

/// The same history with one read that returns a value which had been overwritten, as was
/// acknowledged, before the read began. None where no key was written twice and read afterwards.
pub(crate) fn stale(records: &[Record]) -> Option<Vec<Record>> {
    // Per key, the first acknowledged write, and when another that came after it was acknowledged.
    let mut first: BTreeMap<&str, &Record> = BTreeMap::new();
    for record in records.iter().filter(|record| record.wrote()) {
        let known = first.entry(&record.key).or_insert(record);
        if record.returned < known.returned {
            *known = record;
        }
    }
    let mut overwritten: BTreeMap<&str, u64> = BTreeMap::new();
    for record in records.iter().filter(|record| record.wrote()) {
        let (Some(returned), Some(earlier)) = (record.returned, first[record.key.as_str()].returned) else {
            continue;
        };
        if record.call > earlier {
            let when = overwritten.entry(&record.key).or_insert(returned);
            *when = returned.min(*when);
        }
    }
    let read = records.iter().position(|record| {
        let after = overwritten.get(record.key.as_str()).is_some_and(|when| record.call > *when);
        after && record.verb == Verb::Get && record.outcome == Outcome::Ok
    })?;
    let mut wrong = records.to_vec();
    let old = first[records[read].key.as_str()];
    wrong[read].value.clone_from(&old.value);
    wrong[read].version = old.version;
    Some(wrong)
}

/// Keys whose last read does not show the newest write that was acknowledged before it began, nor a
/// newer one. Nothing is ever deleted.
pub(crate) fn lost(records: &[Record]) -> Vec<String> {
    let mut last: BTreeMap<&str, &Record> = BTreeMap::new();
    let answered = [Outcome::Ok, Outcome::Absent];
    for record in records.iter().filter(|r| r.verb == Verb::Get && answered.contains(&r.outcome)) {
        let known = last.entry(&record.key).or_insert(record);
        if record.call > known.call {
            *known = record;
        }
    }
    let mut newest: BTreeMap<&str, &Record> = BTreeMap::new();
    for record in records.iter().filter(|record| record.wrote()) {
        let Some(read) = last.get(record.key.as_str()) else { continue };
        if record.returned.is_some_and(|returned| returned < read.call) {
            let known = newest.entry(&record.key).or_insert(record);
            if record.version > known.version {
                *known = record;
            }
        }
    }
    let gone = newest.iter().filter(|(key, write)| {
        let read = last[*key];
        read.version < write.version || (read.version == write.version && read.value != write.value)
    });
    gone.map(|(key, write)| {
        let found = last[key];
        format!(
            "{key}: '{}' was acknowledged as version {}, and a later read found {}",
            write.value,
            write.version.unwrap_or(0),
            found
                .version
                .map_or("nothing".to_owned(), |version| format!("'{}', version {version}", found.value))
        )
    })
    .collect()
}
