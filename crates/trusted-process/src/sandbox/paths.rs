//! Landlock: no file but the component's own, no network, no signal to others.

use super::{HardenError, Outcome, Sandbox, Step};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd,
    RestrictionStatus, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope, make_bitflags,
};
use std::error::Error;
use std::io;

/// The version whose rules are asked for; older kernels enforce those that they know.
const WANTED: ABI = ABI::V6;

/// What the store does: read and append, write a file anew and put it in another's place.
fn store_access() -> BitFlags<AccessFs> {
    make_bitflags!(AccessFs::{ReadFile | WriteFile | ReadDir | MakeReg | RemoveFile | Truncate})
}

pub(super) fn restrict(sandbox: &Sandbox) -> Result<Outcome, HardenError> {
    match try_restrict(sandbox) {
        Ok(status) => Ok(outcome(&status)),
        Err(why) => Err(HardenError::Failed { step: Step::Landlock, why: io::Error::other(why.to_string()) }),
    }
}

fn try_restrict(sandbox: &Sandbox) -> Result<RestrictionStatus, Box<dyn Error>> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .handle_access(AccessNet::from_all(WANTED))?
        .scope(Scope::from_all(WANTED))?
        .create()?
        .add_rule(PathBeneath::new(PathFd::new(&sandbox.directory)?, store_access()))?;
    for file in &sandbox.readable {
        rules = rules.add_rule(PathBeneath::new(PathFd::new(file)?, AccessFs::ReadFile))?;
    }
    Ok(rules.restrict_self()?)
}

fn outcome(status: &RestrictionStatus) -> Outcome {
    match status.ruleset {
        RulesetStatus::FullyEnforced => Outcome::Done,
        RulesetStatus::PartiallyEnforced => Outcome::Partly(
            "this kernel's Landlock knows fewer restrictions; mend: Linux 6.12 or later".into(),
        ),
        RulesetStatus::NotEnforced => Outcome::NotAvailable(match status.landlock {
            LandlockStatus::NotEnabled => {
                "switched off; mend: boot with landlock in the kernel's lsm= list".into()
            }
            _ => {
                "this kernel has no Landlock; mend: Linux 5.13 or later with CONFIG_SECURITY_LANDLOCK".into()
            }
        }),
    }
}
