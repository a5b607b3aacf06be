//! What the steps make faulty replicas of A2M-PBFT-EA do.

use super::{Auth, Fuzzed, INTERVAL, PIPELINE, WINDOW, World};
use crate::bytes::Steps;
use crate::samples;
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_a2m_pbft_ea::choose::{Choice, choose, highest};
use troth_a2m_pbft_ea::evidence::{MOST_ABANDONED, evidence, shared_nonce, to_look_up};
use troth_a2m_pbft_ea::place::{self, COMMIT, HISTORY, PREPARE, end_of};
use troth_a2m_pbft_ea::{
    A2mPbftEa, Accept, Attested, Body, Checkpoint, Committed, Config, Message, NewView, PrePrepare,
    StableProof, Status, ViewChange, Vote, WantViewChange, Wanted,
};
use troth_auth::Seal;
use troth_core::{Agreement, Execution};
use troth_trusted::a2m::LOGS;
use troth_types::{Digest, Group, ReplicaId, Seq, View};

const CONFIG: Config = Config { interval: INTERVAL, window: WINDOW, pipeline: PIPELINE, ..Config::DEFAULT };
/// Entries of each log but the history's: more than the steps of an input can fill.
const ROOM: usize = 512;

impl Fuzzed for A2mPbftEa {
    fn group() -> Group {
        Group::hybrid(samples::GROUP, 3).expect("2f+1")
    }

    fn agreement(me: ReplicaId, group: Group, _: Auth) -> Self {
        Self::new(me, group, CONFIG)
    }

    fn room() -> Option<[usize; LOGS]> {
        let mut room = [0; LOGS];
        for log in [PREPARE, COMMIT, place::CHECKPOINT, place::VIEW_CHANGE, place::NEW_VIEW] {
            room[usize::from(log.0)] = ROOM;
        }
        room[usize::from(HISTORY.0)] = CONFIG.history_room();
        Some(room)
    }

    fn is_kept(message: &Message) -> bool {
        match message {
            Message::Attested(_) | Message::Want(_) | Message::Stable(_) => true,
            Message::Status(_) | Message::FetchHistory(_) | Message::History(..) => false,
            Message::FetchProposals(..) => false,
        }
    }

    fn state(message: &Message) -> Option<Digest> {
        attested(message)?.checkpoint().map(|checkpoint| checkpoint.digest)
    }

    fn vouch(world: &mut World<Self>, from: ReplicaId, what: u8, steps: &mut Steps<'_>) {
        match what {
            8 | 9 => {
                let proposal =
                    PrePrepare { view: world.view(steps), seq: world.seq(steps), batch: world.batch(steps) };
                let by = world.mostly(world.group.primary(proposal.view), from, steps);
                world.attest(by, Body::PrePrepare(proposal), steps);
            }
            10 => world.vote_for_one(from, steps),
            11 => world.want(from, steps),
            12 => world.vouch_for_state(from, steps),
            13 => world.leave(from, steps),
            14 => world.start(from, steps),
            _ => world.agree(from, steps),
        }
    }

    fn say(world: &mut World<Self>, _: ReplicaId, steps: &mut Steps<'_>) -> Option<Message> {
        Some(match steps.byte() % 6 {
            0 | 1 => Message::Status(Status {
                view: world.view(steps),
                active: steps.one_in(2),
                stable: world.checkpoint_seq(steps),
                executed: world.seq(steps),
                slots: (0..steps.byte() % 8).map(|_| steps.byte() % 8).collect(),
                changes: u128::from(steps.byte()),
                accepts: u128::from(steps.byte()),
                lacks: steps.one_in(2).then(|| world.view(steps)),
                wishes: steps.one_in(2),
            }),
            2 => Message::Stable(Arc::new(world.stable(steps))),
            3 => Message::FetchHistory(world.seq(steps)),
            4 => {
                let from = Seq(world.number(steps));
                Message::History(from, world.history_from(from, steps))
            }
            _ => {
                let view = world.view(steps);
                Message::FetchProposals(view, (0..steps.byte() % 8).map(|_| world.seq(steps)).collect())
            }
        })
    }
}

fn attested(message: &Message) -> Option<&Arc<Attested>> {
    match message {
        Message::Attested(attested) => Some(attested),
        _ => None,
    }
}

fn started(message: &Message) -> Option<&Arc<Attested>> {
    attested(message).filter(|message| message.new_view().is_some())
}

impl World<A2mPbftEa> {
    /// Has a slot filled with a body's digest, where the log does not stand beyond it, and mostly says so.
    fn attest(&mut self, by: ReplicaId, body: Body, steps: &mut Steps<'_>) {
        let Some((log, slot)) = place::of(&body) else { return };
        let digest = body.digest(self.group.id(), by);
        let component = &mut self.components[usize::from(by.0)];
        let Some(attestation) = component.advance(log, slot, digest.0) else { return };
        let message = A2mPbftEa::seal(body, digest, by, Seal::Slot(attestation));
        self.says(by, message, steps);
    }

    /// What was said of this kind, newest last.
    fn all_attested(&self) -> impl DoubleEndedIterator<Item = &Arc<Attested>> {
        self.said.iter().filter_map(attested)
    }

    fn vote_for_one(&mut self, from: ReplicaId, steps: &mut Steps<'_>) {
        let what = steps.byte() % 3;
        let body = match what {
            0 | 1 => {
                let vote = self.one_said(steps, |message| attested(message)?.voted());
                vote.map(if what == 0 { Body::Prepare } else { Body::Commit })
            }
            _ => self.one_said(steps, |message| started(message).map(accept_of)),
        };
        let Some(body) = body else { return };
        for by in self.speakers(from, steps) {
            self.attest(by, body.clone(), steps);
        }
    }

    fn want(&mut self, from: ReplicaId, steps: &mut Steps<'_>) {
        let want = WantViewChange { to: self.view(steps), nonce: [steps.byte(); 32] };
        for by in self.speakers(from, steps) {
            let message = self.sign(by, Body::Want(want));
            self.says(by, message, steps);
        }
    }

    fn vouch_for_state(&mut self, from: ReplicaId, steps: &mut Steps<'_>) {
        let (seq, digest) = (self.checkpoint_seq(steps), self.state(steps));
        for by in self.speakers(from, steps) {
            if let Some(history) = self.attest_history(by, seq, steps) {
                self.attest(by, Body::Checkpoint(Checkpoint { seq, digest, history }), steps);
            }
        }
    }

    /// CHECKPOINTs that vouch for the same.
    fn stable(&self, steps: &mut Steps<'_>) -> StableProof {
        let target = |message: &Message| attested(message)?.checkpoint()?.target();
        let vouched = self.one_said(steps, target);
        let votes = self.last_of_each(|message| {
            let same = vouched.is_some() && target(message) == vouched;
            attested(message).filter(|_| same).map(|vote| (vote.from, Arc::clone(vote)))
        });
        let mut votes: Vec<Arc<Attested>> = votes.into_values().collect();
        if steps.byte() == 255 {
            votes.extend(self.one_said(steps, |message| attested(message).map(Arc::clone)));
        }
        StableProof { votes }
    }

    /// WANTVIEWCHANGEs for a view: what was said, and what else the faulty replicas sign for it.
    fn wanted(&self, to: View) -> Vec<Arc<Wanted>> {
        let of = |message: &Message| match message {
            Message::Want(wanted) if wanted.want.to == to => Some((wanted.from, Arc::clone(wanted))),
            _ => None,
        };
        let mut wanted = self.last_of_each(of);
        for by in &self.faulty {
            let want = WantViewChange { to, nonce: [0; 32] };
            let signed = self.sign(*by, Body::Want(want));
            if let (false, Some((from, signed))) = (wanted.contains_key(by), of(&signed)) {
                wanted.insert(from, signed);
            }
        }
        wanted.into_values().take(self.group.quorum()).collect()
    }

    /// The prepared certificates and COMMITs of a replica in a view, above a number.
    fn committed(&self, by: ReplicaId, view: View, above: Seq) -> Vec<Committed> {
        let mut all = BTreeMap::new();
        let own = |message: &&Arc<Attested>| message.from == by && message.commit().is_some();
        for commit in self.all_attested().filter(own) {
            let Some(vote) = commit.voted().filter(|vote| vote.view == view && vote.seq > above) else {
                continue;
            };
            let same = |message: &&Arc<Attested>| message.voted() == Some(vote);
            let is_proposal = |message: &&Arc<Attested>| message.pre_prepare().is_some();
            let is_prepare = |message: &&Arc<Attested>| matches!(message.body, Body::Prepare(_));
            let Some(proposal) = self.all_attested().filter(same).find(is_proposal) else { continue };
            let prepares: BTreeMap<ReplicaId, Arc<Attested>> = self
                .all_attested()
                .filter(same)
                .filter(is_prepare)
                .map(|prepare| (prepare.from, Arc::clone(prepare)))
                .collect();
            let prepares = prepares.into_values().take(self.group.f()).collect();
            let (proposal, commit) = (Arc::clone(proposal), Arc::clone(commit));
            all.insert(vote.seq, Committed { proposal, prepares, commit });
        }
        all.into_values().collect()
    }

    /// VIEWCHANGEs: mostly what an honest replica would show.
    fn leave(&mut self, from: ReplicaId, steps: &mut Steps<'_>) {
        let to = self.view(steps);
        for by in self.speakers(from, steps) {
            let entered = |message: &&Arc<Attested>| message.from == by && message.accept().is_some();
            let accepted = self.all_attested().rfind(entered).cloned();
            let left = accepted.as_ref().and_then(|it| it.accept()).map_or(View(0), |accept| accept.view);
            if left >= to || to.0 - left.0 > MOST_ABANDONED as u64 {
                continue;
            }
            let stable = if steps.one_in(2) { self.stable(steps) } else { StableProof::default() };
            let (above, _) = stable.target();
            let mut committed = self.committed(by, left, above);
            if steps.one_in(8) && !committed.is_empty() {
                committed.remove(steps.below(committed.len()));
            }
            let last = committed.last().and_then(|last| last.commit.voted()).map_or(above, |vote| vote.seq);
            let wanted = self.wanted(to);
            let nonce = shared_nonce(&wanted);
            let component = &mut self.components[usize::from(by.0)];
            for log in [COMMIT, PREPARE] {
                // Now and then a log is left as it is, and shows it.
                if steps.byte() != 255 {
                    let _ = component.advance(log, end_of(View(to.0 - 1)), [0; 32]);
                }
            }
            let slots = to_look_up(&CONFIG, left, to, last);
            let abandoned =
                slots.into_iter().filter_map(|slot| component.look_up(COMMIT, slot, nonce)).collect();
            let change = ViewChange { left, to, stable, accepted, committed, wanted, abandoned };
            self.attest(by, Body::ViewChange(change), steps);
        }
    }

    /// NEWVIEW: mostly what follows from the VIEWCHANGEs for it.
    fn start(&mut self, from: ReplicaId, steps: &mut Steps<'_>) {
        let of = |message: &Message| attested(message)?.view_change().map(|change| change.to);
        let view = self.one_said(steps, of).unwrap_or_else(|| self.view(steps));
        let changes = self.last_of_each(|message| {
            let change = attested(message).filter(|_| of(message) == Some(view))?;
            Some((change.from, Arc::clone(change)))
        });
        let mut changes: Vec<Arc<Attested>> = changes.into_values().collect();
        if changes.len() > self.group.quorum() && steps.one_in(4) {
            changes.remove(steps.below(changes.len()));
        }
        let Choice { base, mut chosen } = self.choice(&changes).unwrap_or_else(|| Choice {
            base: (self.checkpoint_seq(steps), self.state(steps)),
            chosen: Vec::new(),
        });
        if steps.one_in(8) {
            chosen.push(self.batch(steps));
        }
        let by = self.mostly(self.group.primary(view), from, steps);
        self.attest(by, Body::NewView(NewView { view, changes, base, chosen }), steps);
    }

    fn choice(&self, changes: &[Arc<Attested>]) -> Option<Choice> {
        let shown = changes.iter().map(|change| evidence(&self.group, &CONFIG, change).ok());
        let shown = shown.collect::<Option<Vec<_>>>()?;
        let left = highest(&shown)?;
        let mut starts =
            self.all_attested().filter_map(|message| Some((message.digest, message.new_view()?)));
        choose(&shown, starts.rfind(|(_, new_view)| new_view.view == left))
    }

    /// The next batch is agreed on, with the votes of all faulty replicas.
    fn agree(&mut self, from: ReplicaId, steps: &mut Steps<'_>) {
        let (view, seq) = (self.present(), self.nodes[0].host.machine().execution().executed().next());
        let begins = |message: &&Arc<Attested>| message.new_view().is_some_and(|start| start.view == view);
        let accept = self.all_attested().rfind(begins).map(accept_of);
        if let Some(accept) = accept {
            for by in self.faulty.clone() {
                self.attest(by, accept.clone(), steps);
            }
        }
        let primary = self.group.primary(view);
        if self.faulty.contains(&primary) {
            let batch = self.batch(steps);
            self.attest(primary, Body::PrePrepare(PrePrepare { view, seq, batch }), steps);
        }
        let fits = |vote: &Vote| (vote.view, vote.seq) == (view, seq);
        let proposals = self.all_attested().filter(|message| message.pre_prepare().is_some());
        let Some(vote) = proposals.filter_map(|message| message.voted()).rfind(fits) else { return };
        for by in self.speakers(from, steps) {
            if by != primary {
                self.attest(by, Body::Prepare(vote), steps);
            }
            self.attest(by, Body::Commit(vote), steps);
        }
    }
}

/// The commitment to a NEWVIEW.
fn accept_of(message: &Arc<Attested>) -> Body {
    let view = message.new_view().map_or(View(0), |new_view| new_view.view);
    Body::Accept(Accept { view, new_view: message.digest })
}
