//! A replica is given another trusted component where components attest histories
//! (`docs/protocols/a2m-pbft-e.md`, "Why it is safe").

use crate::failure::Failure;
use troth_types::{Change, ComponentKey, Configuration, ReplicaId, Seq};

/// Marks the place that implements a rule of `docs/protocols/a2m-pbft-e.md`, for `cargo xtask paper`.
macro_rules! rule {
    ($label:literal) => {};
}

/// Has changes ordered: the batch and the configuration of an answer that was proven.
pub(crate) type Order<'a> = dyn FnMut(&Change) -> Result<(Seq, Configuration), Failure> + 'a;

/// Has a replica given another component. What was signed before, and may still be on its way, is refused by whoever executed
/// the announcement, which is proven before this one is signed.
pub(crate) fn renew(
    order: &mut Order<'_>,
    replica: ReplicaId,
    epoch: u64,
    component: ComponentKey,
) -> Result<(Seq, Configuration), Failure> {
    rule!("A2MPBFTE-N5");
    let announcement = Change::Announce { replica };
    let (mut at, mut announced) = order(&announcement)?;
    while !in_force(&announced, at) {
        (at, announced) = order(&announcement)?;
    }
    order(&Change::Renew { replica, epoch, component, shown: announced.digest() })
}

/// Whether an answer that was executed in this batch is proven by the components that this configuration names: what admits
/// one is still the earlier one's to attest.
pub(crate) fn in_force(configuration: &Configuration, at: Seq) -> bool {
    rule!("A2MPBFTE-N5");
    configuration.members().iter().all(|member| member.admission().at < at)
}
