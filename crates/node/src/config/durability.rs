//! What a replica keeps, and when.

use super::checks::Checks;
use super::error::ConfigError;
use std::time::Duration;
use toml::Spanned;
use troth_trusted_host::store::Policy;

/// Milliseconds between two syncs where nothing else is said.
const DEFAULT_MS: u64 = 10;
/// The most that may be asked for.
const MOST_MS: u64 = 1_000;

/// What a replica keeps, and when. Of no concern to the others: not part of the group's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Everything is on disk before anything that depends on it leaves: the replica, or its machine, may
    /// stop at any moment and come back.
    Always,
    /// Everything is with the operating system before anything that depends on it leaves, and on disk so
    /// much later: a replica that was killed comes back, one whose machine was lost must be readmitted.
    Interval(Duration),
    /// Nothing is ever synced. A replica that was killed comes back if its trusted component lives in a
    /// process of its own that was not; with that process or the machine it has lost what it must not lose.
    Memory,
}

impl Durability {
    /// All names.
    pub(crate) const NAMES: [&'static str; 3] = ["always", "interval", "memory"];

    /// Syncs as often as where nothing else is said.
    #[must_use]
    pub fn interval() -> Self {
        Self::Interval(Duration::from_millis(DEFAULT_MS))
    }

    /// The name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        let [always, interval, memory] = Self::NAMES;
        match self {
            Self::Always => always,
            Self::Interval(_) => interval,
            Self::Memory => memory,
        }
    }

    /// How often everything is synced, where that goes by the clock.
    #[must_use]
    pub fn every(self) -> Option<Duration> {
        match self {
            Self::Interval(every) => Some(every),
            Self::Always | Self::Memory => None,
        }
    }

    /// How the counters of the trusted component are kept.
    #[must_use]
    pub fn policy(self) -> Policy {
        match self {
            Self::Always => Policy::Always,
            Self::Interval(_) => Policy::Interval,
            Self::Memory => Policy::Memory,
        }
    }

    /// The lines of the configuration that say this.
    pub(super) fn lines(self) -> String {
        let name = format!("durability = \"{}\"\n", self.name());
        match self.every() {
            Some(every) => format!("{name}durability_interval_ms = {}\n", every.as_millis()),
            None => name,
        }
    }
}

/// Reads what a replica keeps; refuses an interval that nothing would follow.
pub(super) fn check(
    checks: &Checks<'_>,
    name: &Spanned<String>,
    every: Option<&Spanned<u64>>,
) -> Result<Durability, ConfigError> {
    let known = [Durability::Always, Durability::interval(), Durability::Memory].map(|one| (one.name(), one));
    let durability = checks.one_of(name, &known, "durability")?;
    let Some(every) = every else { return Ok(durability) };
    if durability.every().is_none() {
        return Err(checks.0.error(
            every.span(),
            format!("durability is \"{}\", which syncs by no clock", durability.name()),
            "remove durability_interval_ms, or set durability = \"interval\"",
        ));
    }
    let every = checks.number(every, 1, MOST_MS, "durability_interval_ms")?;
    Ok(Durability::Interval(Duration::from_millis(every)))
}
