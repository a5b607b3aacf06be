//! VIEWCHANGEs made by hand, with components of their own.

use super::harness::{Logs, attested, batch, frame, group, history_of, logs, r, signature};
use crate::evidence::{shared_nonce, to_look_up};
use crate::message::{
    Accept, Attested, Body, Checkpoint, Committed, Message, NewView, PrePrepare, StableProof, ViewChange,
    Vote, WantViewChange, Wanted,
};
use crate::place::{COMMIT, end_of};
use crate::{Config, choose};
use std::sync::Arc;
use troth_trusted::a2m::{Answer, Attestation, Operation, Slot};
use troth_trusted_host::TrustedLogs as _;
use troth_types::{Batch, Digest, Group, ReplicaId, Seq, View};

/// Replicas' components, and nothing else.
pub(super) struct Bench {
    pub(super) group: Group,
    pub(super) config: Config,
    pub(super) logs: Vec<Logs>,
}

pub(super) fn some_batch(client: u64) -> Batch {
    batch(&[&frame(client, 1)])
}

impl Bench {
    pub(super) fn new(f: u16) -> Self {
        let group = group(f);
        let logs = group.all().map(|replica| logs(&group, replica)).collect();
        Self { group, config: super::harness::SMALL, logs }
    }

    /// Has a body attested by a replica's component.
    pub(super) fn say(&mut self, from: u16, body: Body) -> Arc<Attested> {
        match attested(&self.group, &mut self.logs[usize::from(from)], r(from), body) {
            Message::Attested(message) => message,
            _ => unreachable!("what is attested is an attested message"),
        }
    }

    /// A replica's CHECKPOINT of this state, whose history's slot holds this.
    pub(super) fn checkpoint(&mut self, from: u16, seq: u64, state: u8, value: u8) -> Arc<Attested> {
        let history = history_of(&mut self.logs[usize::from(from)], Seq(seq), value);
        let (seq, digest) = (Seq(seq), Digest([state; 32]));
        self.say(from, Body::Checkpoint(Checkpoint { seq, digest, history }))
    }

    /// PREPREPARE and PREPAREs of these backups: a prepared certificate if they are f or more.
    pub(super) fn prepare(
        &mut self,
        view: u64,
        seq: u64,
        batch: &Batch,
        backups: &[u16],
    ) -> (Arc<Attested>, Vec<Arc<Attested>>) {
        let (view, seq) = (View(view), Seq(seq));
        let vote = Vote { view, seq, digest: batch.digest() };
        let primary = self.group.primary(view).0;
        let proposal = self.say(primary, Body::PrePrepare(PrePrepare { view, seq, batch: batch.clone() }));
        (proposal, backups.iter().map(|backup| self.say(*backup, Body::Prepare(vote))).collect())
    }

    /// A replica's COMMIT beside its prepared certificate.
    pub(super) fn commit(
        &mut self,
        from: u16,
        certificate: &(Arc<Attested>, Vec<Arc<Attested>>),
    ) -> Committed {
        let vote = certificate.0.voted().expect("a PREPREPARE");
        let commit = self.say(from, Body::Commit(vote));
        Committed { proposal: certificate.0.clone(), prepares: certificate.1.clone(), commit }
    }

    /// COMMIT(NEWVIEW).
    pub(super) fn accept(&mut self, from: u16, new_view: &Attested) -> Arc<Attested> {
        let view = new_view.new_view().expect("a NEWVIEW").view;
        self.accept_of(from, view, new_view.digest)
    }

    /// A COMMIT(NEWVIEW) to whatever has this digest.
    pub(super) fn accept_of(&mut self, from: u16, view: View, new_view: Digest) -> Arc<Attested> {
        self.say(from, Body::Accept(Accept { view, new_view }))
    }

    /// f+1 WANTVIEWCHANGEs.
    pub(super) fn wanted(&self, to: u64) -> Vec<Arc<Wanted>> {
        let want = |from: ReplicaId| {
            let want = WantViewChange { to: View(to), nonce: [from.0 as u8 + 1; 32] };
            let digest = want.digest(self.group.id(), from);
            Arc::new(Wanted { from, want, digest, signature: signature(from) })
        };
        self.group.all().take(self.group.quorum()).map(want).collect()
    }

    /// Abandons all views before this one.
    pub(super) fn abandon(&mut self, from: u16, to: u64) {
        let slot = end_of(View(to - 1));
        let advance =
            Operation::Advance { log: COMMIT, slot, previous: [0; 32], value: [0; 32], nonce: None };
        // It may have been done before.
        let _ = self.logs[usize::from(from)].call(&[advance]);
    }

    pub(super) fn look_up(&mut self, from: u16, slot: Slot, nonce: [u8; 32]) -> Attestation {
        let answers = self.logs[usize::from(from)].call(&[Operation::Lookup { log: COMMIT, slot, nonce }]);
        match answers.expect("lookups are answered").pop() {
            Some(Answer::Attested(attestation)) => attestation,
            _ => unreachable!("a lookup has an answer"),
        }
    }

    /// A VIEWCHANGE that says this, and shows of its COMMIT log what it must, whatever that is.
    pub(super) fn change(
        &mut self,
        from: u16,
        left: u64,
        to: u64,
        accepted: Option<Arc<Attested>>,
        committed: Vec<Committed>,
    ) -> ViewChange {
        self.abandon(from, to);
        let wanted = self.wanted(to);
        let last = committed.last().and_then(|last| last.commit.voted()).map_or(Seq(0), |vote| vote.seq);
        let nonce = shared_nonce(&wanted);
        let slots = to_look_up(&self.config, View(left), View(to), last);
        let abandoned = slots.into_iter().map(|slot| self.look_up(from, slot, nonce)).collect();
        let stable = StableProof::default();
        ViewChange { left: View(left), to: View(to), stable, accepted, committed, wanted, abandoned }
    }

    /// The same, attested.
    pub(super) fn view_change(
        &mut self,
        from: u16,
        left: u64,
        to: u64,
        accepted: Option<Arc<Attested>>,
        committed: Vec<Committed>,
    ) -> Arc<Attested> {
        let change = self.change(from, left, to, accepted, committed);
        self.say(from, Body::ViewChange(change))
    }

    /// What these VIEWCHANGEs make a view start from.
    pub(super) fn choice(
        &self,
        changes: &[Arc<Attested>],
        started: Option<&Attested>,
    ) -> Option<Vec<Digest>> {
        let shown: Result<Vec<_>, _> =
            changes.iter().map(|it| crate::evidence::evidence(&self.group, &self.config, it)).collect();
        let started = started.and_then(|started| started.new_view().map(|inner| (started.digest, inner)));
        let choice = choose::choose(&shown.ok()?, started)?;
        Some(choice.chosen.iter().map(Batch::digest).collect())
    }

    /// The NEWVIEW that follows.
    pub(super) fn new_view(
        &mut self,
        changes: Vec<Arc<Attested>>,
        started: Option<&Attested>,
    ) -> Arc<Attested> {
        let view = changes[0].view_change().expect("a VIEWCHANGE").to;
        let shown: Vec<_> = changes
            .iter()
            .map(|it| crate::evidence::evidence(&self.group, &self.config, it).expect("valid"))
            .collect();
        let inner = started.and_then(|started| started.new_view().map(|inner| (started.digest, inner)));
        let choice = choose::choose(&shown, inner).expect("they decide");
        let primary = self.group.primary(view).0;
        drop(shown);
        self.say(primary, Body::NewView(NewView { view, changes, base: choice.base, chosen: choice.chosen }))
    }
}
