//! A faulty replica that is readmitted and keeps the component that it had: both are in the same hands. The correct replicas
//! are parted at that moment, and some of them execute its admission before the others know of it.

use super::World;
use crate::Protocol;
use crate::component::FIRST_EPOCH;
use crate::options::FaultyKind;
use troth_core::Agreement as _;
use troth_types::{ReplicaId, View};

/// The epoch of the component that takes the place of an heir's.
pub(super) const HEIRS_EPOCH: u64 = FIRST_EPOCH + 1;
/// At one in so many ticks a component is replaced, as soon as that may be.
pub(super) const INHERITS_ONE_IN: u64 = 16;

impl<P: Protocol> World<P> {
    /// Parts the correct replicas and has the heir readmitted, where it was not yet and enough is stable.
    pub(super) fn inherit(&mut self) {
        let is_heir = |replica: ReplicaId| {
            self.options.faulty(replica.0).is_some_and(|faulty| faulty.kind == FaultyKind::Heir)
        };
        let heir = self.adversaries.iter().position(|it| is_heir(it.me) && !it.succession.asked);
        // What is passed over lies a window below what is stable.
        let settled = self.checks.stable.highest.0 > self.options.window;
        let (Some(heir), true, Some(part)) = (heir, settled, self.part_with_the_primary()) else {
            return;
        };
        let replica = self.adversaries[heir].me;
        let now = self.agenda.now;
        let waits = 4 * (self.options.request_timeout + self.options.view_timeout);
        let until = now + waits + self.fault_rng.exponential(waits);
        self.network.join();
        self.network.confine(part, until);
        let mut pact = self.pact.borrow_mut();
        (pact.part, pact.apart_until) = (part, until);
        drop(pact);
        self.adversaries[heir].succession.asked = true;
        self.mix(22, u64::from(replica.0));
        self.trace.note(now, || format!("{replica} inherits from itself; part {part:b} until {until}"));
        self.operator.admit(replica, HEIRS_EPOCH);
        self.outcome.losses += 1;
        self.settle_operator();
    }

    /// Until when an heir has the correct replicas parted: 0 if it has not.
    pub(super) fn parted_by_an_heir(&self) -> u64 {
        if self.options.heirs { self.pact.borrow().apart_until } else { 0 }
    }

    /// The primary, if it is correct, with some of the other correct replicas, but not all of them.
    fn part_with_the_primary(&mut self) -> Option<u64> {
        let correct = self.nodes.iter().filter(|node| node.adversary.is_none());
        let views = correct.filter_map(|node| Some(node.host.as_ref()?.machine().agreement().status().view));
        let view: View = views.max()?;
        let group = self.blueprint.group;
        let primary = group.primary(view);
        if self.faulty(primary) {
            return None;
        }
        let mut others: Vec<ReplicaId> =
            group.all().filter(|replica| *replica != primary && !self.faulty(*replica)).collect();
        let outside = self.fault_rng.index(others.len());
        others.swap_remove(outside);
        let chosen = self.fault_rng.next();
        let inside = others.into_iter().filter(|replica| chosen >> replica.0 & 1 == 1);
        Some(inside.fold(1 << primary.0, |part, replica| part | 1 << replica.0))
    }

    /// A faulty replica's first host may know by which batch its component was replaced.
    pub(super) fn succeeded(&mut self, index: usize) {
        let Some((adversary, 0)) = self.nodes[index].adversary else { return };
        let this = &mut self.adversaries[adversary];
        let admission = self.nodes[index].configuration.admission(this.me, HEIRS_EPOCH);
        this.succession.at = admission.map(|admission| admission.at);
    }

    /// A faulty replica's first host executed something.
    pub(super) fn keeps_up(&mut self, index: usize) {
        if let Some((adversary, 0)) = self.nodes[index].adversary {
            self.adversaries[adversary].succession.executed = self.nodes[index].executed;
        }
    }
}
