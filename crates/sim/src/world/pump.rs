//! Carrying out a host's commands, one by one, with crashes between any two of them.

use super::World;
use super::event::{Envelope, Event, Timer};
use crate::adversary::Act;
use crate::component::indulge;
use crate::storage::Storage;
use crate::watched::Observation;
use crate::{Message, Protocol};
use bytes::Bytes;
use std::rc::Rc;
use troth_core::{Agreement as _, Command, Note, PeerMessage, To};
use troth_trusted_host::{Answer, Call};
use troth_types::{AttestedReply, OPERATOR, ReplicaId, Seq, ToClient, Wire};

/// Completed syncs that a snapshot takes to be written, on average.
const SNAPSHOT_SYNCS: u64 = 4;

impl<P: Protocol> World<P> {
    /// Carries out the commands of a node until it has none or must wait.
    pub(super) fn pump(&mut self, index: usize) {
        loop {
            let node = &mut self.nodes[index];
            if node.busy || self.over || self.checks.violation.is_some() {
                return;
            }
            if let Some(left) = node.crash_in.take() {
                if left <= 1 {
                    return self.crash(index);
                }
                node.crash_in = Some(left - 1);
            }
            let Some(host) = &mut node.host else { return };
            host.allow_segments(node.storage.wants_segment());
            let Some(command) = host.command() else { return self.at_rest(index) };
            match command {
                Command::Append(record) => node.storage.append(record),
                Command::NewSegment { snapshot, needed } => {
                    let syncs = (!needed).then(|| 1 + self.storage_rng.exponential(SNAPSHOT_SYNCS));
                    node.storage.new_segment(snapshot, syncs);
                }
                Command::Sync => {
                    node.storage.begin_sync();
                    if self.options.sync == 0 {
                        node.storage.finish_sync();
                    } else {
                        node.busy = true;
                        let life = node.life;
                        let wait = 1 + self.storage_rng.exponential(self.options.sync);
                        self.agenda.after(wait, Event::Synced(index, life));
                    }
                }
                Command::Attest(call) => self.attest(index, &call),
                Command::Logs(operations) => self.logs(index, &operations),
                Command::Draw(ticket) => self.draw(index, ticket),
                Command::Peer { to, message } => self.outgoing(index, to, message),
                Command::Return(message) => self.returned(index, message),
                Command::Client(message) => {
                    match &message {
                        ToClient::Reply(reply) | ToClient::Attested(AttestedReply { reply, .. }) => {
                            self.collect_shown(index, reply.seq);
                        }
                        // Where replies wait for their proofs, events go first.
                        ToClient::Event(event) => self.collect_shown(index, event.seq),
                        _ => {}
                    }
                    self.outgoing_client(index, message);
                }
                Command::SetTimer { timer, at } => {
                    node.timers.insert(timer, at);
                    let due = node.virtual_time(at).max(self.agenda.now + 1);
                    let life = node.life;
                    self.agenda.at(due, Event::Timer(index, life, timer, at.0));
                }
                Command::CancelTimer(timer) => {
                    node.timers.remove(&timer);
                }
                Command::Configured(configuration) => self.configured(index, &configuration),
                Command::Note(note) => self.noted(index, &note),
                Command::Halt(why) => {
                    if node.adversary.is_none() {
                        let standing = node.host.as_ref().map(|host| host.machine().agreement().describe());
                        let result = Err(format!("it halts: {why:?}; {standing:?}"));
                        self.checks.judge("halt", &[index], result);
                    }
                    self.nodes[index].host = None;
                }
            }
        }
    }

    pub(super) fn synced(&mut self, index: usize, life: u32) {
        let node = &mut self.nodes[index];
        if node.life == life && node.host.is_some() {
            node.busy = false;
            node.storage.finish_sync();
            self.pump(index);
        }
    }

    fn attest(&mut self, index: usize, call: &Call) {
        let node = &mut self.nodes[index];
        let answer = match node.adversary {
            None => node.attest(call),
            Some((adversary, host)) => {
                let puppet = &mut self.adversaries[adversary].puppet;
                if let Call::Attest { counter, previous, .. } = call {
                    puppet.rewind(host, *counter, troth_trusted::CounterValue(previous.0 + 1));
                }
                indulge(&self.blueprint.group, node.replica, call)
            }
        };
        // A crash may come between the move of the counter and its certificate.
        if let Some(left) = &mut node.crash_in {
            *left -= 1;
            if *left == 0 {
                return self.crash(index);
            }
        }
        if self.options.attest == 0 {
            return self.answered(index, answer);
        }
        node.busy = true;
        let life = node.life;
        let wait = 1 + self.storage_rng.exponential(self.options.attest);
        self.agenda.after(wait, Event::Attested(index, life, answer));
    }

    pub(super) fn attested(&mut self, index: usize, life: u32, answer: Answer) {
        if self.nodes[index].life == life && self.nodes[index].host.is_some() {
            self.nodes[index].busy = false;
            self.answered(index, answer);
            self.pump(index);
        }
    }

    fn answered(&mut self, index: usize, answer: Answer) {
        let env = self.nodes[index].env(self.agenda.now);
        self.acts(index);
        if let Some(host) = &mut self.nodes[index].host {
            host.attested(env, answer);
            self.collect(index);
        }
    }

    /// A node's own copy of what it sent to everybody.
    fn returned(&mut self, index: usize, message: Message<P>) {
        let env = self.nodes[index].env(self.agenda.now);
        self.acts(index);
        if let Some(host) = &mut self.nodes[index].host {
            host.returned(env, message);
            self.collect(index);
        }
    }

    /// A node's timer may be due.
    pub(super) fn timer(&mut self, index: usize, life: u32, timer: Timer<P>, at: u64) {
        let node = &mut self.nodes[index];
        if node.life != life || node.timers.get(&timer).is_none_or(|set| set.0 != at) {
            return;
        }
        node.timers.remove(&timer);
        self.mix(4, index as u64);
        let env = self.nodes[index].env(self.agenda.now);
        self.acts(index);
        if let Some(host) = &mut self.nodes[index].host {
            host.input(env, troth_core::Input::Timer(timer));
            self.after_input(index);
        }
    }

    /// Tells the checkers what a node's executor did. A replica executes nothing before its own
    /// commitment to it is durable, so this holds against it at once, crash or not. A printed rule may
    /// break that; there only what a reply or an event shows counts, see [`World::collect_shown`].
    pub(super) fn collect(&mut self, index: usize) {
        if !self.counts_what_is_shown() {
            self.observe(index, usize::MAX);
        }
    }

    fn counts_what_is_shown(&self) -> bool {
        self.options.literal.as_deref().is_some_and(P::forgets)
    }

    /// Where a printed rule is in force: what a reply or an event reveals that leaves now, or what is stable.
    fn collect_shown(&mut self, index: usize, up_to: Seq) {
        if !self.counts_what_is_shown() {
            return;
        }
        let shown = |observation: &Observation| match observation {
            Observation::Executed { ordered, .. } => ordered.seq <= up_to,
            _ => false,
        };
        let last = self.nodes[index].tap.borrow().iter().rposition(shown);
        if let Some(last) = last {
            self.observe(index, last + 1);
        }
    }

    fn observe(&mut self, index: usize, count: usize) {
        let observations: Vec<Observation> = {
            let mut tap = self.nodes[index].tap.borrow_mut();
            let count = count.min(tap.len());
            tap.drain(..count).collect()
        };
        let last = observations.iter().rev().find_map(|observation| match observation {
            Observation::Executed { ordered, .. } => Some(ordered.seq),
            Observation::Installed { seq, .. } => Some(*seq),
            _ => None,
        });
        if let Some(last) = last {
            self.nodes[index].executed = last;
            self.keeps_up(index);
        }
        if self.nodes[index].adversary.is_some() {
            return;
        }
        for observation in observations {
            match observation {
                Observation::Executed { ordered, outcome } => {
                    let now = self.agenda.now;
                    self.trace.note(now, || {
                        let frames: Vec<_> =
                            ordered.frames.iter().map(|frame| (frame.client(), frame.number())).collect();
                        format!("node {index} executes {} {frames:?}", ordered.seq)
                    });
                    self.checks.executed(index, &ordered, &outcome, now);
                    self.has_executed();
                }
                Observation::Undone(batches) => {
                    self.outcome.undone += batches as u64;
                    let now = self.agenda.now;
                    self.trace.note(now, || format!("node {index} undoes {batches} batches"));
                }
                Observation::Checkpoint { seq, digest } => self.checks.checkpoint(index, seq, digest),
                Observation::Installed { seq, digest } => {
                    self.outcome.transfers += 1;
                    self.checks.installed(index, seq, digest);
                }
                Observation::Restored { seq, digest } => self.checks.restored(index, seq, digest),
            }
        }
    }

    fn noted(&mut self, index: usize, note: &Note) {
        let now = self.agenda.now;
        self.trace.note(now, || format!("node {index}: {note:?}"));
        if self.nodes[index].adversary.is_some() {
            return;
        }
        if let Note::Stable { seq, .. } = note {
            self.collect_shown(index, *seq);
        }
        if let Note::ViewEntered { view } = note {
            self.outcome.view_changes = self.outcome.view_changes.max(view.0);
            self.has_entered(self.nodes[index].replica);
            self.over |= self.options.views.is_some_and(|views| view.0 >= views);
        }
        let faulty: Vec<u16> = self.options.faulty.iter().map(|faulty| faulty.replica).collect();
        let byzantine = &self.byzantine;
        self.checks.noted(index, note, &|replica| faulty.contains(&replica.0), &|client| {
            byzantine.iter().any(|faulty| faulty.id == client)
        });
    }

    fn receivers(&self, from: ReplicaId, to: To) -> Vec<ReplicaId> {
        match to {
            To::Others => self.blueprint.group.all().filter(|replica| *replica != from).collect(),
            To::One(replica) => vec![replica],
        }
    }

    /// A host sends to replicas.
    fn outgoing(&mut self, index: usize, to: To, message: PeerMessage<Message<P>>) {
        let from = self.nodes[index].replica;
        if let PeerMessage::Protocol(message) = &message {
            if P::changes_view(message) {
                self.view_change_fault(from);
            } else if self.options.cut_on_view_change > 0 && !self.healed && self.fault_rng.chance(1_500) {
                self.speaking_fault(from);
            }
        }
        let receivers = self.receivers(from, to);
        let Some((adversary, host)) = self.nodes[index].adversary else {
            return self.transmit(from, &receivers, message, 0);
        };
        if self.options.negative {
            // The clone's certificates leave as they are.
            return self.outgoing_faulty(adversary, host, &receivers, message);
        }
        let group = self.blueprint.group;
        let now = self.agenda.now;
        let message = match message {
            PeerMessage::Protocol(message) => {
                match self.adversaries[adversary].realise(&group, now, host, message) {
                    Some(message) if self.adversaries[adversary].puppet.is_real(&message) => {
                        PeerMessage::Protocol(message)
                    }
                    _ => return,
                }
            }
            other => other,
        };
        self.outgoing_faulty(adversary, host, &receivers, message);
    }

    fn outgoing_faulty(
        &mut self,
        adversary: usize,
        host: usize,
        receivers: &[ReplicaId],
        message: PeerMessage<Message<P>>,
    ) {
        let (group, now) = (self.blueprint.group, self.agenda.now);
        let this = &mut self.adversaries[adversary];
        if this.silent {
            return;
        }
        let me = this.me;
        this.hear(me, &message);
        if !this.active {
            // Reformed: the first host speaks for the replica.
            return if host == 0 {
                self.transmit(me, receivers, message, 0)
            };
        }
        let (_, acts) = this.with(&group, now, |strategy, hand| {
            for to in receivers {
                strategy.send(hand, host, *to, message.clone());
            }
        });
        self.carry_out(adversary, acts);
    }

    /// Does what a strategy decided.
    pub(super) fn carry_out(&mut self, adversary: usize, acts: Vec<Act<P>>) {
        let me = self.adversaries[adversary].me;
        for act in acts {
            match act {
                Act::Peer(to, message, after) => self.transmit(me, &[to], message, after),
                Act::Face(to, face, message) => {
                    let node = self.hosts[usize::from(to.0)].get(face).copied();
                    let message = node.and_then(|node| Some((node, self.through_the_codec(me, message)?)));
                    if let Some((node, message)) = message {
                        self.send_envelope(node, &Rc::new(Envelope::new(me, message)), 0);
                    }
                }
                Act::Client(message, after) => self.transmit_client(me, message, after),
                Act::SaveAtRest(host) => {
                    if !self.nodes[self.adversaries[adversary].nodes[host]].busy {
                        self.save(adversary, host);
                    }
                }
                Act::RestoreAtRest(host) => {
                    let index = self.adversaries[adversary].nodes[host];
                    if self.nodes[index].busy {
                        self.nodes[index].goes_back = true;
                    } else {
                        self.restore(adversary, host);
                    }
                }
            }
        }
    }

    /// Keeps a clone of what a host of a faulty replica is.
    fn save(&mut self, adversary: usize, host: usize) {
        let node = &mut self.nodes[self.adversaries[adversary].nodes[host]];
        node.saved = node.host.as_ref().map(|host| host.machine().clone());
        self.adversaries[adversary].logs.iter_mut().for_each(|logs| logs.save(host));
    }

    /// Puts a host of a faulty replica back to what was kept.
    fn restore(&mut self, adversary: usize, host: usize) {
        let node = &mut self.nodes[self.adversaries[adversary].nodes[host]];
        // Amid a run the host and the clone would not fit each other.
        if let (Some(run), Some(saved), false) = (&mut node.host, &node.saved, node.busy) {
            *run.machine_mut() = saved.clone();
            self.adversaries[adversary].logs.iter_mut().for_each(|logs| logs.restore(host));
        }
    }

    /// Nothing is under way at a node.
    fn at_rest(&mut self, index: usize) {
        if !std::mem::take(&mut self.nodes[index].goes_back) {
            return;
        }
        if let Some((adversary, host)) = self.nodes[index].adversary {
            self.restore(adversary, host);
        }
    }

    /// Puts a message on the wire.
    fn transmit(
        &mut self,
        from: ReplicaId,
        receivers: &[ReplicaId],
        message: PeerMessage<Message<P>>,
        after: u64,
    ) {
        let Some(message) = self.through_the_codec(from, message) else { return };
        let envelope = Rc::new(Envelope::new(from, message));
        for to in receivers {
            for slot in 0..self.hosts[usize::from(to.0)].len() {
                let index = self.hosts[usize::from(to.0)][slot];
                self.send_envelope(index, &envelope, after);
            }
        }
    }

    /// Now and then a message goes through its wire form.
    fn through_the_codec(
        &mut self,
        from: ReplicaId,
        message: PeerMessage<Message<P>>,
    ) -> Option<PeerMessage<Message<P>>> {
        self.wire_countdown -= 1;
        if self.wire_countdown > 0 {
            return Some(message);
        }
        self.wire_countdown = self.options.wire_one_in;
        let bytes: Bytes = message.to_wire();
        match PeerMessage::from_wire(&bytes) {
            Ok(decoded) if decoded == message => Some(decoded),
            _ if self.faulty(from) => None,
            other => {
                let result = Err(format!("{message:?} became {other:?} on the wire"));
                self.checks.judge("codec", &[], result);
                None
            }
        }
    }

    /// A host sends to a client.
    fn outgoing_client(&mut self, index: usize, message: ToClient) {
        let from = self.nodes[index].replica;
        let Some((adversary, host)) = self.nodes[index].adversary else {
            return self.transmit_client(from, message, 0);
        };
        let this = &mut self.adversaries[adversary];
        if this.silent {
            return;
        }
        if !this.active {
            return if host == 0 {
                self.transmit_client(from, message, 0)
            };
        }
        let (group, now) = (self.blueprint.group, self.agenda.now);
        let (_, acts) = this.with(&group, now, |strategy, hand| strategy.client(hand, host, message));
        self.carry_out(adversary, acts);
    }

    fn transmit_client(&mut self, from: ReplicaId, message: ToClient, after: u64) {
        let message = match &self.options.literal {
            Some(literal) => P::heard(literal, message),
            None => message,
        };
        let client = message.client();
        if client == OPERATOR {
            for delay in self.network.copies().into_iter().flatten() {
                self.agenda.after(delay + after, Event::OperatorAnswer(from, message.clone()));
            }
            return;
        }
        // Byzantine clients do not listen.
        let Some(index) = self.clients.iter().position(|known| known.id == client) else { return };
        for delay in self.network.copies().into_iter().flatten() {
            self.agenda.after(delay + after, Event::Answer(index, from, message.clone()));
        }
    }
}
