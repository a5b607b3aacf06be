//! A component whose logs advance as the A2M paper prints it (§3.1): the digest goes on from the one that is given, and does
//! not say that the log held something before (F-A6). The real component does say so (A2M-L7), and lets a log that held
//! nothing begin anywhere (A2M-L8). So this one is made of real ones, each of which begins where the log of the one before
//! it jumped: what it attests is what the printed one would.

use std::collections::BTreeMap;
use troth_trusted::a2m::{A2m, Answer, LOGS, LogId, LogRefusal, Operation, Slot, Unfit};
use troth_trusted::{Certifier, CounterValue, Identity, VolatileStore};
use troth_trusted_host::{LogRoom, TrustedLogs, log_room};

/// One log between two jumps.
type Part = A2m<LogRoom, VolatileStore>;

/// The component.
#[derive(Clone, Debug)]
pub struct Printed {
    identity: Identity,
    certifier: Certifier,
    room: [usize; LOGS],
    /// Each log's parts, in the order of their slots.
    logs: BTreeMap<LogId, Vec<Part>>,
}

fn low(part: &Part, log: LogId) -> Slot {
    part.logs().get(log).map_or(CounterValue(0), |log| log.low())
}

fn high(part: &Part, log: LogId) -> Slot {
    part.logs().get(log).map_or(CounterValue(0), |log| log.high())
}

impl Printed {
    /// The component of this identity with empty logs, each of which has this room after each jump.
    #[must_use]
    pub fn new(identity: Identity, certifier: Certifier, room: [usize; LOGS]) -> Self {
        Self { identity, certifier, room, logs: BTreeMap::new() }
    }

    fn one(&mut self, operation: Operation) -> Result<Answer, LogRefusal> {
        let log = operation.log();
        let Self { identity, certifier, room, logs } = self;
        let begin = || A2m::start(*identity, certifier.clone(), VolatileStore, log_room(*room));
        let parts = logs.entry(log).or_insert_with(|| vec![begin()]);
        let newest = parts.len() - 1;
        let end = high(&parts[newest], log);
        match operation {
            Operation::Advance { slot, .. } if end.0 > 0 => {
                if slot <= end {
                    return Err(LogRefusal::Operation { index: 0, why: Unfit::NotAhead { high: end } });
                }
                let mut next = begin();
                let answer = next.one(operation)?;
                parts.push(next);
                Ok(answer)
            }
            Operation::Truncate { slot, .. } => {
                let answer = parts[newest].one(operation)?;
                parts.retain(|part| high(part, log) >= slot);
                Ok(answer)
            }
            Operation::Lookup { slot, .. } | Operation::LookupFor { slot, .. } => {
                // What the newest part has forgotten the log has forgotten, and what is between two parts the later one skipped.
                let holds = |part: &Part| high(part, log) >= slot;
                let forgotten = slot < low(&parts[newest], log);
                let at = if forgotten { newest } else { parts.iter().position(holds).unwrap_or(newest) };
                parts[at].one(operation)
            }
            Operation::Append { .. } | Operation::Advance { .. } | Operation::End { .. } => {
                parts[newest].one(operation)
            }
        }
    }
}

impl TrustedLogs for Printed {
    fn identity(&self) -> Identity {
        self.identity
    }

    fn call(&mut self, operations: &[Operation]) -> Result<Vec<Answer>, LogRefusal> {
        // One operation is done or changes nothing.
        let before = (operations.len() > 1).then(|| self.logs.clone());
        let mut answers = Vec::with_capacity(operations.len());
        for (index, operation) in operations.iter().enumerate() {
            match self.one(*operation) {
                Ok(answer) => answers.push(answer),
                Err(why) => {
                    if let Some(before) = before {
                        self.logs = before;
                    }
                    return Err(match why {
                        LogRefusal::Operation { why, .. } => LogRefusal::Operation { index, why },
                        other => other,
                    });
                }
            }
        }
        Ok(answers)
    }
}
