//! What passes between PBFT and the rest of the replica: PBFT takes its steps as ever, and what it asks for goes on as it
//! is, but for what the history has a part in.

use crate::A2mPbftE;
use troth_core::{Cx, Effect, rule};
use troth_pbft::{Body, Pbft, Record};

impl A2mPbftE {
    /// Lets PBFT take a step.
    pub(crate) fn order(&mut self, cx: &mut Cx<'_, Self>, step: impl FnOnce(&mut Pbft, &mut Cx<'_, Pbft>)) {
        self.pass_on(cx, step);
        self.extend(cx);
    }

    /// Lets PBFT take a step that does not bear on the history.
    pub(crate) fn pass_on(&mut self, cx: &mut Cx<'_, Self>, step: impl FnOnce(&mut Pbft, &mut Cx<'_, Pbft>)) {
        let mut effects = Vec::new();
        let mut inner = Cx::new(cx.now(), cx.wall(), cx.me(), cx.group(), &mut effects);
        step(&mut self.pbft, &mut inner);
        for effect in effects {
            self.pass(cx, effect);
        }
    }

    fn pass(&mut self, cx: &mut Cx<'_, Self>, effect: Effect<Pbft>) {
        match effect {
            Effect::Sign { body: Body::Checkpoint(checkpoint), .. } => self.vouch(cx, checkpoint),
            Effect::Stable { seq, digest } => {
                self.certified(cx);
                cx.ask(Effect::Stable { seq, digest });
            }
            Effect::FetchState { seq, digest, sources } => {
                self.certified(cx);
                cx.ask(Effect::FetchState { seq, digest, sources });
            }
            Effect::RepairState { seq, digest, sources } => {
                // Later own checkpoints are of the wrong state, too: none is vouched for once its batch is attested.
                self.history.withdraw();
                self.certified(cx);
                cx.ask(Effect::RepairState { seq, digest, sources });
            }
            // An append cannot be taken back: what leads to it is durable before.
            Effect::Remember(record @ Record::Executed(..)) => {
                rule!("A2MPBFTE-R1");
                cx.persist(record);
            }
            Effect::Send { to, message } => cx.send(to, message),
            Effect::Broadcast(message) => cx.broadcast(message),
            Effect::Sign { body, to } => cx.sign(body, to),
            Effect::BroadcastSigned(body) => cx.broadcast_signed(body),
            Effect::SetTimer { timer, at } => cx.set_timer(timer, at),
            Effect::CancelTimer(timer) => cx.cancel_timer(timer),
            Effect::Persist(record) => cx.persist(record),
            Effect::Remember(record) => cx.remember(record),
            Effect::FetchFrames { to, digests } => cx.fetch_frames(to, digests),
            Effect::ShowFrames { to, frames } => {
                let frames = self.ask_favours(cx, frames);
                if !frames.is_empty() {
                    cx.show_frames(to, frames);
                }
            }
            Effect::Deliver(ordered) => cx.deliver(ordered),
            Effect::Checkpoint => cx.checkpoint(),
            Effect::Compact(seq) => cx.compact(seq),
            Effect::Note(note) => cx.note(note),
            Effect::DeliverTentatively { .. } | Effect::Commit { .. } | Effect::Rollback { .. } => {
                unreachable!(
                    "an append cannot be taken back, so nothing is executed before its place is final"
                )
            }
            Effect::Certify { .. }
            | Effect::CertifyInLog { .. }
            | Effect::Trusted { .. }
            | Effect::Draw(_)
            | Effect::Release { .. }
            | Effect::EndAttested(_)
            | Effect::Halt(_) => unreachable!("PBFT trusts nothing and holds nothing back"),
        }
    }
}
