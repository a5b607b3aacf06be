//! What this kernel could build walls from, found out without building any.

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetError, Scope,
};

/// The version of Landlock's rules that [`harden`](crate::harden) would have, up to the newest that it asks
/// for (6); nothing where the kernel has none, or has it switched off.
#[must_use]
pub fn landlock_version() -> Option<u8> {
    let versions = [(ABI::V6, 6), (ABI::V5, 5), (ABI::V4, 4), (ABI::V3, 3), (ABI::V2, 2), (ABI::V1, 1)];
    versions.into_iter().find(|(version, _)| made(*version).is_ok()).map(|(_, number)| number)
}

/// Makes a set of rules that nothing is put under.
fn made(version: ABI) -> Result<(), RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(version))?;
    if version >= ABI::V4 {
        rules = rules.handle_access(AccessNet::from_all(version))?;
    }
    if version >= ABI::V6 {
        rules = rules.scope(Scope::from_all(version))?;
    }
    rules.create().map(drop)
}
