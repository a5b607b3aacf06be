//! The history of executed batches, as one log of each trusted component attests it, and what a client makes of it
//! (paper 000 §4.2).

use crate::attestation::{Looked, decode_attestation};
use crate::seal::{Claim, Evidence};
use std::fmt;
use std::sync::Arc;
use troth_trusted::a2m::{Attestation, Content, LogId, Request, Slot, slot_nonce};
use troth_trusted::run::{Path, RunProof, root_over};
use troth_trusted::{CounterValue, Epoch, Identity, MacVerifier, Proof, SignatureVerifier};
use troth_trusted_host::{AttestationVerifier, GroupVerifier};
use troth_types::{
    ComponentKey, Digest, Frame, GroupId, Hasher, HistoryEnd, Malformed, Place, Reader, Renewed, ReplicaId,
    Seq, Time, Wire,
};

/// Marks the place that implements a rule of `docs/protocols/a2m-pbft-e.md` or `a2m-pbft-ea.md`, for `cargo xtask paper`.
macro_rules! rule {
    ($label:literal) => {};
}

/// The log that holds a replica's history.
pub const HISTORY_LOG: LogId = LogId(0);

/// What the slot of a batch holds: `x`. The root is that of a run over the digests of the batch's frames; zeros where it
/// has none.
#[must_use]
pub fn entry_value(group: GroupId, time: Time, count: u16, root: &Digest) -> Digest {
    let mut hasher = Hasher::new("troth/history/v1");
    hasher.fixed(&group.0).number(time.0).number(u64::from(count)).digest(root);
    hasher.finish()
}

/// What a history holds in one slot, and up to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// What fills the slot: x.
    pub value: Digest,
    /// The digest up to the slot: d.
    pub digest: Digest,
}

impl HistoryEntry {
    /// What an attestation says that the history holds; none where that is nothing.
    #[must_use]
    pub fn of(attestation: &Attestation) -> Option<Self> {
        match attestation.claim.content {
            Content::Assigned { value, digest } => {
                Some(Self { value: Digest(value), digest: Digest(digest) })
            }
            Content::Skipped { .. } | Content::Unassigned { .. } | Content::Forgotten { .. } => None,
        }
    }
}

/// What is to be checked of a CHECKPOINT that vouches for its sender's history too: the attestation is the lookup of the
/// checkpoint's slot, and that is filled.
pub fn history_claim(by: ReplicaId, seq: Seq, attestation: &Attestation) -> Result<Claim<'_>, Malformed> {
    let entry = HistoryEntry::of(attestation);
    let entry = entry.ok_or(Malformed::Invalid("a CHECKPOINT whose history holds nothing"))?;
    let looked = Looked::settled(HISTORY_LOG, CounterValue::new(0, seq.0), attestation);
    Ok(Claim { by, digest: entry.value, evidence: Evidence::Assigned(looked) })
}

/// Where a history ended when a component was asked for its end, and what it held up to there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedAt {
    /// Its last slot: n.
    pub slot: Slot,
    /// The digest up to it: d.
    pub digest: Digest,
    /// Names the components that count there, by the word of whoever shows it.
    pub components: Digest,
}

impl EndedAt {
    /// Whether a history that ended here holds this batch, or went past it.
    #[must_use]
    pub fn reaches(&self, batch: Seq) -> bool {
        self.slot >= CounterValue::new(0, batch.0)
    }
}

/// The keys that one client shares with the components of the replicas, which prove things to it by MACs (paper 000 §3.3).
pub trait ComponentPairs: Send + Sync {
    /// The key that it shares with a replica's component: the one that the group began with, or the one with this key.
    /// Nothing where it shares none with that.
    fn with(&self, replica: ReplicaId, renewed: Option<&ComponentKey>) -> Option<MacVerifier>;
}

/// What the slot of a frame's batch must hold, by what a replica said last of the frame's place. Others say the same of it,
/// and it is hashed once.
#[derive(Clone, Debug, Default)]
pub struct Placed(Option<Value>);

/// What frame, at what place, makes what value.
#[derive(Clone, Debug)]
struct Value {
    frame: Digest,
    time: Time,
    index: u16,
    count: u16,
    path: Vec<Digest>,
    value: Digest,
}

impl Placed {
    fn value(&mut self, group: GroupId, frame: &Frame, place: &Place) -> Option<Digest> {
        let Place { time, index, count, .. } = *place;
        let frame = frame.digest();
        let same = |known: &Value| {
            (known.frame, known.time, known.index, known.count) == (frame, time, index, count)
                && known.path == place.path
        };
        if let Some(known) = self.0.as_ref().filter(|known| same(known)) {
            return Some(known.value);
        }
        let root = root_over(&among(index, count, &place.path)?, &frame.0)?;
        let value = entry_value(group, time, count, &Digest(root));
        self.0 = Some(Value { frame, time, index, count, path: place.path.clone(), value });
        Some(value)
    }
}

/// Checks the places of requests in the replicas' histories, and where these end.
#[derive(Clone)]
pub struct History {
    group: GroupId,
    log: LogId,
    verifier: Arc<dyn AttestationVerifier>,
    first: Arc<[Epoch]>,
    pairs: Option<Arc<dyn ComponentPairs>>,
}

/// What checks the attestations of a component.
enum Checks<'a> {
    /// The components that the group began with.
    First(&'a dyn AttestationVerifier),
    /// One that took the place of another.
    Renewed(GroupVerifier),
}

impl Checks<'_> {
    fn with(&self) -> &dyn AttestationVerifier {
        match self {
            Self::First(verifier) => *verifier,
            Self::Renewed(verifier) => verifier,
        }
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "History({:?}, {:?})", self.group, self.log)
    }
}

impl History {
    /// The histories of a group, in this log of each component. The group began with components of these epochs, by number of
    /// replica, which the verifier knows.
    #[must_use]
    pub fn new(
        group: GroupId,
        log: LogId,
        verifier: Arc<dyn AttestationVerifier>,
        first: impl IntoIterator<Item = Epoch>,
    ) -> Self {
        Self { group, log, verifier, first: first.into_iter().collect(), pairs: None }
    }

    /// The same for the client that shares these keys with the components. Without them a client is convinced by signatures
    /// alone, and components sign where it cannot be otherwise.
    #[must_use]
    pub fn of_client(self, pairs: Arc<dyn ComponentPairs>) -> Self {
        Self { pairs: Some(pairs), ..self }
    }

    /// What checks what the component of a replica attests in a slot, if it is the one that counts there: the one that the
    /// group began with, or the one that whoever shows it says took its place. A client believes that as it believes the
    /// rest, where as many say the same.
    fn counts(&self, by: ReplicaId, epoch: Epoch, renewed: &[Renewed]) -> Option<Checks<'_>> {
        rule!("A2MPBFTE-N6");
        let first = Checks::First(self.verifier.as_ref());
        let Some(renewed) = renewed.iter().find(|renewed| renewed.replica == by) else {
            return (self.first.get(usize::from(by.0)) == Some(&epoch)).then_some(first);
        };
        if renewed.epoch != epoch.0 {
            return None;
        }
        match renewed.component {
            // All components share it, and who may check them has it.
            ComponentKey::Group => Some(first),
            ComponentKey::Ed25519(key) => {
                let identity = Identity { group: self.group.0, replica: by.0, epoch };
                let key = SignatureVerifier::from_bytes(&key)?;
                GroupVerifier::new([(identity, key.into())]).ok().map(Checks::Renewed)
            }
        }
    }

    /// What replicas must agree on to be believed about a frame: the reply, the history up to the slot that holds the frame,
    /// and which components count there. `None` where the place does not prove that the history of `from` holds it. `said` is
    /// the reply's own vote ([`Reply::vote`](troth_types::Reply::vote)), `placed` what was made of the same frame's place
    /// before.
    #[must_use]
    pub fn vote(
        &self,
        from: ReplicaId,
        (frame, placed): (&Frame, &mut Placed),
        said: &Digest,
        place: &Place,
        renewed: &[Renewed],
    ) -> Option<Digest> {
        rule!("A2MPBFTE-H4");
        rule!("A2MPBFTEA-H4");
        let attestation = decoded(Reader::new(&place.attestation))?;
        let slot: Slot = attestation.claim.slot;
        if attestation.claim.request != Request::Lookup {
            return None;
        }
        let expected = placed.value(self.group, frame, place)?;
        let content = self.looked_up(from, &attestation, slot, renewed)?;
        let Content::Assigned { value, digest } = content else { return None };
        if value != expected.0 {
            return None;
        }
        let mut hasher = Hasher::new("troth/attested-reply/v1");
        hasher.digest(said).fixed(&slot.0.to_be_bytes()).fixed(&digest);
        hasher.digest(&named(renewed));
        Some(hasher.finish())
    }

    /// What the history of `from` holds in a slot, as its component attests it to everybody, or to this client.
    fn looked_up(
        &self,
        from: ReplicaId,
        attestation: &Attestation,
        slot: Slot,
        renewed: &[Renewed],
    ) -> Option<Content> {
        let (nonce, checks) = (slot_nonce(slot), self.counts(from, attestation.epoch, renewed)?);
        let to_everybody = || checks.with().lookup(from.0, attestation, self.log, slot, &nonce);
        let (Proof::Mac(_), Some(pairs)) = (&attestation.proof, &self.pairs) else { return to_everybody() };
        let renewed = renewed.iter().find(|renewed| renewed.replica == from);
        let pair = pairs.with(from, renewed.map(|renewed| &renewed.component));
        let to_this = pair
            .and_then(|pair| checks.with().lookup_for(&pair, from.0, attestation, self.log, slot, &nonce));
        to_this.or_else(to_everybody)
    }

    /// Where the history of `from` ended, asked after this nonce was made. `None` where that is not proven, or where
    /// nothing was ever appended: then nothing says that the component is not one that begins anew.
    #[must_use]
    pub fn end(
        &self,
        from: ReplicaId,
        nonce: &Digest,
        end: &HistoryEnd,
        renewed: &[Renewed],
    ) -> Option<EndedAt> {
        rule!("A2MPBFTE-E1");
        rule!("A2MPBFTEA-E1");
        let attestation = decoded(Reader::new(&end.attestation))?;
        let proof = among(end.index, end.count, &end.path)?;
        let checks = self.counts(from, attestation.epoch, renewed)?;
        let (slot, content) = checks.with().end(from.0, &attestation, self.log, &nonce.0, &proof)?;
        let Content::Assigned { digest, .. } = content else { return None };
        Some(EndedAt { slot, digest: Digest(digest), components: named(renewed) })
    }
}

/// Names the components that count; zeros where all are those that the group began with.
fn named(renewed: &[Renewed]) -> Digest {
    if renewed.is_empty() {
        return Digest::ZERO;
    }
    let mut hasher = Hasher::new("troth/renewed-components/v1");
    hasher.number(renewed.len() as u64);
    for one in renewed {
        hasher.bytes(&one.to_wire());
    }
    hasher.finish()
}

/// An attestation, and nothing behind it.
fn decoded(mut reader: Reader<'_>) -> Option<Attestation> {
    decode_attestation(&mut reader).ok().filter(|_| reader.finish().is_ok())
}

/// A place in a run.
fn among(index: u16, count: u16, path: &[Digest]) -> Option<RunProof> {
    let siblings: Vec<[u8; 32]> = path.iter().map(|sibling| sibling.0).collect();
    Some(RunProof { index, count, path: Path::new(&siblings)? })
}
