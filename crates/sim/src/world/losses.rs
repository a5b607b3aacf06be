//! Machines that are lost with their disk and their component, faulty ones that are replaced, and how they
//! come back (guide.md §7.3).

use super::World;
use super::event::Event;
use super::logs::JUMPERS_ROOM;
use crate::Protocol;
use crate::component::{FIRST_EPOCH, component_of};
use crate::options::FaultyKind;
use std::sync::Arc;
use troth_auth::Directory;
use troth_core::Agreement as _;
use troth_types::{Configuration, ReplicaId, ToClient};

/// Virtual microseconds after which the operator looks at those who do not follow, once nothing is wrong any more.
pub(super) const LOOKS_AFTER: u64 = 10_000_000;
/// The most epochs of a replica in one seed.
pub(crate) const MOST_EPOCHS: u64 = 6;

impl<P: Protocol> World<P> {
    /// A machine is lost, or a faulty replica replaced: as far as the fault model allows.
    pub(super) fn lose(&mut self) {
        if self.healed {
            return;
        }
        let pause = self.loss_rng.exponential(self.options.fault_phase / 3) + 1_000;
        self.agenda.after(pause, Event::Lose);
        let not_replaced: Vec<ReplicaId> = self
            .adversaries
            .iter()
            .map(|adversary| adversary.me)
            .filter(|replica| {
                // An heir's new component is its own.
                self.options.faulty(replica.0).is_none_or(|faulty| faulty.kind != FaultyKind::Heir)
            })
            .filter(|replica| {
                self.hosts[usize::from(replica.0)].iter().all(|node| self.nodes[*node].adversary.is_some())
            })
            .collect();
        if P::REPLACES && !not_replaced.is_empty() && self.loss_rng.one_in(2) {
            let replica = self.loss_rng.pick(&not_replaced);
            return self.replace(replica);
        }
        // Who slept through it has to start again from its disk (see `hand_out`), and must have one.
        if P::RENEWS_LOGS && self.options.durable && self.loss_rng.one_in(2) {
            return self.renew_faulty();
        }
        // A lost replica counts as faulty until it votes again.
        let away = self.nodes.iter().filter(|node| node.adversary.is_none() && !node.votes).count();
        if self.options.faulty.len() + away >= usize::from(self.options.f) {
            return;
        }
        let correct: Vec<usize> = (0..self.nodes.len())
            .filter(|index| {
                self.nodes[*index].adversary.is_none() && !self.faulty(self.nodes[*index].replica)
            })
            .filter(|index| self.nodes[*index].epoch < FIRST_EPOCH + MOST_EPOCHS - 1)
            .collect();
        let index = self.loss_rng.pick(&correct);
        if P::REPLACES {
            self.lose_machine(index);
        } else if self.options.durable {
            self.lose_logs(index);
        }
    }

    /// A faulty replica says that its logs are lost, and has two components from then on.
    fn renew_faulty(&mut self) {
        let not_renewed: Vec<usize> = (0..self.adversaries.len())
            .filter(|index| self.adversaries[*index].logs.as_ref().is_some_and(|logs| !logs.is_renewed()))
            .collect();
        if not_renewed.is_empty() {
            return;
        }
        let index = self.loss_rng.pick(&not_renewed);
        let replica = self.adversaries[index].me;
        self.mix(21, u64::from(replica.0));
        let now = self.agenda.now;
        self.trace.note(now, || format!("{replica} says that its logs are lost"));
        let logs = self.empty_logs(replica, FIRST_EPOCH + 1, JUMPERS_ROOM);
        if let (Some(pretender), Some(logs)) = (&mut self.adversaries[index].logs, logs) {
            pretender.renew(logs);
        }
        self.operator.admit(replica, FIRST_EPOCH + 1);
        self.outcome.losses += 1;
        self.settle_operator();
    }

    /// The component of a correct replica is gone with its logs; the replica has its disk, and gets another component.
    fn lose_logs(&mut self, index: usize) {
        let (replica, epoch) = (self.nodes[index].replica, self.nodes[index].epoch + 1);
        let Some(logs) = self.empty_logs(replica, epoch, 1) else { return };
        let now = self.agenda.now;
        self.mix(20, index as u64);
        self.trace.note(now, || format!("node {index} loses its logs"));
        if self.nodes[index].host.is_some() {
            self.collect(index);
        }
        let node = &mut self.nodes[index];
        node.crash(&mut self.storage_rng);
        (node.epoch, node.votes) = (epoch, false);
        node.logs = Some(logs);
        self.operator.admit(replica, epoch);
        self.outcome.losses += 1;
        let life = self.nodes[index].life;
        let down = self.loss_rng.exponential(self.options.down_mean) + 500;
        self.agenda.after(down, Event::Restart(index, life));
        self.settle_operator();
    }

    /// The old machine goes on, wherever it is, with its component; a new one takes its place.
    fn replace(&mut self, replica: ReplicaId) {
        let now = self.agenda.now;
        self.mix(15, u64::from(replica.0));
        self.trace.note(now, || format!("{replica} is replaced"));
        let index = self.add_node(replica, None);
        self.nodes[index].votes = false;
        self.nodes[index].epoch = FIRST_EPOCH + 1;
        self.nodes[index].component = component_of(&self.blueprint.group, replica, FIRST_EPOCH + 1);
        self.operator.admit(replica, FIRST_EPOCH + 1);
        self.outcome.losses += 1;
        self.begin(index);
        self.settle_operator();
    }

    /// A correct replica's machine is gone with all that it had.
    fn lose_machine(&mut self, index: usize) {
        let now = self.agenda.now;
        self.mix(16, index as u64);
        self.trace.note(now, || format!("node {index} loses its machine"));
        if self.nodes[index].host.is_some() {
            self.collect(index);
        }
        let replica = self.nodes[index].replica;
        let epoch = self.nodes[index].epoch + 1;
        let component = component_of(&self.blueprint.group, replica, epoch);
        self.nodes[index].lose(&mut self.storage_rng, component, epoch);
        self.operator.admit(replica, epoch);
        self.outcome.losses += 1;
        let life = self.nodes[index].life;
        let down = self.loss_rng.exponential(self.options.down_mean) + 500;
        self.agenda.after(down, Event::Restart(index, life));
        self.settle_operator();
    }

    /// A machine that never ran starts.
    pub(super) fn begin(&mut self, index: usize) {
        let now = self.agenda.now;
        self.acts(index);
        self.checks.restarted(index);
        self.nodes[index].blank = false;
        let started = self.nodes[index].start(&self.blueprint, now);
        let result = started.map_err(|why| format!("a fresh start failed: {why}"));
        self.checks.judge("start", &[index], result);
        self.plan_crash(index);
        self.pump(index);
    }

    /// A node knows a configuration: it takes what that lets in.
    pub(super) fn configured(&mut self, index: usize, configuration: &Arc<Configuration>) {
        let handed = &self.nodes[index].handed;
        let known = if handed.number > configuration.number { handed } else { configuration };
        self.nodes[index].configuration = Arc::clone(known);
        self.succeeded(index);
        if configuration.number > self.newest {
            self.newest = configuration.number;
            let directory = Directory::new(self.blueprint.group.id(), Arc::clone(configuration));
            self.messages = self.messages.with_directory(Arc::new(directory));
        }
    }

    /// A replica that slept through an admission may know too few of those who vouch for what came since:
    /// the operator puts the newest configuration on its disk and starts it again
    /// (docs/operating/readmission.md).
    pub(super) fn hand_out(&mut self) {
        let correct = self.nodes.iter().filter(|node| node.adversary.is_none());
        let configurations = correct.map(|node| &node.configuration);
        let Some(newest) = configurations.max_by_key(|configuration| configuration.number).map(Arc::clone)
        else {
            return;
        };
        for index in 0..self.nodes.len() {
            let node = &self.nodes[index];
            if node.adversary.is_some() || node.configuration.number == newest.number {
                continue;
            }
            let now = self.agenda.now;
            self.mix(18, index as u64);
            self.trace.note(now, || format!("node {index} is handed configuration {}", newest.number));
            self.nodes[index].handed = Arc::clone(&newest);
            self.crash(index);
        }
    }

    /// Whether a node votes again.
    pub(super) fn look_for_votes(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        let Some(host) = &node.host else { return };
        if node.adversary.is_none() && !node.votes && host.machine().agreement().status().votes {
            node.votes = true;
            self.outcome.readmissions += 1;
        }
    }

    /// Carries out what the operator wants.
    pub(super) fn settle_operator(&mut self) {
        let now = self.agenda.now;
        let mut send = Vec::new();
        let wake = self.operator.settle(now, &mut send);
        for sending in send {
            if let troth_types::ToReplica::Request { frame, .. } = &sending.message {
                self.checks.validity.signed(frame);
            }
            for node in self.hosts[usize::from(sending.to.0)].clone() {
                for delay in self.network.copies().into_iter().flatten() {
                    self.agenda.after(delay, Event::Client(node, sending.message.clone()));
                }
            }
        }
        if let Some(at) = wake {
            let at = at.max(now + 1);
            if self.operator.wake_at.is_none_or(|planned| planned > at || planned <= now) {
                self.operator.wake_at = Some(at);
                self.agenda.at(at, Event::OperatorWake);
            }
        }
    }

    /// A replica's message reaches the operator.
    pub(super) fn answer_operator(&mut self, from: ReplicaId, message: ToClient) {
        let now = self.agenda.now;
        self.operator.hear(now, from, message);
        self.settle_operator();
    }
}
