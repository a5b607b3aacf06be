//! Trusted components in the simulated world, and who sees their certificates.

use crate::logs::Shown;
use crate::world::MOST_EPOCHS;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use troth_auth::ComponentPairs;
use troth_trusted::a2m::Peer;
use troth_trusted::{
    Certificate, Certifier, CounterId, CounterState, CounterValue, Digest, Epoch, Identity, MacKey,
    MacVerifier, MultiCertificate, State, TrustedCore, VolatileStore,
};
use troth_trusted_host::{
    Answer, Call, CertificateVerifier, GroupVerifier, InProcess, MemberKey, TrustedComponent,
};
use troth_types::{ClientId, ComponentKey, Group, ReplicaId};

/// The component of one replica. Its own memory is as durable as the fault model says: a crash of
/// the replica does not touch it.
pub type Component = InProcess<VolatileStore>;

/// The epoch of the components that a group begins with.
pub const FIRST_EPOCH: u64 = 1;

/// The HMAC key of the simulated group.
pub(crate) fn key() -> MacKey {
    MacKey::new(&[7; 32])
}

fn identity(group: &Group, replica: ReplicaId) -> Identity {
    Identity { group: group.id().0, replica: replica.0, epoch: Epoch(FIRST_EPOCH) }
}

/// Who the component of a replica is in an epoch.
pub(crate) fn identity_of(group: &Group, replica: ReplicaId, epoch: u64) -> Identity {
    Identity { epoch: Epoch(epoch), ..identity(group, replica) }
}

/// The component of a replica at the start of the group.
#[must_use]
pub fn component(group: &Group, replica: ReplicaId) -> Component {
    component_of(group, replica, FIRST_EPOCH)
}

/// The component of a replica at the start of an epoch.
#[must_use]
pub fn component_of(group: &Group, replica: ReplicaId, epoch: u64) -> Component {
    let identity = identity_of(group, replica, epoch);
    InProcess::new(TrustedCore::start(identity, Certifier::Mac(key()), VolatileStore))
}

/// Certifies whatever a faulty replica's own host asks, so that the host goes on believing in a
/// history of its own. Nothing it makes ever leaves the adversary: see [`crate::adversary::Puppet`].
#[must_use]
pub fn indulge(group: &Group, replica: ReplicaId, call: &Call) -> Answer {
    let identity = identity(group, replica);
    let mut state = State::new(identity);
    if let Call::Attest { counter, previous, .. } = call {
        state.counters[usize::from(counter.0)] =
            CounterState { value: *previous, previous: CounterValue(0), digest: [0; 32], together: 1 };
    }
    let core = TrustedCore::restart(identity, Certifier::Mac(key()), VolatileStore, state)
        .expect("the state was made for this identity");
    let mut answers = InProcess::new(core).call(std::slice::from_ref(call));
    answers.pop().expect("one call has one answer")
}

/// The key of a client's connections in the simulated world.
pub(crate) fn link_of(client: ClientId) -> Peer {
    let mut link = [1; 32];
    link[..8].copy_from_slice(&client.0.to_le_bytes());
    link
}

/// The keys that a client with these connections shares with all components of the simulated group.
pub(crate) struct GroupPairs(pub(crate) Peer);

impl ComponentPairs for GroupPairs {
    fn with(&self, _: ReplicaId, _: Option<&ComponentKey>) -> Option<MacVerifier> {
        Some(key().verifier().shared_with(&self.0))
    }
}

/// One good certificate that was seen on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The value before the move.
    pub previous: CounterValue,
    /// What it covers.
    pub digest: Digest,
    /// The certificate's proof, to recognise it.
    certificate: Certificate,
}

/// Two certificates for one counter value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    /// Whose component.
    pub replica: u16,
    /// The counter.
    pub counter: CounterId,
    /// A value that both cover.
    pub value: CounterValue,
}

#[derive(Debug, Default)]
struct Record {
    seen: BTreeMap<(u16, Epoch, CounterId, CounterValue), Seen>,
    clash: Option<Clash>,
    shown: Shown,
}

/// The group's verifier with a memory of every good certificate, whole messages and nested ones
/// alike. The memory answers repeated questions (a proof is a pure function of what it covers) and
/// notices two certificates that overlap.
#[derive(Debug)]
pub struct WireWatch {
    verifier: GroupVerifier,
    record: Mutex<Record>,
}

impl WireWatch {
    /// The watch over a group.
    #[must_use]
    pub fn new(group: &Group) -> Arc<Self> {
        let epochs = FIRST_EPOCH..FIRST_EPOCH + MOST_EPOCHS;
        let members = group.all().flat_map(|replica| {
            epochs.clone().map(move |epoch| Identity { epoch: Epoch(epoch), ..identity(group, replica) })
        });
        let members = members.map(|identity| (identity, MemberKey::Mac(key().verifier())));
        let verifier = GroupVerifier::new(members).expect("each component is named once");
        Arc::new(Self { verifier, record: Mutex::new(Record::default()) })
    }

    /// Two certificates for one value, if there ever were.
    #[must_use]
    pub fn clash(&self) -> Option<Clash> {
        self.lock().clash.clone()
    }

    /// Two things that good attestations said of one slot, if there ever were.
    #[must_use]
    pub fn log_clash(&self) -> Option<String> {
        self.lock().shown.clash.clone()
    }

    pub(crate) fn group(&self) -> &GroupVerifier {
        &self.verifier
    }

    pub(crate) fn shown(&self, note: impl FnOnce(&mut Shown)) {
        note(&mut self.lock().shown);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    fn note(&mut self, replica: u16, certificate: &Certificate, digest: &Digest) {
        let (epoch, counter) = (certificate.epoch, certificate.counter);
        let (previous, new) = (certificate.previous, certificate.new);
        // Moves of one counter must not overlap: the next one to end at or above this move's first
        // value is either this very move or begins at or above its end.
        let next = self.seen.range((replica, epoch, counter, CounterValue(previous.0 + 1))..).next();
        if let Some(((r, e, c, value), other)) = next
            && (*r, *e, *c) == (replica, epoch, counter)
        {
            let same = (*value, other.previous, other.digest) == (new, previous, *digest);
            if !same && other.previous < new {
                self.clash.get_or_insert(Clash { replica, counter, value: new.min(*value) });
            }
        }
        let seen = Seen { previous, digest: *digest, certificate: certificate.clone() };
        self.seen.insert((replica, epoch, counter, new), seen);
    }
}

impl CertificateVerifier for WireWatch {
    fn verify(&self, replica: u16, certificate: &Certificate, digest: &Digest) -> bool {
        let mut record = self.lock();
        let known = record.seen.get(&(replica, certificate.epoch, certificate.counter, certificate.new));
        if known.is_some_and(|seen| seen.digest == *digest && seen.certificate == *certificate) {
            return true;
        }
        let good = self.verifier.verify(replica, certificate, digest);
        if good {
            record.note(replica, certificate, digest);
        }
        good
    }

    fn verify_multi(&self, replica: u16, certificate: &MultiCertificate, digest: &Digest) -> bool {
        self.verifier.verify_multi(replica, certificate, digest)
    }
}
