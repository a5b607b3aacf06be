//! What every client asked, when, and what it was told: the history that is judged, in memory and as
//! JSON lines. The judge (crates/chaos/judge/model.go) reads the same fields.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::time::Instant;
use troth_client::ClientError;
use troth_kv::{Answer, Operation};
use troth_types::Wire;

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verb {
    /// Read the key.
    Get,
    /// Write it.
    Put,
    /// Write it if it has the expected version.
    Cas,
}

/// What is known of the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// Done.
    Ok,
    /// There was no such key.
    Absent,
    /// The key had another version; nothing was done.
    Mismatch,
    /// The key had another version than the expected one, and which was not told; nothing was done.
    Other,
    /// No answer: it may have been done, and may be done still.
    Unknown,
    /// It was not done and never will be.
    Failed,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Which strand of which client; it asks for one thing after the other.
    pub(crate) process: u32,
    pub(crate) key: String,
    #[serde(rename = "op")]
    pub(crate) verb: Verb,
    /// What a write writes; after a read, what was found.
    pub(crate) value: String,
    /// The version that a compare-and-swap expects; none for an absent key.
    pub(crate) expected: Option<u64>,
    /// Nanoseconds since the run began, on the monotonic clock.
    pub(crate) call: u64,
    /// The same for the return; none where there was no answer.
    #[serde(rename = "return")]
    pub(crate) returned: Option<u64>,
    pub(crate) outcome: Outcome,
    /// Of what was found or written; after a mismatch, the key's version, none where it was absent.
    pub(crate) version: Option<u64>,
}

impl Record {
    /// An operation that begins. Until it returns its outcome is unknown.
    pub(crate) fn new(process: u32, key: &str, verb: Verb, value: &str, expected: Option<u64>) -> Self {
        Self {
            process,
            key: key.to_owned(),
            verb,
            value: value.to_owned(),
            expected,
            call: 0,
            returned: None,
            outcome: Outcome::Unknown,
            version: None,
        }
    }

    /// What the store is asked.
    pub(crate) fn operation(&self) -> Bytes {
        let key = Bytes::from(self.key.clone());
        let value = Bytes::from(self.value.clone());
        let operation = match self.verb {
            Verb::Get => Operation::Get { key },
            Verb::Put => Operation::Put { key, value },
            Verb::Cas => Operation::CompareAndSwap { key, expected: self.expected, value: Some(value) },
        };
        operation.to_wire()
    }

    /// Whether it wrote, as was acknowledged.
    pub(crate) fn wrote(&self) -> bool {
        self.verb != Verb::Get && self.outcome == Outcome::Ok
    }

    /// Notes what the group told. An answer that no such question has is an error, and leaves the
    /// outcome unknown.
    fn told(&mut self, answer: &Bytes) -> Result<(), String> {
        let answer = Answer::from_wire(answer).map_err(|why| format!("an answer is malformed: {why}"))?;
        match (self.verb, answer) {
            (Verb::Get, Answer::Value { version, value }) => {
                self.outcome = Outcome::Ok;
                self.version = Some(version);
                self.value = String::from_utf8_lossy(&value).into_owned();
            }
            (Verb::Get, Answer::NotFound) => self.outcome = Outcome::Absent,
            (Verb::Put | Verb::Cas, Answer::Written { version }) => {
                self.outcome = Outcome::Ok;
                self.version = Some(version);
            }
            (Verb::Cas, Answer::Mismatch { current }) => {
                self.outcome = Outcome::Mismatch;
                self.version = current;
            }
            (_, other) => return Err(format!("{:?} of {} was answered with {other:?}", self.verb, self.key)),
        }
        Ok(())
    }
}

/// All operations so far, in the order in which they began.
#[derive(Debug)]
pub(crate) struct History {
    began: Instant,
    records: Vec<Record>,
    /// When the newest operation that has an answer began.
    answered: u64,
    /// Operations given up without an outcome.
    given_up: usize,
    /// Answers that make no sense.
    strange: Vec<String>,
}

impl History {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), records: Vec::new(), answered: 0, given_up: 0, strange: Vec::new() }
    }

    /// The time on the history's clock.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).expect("a run is shorter than centuries")
    }

    /// Notes that an operation is about to be sent; answers its place.
    pub(crate) fn begin(&mut self, mut record: Record) -> usize {
        record.call = self.now();
        self.records.push(record);
        self.records.len() - 1
    }

    /// Notes how it ended and gives the record as it is now.
    pub(crate) fn end(&mut self, place: usize, result: Result<Bytes, ClientError>) -> &Record {
        let now = self.now();
        let record = &mut self.records[place];
        match result {
            Ok(answer) => match record.told(&answer) {
                Ok(()) => {
                    record.returned = Some(now);
                    self.answered = self.answered.max(record.call);
                }
                Err(why) => self.strange.push(why),
            },
            Err(why) if why.outcome_unknown() => self.given_up += 1,
            Err(_) => {
                record.outcome = Outcome::Failed;
                record.returned = Some(now);
            }
        }
        record
    }

    /// When the newest operation that has an answer began.
    pub(crate) fn answered(&self) -> u64 {
        self.answered
    }

    /// How many were given up without an outcome so far; those under way are not.
    pub(crate) fn given_up(&self) -> usize {
        self.given_up
    }

    /// All operations.
    pub(crate) fn records(&self) -> &[Record] {
        &self.records
    }

    /// Answers that make no sense, for people.
    pub(crate) fn strange(&self) -> &[String] {
        &self.strange
    }

    /// How many have this outcome; those under way count as unknown.
    pub(crate) fn count(&self, outcome: Outcome) -> usize {
        self.records.iter().filter(|record| record.outcome == outcome).count()
    }
}

/// Writes records as JSON lines.
pub(crate) fn write(records: &[Record], path: &Path) -> io::Result<()> {
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    for record in records {
        serde_json::to_writer(&mut file, record)?;
        file.write_all(b"\n")?;
    }
    file.flush()
}
