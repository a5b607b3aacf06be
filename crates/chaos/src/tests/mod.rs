//! Tests of this crate.

mod cli;
mod faults;
mod history;
mod judge;
mod ledger;
mod readmission;
mod relay;
mod stale;

use crate::history::{Outcome, Record, Verb};

/// An operation that ended; the version is what was found or written.
fn done(verb: Verb, value: &str, outcome: Outcome, version: Option<u64>, time: (u64, u64)) -> Record {
    let mut record = Record::new(0, "key", verb, value, None);
    (record.call, record.returned) = (time.0, Some(time.1));
    (record.outcome, record.version) = (outcome, version);
    record
}

/// An acknowledged put.
fn put(value: &str, version: u64, time: (u64, u64)) -> Record {
    done(Verb::Put, value, Outcome::Ok, Some(version), time)
}

/// A read that found something.
fn get(value: &str, version: u64, time: (u64, u64)) -> Record {
    done(Verb::Get, value, Outcome::Ok, Some(version), time)
}

/// A put without an answer.
fn open(value: &str, call: u64) -> Record {
    let mut record = Record::new(0, "key", Verb::Put, value, None);
    record.call = call;
    record
}
