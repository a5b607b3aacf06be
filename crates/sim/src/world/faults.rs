//! What goes wrong, and how it ends.

use super::World;
use super::event::Event;
use super::heirs::INHERITS_ONE_IN;
use super::losses::LOOKS_AFTER;
use crate::Protocol;
use crate::options::FaultClass;
use crate::report::MIN_REQUESTS;
use troth_types::ReplicaId;

/// Microseconds between two ticks of the adversaries.
const TICK: u64 = 3_000;

impl<P: Protocol> World<P> {
    /// A fault of the network begins.
    pub(super) fn network_fault(&mut self) {
        if self.healed {
            return;
        }
        self.mix(10, 0);
        let now = self.agenda.now;
        let until = now + self.fault_rng.exponential(self.options.fault_length);
        let partitions = self.options.has(FaultClass::Partitions);
        let cuts = self.options.has(FaultClass::Cuts);
        if self.options.relapses {
            return self.next_stage();
        }
        let parted_until = self.parted_by_an_heir();
        if now < parted_until {
            return self.agenda.at(parted_until, Event::Fault);
        }
        if self.options.faces {
            return self.part(until);
        }
        match self.fault_rng.below(4) {
            0 | 1 if partitions => {
                self.network.partition(until);
            }
            2 if cuts => self.network.cut(until),
            _ => {
                let replica = self.fault_rng.below(u64::from(self.options.n)) as u16;
                self.network.isolate(replica, until);
            }
        }
        self.trace.note(now, || format!("network fault until {until}"));
        let pause = self.fault_rng.exponential(self.options.fault_pause).max(500);
        self.agenda.after(pause, Event::Fault);
    }

    /// The network falls into parts, and the colluders know into which. The next ones come when these are over.
    fn part(&mut self, until: u64) {
        let part = self.network.partition(until);
        let turned = self.adversary_rng.next();
        let mut pact = self.pact.borrow_mut();
        (pact.part, pact.turned, pact.parted) = (part, turned, pact.parted + 1);
        pact.apart_until = if self.adversary_rng.one_in(2) { until } else { u64::MAX };
        drop(pact);
        let now = self.agenda.now;
        self.trace.note(now, || format!("parts {part:b} until {until}"));
        let pause = self.fault_rng.exponential(self.options.fault_pause).max(500);
        self.agenda.after(until - now + pause, Event::Fault);
    }

    /// Links fail just when a view changes: a few replicas see what others do not.
    pub(super) fn view_change_fault(&mut self, sender: ReplicaId) {
        if self.healed || !self.fault_rng.chance(self.options.cut_on_view_change) {
            return;
        }
        let now = self.agenda.now;
        let until = now + self.fault_rng.exponential(self.options.view_timeout);
        match self.fault_rng.below(4) {
            0 => self.network.cut(until),
            1 => self.network.isolate(sender.0, until),
            2 => {
                let members = self.fault_rng.subset(usize::from(self.options.n)) | 1 << sender.0;
                self.network.confine(members, until);
            }
            _ => {
                self.network.partition(until);
            }
        }
        self.trace.note(now, || format!("links fail around the view change of {sender} until {until}"));
    }

    /// A sender's links fail just as it speaks: what it certified last stays with it.
    pub(super) fn speaking_fault(&mut self, sender: ReplicaId) {
        let now = self.agenda.now;
        let until =
            now + self.options.request_timeout / 2 + self.fault_rng.exponential(self.options.request_timeout);
        self.network.isolate(sender.0, until);
        self.trace.note(now, || format!("{sender} falls silent as it speaks, until {until}"));
    }

    /// Somebody crashes.
    pub(super) fn crash_someone(&mut self) {
        if self.healed {
            return;
        }
        let index = self.fault_rng.index(self.nodes.len());
        self.crash(index);
        let pause = self.fault_rng.exponential(self.options.crash_pause).max(500);
        self.agenda.after(pause, Event::Crash);
    }

    /// A correct replica crashes, unless it is down already.
    pub(super) fn crash(&mut self, index: usize) {
        if self.nodes[index].adversary.is_some() || self.nodes[index].host.is_none() {
            return;
        }
        self.collect(index);
        self.mix(11, index as u64);
        let now = self.agenda.now;
        self.trace.note(now, || format!("node {index} crashes"));
        self.nodes[index].crash(&mut self.storage_rng);
        let life = self.nodes[index].life;
        let down = self.fault_rng.exponential(self.options.down_mean) + 500;
        self.agenda.after(down, Event::Restart(index, life));
    }

    /// A crashed replica starts again.
    pub(super) fn restart(&mut self, index: usize, life: u32) {
        if self.nodes[index].life != life || self.nodes[index].host.is_some() {
            return;
        }
        self.mix(12, index as u64);
        if self.nodes[index].blank {
            return self.begin(index);
        }
        let now = self.agenda.now;
        self.outcome.restarts += 1;
        self.checks.restarted(index);
        self.acts(index);
        let started = self.nodes[index].restart(&self.blueprint, now);
        let result =
            started.map_err(|why| format!("a replica with a whole disk does not start again: {why}"));
        self.checks.judge("recovery", &[index], result);
        self.trace.note(now, || format!("node {index} starts again"));
        self.collect(index);
        self.plan_crash(index);
        self.pump(index);
        self.read_at_restart();
    }

    /// Clients happen to read just after a restart, when a replica may know less than it knew.
    fn read_at_restart(&mut self) {
        if self.healed {
            return;
        }
        for client in 0..self.clients.len() {
            if self.fault_rng.one_in(2) {
                let pause = self.fault_rng.exponential(self.options.delay_mean) + 1;
                self.agenda.after(pause, Event::Read(client));
            }
        }
    }

    /// Decides after how many commands a node crashes, if it does.
    pub(super) fn plan_crash(&mut self, index: usize) {
        let rate = self.options.crash_per_command;
        let possible = self.options.has(FaultClass::Crashes) && !self.healed && rate > 0;
        let planned = possible.then(|| self.storage_rng.exponential(1_000_000 / rate) + 1);
        // Faulty replicas never crash: one that was about to amid a call would wait for the answer without end, and do no more
        // harm.
        self.nodes[index].crash_in = planned.filter(|_| self.nodes[index].adversary.is_none());
    }

    /// The adversaries look around; the colluders' audience changes now and then.
    pub(super) fn tick(&mut self) {
        if self.healed && self.adversaries.iter().all(|adversary| !adversary.active) {
            return;
        }
        let now = self.agenda.now;
        if now >= self.pact_until {
            self.pact_until = now + self.adversary_rng.exponential(self.options.view_timeout * 2).max(2_000);
            let audience = self.adversary_rng.subset(usize::from(self.options.n));
            self.pact.borrow_mut().audience = audience;
        }
        if self.options.heirs && !self.healed && self.loss_rng.one_in(INHERITS_ONE_IN) {
            self.inherit();
        }
        for index in 0..self.adversaries.len() {
            if !self.adversaries[index].active {
                continue;
            }
            let group = self.blueprint.group;
            let (_, acts) = self.adversaries[index].with(&group, now, |strategy, hand| strategy.tick(hand));
            self.carry_out(index, acts);
        }
        self.agenda.after(TICK, Event::Tick);
    }

    /// The replicas of which it is decided already when they crash.
    #[cfg(test)]
    pub(crate) fn about_to_crash(&self) -> Vec<ReplicaId> {
        self.nodes.iter().filter(|node| node.crash_in.is_some()).map(|node| node.replica).collect()
    }

    /// A Byzantine client acts.
    pub(super) fn byzantine_client(&mut self, index: usize) {
        if self.healed {
            return;
        }
        self.mix(13, index as u64);
        let mut send = Vec::new();
        self.byzantine[index].act(&mut self.checks, &mut send);
        for (to, message) in send {
            for node in self.hosts[usize::from(to.0)].clone() {
                for delay in self.network.copies().into_iter().flatten() {
                    self.agenda.after(delay, Event::Client(node, message.clone()));
                }
            }
        }
        let pause = self.byzantine[index].pause(self.agenda.now);
        self.agenda.after(pause, Event::ByzantineClient(index));
    }

    /// The faults stop: the network carries everything, whoever is down starts again, and the faulty
    /// replicas fall silent or behave.
    pub(super) fn heal(&mut self) {
        let now = self.agenda.now;
        self.healed = true;
        self.checks.liveness.healed_at = now;
        self.trace.note(now, || "the faults stop".to_owned());
        self.network.heal();
        self.selective.heal();
        for index in 0..self.nodes.len() {
            self.nodes[index].crash_in = None;
            if self.nodes[index].host.is_none() && self.nodes[index].adversary.is_none() {
                let life = self.nodes[index].life;
                self.restart(index, life);
            }
        }
        for adversary in &mut self.adversaries {
            adversary.logs.iter_mut().for_each(|logs| logs.forget_nothing(false));
            if adversary.strategy.goes_on() {
                continue;
            }
            adversary.active = false;
            adversary.silent = !self.options.faulty(adversary.me.0).is_some_and(|faulty| faulty.reforms);
        }
        for client in &mut self.clients {
            client.heal();
        }
        self.agenda.after(LOOKS_AFTER, Event::OperatorLooks);
        self.stir_clients();
    }

    /// Whether everything was answered before enough was ordered: a seed with few requests shows little.
    /// Clients that give up early and put much into one frame bring that about.
    pub(super) fn wants_more(&self) -> bool {
        self.options.literal.is_none()
            && ((self.checks.once.count() as u64) < MIN_REQUESTS || self.checks.shows_little(self.agenda.now))
    }

    /// Every client wants another round of requests.
    pub(super) fn more(&mut self) {
        let now = self.agenda.now;
        self.trace.note(now, || "the clients go on: too little was ordered".to_owned());
        self.checks.liveness.more(now);
        for client in &mut self.clients {
            client.more();
        }
        self.stir_clients();
    }

    fn stir_clients(&mut self) {
        for client in 0..self.clients.len() {
            for _ in 0..self.options.outstanding {
                self.agenda.after(1, Event::Think(client));
            }
        }
    }
}
