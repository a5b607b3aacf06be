//! Asking the judge (crates/chaos/judge), a program of its own.

use crate::Failure;
use serde::Deserialize;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// What the judge found.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Verdict {
    /// `linearizable`, `not linearizable`, `unknown` where the time was over, `error`.
    pub(crate) verdict: String,
    /// The key that it is about.
    #[serde(default)]
    pub(crate) key: String,
    /// More, for people.
    #[serde(default)]
    pub(crate) why: String,
}

impl Verdict {
    /// Whether an order that explains every answer was found. Nothing else is good.
    pub(crate) fn good(&self) -> bool {
        self.verdict == "linearizable"
    }

    /// Whether it was found that there is none.
    pub(crate) fn wrong(&self) -> bool {
        self.verdict == "not linearizable"
    }
}

/// Has a history file judged.
pub(crate) fn judge(program: &Path, history: &Path, within: Duration) -> Result<Verdict, Failure> {
    let ran = Command::new(program)
        .arg(format!("-timeout={}ms", within.as_millis()))
        .arg(history)
        .output()
        .map_err(|why| format!("the judge {} does not start: {why}", program.display()))?;
    let said = String::from_utf8_lossy(&ran.stdout);
    let verdict: Verdict = serde_json::from_str(said.trim()).map_err(|_| {
        let errors = String::from_utf8_lossy(&ran.stderr);
        format!("the judge gave no verdict ({}):\n{}", ran.status, errors.trim_end())
    })?;
    let expected = match verdict.verdict.as_str() {
        "linearizable" => 0,
        "not linearizable" => 1,
        _ => 2,
    };
    if ran.status.code() != Some(expected) {
        return Err(format!("the judge said '{}' and ended with {}", verdict.verdict, ran.status).into());
    }
    Ok(verdict)
}
