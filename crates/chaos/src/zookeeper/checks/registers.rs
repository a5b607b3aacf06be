//! Registers: their histories for the judge, and that versions count.

use crate::history::{Outcome, Record, Verb};
use crate::zookeeper::journal::{Ask, Done, Heard, Journal, Stat};
use crate::zookeeper::layout;
use std::collections::BTreeMap;
use troth_zookeeper::Code;

/// A version as the judge counts: ZooKeeper's begin at 0 with the node, and with 0 the judge means that there is none.
fn counted(version: i32) -> u64 {
    u64::try_from(version).map_or(0, |version| version + 1)
}

fn is_register(path: &str) -> bool {
    path.strip_prefix(layout::REGISTERS).is_some_and(|rest| rest.len() > 1)
}

/// What was asked of registers: a record without an outcome.
fn record(journal: &Journal, ask: &Ask) -> Option<Record> {
    let process = u32::try_from(journal.number).expect("a run has few sessions");
    let record = match ask {
        Ask::Create { path, value, .. } => Record::new(process, path, Verb::Cas, value, None),
        Ask::Set { path, value, expected: Some(version) } => {
            Record::new(process, path, Verb::Cas, value, Some(counted(*version)))
        }
        Ask::Set { path, value, expected: None } => Record::new(process, path, Verb::Put, value, None),
        Ask::Get { path, .. } => Record::new(process, path, Verb::Get, "", None),
        _ => return None,
    };
    is_register(&record.key).then_some(record)
}

fn ended(mut record: Record, heard: &Heard<'_>) -> Record {
    (record.call, record.returned) = (heard.called, Some(heard.at));
    match heard.outcome {
        Ok(Done::Created { stat, .. } | Done::Stat(stat)) => {
            (record.outcome, record.version) = (Outcome::Ok, Some(counted(stat.version)));
        }
        Ok(Done::Value { value, stat }) => {
            (record.outcome, record.version) = (Outcome::Ok, Some(counted(stat.version)));
            record.value.clone_from(value);
        }
        Err(code) if *code == Code::BadVersion.number() => record.outcome = Outcome::Other,
        Err(code) if *code == Code::NoNode.number() => record.outcome = Outcome::Absent,
        // Whatever else it may be, it was not said whether it was done.
        _ => (record.outcome, record.returned) = (Outcome::Unknown, None),
    }
    record
}

/// The history of all registers, in the order of the calls.
pub(crate) fn records(journals: &[Journal]) -> Vec<Record> {
    let mut all = Vec::new();
    for journal in journals {
        for heard in journal.replies() {
            all.extend(record(journal, heard.ask).map(|record| ended(record, &heard)));
        }
        for (place, ask) in journal.unanswered() {
            all.extend(record(journal, ask).map(|record| Record { call: journal.lines[place].at, ..record }));
        }
    }
    all.sort_by_key(|record| record.call);
    all
}

/// Versions that do not count the writes of a node one by one and in order, be it a register or not.
pub(crate) fn versions(journals: &[Journal]) -> Vec<String> {
    let mut wrong = Vec::new();
    // Of each node, by version: the transaction that wrote it, and what.
    let mut nodes: BTreeMap<&str, BTreeMap<i32, (i64, &str)>> = BTreeMap::new();
    for journal in journals {
        for heard in journal.replies() {
            let (path, value, stat) = match (heard.ask, heard.outcome) {
                (Ask::Set { path, value, expected }, Ok(Done::Stat(stat))) => {
                    if expected.is_some_and(|expected| stat.version != expected + 1) {
                        wrong.push(format!(
                            "{path} had version {expected:?}, and after a write {}",
                            stat.version
                        ));
                    }
                    (path, value, stat)
                }
                (Ask::Get { path, .. }, Ok(Done::Value { value, stat })) => (path, value, stat),
                (Ask::Create { path, value, .. }, Ok(Done::Created { path: made, stat })) if made == path => {
                    (path, value, stat)
                }
                _ => continue,
            };
            let Stat { modified, version, .. } = *stat;
            let known = nodes.entry(path).or_default().entry(version).or_insert((modified, value));
            if *known != (modified, value) {
                wrong.push(format!(
                    "version {version} of {path} is '{value}' of {modified:#x}, and '{}' of {:#x}",
                    known.1, known.0
                ));
            }
        }
    }
    for (path, versions) in nodes {
        let all: Vec<(i32, i64)> =
            versions.into_iter().map(|(version, (modified, _))| (version, modified)).collect();
        for pair in all.windows(2).filter(|pair| pair[0].1 >= pair[1].1) {
            wrong.push(format!("{path} has an older version that was written later: {pair:x?}"));
        }
    }
    wrong
}
