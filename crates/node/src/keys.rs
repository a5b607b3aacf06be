//! What checks the frames and messages that come, under one configuration of the group after another.

use crate::pairs::LinkPairs;
use crate::remembered::Remembering;
use std::sync::Arc;
use troth_auth::{Directory, Ed25519, FrameVerifier, MessageVerifier, PairKeys};
use troth_trusted::{Epoch, Identity, MacVerifier, SignatureVerifier};
use troth_trusted_host::{GroupVerifier, MemberKey};
use troth_types::{ComponentKey, Configuration, GroupId, Limits, ReplicaId};

/// Makes verifiers for configurations of one group.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    /// The group.
    pub(crate) group: GroupId,
    /// What checks certificates under the group's HMAC key, where this replica has it.
    pub(crate) mac: Option<MacVerifier>,
    /// The bounds on frames.
    pub(crate) limits: Limits,
    /// Who this is, and the keys that it shares with clients, where the group takes authenticators.
    pub(crate) pairs: Option<(ReplicaId, Arc<LinkPairs>)>,
}

impl Keys {
    /// Checks of clients' frames.
    pub(crate) fn frames(&self, configuration: &Arc<Configuration>) -> FrameVerifier {
        let signed = FrameVerifier::new(self.directory(configuration), Arc::new(Ed25519), self.limits);
        match &self.pairs {
            Some((me, pairs)) => signed.with_pairs(*me, Arc::clone(pairs) as Arc<dyn PairKeys>),
            None => signed,
        }
    }

    /// Checks of replicas' messages.
    pub(crate) fn messages(&self, configuration: &Arc<Configuration>) -> MessageVerifier {
        // What one configuration's keys found good, another's need not.
        let components = Arc::new(self.attestations(configuration));
        MessageVerifier::new(self.directory(configuration), Arc::new(Ed25519), components.clone())
            .with_attestations(components)
    }

    /// Checks of what components certified and attested.
    pub(crate) fn attestations(&self, configuration: &Configuration) -> Remembering<GroupVerifier> {
        Remembering::new(self.certificates(configuration))
    }

    fn directory(&self, configuration: &Arc<Configuration>) -> Arc<Directory> {
        Arc::new(Directory::new(self.group, Arc::clone(configuration)))
    }

    /// Every remembered component of every replica. One whose key is none, or is the group's where this
    /// replica does not hold that, is not there: nothing of it verifies.
    fn certificates(&self, configuration: &Configuration) -> GroupVerifier {
        let components = (0u16..).zip(configuration.members()).flat_map(|(replica, member)| {
            member.admissions().iter().filter_map(move |admission| {
                let epoch = Epoch(admission.epoch);
                let identity = Identity { group: self.group.0, replica, epoch };
                let key: MemberKey = match admission.component {
                    ComponentKey::Group => self.mac.clone()?.into(),
                    ComponentKey::Ed25519(key) => SignatureVerifier::from_bytes(&key)?.into(),
                };
                Some((identity, key))
            })
        });
        GroupVerifier::new(components).expect("a member's epochs ascend")
    }
}
