//! Where a replica's trusted component lives, and what that asks of the rest of the configuration.

use super::checks::Checks;
use super::cluster::TrustedKind;
use super::error::ConfigError;
use super::protocol::Protocol;
use super::raw::{RawCluster, RawReplica};
use toml::Spanned;
use troth_trusted::Epoch;

/// Where the trusted component lives. Of no concern to the others, so it is no part of the group's name:
/// what they see of a component is its certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrustedHome {
    /// In the replica's process: whoever takes that over has the component too.
    #[default]
    InProcess,
    /// In a process of its own (`troth trusted`), with its key and its counters in a directory of its own.
    Process,
    /// There is none: the group's protocol trusts nothing.
    Nowhere,
}

impl TrustedHome {
    /// The name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::InProcess => "in-process",
            Self::Process => "process",
            Self::Nowhere => "nowhere",
        }
    }
}

/// Reads the home, and refuses one that would isolate nothing.
pub(super) fn check(
    checks: &Checks<'_>,
    written: Option<&Spanned<String>>,
    trusted: TrustedKind,
) -> Result<TrustedHome, ConfigError> {
    if trusted == TrustedKind::Nothing {
        return Ok(TrustedHome::Nowhere);
    }
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

/// What trusted components there are, as the protocol has them or does without.
pub(super) fn components(
    checks: &Checks<'_>,
    raw: &RawCluster,
    protocol: Protocol,
) -> Result<TrustedKind, ConfigError> {
    if !protocol.has_components() {
        if let Some(written) = raw.trusted.as_ref().or(raw.trusted_home.as_ref()) {
            return Err(checks.0.error(
                written.span(),
                format!("the replicas of protocol = \"{}\" have no trusted components", protocol.name()),
                "remove this line, or set protocol = \"minbft\"",
            ));
        }
        return Ok(TrustedKind::Nothing);
    }
    let Some(written) = &raw.trusted else {
        return Err(checks.0.error(
            raw.protocol.span(),
            "missing field `trusted`",
            "add the key; `troth init` writes complete files to compare with",
        ));
    };
    let kinds = [("hmac", TrustedKind::Hmac), ("ed25519", TrustedKind::Ed25519)];
    let kind = checks.one_of(written, &kinds, "kind of trusted component")?;
    if kind == TrustedKind::Hmac && protocol.uses_logs() {
        return Err(checks.0.error(
            written.span(),
            format!(
                "clients of protocol = \"{}\" check what components attest, and HMACs only those can check who could \
                 make them",
                protocol.name()
            ),
            "make a cluster with `troth init --trusted ed25519`",
        ));
    }
    Ok(kind)
}

/// The epoch of a replica's first component, where it has one.
pub(super) fn epoch(
    checks: &Checks<'_>,
    index: usize,
    spanned: &Spanned<RawReplica>,
    trusted: TrustedKind,
) -> Result<Epoch, ConfigError> {
    match (trusted, &spanned.get_ref().epoch) {
        (TrustedKind::Nothing, None) => Ok(Epoch(0)),
        (TrustedKind::Nothing, Some(epoch)) => Err(checks.0.error(
            epoch.span(),
            "an epoch is a trusted component's, and this group's replicas have none",
            "remove epoch",
        )),
        (TrustedKind::Hmac | TrustedKind::Ed25519, Some(epoch)) => Ok(Epoch(*epoch.get_ref())),
        (TrustedKind::Hmac | TrustedKind::Ed25519, None) => Err(checks.0.error(
            spanned.span(),
            format!("replica {index} has no epoch"),
            "add the epoch of its trusted component, as `troth init` wrote it",
        )),
    }
}
