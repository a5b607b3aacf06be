//! PBFT §4, the algorithm "that uses digital signatures to authenticate all messages", and its optimization (§5.2) beside
//! each other: by what PRE-PREPARE, PREPARE and COMMIT are their senders'.

use crate::message::{Body, Phase};
use crate::state::Pbft;
use troth_core::{Cx, To, rule};
use troth_types::ReplicaId;

impl Pbft {
    /// Sends a message of the three phases to all, this replica included.
    pub(crate) fn tell_all(&self, cx: &mut Cx<'_, Self>, phase: Phase) {
        rule!("PBFT-S1");
        if self.config.signs_phases {
            cx.broadcast_signed(Body::Phase(phase));
        } else {
            cx.broadcast(phase.into());
        }
    }

    /// Sends one again to somebody who lacks it.
    pub(crate) fn tell_again(&self, cx: &mut Cx<'_, Self>, to: ReplicaId, phase: Phase) {
        if self.config.signs_phases {
            cx.sign(Body::Phase(phase), To::One(to));
        } else {
            cx.send(To::One(to), phase.into());
        }
    }

    /// A message of the three phases. One that is signed is its signer's, whoever passes it on.
    pub(crate) fn on_phase(&mut self, cx: &mut Cx<'_, Self>, from: ReplicaId, phase: Phase, signed: bool) {
        rule!("PBFT-S2");
        if signed != self.config.signs_phases {
            return cx.ignore(from, "a vote of another kind of group");
        }
        match phase {
            Phase::PrePrepare(proposal) => self.on_pre_prepare(cx, from, proposal),
            Phase::Prepare(vote) => self.on_prepare(cx, from, vote),
            Phase::Commit(vote) => self.on_commit(cx, from, vote),
        }
    }

    /// Whether a signed message of the three phases may say what is not known here. Whoever passes others' on before they come
    /// by themselves would have their senders charged for the checks.
    pub(crate) fn brings_phase(&self, from: ReplicaId, phase: &Phase) -> bool {
        rule!("PBFT-R14");
        let (view, seq) = match phase {
            Phase::PrePrepare(proposal) => (proposal.view, proposal.seq),
            Phase::Prepare(vote) | Phase::Commit(vote) => (vote.view, vote.seq),
        };
        let is_known = self.slots.get(&seq).is_some_and(|slot| match phase {
            Phase::PrePrepare(proposal) => {
                slot.proposal.as_ref().is_some_and(|(known, _)| *known == proposal.batch.digest())
            }
            Phase::Prepare(vote) => slot.prepares.get(&from) == Some(&vote.digest),
            Phase::Commit(vote) => slot.commits.get(&from) == Some(&vote.digest),
        });
        view == self.view && self.has_room(seq) && !is_known
    }

    /// Somebody said two things of one number in one view. What is signed proves it to everybody; what the link vouches
    /// for, to nobody else.
    pub(crate) fn contradicted(&mut self, cx: &mut Cx<'_, Self>, by: ReplicaId, what: &'static str) {
        rule!("PBFT-S3");
        if self.config.signs_phases {
            self.condemn(cx, by, what);
        } else {
            cx.ignore(by, what);
        }
    }
}
