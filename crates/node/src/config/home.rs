//! Where a replica's trusted component lives, and what that asks of the rest of the configuration.

use super::checks::Checks;
use super::cluster::TrustedKind;
use super::error::ConfigError;
use toml::Spanned;

/// Where the trusted component lives. Of no concern to the others, so it is no part of the group's name:
/// what they see of a component is its certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrustedHome {
    /// In the replica's process: whoever takes that over has the component too.
    #[default]
    InProcess,
    /// In a process of its own (`troth trusted`), with its key and its counters in a directory of its own.
    Process,
}

impl TrustedHome {
    /// The name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::InProcess => "in-process",
            Self::Process => "process",
        }
    }
}

/// Reads the home, and refuses one that would isolate nothing.
pub(super) fn check(
    checks: &Checks<'_>,
    written: Option<&Spanned<String>>,
    trusted: TrustedKind,
) -> Result<TrustedHome, ConfigError> {
    let Some(written) = written else { return Ok(TrustedHome::default()) };
    let known = [TrustedHome::InProcess, TrustedHome::Process].map(|home| (home.name(), home));
    let home = checks.one_of(written, &known, "trusted_home")?;
    if home == TrustedHome::InProcess {
        return Ok(home);
    }
    if trusted != TrustedKind::Ed25519 {
        return Err(checks.0.error(
            written.span(),
            "a process of its own isolates nothing with trusted = \"hmac\": the replica holds the same key to check \
             the others' certificates",
            "set trusted_home = \"in-process\", or make a cluster with `troth init --trusted ed25519 --trusted-home process`",
        ));
    }
    Ok(home)
}
