//! The thread between a faulty host's fiction and the one real trusted component.

use crate::component::{Component, FIRST_EPOCH};
use crate::protocol::OwnHistory;
use crate::{Body, Message, Protocol};
use std::collections::BTreeMap;
use troth_auth::{Authentic, Evidence, ModelSigner, Seal, Signer, Ui};
use troth_core::Agreement;
use troth_trusted::{CounterId, CounterValue};
use troth_trusted_host::{Answer, Call, TrustedComponent};
use troth_types::{Digest, Group, ReplicaId};

/// One real component with everything it ever certified, and for each host the real message behind
/// each of its fictitious ones.
pub struct Puppet<P: Protocol> {
    me: ReplicaId,
    group: Group,
    component: Component,
    signer: ModelSigner,
    all: Vec<Message<P>>,
    moves: BTreeMap<(CounterId, CounterValue), (CounterValue, Digest)>,
    fictions: Vec<Fiction<P>>,
}

type Position = (CounterId, CounterValue);

/// One host's fiction: both ways between its messages and the real ones.
struct Fiction<P: Protocol> {
    real: BTreeMap<Position, usize>,
    own: BTreeMap<Position, Message<P>>,
}

struct Outward<'a, P: Protocol>(&'a [Message<P>], &'a Fiction<P>);

impl<P: Protocol> OwnHistory<Message<P>> for Outward<'_, P> {
    fn counterpart(&self, counter: CounterId, value: CounterValue) -> Option<Message<P>> {
        self.1.real.get(&(counter, value)).map(|index| self.0[*index].clone())
    }
    fn all(&self) -> &[Message<P>] {
        self.0
    }
}

struct Inward<'a, P: Protocol>(&'a Fiction<P>);

impl<P: Protocol> OwnHistory<Message<P>> for Inward<'_, P> {
    fn counterpart(&self, counter: CounterId, value: CounterValue) -> Option<Message<P>> {
        self.0.own.get(&(counter, value)).cloned()
    }
    fn all(&self) -> &[Message<P>] {
        &[]
    }
}

impl<P: Protocol> Puppet<P> {
    /// The thread of a replica played by `hosts` hosts.
    #[must_use]
    pub fn new(me: ReplicaId, group: Group, component: Component, signer: ModelSigner, hosts: usize) -> Self {
        let fictions = (0..hosts).map(|_| Fiction { real: BTreeMap::new(), own: BTreeMap::new() }).collect();
        Self { me, group, component, signer, all: Vec::new(), moves: BTreeMap::new(), fictions }
    }

    /// Every message that the real component certified.
    #[must_use]
    pub fn all(&self) -> &[Message<P>] {
        &self.all
    }

    fn outward(&self, host: usize) -> Outward<'_, P> {
        Outward(&self.all, &self.fictions[host])
    }

    /// The real message behind one that a host has sent before. After amnesia a host uses a value of
    /// its fiction a second time for something else; that is a new message.
    pub(crate) fn known(&self, host: usize, message: &Message<P>) -> Option<Message<P>> {
        let position = P::Agreement::position(message)?;
        let index = *self.fictions[host].real.get(&position)?;
        Some(self.all[index].clone())
    }

    /// Forgets what a host's fiction says from a value on: it is about to say something else there.
    pub(crate) fn rewind(&mut self, host: usize, counter: CounterId, from: CounterValue) {
        let real = &mut self.fictions[host].real;
        while let Some((position, _)) =
            real.range((counter, from)..=(counter, CounterValue(u128::MAX))).next()
        {
            let position = *position;
            real.remove(&position);
        }
    }

    pub(crate) fn relabel(&self, host: usize, message: Message<P>) -> Message<P> {
        P::relabel_message(message, self.me, &self.outward(host))
    }

    /// A message from outside as a host believes it: its own messages inside as it knows them.
    pub(crate) fn localise(&self, host: usize, message: Message<P>) -> Message<P> {
        P::relabel_message(message, self.me, &Inward(&self.fictions[host]))
    }

    pub(crate) fn relabel_body(&self, host: usize, body: Body<P>) -> Body<P> {
        P::relabel_body(body, self.me, &self.outward(host))
    }

    /// Certifies `body` as the real message behind a host's `message`.
    pub(crate) fn certify_for(
        &mut self,
        host: usize,
        message: &Message<P>,
        body: Body<P>,
    ) -> Option<Message<P>> {
        let (counter, wanted) = P::Agreement::position(message)?;
        let (index, real) = match self.certify(counter, wanted, body.clone()) {
            Some(real) => (self.all.len() - 1, real),
            // Where a message has one place only, another host may have had the same one certified.
            None => self.said(&body)?,
        };
        let fiction = &mut self.fictions[host];
        fiction.real.insert((counter, wanted), index);
        if let Some(position) = P::Agreement::position(&real) {
            fiction.own.insert(position, message.clone());
        }
        Some(real)
    }

    /// The message with this very body, if it was certified before.
    fn said(&self, body: &Body<P>) -> Option<(usize, Message<P>)> {
        let digest = P::digest(body, &self.group, self.me);
        let same = |message: &Message<P>| {
            P::certified(message).is_some_and(|(_, said)| P::digest(&said, &self.group, self.me) == digest)
        };
        let index = self.all.iter().rposition(same)?;
        Some((index, self.all[index].clone()))
    }

    /// Certifies a body that no host asked for.
    pub(crate) fn certify_extra(&mut self, body: Body<P>) -> Option<Message<P>> {
        self.certify(P::counters()[0], CounterValue(0), body)
    }

    /// Certifies a body by another counter of the component, after the same predecessor and at the same value
    /// as `like`, while that counter still stands below both.
    pub(crate) fn certify_beside(
        &mut self,
        counter: CounterId,
        like: &Ui,
        body: Body<P>,
    ) -> Option<Message<P>> {
        let digest = P::digest(&body, &self.group, self.me);
        let Answer::Value(now) = self.component.call(&[Call::Read { counter }]).pop()? else { return None };
        if now < like.predecessor() {
            let call = Call::Attest { counter, previous: now, new: like.predecessor(), digest: digest.0 };
            self.component.call(&[call]);
        }
        let call =
            Call::Attest { counter, previous: like.predecessor(), new: like.value(), digest: digest.0 };
        let Answer::Attested(certificate) = self.component.call(&[call]).pop()? else { return None };
        self.moves.insert((counter, like.value()), (like.predecessor(), digest));
        Some(P::seal(body, digest, self.me, Seal::Ui(Ui { certificate, run: None })))
    }

    /// Whether a message holds nothing of a fiction: every certificate of this replica in it is one
    /// that the real component gave. A fiction's certificates would verify, and must not leave.
    pub(crate) fn is_real(&self, message: &Message<P>) -> bool {
        let mut claims = Vec::new();
        if message.claims(self.group.id(), &mut claims).is_err() {
            // It breaks a rule of form and convinces nobody.
            return true;
        }
        claims.iter().filter(|claim| claim.by == self.me).all(|claim| match claim.evidence {
            // Every fiction is one of the group's beginning.
            Evidence::Ui(_, ui) if ui.certificate.epoch.0 != FIRST_EPOCH => true,
            Evidence::Ui(_, ui) => {
                // A fiction may say the same at the same value, and name another predecessor.
                ui.run.is_none()
                    && self.moves.get(&(ui.certificate.counter, ui.value()))
                        == Some(&(ui.predecessor(), claim.digest))
            }
            // What the real logs do not say does not verify.
            Evidence::Assigned(_) | Evidence::Skipped(_) => true,
            Evidence::Signature(_) | Evidence::PresentSignature(_) => true,
        })
    }

    /// Signs a body with the host's key.
    pub(crate) fn sign(&self, body: Body<P>) -> Message<P> {
        let digest = P::digest(&body, &self.group, self.me);
        P::seal(body, digest, self.me, Seal::Signature(self.signer.sign(&digest)))
    }

    /// Certifies a body where the component stands, or where a host's fiction wants it.
    pub(crate) fn certify(
        &mut self,
        counter: CounterId,
        wanted: CounterValue,
        body: Body<P>,
    ) -> Option<Message<P>> {
        let digest = P::digest(&body, &self.group, self.me);
        let Answer::Value(previous) = self.component.call(&[Call::Read { counter }]).pop()? else {
            return None;
        };
        let new = P::next_value(previous, wanted, &body);
        let call = Call::Attest { counter, previous, new, digest: digest.0 };
        let Answer::Attested(certificate) = self.component.call(&[call]).pop()? else { return None };
        let message = P::seal(body, digest, self.me, Seal::Ui(Ui { certificate, run: None }));
        self.all.push(message.clone());
        self.moves.insert((counter, new), (previous, digest));
        Some(message)
    }
}
