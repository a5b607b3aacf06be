//! By what clients' frames, and what replicas say in agreeing on them, show whose they are.

use super::checks::Checks;
use super::error::ConfigError;
use super::names::{UnknownName, named};
use super::protocol::Protocol;
use std::fmt;
use std::str::FromStr;
use toml::Spanned;

/// By what clients' frames, and what replicas say in agreeing on them, show whose they are: part of the group's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Auth {
    /// Clients' frames by a signature that every replica checks.
    #[default]
    Signed,
    /// Clients' frames by PBFT's authenticators (OSDI '99 §5.2), a MAC for each replica; what is sent again is signed.
    Mac,
    /// Clients' frames by signatures, and so each PRE-PREPARE, PREPARE and COMMIT of PBFT (OSDI '99 §4).
    AllSigned,
}

impl Auth {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Signed, Self::Mac, Self::AllSigned];

    /// The name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Signed => "signed",
            Self::Mac => "mac",
            Self::AllSigned => "all-signed",
        }
    }
}

impl fmt::Display for Auth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Auth {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        named(name, &Self::ALL, Self::name)
    }
}

/// What the configuration asks for; signatures where it says nothing.
pub(super) fn check(
    checks: &Checks<'_>,
    raw: Option<&Spanned<String>>,
    protocol: Protocol,
) -> Result<Auth, ConfigError> {
    let Some(raw) = raw else { return Ok(Auth::Signed) };
    let all = Auth::ALL.map(|auth| (auth.name(), auth));
    let auth = checks.one_of(raw, &all, "auth")?;
    if auth == Auth::AllSigned && !protocol.takes(auth) {
        return Err(checks.0.error(
            raw.span(),
            format!("protocol = \"{}\" has no form in which everything is signed", protocol.name()),
            "remove this line, or set protocol = \"pbft\"",
        ));
    }
    if !protocol.takes(auth) {
        return Err(checks.0.error(
            raw.span(),
            format!("protocol = \"{}\" takes no authenticators", protocol.name()),
            "remove this line: one replica's word for a frame decides a view change there, so that every replica must \
             check each frame itself; or set protocol = \"pbft\"",
        ));
    }
    Ok(auth)
}
