//! What the steps make faulty replicas of PBFT and of A2M-PBFT-E do, which speak alike.

use super::{Auth, Fuzzed, INTERVAL, PIPELINE, WINDOW, World};
use crate::bytes::Steps;
use crate::samples;
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_a2m_pbft_e::A2mPbftE;
use troth_auth::HISTORY_LOG;
use troth_core::{Agreement, Execution};
use troth_pbft::choose::{Choice, Shown, choose, null};
use troth_pbft::{
    AttestedCheckpoint, Body, Checkpoint, Config, Entry, Message, NewView, Pbft, Phase, PrePrepare, Signed,
    StableProof, Status, ViewChange, Vote,
};
use troth_trusted::a2m::LOGS;
use troth_types::{Batch, Digest, Group, ReplicaId, Seq};

/// The smallest group of its kind.
const REPLICAS: u16 = 4;

/// A protocol that orders as PBFT does, with its messages.
pub(crate) trait Orders: Fuzzed + Agreement<Body = Body, Message = Message> {
    /// The parameters of its groups.
    fn config(auth: Auth) -> Config;
    /// A CHECKPOINT as this replica signs it; nothing where its component does not go along.
    fn checkpoint(
        world: &mut World<Self>,
        from: ReplicaId,
        checkpoint: Checkpoint,
        steps: &mut Steps<'_>,
    ) -> Option<Body>;
}

impl Fuzzed for Pbft {
    const AUTHS: &'static [Auth] = &[Auth::Signed, Auth::Mac, Auth::AllSigned];

    fn group() -> Group {
        Group::general(samples::GROUP, REPLICAS).expect("3f+1")
    }

    fn agreement(me: ReplicaId, group: Group, auth: Auth) -> Self {
        Self::new(me, group, Self::config(auth))
    }

    fn is_kept(message: &Message) -> bool {
        is_kept(message)
    }

    fn state(message: &Message) -> Option<Digest> {
        checkpoint_of(message).map(|(_, checkpoint)| checkpoint.digest)
    }

    fn vouch(world: &mut World<Self>, from: ReplicaId, what: u8, steps: &mut Steps<'_>) {
        world.vouch_pbft(from, what, steps);
    }

    fn say(world: &mut World<Self>, from: ReplicaId, steps: &mut Steps<'_>) -> Option<Message> {
        world.say_pbft(from, steps)
    }
}

impl Orders for Pbft {
    fn config(auth: Auth) -> Config {
        let signs_phases = auth == Auth::AllSigned;
        Config { interval: INTERVAL, window: WINDOW, pipeline: PIPELINE, signs_phases, ..Config::DEFAULT }
    }

    fn checkpoint(
        _: &mut World<Self>,
        _: ReplicaId,
        checkpoint: Checkpoint,
        _: &mut Steps<'_>,
    ) -> Option<Body> {
        Some(Body::Checkpoint(checkpoint))
    }
}

impl Fuzzed for A2mPbftE {
    fn group() -> Group {
        Pbft::group()
    }

    fn agreement(me: ReplicaId, group: Group, auth: Auth) -> Self {
        Self::new(me, group, Self::config(auth)).with_epoch(1)
    }

    fn room() -> Option<[usize; LOGS]> {
        let mut room = [0; LOGS];
        room[usize::from(HISTORY_LOG.0)] = Self::room(&Self::config(Auth::Signed));
        Some(room)
    }

    fn is_kept(message: &Message) -> bool {
        is_kept(message)
    }

    fn state(message: &Message) -> Option<Digest> {
        checkpoint_of(message).map(|(_, checkpoint)| checkpoint.digest)
    }

    fn vouch(world: &mut World<Self>, from: ReplicaId, what: u8, steps: &mut Steps<'_>) {
        world.vouch_pbft(from, what, steps);
    }

    fn say(world: &mut World<Self>, from: ReplicaId, steps: &mut Steps<'_>) -> Option<Message> {
        world.say_pbft(from, steps)
    }
}

impl Orders for A2mPbftE {
    fn config(auth: Auth) -> Config {
        Config { histories: true, tentative: false, ..Pbft::config(auth) }
    }

    fn checkpoint(
        world: &mut World<Self>,
        from: ReplicaId,
        checkpoint: Checkpoint,
        steps: &mut Steps<'_>,
    ) -> Option<Body> {
        let attestation = world.attest_history(from, checkpoint.seq, steps)?;
        Some(Body::Attested(AttestedCheckpoint { checkpoint, attestation }))
    }
}

fn is_kept(message: &Message) -> bool {
    match message {
        Message::PrePrepare(_) | Message::Prepare(_) | Message::Commit(_) => true,
        Message::Signed(_) | Message::Stable(_) => true,
        Message::Status(_) | Message::FetchBatches(_) | Message::Batches(_) | Message::WrongTags(_) => false,
        Message::FetchHistory(_) | Message::History(..) => false,
    }
}

fn signed(message: &Message) -> Option<&Arc<Signed>> {
    match message {
        Message::Signed(signed) => Some(signed),
        _ => None,
    }
}

fn checkpoint_of(message: &Message) -> Option<(&Arc<Signed>, Checkpoint)> {
    let signed = signed(message)?;
    signed.body.checkpoint().map(|(checkpoint, _)| (signed, checkpoint))
}

fn proposal(message: &Message) -> Option<PrePrepare> {
    match message {
        Message::PrePrepare(proposal) => Some(proposal.clone()),
        Message::Signed(signed) => match &signed.body {
            Body::Phase(Phase::PrePrepare(proposal)) => Some(proposal.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn vote_for(proposal: &PrePrepare) -> Vote {
    Vote { view: proposal.view, seq: proposal.seq, digest: proposal.batch.digest() }
}

impl<P: Orders> World<P> {
    /// Faulty replicas vote, sign, and say so.
    fn vouch_pbft(&mut self, from: ReplicaId, what: u8, steps: &mut Steps<'_>) {
        match what {
            8 | 9 => {
                let (view, seq, batch) = (self.view(steps), self.seq(steps), self.batch(steps));
                let by = self.mostly(self.group.primary(view), from, steps);
                let message = self.phase(by, Phase::PrePrepare(PrePrepare { view, seq, batch }), steps);
                self.says(by, message, steps);
            }
            10 => {
                if let Some(proposal) = self.one_said(steps, proposal) {
                    self.vote(from, Phase::Prepare(vote_for(&proposal)), steps);
                }
            }
            11 => {
                if let Some(proposal) = self.one_said(steps, proposal) {
                    self.vote(from, Phase::Commit(vote_for(&proposal)), steps);
                }
            }
            12 => self.vouch_for_state(from, steps),
            13 => self.leave(from, steps),
            14 => self.start(from, steps),
            _ => self.agree(from, steps),
        }
    }

    /// A message of the three phases, signed where this group signs them. Now and then it is the other way round.
    fn phase(&self, from: ReplicaId, phase: Phase, steps: &mut Steps<'_>) -> Message {
        let signs = (self.auth == Auth::AllSigned) != (steps.byte() == 255);
        if signs { self.sign(from, Body::Phase(phase)) } else { phase.into() }
    }

    fn vote(&mut self, from: ReplicaId, phase: Phase, steps: &mut Steps<'_>) {
        for by in self.speakers(from, steps) {
            let message = self.phase(by, phase.clone(), steps);
            self.says(by, message, steps);
        }
    }

    /// The next batch is agreed on, with the votes of all faulty replicas.
    fn agree(&mut self, from: ReplicaId, steps: &mut Steps<'_>) {
        let (view, seq) = (self.present(), self.nodes[0].host.machine().execution().executed().next());
        let primary = self.group.primary(view);
        if self.faulty.contains(&primary) {
            let batch = self.batch(steps);
            let proposal = Phase::PrePrepare(PrePrepare { view, seq, batch });
            let message = self.phase(primary, proposal, steps);
            self.says(primary, message, steps);
        }
        let fits = |message: &Message| proposal(message).filter(|it| (it.view, it.seq) == (view, seq));
        let Some(vote) = self.said.iter().rev().find_map(fits).as_ref().map(vote_for) else { return };
        self.vote(from, Phase::Prepare(vote), steps);
        self.vote(from, Phase::Commit(vote), steps);
    }

    fn vouch_for_state(&mut self, from: ReplicaId, steps: &mut Steps<'_>) {
        let checkpoint = Checkpoint { seq: self.checkpoint_seq(steps), digest: self.state(steps) };
        for by in self.speakers(from, steps) {
            if let Some(body) = P::checkpoint(self, by, checkpoint, steps) {
                let message = self.sign(by, body);
                self.says(by, message, steps);
            }
        }
    }

    /// CHECKPOINTs that vouch for the same.
    fn stable(&self, steps: &mut Steps<'_>) -> StableProof {
        let vouched = self.one_said(steps, |message| signed(message)?.body.checkpoint());
        let votes = self.last_of_each(|message| {
            let signed = signed(message)?;
            let same = vouched.is_some() && signed.body.checkpoint() == vouched;
            same.then(|| (signed.from, Arc::clone(signed)))
        });
        let mut votes: Vec<Arc<Signed>> = votes.into_values().collect();
        if steps.byte() == 255 {
            votes.extend(self.one_said(steps, |message| signed(message).map(Arc::clone)));
        }
        StableProof { votes }
    }

    /// VIEW-CHANGEs: mostly as if all that was proposed had prepared.
    fn leave(&mut self, from: ReplicaId, steps: &mut Steps<'_>) {
        let to = self.view(steps);
        let stable = if steps.one_in(2) { self.stable(steps) } else { StableProof::default() };
        let (base, _) = stable.target();
        let (mut prepared, mut pre_prepared) = (BTreeMap::new(), BTreeMap::new());
        for proposal in self.said.iter().filter_map(proposal) {
            let Vote { view, seq, digest } = vote_for(&proposal);
            if seq > base && view < to {
                prepared.insert(seq, Entry { seq, digest, view });
                pre_prepared.insert((seq, digest), Entry { seq, digest, view });
            }
        }
        let mut prepared: Vec<Entry> = prepared.into_values().collect();
        let mut pre_prepared: Vec<Entry> = pre_prepared.into_values().collect();
        match steps.byte() % 8 {
            0 if !prepared.is_empty() => drop(prepared.remove(steps.below(prepared.len()))),
            1 if !pre_prepared.is_empty() => drop(pre_prepared.remove(steps.below(pre_prepared.len()))),
            2 => prepared.push(self.entry(steps)),
            3 => pre_prepared.push(self.entry(steps)),
            4 => prepared.clear(),
            _ => {}
        }
        let change = ViewChange { to, stable, prepared, pre_prepared };
        for by in self.speakers(from, steps) {
            let message = self.sign(by, Body::ViewChange(change.clone()));
            self.says(by, message, steps);
        }
    }

    fn entry(&self, steps: &mut Steps<'_>) -> Entry {
        let digest = match steps.byte() % 4 {
            0 => Digest([steps.byte(); 32]),
            1 => null(),
            _ => self.one_said(steps, proposal).map_or(Digest::ZERO, |proposal| proposal.batch.digest()),
        };
        Entry { seq: self.seq(steps), digest, view: self.view(steps) }
    }

    /// NEW-VIEW: mostly what follows from the VIEW-CHANGEs for it.
    fn start(&mut self, from: ReplicaId, steps: &mut Steps<'_>) {
        let change_of = |message: &Message| signed(message)?.view_change().map(|change| change.to);
        let view = self.one_said(steps, change_of).unwrap_or_else(|| self.view(steps));
        let changes = self.last_of_each(|message| {
            let signed =
                signed(message).filter(|signed| signed.view_change().is_some_and(|it| it.to == view))?;
            Some((signed.from, Arc::clone(signed)))
        });
        let mut changes: Vec<Arc<Signed>> = changes.into_values().collect();
        if changes.len() > self.group.quorum() && steps.one_in(4) {
            changes.remove(steps.below(changes.len()));
        }
        let Choice { base, chosen } = self.choice(&changes).unwrap_or_else(|| Choice {
            base: (self.checkpoint_seq(steps), self.state(steps)),
            chosen: Vec::new(),
        });
        let mut chosen: Vec<Batch> = chosen.iter().map(|digest| self.batch_of(digest)).collect();
        if steps.one_in(8) {
            chosen.push(self.batch(steps));
        }
        let by = self.mostly(self.group.primary(view), from, steps);
        let message = self.sign(by, Body::NewView(NewView { view, changes, base, chosen }));
        self.says(by, message, steps);
    }

    fn choice(&self, changes: &[Arc<Signed>]) -> Option<Choice> {
        let config = P::config(self.auth);
        let shown = changes
            .iter()
            .map(|message| Shown::new(&self.group, &config, message.from, message.view_change()?));
        choose(&self.group, &config, &shown.collect::<Option<Vec<_>>>()?)
    }

    /// The batches that were proposed.
    fn batches(&self) -> impl Iterator<Item = Batch> {
        self.said.iter().filter_map(proposal).map(|proposal| proposal.batch)
    }

    fn batch_of(&self, digest: &Digest) -> Batch {
        self.batches().find(|batch| batch.digest() == *digest).unwrap_or_default()
    }

    /// What the link alone vouches for, or anybody can pass on.
    fn say_pbft(&mut self, _: ReplicaId, steps: &mut Steps<'_>) -> Option<Message> {
        Some(match steps.byte() % 8 {
            0 | 1 => Message::Status(Status {
                view: self.view(steps),
                active: steps.one_in(2),
                stable: self.checkpoint_seq(steps),
                executed: self.seq(steps),
                slots: (0..steps.byte() % 8).map(|_| steps.byte() % 8).collect(),
                changes: u128::from(steps.byte()),
                wishes: steps.one_in(2),
            }),
            2 => Message::Stable(Arc::new(self.stable(steps))),
            3 => {
                let asked = self.batches().map(|batch| batch.digest());
                Message::FetchBatches(asked.chain([Digest([steps.byte(); 32])]).take(16).collect())
            }
            4 => Message::Batches(self.batches().chain([self.batch(steps)]).take(16).collect()),
            5 => Message::WrongTags(self.batch(steps).frames),
            6 => Message::FetchHistory(self.seq(steps)),
            _ => {
                let from = Seq(self.number(steps));
                Message::History(from, self.history_from(from, steps))
            }
        })
    }
}
