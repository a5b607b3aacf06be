//! Lines of the logs that operators read: JSON in which no text of a client can end a line, or say anything to a terminal.

use core::fmt::Write as _;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use troth_types::Time;

/// A line of a log, without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Of who asked for which change, which was done or may have been.
    Audit(String),
    /// Of one that was not done: where there is no room for all lines, these go first.
    Refused(String),
    /// So many lines of the audit log that were not made, because one client made too many.
    Lost(u64),
    /// Of a request that took long.
    Slow(String),
}

/// Lines that are to be written.
#[derive(Debug, Default)]
pub(super) struct Records(pub(super) VecDeque<Record>);

impl Records {
    /// Counts lines of the audit log that are not made.
    pub(super) fn lose(&mut self, lines: u64) {
        match self.0.back_mut() {
            Some(Record::Lost(lost)) => *lost += lines,
            _ => self.0.push_back(Record::Lost(lines)),
        }
    }
}

/// One line: an object in which everything but the printable signs of ASCII is escaped.
pub(super) fn line(fields: Map<String, Value>) -> String {
    rule!("ZKG-W3");
    let text = Value::Object(fields).to_string();
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return text;
    }
    let mut line = String::with_capacity(text.len() + 32);
    for character in text.chars() {
        if (' '..='~').contains(&character) {
            line.push(character);
        } else {
            // Such signs stand in texts only, where JSON takes these for them.
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(line, "\\u{unit:04x}");
            }
        }
    }
    line
}

/// A time as RFC 3339 writes it, in UTC.
pub(super) fn moment(time: Time) -> String {
    let (seconds, micros) = (time.0 / 1_000_000, time.0 % 1_000_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days are counted from the first of March of year 0, with which leap days come last in a year; 400 years have 146,097.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, over) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let year = era * 400 + year + over;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// A number as ZooKeeper's logs write sessions and transactions.
pub(super) fn hexadecimal(number: i64) -> String {
    format!("{number:#x}")
}
