//! Components that are lost, or whose history is not the group's, and those that take their place ("new log ids", paper 000
//! §4.2; guide.md §3.4, §7.3): which component counts for which slot, and where the log of a new one begins.

use crate::A2mPbftE;
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_blocks::{Begins, Voters};
use troth_core::{Cx, rule};
use troth_pbft::{AttestedCheckpoint, Body, Signed, StableProof};
use troth_types::{Admission, Configuration, ReplicaId, Seq};

impl A2mPbftE {
    /// The component of this replica is of this epoch. Where the configuration knows another one, nothing is appended to
    /// its log.
    #[must_use]
    pub fn with_epoch(mut self, epoch: u64) -> Self {
        self.own_epoch = Some(epoch);
        self
    }

    /// The configuration after the batch that the executor reached.
    pub(crate) fn configured(&mut self, cx: &mut Cx<'_, Self>, configuration: &Arc<Configuration>) {
        rule!("A2MPBFTE-N1");
        self.configuration = Arc::clone(configuration);
        rule!("A2MPBFTE-H8");
        self.history.log.configured(configuration);
        let named = configuration.member(cx.me()).map(|member| *member.admission());
        self.history.log.begins(match (self.own_epoch, named) {
            (None, _) | (_, None) => Begins::WithTheGroup,
            (Some(own), Some(named)) if own != named.epoch => Begins::Nowhere,
            (_, Some(named)) if named.at == Seq(0) => Begins::WithTheGroup,
            (_, Some(named)) => Begins::Above(named.at),
        });
        let newest = configuration.members().iter().map(|member| member.admission().at).max();
        let newest = newest.filter(|at| *at > Seq(0));
        self.renewed = newest.is_some();
        let Some(newest) = newest else { return };
        rule!("A2MPBFTE-N2");
        self.pbft.retain_votes(|vote| !is_replaced(configuration, vote));
        rule!("A2MPBFTE-N7");
        let checkpoint = self.pbft.checkpoint_from(newest);
        self.order(cx, |pbft, cx| pbft.fill_to(cx, checkpoint));
    }

    /// Whether what a replica's component of this epoch says of a slot counts: it was the replica's component when the
    /// batch of that number was executed, as far as this replica knows.
    fn counts(&self, by: ReplicaId, at: Seq, epoch: u64) -> bool {
        let Some(member) = self.configuration.member(by) else { return true };
        let mut admitted = member.admissions().iter().rev();
        // What admits a component is still the earlier one's to attest.
        let in_force = admitted.find(|admission| admission.at < at);
        in_force.is_some_and(|admission| admission.epoch == epoch)
    }

    /// Whether a CHECKPOINT is by the component that counts for its slot; other messages are by none.
    pub(crate) fn vouches(&self, message: &Signed) -> bool {
        rule!("A2MPBFTE-N2");
        let Body::Attested(attested) = &message.body else { return true };
        self.counts(message.from, attested.checkpoint.seq, attested.attestation.epoch.0)
    }

    /// The votes for the stable checkpoint that are by components that count there.
    fn vouching(&self) -> impl Iterator<Item = &Arc<Signed>> {
        self.pbft.stable_votes().filter(|vote| self.vouches(vote))
    }

    /// Whether a vote for the stable checkpoint is of use: it counts, and this replica asks for such and has none of its sender.
    pub(crate) fn is_sought(&self, vote: &Signed) -> bool {
        self.pbft.seeks_votes()
            && self.pbft.is_for_stable(vote)
            && self.vouches(vote)
            && self.vouching().all(|known| known.from != vote.from)
    }

    /// Keeps those that are sought of these votes.
    pub(crate) fn keep_sought(&mut self, cx: &mut Cx<'_, Self>, votes: &[Arc<Signed>]) {
        rule!("A2MPBFTE-N9");
        for vote in votes {
            if self.is_sought(vote) {
                self.pbft.keep_vote(vote);
            }
        }
        self.extend(cx);
    }

    /// Makes the certificate of the stable checkpoint anew of votes by components that count there, where it has others; as
    /// long as there are too few, more are asked for.
    pub(crate) fn mend_certificate(&mut self, cx: &mut Cx<'_, Self>) {
        if !self.renewed {
            return self.pbft.seek_votes(false);
        }
        rule!("A2MPBFTE-N9");
        let whole = |votes: &[Arc<Signed>]| votes.iter().all(|vote| self.vouches(vote));
        // Which components count there is known for certain to who executed it.
        if !self.pbft.has_executed_stable() || whole(&self.pbft.stable_proof().votes) {
            return self.pbft.seek_votes(false);
        }
        let counting: BTreeMap<ReplicaId, Arc<Signed>> =
            self.vouching().map(|vote| (vote.from, Arc::clone(vote))).collect();
        let enough = counting.len() >= self.pbft.quorum();
        self.pbft.seek_votes(!enough);
        if enough {
            let proof = StableProof { votes: counting.into_values().collect() };
            self.pass_on(cx, |pbft, cx| pbft.put_certificate(cx, proof));
        }
    }

    /// Has the log of a component that was admitted begin, where it has not and this replica's state is one that is stable.
    pub(crate) fn begin_history(&mut self) {
        if !self.history.log.is_to_begin() || !self.pbft.has_stable_state() {
            return;
        }
        rule!("A2MPBFTE-N3");
        let proof = self.pbft.stable_proof();
        let (seq, _) = proof.target();
        let Some(history) = proof.history() else { return };
        rule!("A2MPBFTE-N4");
        let vouching = proof.votes.iter().filter(|vote| self.vouches(vote)).map(|vote| vote.from);
        let vouching: Voters = vouching.collect();
        if vouching.count() >= self.pbft.quorum() {
            self.history.log.begin_at(seq, history.digest);
        }
    }
}

/// Whether a vote for a checkpoint is by a component in whose place, by this configuration, another one counts there. Of a
/// component that the configuration does not know yet it says nothing.
#[must_use]
pub fn is_replaced(configuration: &Configuration, vote: &Signed) -> bool {
    let Body::Attested(AttestedCheckpoint { checkpoint, attestation }) = &vote.body else { return false };
    let Some(member) = configuration.member(vote.from) else { return false };
    let later =
        |admission: &Admission| admission.at < checkpoint.seq && admission.epoch > attestation.epoch.0;
    member.admissions().iter().any(later)
}
