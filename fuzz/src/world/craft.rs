//! What the steps make the faulty replicas do.

use super::{WALL, World, signer};
use crate::bytes::Steps;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_auth::Signer;
use troth_core::{Agreement, Execution, PeerMessage};
use troth_minbft::place::Place;
use troth_minbft::{
    AcceptNewView, Body, Certified, Checkpoint, Commit, LogEntry, Message, NewView, Prepare,
    RequestViewChange, SignedRequest, StableProof, Status, ViewChange,
};
use troth_trusted::CounterValue;
use troth_types::{Batch, Digest, ReplicaId, Seq, StateFetch, StatePiece, Time, View, Wire};

impl World {
    /// Takes the next step.
    pub(crate) fn step(&mut self, steps: &mut Steps<'_>) {
        let others: Vec<ReplicaId> = self.group.all().filter(|replica| *replica != self.me).collect();
        let from = others[steps.below(others.len())];
        match steps.byte() % 16 {
            0 | 1 => self.request(steps),
            2 => self.pass(u64::from(steps.short()) * 50),
            3 => {
                let said = steps.one_of(&self.said).cloned();
                if let Some(message) = said {
                    self.arrive(from, PeerMessage::Protocol(Message::Certified(message)));
                }
            }
            4 => self.uncertified(from, steps),
            5 => {
                // Any bytes that are a message.
                let bytes = Bytes::copy_from_slice(steps.chunk());
                if let Ok(message) = PeerMessage::from_wire(&bytes) {
                    self.arrive(from, message);
                }
            }
            6 => {
                let kept = self.kept.clone();
                self.restart(kept).expect("what was kept is whole");
            }
            7 => self.state(from, steps),
            what => self.certified(from, what, steps),
        }
    }

    /// A faulty replica certifies a body, and may send it.
    fn certified(&mut self, from: ReplicaId, what: u8, steps: &mut Steps<'_>) {
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
                let Some(prepare) = self.one_said(steps, |message| message.prepare().is_some()) else {
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
                let new_view = self.one_said(steps, |message| message.new_view().is_some());
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
            self.arrive(from, PeerMessage::Protocol(Message::Certified(message)));
        }
    }

    /// What needs no component.
    fn uncertified(&mut self, from: ReplicaId, steps: &mut Steps<'_>) {
        let message = match steps.byte() % 5 {
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
            3 => match steps.one_of(&self.said) {
                Some(message) => Message::Evidence(Arc::clone(message)),
                None => return,
            },
            _ => {
                let wish = self.wish(ReplicaId(u16::from(steps.byte() % 3)), self.view(steps));
                Message::RequestViewChange(wish)
            }
        };
        self.arrive(from, PeerMessage::Protocol(message));
    }

    /// Frames and state, asked for or shown.
    fn state(&mut self, from: ReplicaId, steps: &mut Steps<'_>) {
        let digest = match self.one_said(steps, |message| matches!(message.body, Body::Checkpoint(_))) {
            Some(message) => match &message.body {
                Body::Checkpoint(checkpoint) => checkpoint.digest,
                _ => Digest::ZERO,
            },
            None => self.digest_now(),
        };
        let message = match steps.byte() % 4 {
            0 => PeerMessage::FetchFrames(self.batch(steps).frames),
            1 => PeerMessage::Frames(self.known.clone()),
            2 => {
                let path = Bytes::copy_from_slice(steps.chunk());
                PeerMessage::FetchState(StateFetch { seq: self.seq(steps), digest, path })
            }
            _ => {
                let (path, content) =
                    (Bytes::copy_from_slice(steps.chunk()), Bytes::copy_from_slice(steps.chunk()));
                PeerMessage::StatePiece(StatePiece { seq: self.seq(steps), digest, path, content })
            }
        };
        self.arrive(from, message);
    }

    fn one_said(&self, steps: &mut Steps<'_>, is: impl Fn(&Certified) -> bool) -> Option<Arc<Certified>> {
        // Now and then what does not belong.
        let any = steps.byte() == 255;
        let fitting: Vec<_> = self.said.iter().filter(|message| any || is(message)).collect();
        steps.one_of(&fitting).map(|message| Arc::clone(message))
    }

    fn digest_now(&self) -> Digest {
        self.host.machine().execution().digest_now()
    }

    /// Mostly small, sometimes at the end of what there is.
    fn number(&self, steps: &mut Steps<'_>) -> u64 {
        match steps.byte() {
            255 => u64::MAX,
            254 => u64::MAX - 1,
            253 => Place::LAST_CHECKPOINT.0,
            small => u64::from(small % 16),
        }
    }

    /// Mostly the next that the replica waits for.
    fn seq(&self, steps: &mut Steps<'_>) -> Seq {
        let executed = self.host.machine().execution().executed();
        match steps.byte() % 4 {
            0 => Seq(self.number(steps)),
            ahead => Seq(executed.0.saturating_add(u64::from(ahead))),
        }
    }

    /// Mostly the present one or the next.
    fn view(&self, steps: &mut Steps<'_>) -> View {
        let present = self.host.machine().agreement().status().view;
        match steps.byte() % 8 {
            0 => View(self.number(steps)),
            1..=3 => View(present.0.saturating_add(1)),
            4 => View(present.0.saturating_add(2)),
            _ => present,
        }
    }

    fn batch(&self, steps: &mut Steps<'_>) -> Batch {
        let frames = (0..steps.byte() % 4).map(|_| match steps.one_of(&self.known) {
            Some(frame) => frame.digest(),
            None => Digest([7; 32]),
        });
        let frames = frames.collect();
        let time = match steps.byte() % 8 {
            0 => Time(self.number(steps)),
            later => Time(WALL + self.now + u64::from(later)),
        };
        Batch { time, frames }
    }

    fn checkpoint(&self, steps: &mut Steps<'_>) -> Checkpoint {
        let digest = if steps.one_in(2) { self.digest_now() } else { Digest([steps.byte(); 32]) };
        // A decoder lets no other order through.
        let epochs: BTreeMap<ReplicaId, u64> = (0..(steps.byte() % 16).saturating_sub(12))
            .map(|_| (ReplicaId(u16::from(steps.byte() % 4)), u64::from(steps.byte() % 3)))
            .collect();
        let epochs = epochs.into_iter().collect();
        let seq = match steps.byte() % 4 {
            0 => self.seq(steps),
            times => Seq(u64::from(times) * super::SMALL.interval),
        };
        Checkpoint { seq, digest, epochs }
    }

    fn stable(&self, steps: &mut Steps<'_>) -> StableProof {
        let votes = (0..steps.byte() % 4)
            .filter_map(|_| self.one_said(steps, |message| matches!(message.body, Body::Checkpoint(_))));
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
        let own = self.said.iter().filter(|message| message.from == from);
        let mut log: Vec<LogEntry> = own.map(Certified::log_entry).collect();
        if steps.one_in(4) {
            log.extend(self.one_said(steps, |_| true).map(LogEntry::Whole));
        }
        if steps.one_in(8) && !log.is_empty() {
            log.remove(steps.below(log.len()));
        }
        let requests = self.group.all().take(2).map(|replica| self.wish(replica, to)).collect();
        ViewChange { to, stable, log, requests }
    }

    fn new_view(&self, steps: &mut Steps<'_>) -> NewView {
        let changes: Vec<_> = (0..2 + steps.byte() % 2)
            .filter_map(|_| self.one_said(steps, |message| message.view_change().is_some()))
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
