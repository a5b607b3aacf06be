//! What the load programs of the peers say, a JSON object on each line.

use crate::report::Round;
use serde_json::Value;

/// One line of a load program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Line {
    /// The servers answer and the keys are there; the peer's name and release.
    Ready(String),
    /// A round begins or ends to be measured.
    Measuring(bool),
    /// What a round showed.
    Done(Figures),
}

/// What is shown of a round, of a peer or of Troth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    /// Operations per second.
    pub(crate) rate: f64,
    /// Microseconds from submission to result, for half of the operations.
    pub(crate) p50: f64,
    /// The same for 99 of 100.
    pub(crate) p99: f64,
    /// Microseconds of processor time per operation, of all servers together with what they started.
    pub(crate) servers_cpu: f64,
    /// The same of all clients.
    pub(crate) clients_cpu: f64,
    /// Requests that were sent again because the service refused them or went away, warm-up included.
    pub(crate) retried: f64,
    /// Views that replicas of Troth left.
    pub(crate) view_changes: u64,
}

impl Figures {
    /// What a round of Troth showed. Its clients send again by themselves, which nobody counts.
    pub(crate) fn of(round: &Round) -> Self {
        Self {
            rate: round.rate,
            p50: round.p50,
            p99: round.p99,
            servers_cpu: round.servers_cpu,
            clients_cpu: round.client_cpu,
            retried: f64::NAN,
            view_changes: round.view_changes,
        }
    }
}

/// The line's meaning; none where it is none of ours, as of a library's log.
pub(crate) fn parse(line: &str) -> Option<Line> {
    let line: Value = serde_json::from_str(line.trim()).ok().filter(Value::is_object)?;
    if let Some(name) = line["ready"].as_str() {
        return Some(Line::Ready(name.to_owned()));
    }
    if let Some(measuring) = line["measuring"].as_bool() {
        return Some(Line::Measuring(measuring));
    }
    let number = |name: &str| line[name].as_f64();
    let seconds = number("seconds").filter(|seconds| *seconds > 0.0)?;
    Some(Line::Done(Figures {
        rate: number("operations")? / seconds,
        p50: number("p50_us")?,
        p99: number("p99_us")?,
        retried: number("retried")?,
        ..Figures::default()
    }))
}
