//! What the steps make faulty replicas of MinBFT do.

use super::{Auth, Fuzzed, INTERVAL, PIPELINE, WINDOW, World, signer};
use crate::bytes::Steps;
use crate::samples;
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_auth::{Seal, Signer, Ui};
use troth_core::{Agreement, PeerMessage};
use troth_minbft::place::Place;
use troth_minbft::{
    AcceptNewView, Body, Certified, Checkpoint, Commit, Config, LogEntry, Message, MinBft, NewView, Prepare,
    RequestViewChange, SignedRequest, StableProof, Status, ViewChange,
};
use troth_trusted::{CounterId, CounterValue};
use troth_trusted_host::Call;
use troth_types::{Digest, Group, ReplicaId, Seq, View};

const COUNTER: CounterId = CounterId(0);

impl Fuzzed for MinBft {
    const COUNTERS: &'static [CounterId] = &[COUNTER];

    fn group() -> Group {
        Group::hybrid(samples::GROUP, 3).expect("an odd number")
    }

    fn agreement(me: ReplicaId, group: Group, _: Auth) -> Self {
        let config = Config { interval: INTERVAL, window: WINDOW, pipeline: PIPELINE, ..Config::DEFAULT };
        Self::new(me, group, config)
    }

    fn is_kept(message: &Message) -> bool {
        matches!(message, Message::Certified(_) | Message::RequestViewChange(_))
    }

    fn state(message: &Message) -> Option<Digest> {
        match &certified(message)?.body {
            Body::Checkpoint(checkpoint) => Some(checkpoint.digest),
            _ => None,
        }
    }

    fn vouch(world: &mut World<Self>, from: ReplicaId, what: u8, steps: &mut Steps<'_>) {
        world.vouch_minbft(from, what, steps);
    }

    fn say(world: &mut World<Self>, from: ReplicaId, steps: &mut Steps<'_>) -> Option<Message> {
        world.uncertified(from, steps)
    }
}

fn certified(message: &Message) -> Option<&Arc<Certified>> {
    match message {
        Message::Certified(certified) => Some(certified),
        _ => None,
    }
}

impl World<MinBft> {
    /// A faulty replica certifies a body, and may send it.
    fn vouch_minbft(&mut self, from: ReplicaId, what: u8, steps: &mut Steps<'_>) {
        let now = self.counter(from);
        let next = now.next().unwrap_or(now);
        let view = View(now.view());
        let (body, place) = match what {
            8 | 9 => {
                let prepare =
                    Prepare { view: self.view(steps), seq: self.seq(steps), batch: self.batch(steps) };
                (Body::Prepare(prepare), next)
            }
            10 | 11 => {
                let Some(prepare) = self.one_certified(steps, |message| message.prepare().is_some()) else {
                    return;
                };
                (Body::Commit(Commit { prepare }), next)
            }
            12 => {
                let checkpoint = self.checkpoint(steps);
                let place = Place::of_checkpoint(view, checkpoint.seq).unwrap_or(next);
                (Body::Checkpoint(checkpoint), place)
            }
            13 => {
                let change = self.view_change(from, steps);
                let place = Place::of_view_change(change.to);
                (Body::ViewChange(change), place)
            }
            14 => {
                let new_view = self.new_view(steps);
                let place = Place::of_start(new_view.view);
                (Body::NewView(new_view), place)
            }
            _ => {
                let new_view = self.one_certified(steps, |message| message.new_view().is_some());
                let view =
                    new_view.as_ref().and_then(|message| message.new_view()).map_or(view, |said| said.view);
                let new_view = new_view.map_or(Digest::ZERO, |message| message.digest);
                (Body::AcceptNewView(AcceptNewView { view, new_view }), Place::of_start(view))
            }
        };
        // Mostly where it belongs.
        let place = match steps.byte() {
            250..=251 => next,
            252 => CounterValue::new(view.0, u64::from(steps.short())),
            253 => CounterValue::new(self.view(steps).0, 1),
            254 => next.plus(u128::from(steps.byte())).unwrap_or(next),
            255 => CounterValue::new(u64::MAX, u64::MAX),
            _ => place,
        };
        if let Some(message) = self.certify(from, place, body)
            && !steps.one_in(8)
        {
            self.tell(from, PeerMessage::Protocol(Message::Certified(message)), steps);
        }
    }

    /// Where a replica's counter stands.
    fn counter(&mut self, replica: ReplicaId) -> CounterValue {
        self.components[usize::from(replica.0)].counter(COUNTER)
    }

    /// Certifies anything in a replica's name, where its component does.
    fn certify(&mut self, replica: ReplicaId, new: CounterValue, body: Body) -> Option<Arc<Certified>> {
        let previous = self.counter(replica);
        let digest = body.digest(self.group.id(), replica);
        let component = &mut self.components[usize::from(replica.0)];
        let answer = component.call(Call::Attest { counter: COUNTER, previous, new, digest: digest.0 });
        let certificate = answer.attested()?.clone();
        let message = MinBft::seal(body, digest, replica, Seal::Ui(Ui { certificate, run: None }));
        self.said.push(message.clone());
        certified(&message).map(Arc::clone)
    }

    /// What needs no component.
    fn uncertified(&mut self, from: ReplicaId, steps: &mut Steps<'_>) -> Option<Message> {
        Some(match steps.byte() % 5 {
            0 => Message::RequestViewChange(self.wish(from, self.view(steps))),
            1 => Message::Status(Status {
                view: self.view(steps),
                processed: (0..steps.byte() % 5)
                    .map(|_| CounterValue::new(steps.byte().into(), self.number(steps)).0)
                    .collect(),
                stable: self.seq(steps),
                executed: self.seq(steps),
                round: self.number(steps),
                wants: steps.one_in(2).then(|| self.view(steps)),
            }),
            2 => Message::Stable(Arc::new(self.stable(steps))),
            3 => Message::Evidence(self.one_said(steps, |message| certified(message).map(Arc::clone))?),
            _ => {
                // One passes on what another one wishes.
                let by = self.faulty[steps.below(self.faulty.len())];
                Message::RequestViewChange(self.wish(by, self.view(steps)))
            }
        })
    }

    fn one_certified(
        &self,
        steps: &mut Steps<'_>,
        is: impl Fn(&Certified) -> bool,
    ) -> Option<Arc<Certified>> {
        // Now and then what does not belong.
        let any = steps.byte() == 255;
        self.one_said(steps, |message| {
            certified(message).filter(|message| any || is(message)).map(Arc::clone)
        })
    }

    fn checkpoint(&self, steps: &mut Steps<'_>) -> Checkpoint {
        let digest = if steps.one_in(2) { self.digest_now() } else { Digest([steps.byte(); 32]) };
        // A decoder lets no other order through.
        let epochs: BTreeMap<ReplicaId, u64> = (0..(steps.byte() % 16).saturating_sub(12))
            .map(|_| (ReplicaId(u16::from(steps.byte() % 4)), u64::from(steps.byte() % 3)))
            .collect();
        let epochs: Vec<_> = epochs.into_iter().collect();
        let given = !epochs.is_empty() && steps.one_in(4);
        Checkpoint { seq: self.checkpoint_seq(steps), digest, epochs, given }
    }

    fn stable(&self, steps: &mut Steps<'_>) -> StableProof {
        let votes = (0..steps.byte() % 4)
            .filter_map(|_| self.one_certified(steps, |it| matches!(it.body, Body::Checkpoint(_))));
        StableProof { votes: votes.collect() }
    }

    fn wish(&self, from: ReplicaId, to: View) -> Arc<SignedRequest> {
        let request = RequestViewChange { to };
        let digest = Body::RequestViewChange(request.clone()).digest(self.group.id(), from);
        let signature = signer(from).sign(&digest);
        Arc::new(SignedRequest { from, request, digest, signature })
    }

    /// Mostly what an honest replica would show: all that it certified, and f+1 wishes.
    fn view_change(&self, from: ReplicaId, steps: &mut Steps<'_>) -> ViewChange {
        let to = self.view(steps);
        let stable = if steps.one_in(4) { self.stable(steps) } else { StableProof::default() };
        let own = self.said.iter().filter_map(certified).filter(|message| message.from == from);
        let mut log: Vec<LogEntry> = own.map(Certified::log_entry).collect();
        if steps.one_in(4) {
            log.extend(self.one_certified(steps, |_| true).map(LogEntry::Whole));
        }
        if steps.one_in(8) && !log.is_empty() {
            log.remove(steps.below(log.len()));
        }
        ViewChange { to, stable, log, requests: self.wishes(to) }
    }

    /// f+1 wishes for a view, as far as there are so many.
    fn wishes(&self, to: View) -> Vec<Arc<SignedRequest>> {
        let said = self.last_of_each(|message| match message {
            Message::RequestViewChange(wish) if wish.request.to == to => Some((wish.from, Arc::clone(wish))),
            _ => None,
        });
        let correct = said.into_values().filter(|wish| !self.faulty.contains(&wish.from));
        let faulty = self.faulty.iter().map(|replica| self.wish(*replica, to));
        faulty.chain(correct).take(self.group.quorum()).collect()
    }

    fn new_view(&self, steps: &mut Steps<'_>) -> NewView {
        let changes: Vec<_> = (0..2 + steps.byte() % 2)
            .filter_map(|_| self.one_certified(steps, |message| message.view_change().is_some()))
            .collect();
        let to = changes.first().and_then(|change| change.view_change()).map(|change| change.to);
        let base = match steps.byte() % 4 {
            0 => (self.seq(steps), self.digest_now()),
            _ => (Seq(0), Digest::ZERO),
        };
        let chosen = (0..steps.byte() % 4).map(|_| self.batch(steps)).collect();
        let view = to.filter(|_| !steps.one_in(8)).unwrap_or_else(|| self.view(steps));
        NewView { view, changes, base, chosen }
    }
}
