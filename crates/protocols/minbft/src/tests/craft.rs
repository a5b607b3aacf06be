//! What puppets say: bodies of every kind, certified with the puppet's own component.

use super::harness::{Kind, World, r};
use crate::choose::choose;
use crate::evidence::evidence;
use crate::message::{
    AcceptNewView, Body, Certified, Checkpoint, Commit, LogEntry, NewView, Prepare, StableProof, ViewChange,
};
use std::sync::Arc;
use troth_trusted::CounterValue;
use troth_types::{Batch, Digest, Frame, Seq, Time, View};

/// A batch of these frames at this time.
pub(super) fn batch(time: Time, frames: &[&Arc<Frame>]) -> Batch {
    Batch { time, frames: frames.iter().map(|frame| frame.digest()).collect() }
}

impl World {
    /// PREPARE at the next value of the primary of the view.
    pub(super) fn prepare(&mut self, view: u64, seq: u64, frames: &[&Arc<Frame>]) -> Arc<Certified> {
        let batch = batch(self.wall(), frames);
        self.prepare_batch(view, seq, batch)
    }

    pub(super) fn prepare_batch(&mut self, view: u64, seq: u64, batch: Batch) -> Arc<Certified> {
        let primary = self.group.primary(View(view));
        self.certify(primary.0, Body::Prepare(Prepare { view: View(view), seq: Seq(seq), batch }))
    }

    /// COMMIT.
    pub(super) fn commit(&mut self, by: u16, prepare: &Arc<Certified>) -> Arc<Certified> {
        self.certify(by, Body::Commit(Commit { prepare: prepare.clone() }))
    }

    /// CHECKPOINT.
    pub(super) fn checkpoint(&mut self, by: u16, seq: u64, digest: Digest) -> Arc<Certified> {
        self.certify(
            by,
            Body::Checkpoint(Checkpoint { seq: Seq(seq), digest, epochs: Vec::new(), given: false }),
        )
    }

    /// f+1 CHECKPOINTs by these replicas.
    pub(super) fn stable_proof(&mut self, by: &[u16], seq: u64, digest: Digest) -> StableProof {
        StableProof { votes: by.iter().map(|by| self.checkpoint(*by, seq, digest)).collect() }
    }

    /// What a puppet's honest VIEW-CHANGE would say: all that it certified since the stable proof's
    /// anchor, and f+1 requests.
    pub(super) fn change_body(&self, by: u16, to: u64, stable: StableProof) -> ViewChange {
        let log: Vec<LogEntry> = self.said(by).iter().map(Certified::log_entry).collect();
        let wanting = self.group.all().take(self.group.weak());
        let requests = wanting.map(|replica| self.wish(replica.0, to)).collect();
        ViewChange { to: View(to), stable, log, requests }
    }

    /// An honest VIEW-CHANGE of a puppet.
    pub(super) fn view_change(&mut self, by: u16, to: u64) -> Arc<Certified> {
        let body = self.change_body(by, to, StableProof::default());
        self.certify_change(by, body)
    }

    /// A VIEW-CHANGE at the value where it belongs.
    pub(super) fn certify_change(&mut self, by: u16, change: ViewChange) -> Arc<Certified> {
        let value = CounterValue::new(change.to.0, 0);
        self.certify_at(by, value, Body::ViewChange(change))
    }

    /// An honest NEW-VIEW of a puppet; `earlier` are the NEW-VIEWs that the changes rest on.
    pub(super) fn new_view(
        &mut self,
        view: u64,
        changes: &[&Arc<Certified>],
        earlier: &[&Arc<Certified>],
    ) -> Arc<Certified> {
        let body = self.new_view_body(view, changes, earlier);
        self.certify(self.group.primary(View(view)).0, Body::NewView(body))
    }

    pub(super) fn new_view_body(
        &self,
        view: u64,
        changes: &[&Arc<Certified>],
        earlier: &[&Arc<Certified>],
    ) -> NewView {
        let shown: Vec<_> = changes
            .iter()
            .map(|change| {
                evidence(&self.group, &self.configuration, &self.config, change)
                    .expect("an honest VIEW-CHANGE")
            })
            .collect();
        let choice = choose(&self.config, &shown, |view| {
            earlier.iter().filter_map(|message| message.new_view()).find(|earlier| earlier.view == view)
        });
        let choice = choice.expect("the earlier NEW-VIEW was given");
        let changes = changes.iter().map(|change| (*change).clone()).collect();
        NewView { view: View(view), changes, base: choice.base, chosen: choice.chosen }
    }

    /// COMMIT(NEW-VIEW).
    pub(super) fn accept(&mut self, by: u16, new_view: &Arc<Certified>) -> Arc<Certified> {
        let view = new_view.new_view().expect("a NEW-VIEW").view;
        self.certify(by, Body::AcceptNewView(AcceptNewView { view, new_view: new_view.digest }))
    }

    /// Frames of client 1, numbered from 1, that these replicas hold.
    pub(super) fn frames_held(&mut self, count: u64, by: &[u16]) -> Vec<Arc<Frame>> {
        (1..=count)
            .map(|number| {
                let frame = self.frame(1, number, &format!("op{number}"));
                self.request(by, &frame);
                frame
            })
            .collect()
    }

    /// Shows replica 0, the primary, frames one after the other, each when puppet 1 has committed to the one before:
    /// each is a batch of its own.
    pub(super) fn frames_one_by_one(&mut self, count: u64) {
        for number in 1..=count {
            let (frame, before) =
                (self.frame(1, number, &format!("op{number}")), self.sent_by(0, Kind::Prepare).len());
            self.request(&[0], &frame);
            for prepare in self.sent_by(0, Kind::Prepare).split_off(before) {
                let commit = self.commit(1, &prepare);
                self.say(0, &commit);
            }
        }
    }

    /// Puppet 0 orders these frames at 1, 2, … in view 0; returns its PREPAREs.
    pub(super) fn ordered_by_puppet(&mut self, to: &[u16], frames: &[Arc<Frame>]) -> Vec<Arc<Certified>> {
        (1..)
            .zip(frames)
            .map(|(seq, frame)| {
                let prepare = self.prepare(0, seq, &[frame]);
                for to in to {
                    self.say(*to, &prepare);
                }
                prepare
            })
            .collect()
    }

    /// Whether a replica asked for a view change to a view at least this high.
    pub(super) fn wanted(&self, replica: u16) -> u64 {
        self.minbft(replica).wanted_view.0
    }

    /// The NEW-VIEW that a correct primary sent.
    pub(super) fn new_view_of(&self, view: u64) -> Option<Arc<Certified>> {
        let primary = self.group.primary(View(view));
        self.sent_by(primary.0, super::harness::Kind::NewView)
            .into_iter()
            .find(|message| message.new_view().is_some_and(|new_view| new_view.view == View(view)))
    }

    /// Whether a replica works in a view.
    pub(super) fn works_in(&self, replica: u16, view: u64) -> bool {
        self.minbft(replica).view == View(view) && self.minbft(replica).active()
    }

    /// Frames shown by a replica.
    pub(super) fn show(&mut self, from: u16, to: u16, frames: &[&Arc<Frame>]) {
        let frames: Vec<_> =
            frames.iter().map(|frame| troth_auth::Verified::made_here((*frame).clone())).collect();
        self.input(r(to), troth_core::Input::Frames(r(from), frames));
        self.run();
    }
}
