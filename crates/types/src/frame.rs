//! The client frame: the unit of ordering.

use crate::{ClientId, Digest, GroupId, Hasher, Malformed, Reader, ReplicaId, Signature, Wire, put_bytes};
use bytes::Bytes;
use core::fmt;

/// The most operations any configuration may allow in a frame; a bound for the decoder.
const MAX_OPERATIONS: usize = 1 << 16;
/// The most bytes any configuration may allow in one operation; a bound for the decoder.
const MAX_OPERATION_BYTES: usize = 1 << 26;
/// The most tags that an authenticator may have: one for each replica of the largest group.
const MAX_TAGS: usize = 128;
/// In the place where a frame's operations are counted: an authenticator follows them, and no signature.
const HAS_TAGS: u32 = 1 << 31;

/// A MAC for one receiver: the first 16 bytes of an HMAC-SHA-256 over [`FrameDraft::signing_digest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag(pub [u8; 16]);

/// By what a frame is its client's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameProof {
    /// A signature, which convinces everybody.
    Signature(Signature),
    /// PBFT's authenticator (OSDI '99 §5.2): a tag for each replica, in their order, each of which convinces that
    /// replica alone.
    Authenticator(Box<[Tag]>),
}

/// What a client is about to sign: a frame without its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameDraft {
    /// The group it is meant for.
    pub group: GroupId,
    /// The client that speaks.
    pub client: ClientId,
    /// The client's number for this frame, from 1. Exactly-once execution is per (client, number);
    /// the paper's request identifier `seq` (MinBFT §4, Clients).
    pub number: u64,
    /// The client has delivered all events up to this index; the outbox may drop them.
    pub events_seen: u64,
    /// The operations, executed in this order, all or none of them.
    pub operations: Vec<Bytes>,
}

impl FrameDraft {
    /// The digest that the client signs.
    #[must_use]
    pub fn signing_digest(&self) -> Digest {
        let Self { group, client, number, events_seen, operations } = self;
        let operations = operations.iter().map(|operation| &operation[..]);
        signing_digest(*group, *client, *number, *events_seen, operations)
    }

    /// The frame with its signature.
    #[must_use]
    pub fn sign(self, signature: Signature) -> Frame {
        self.prove(FrameProof::Signature(signature))
    }

    /// The frame with what proves it its client's.
    #[must_use]
    pub fn prove(self, proof: FrameProof) -> Frame {
        let signing = self.signing_digest();
        let Self { group, client, number, events_seen, operations } = self;
        let operations = Operations::of(&operations);
        Frame {
            group,
            client,
            number,
            events_seen,
            operations,
            signing,
            digest: named(&signing, &proof),
            proof,
        }
    }
}

fn signing_digest<'a>(
    group: GroupId,
    client: ClientId,
    number: u64,
    events_seen: u64,
    operations: impl ExactSizeIterator<Item = &'a [u8]>,
) -> Digest {
    let mut hasher = Hasher::new("troth/frame/v1");
    hasher.fixed(&group.0).number(client.0).number(number).number(events_seen);
    hasher.number(operations.len() as u64);
    for operation in operations {
        hasher.bytes(operation);
    }
    hasher.finish()
}

/// The name of a frame with this signing digest.
fn named(signing: &Digest, proof: &FrameProof) -> Digest {
    match proof {
        FrameProof::Signature(signature) => {
            let mut hasher = Hasher::new("troth/signed-frame/v1");
            hasher.digest(signing).fixed(&signature.0);
            hasher.finish()
        }
        FrameProof::Authenticator(tags) => {
            let mut hasher = Hasher::new("troth/authenticated-frame/v1");
            hasher.digest(signing).number(tags.len() as u64);
            tags.iter().for_each(|tag| {
                hasher.fixed(&tag.0);
            });
            hasher.finish()
        }
    }
}

/// A frame's operations in one piece, as they stand on the wire: a frame of thousands takes no more to keep and to drop
/// than one of one.
#[derive(Clone, PartialEq, Eq)]
pub struct Operations {
    count: u32,
    /// Each `length: u32 ‖ bytes`.
    encoded: Bytes,
}

impl Operations {
    fn of(operations: &[Bytes]) -> Self {
        let count = u32::try_from(operations.len()).expect("bounded by MAX_OPERATIONS");
        // Exactly: bytes that a vector has to spare would be held as long as the frame.
        let bytes = operations.iter().map(|operation| 4 + operation.len()).sum();
        let mut encoded = Vec::with_capacity(bytes);
        operations.iter().for_each(|operation| put_bytes(&mut encoded, operation));
        Self { count, encoded: Bytes::from(encoded) }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The operations in order, each a slice of the whole.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter { encoded: &self.encoded, rest: self.slices() }
    }

    fn slices(&self) -> Slices<'_> {
        Slices { bytes: &self.encoded, left: self.len() }
    }
}

impl fmt::Debug for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for &'a Operations {
    type Item = Bytes;
    type IntoIter = Iter<'a>;
    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// See [`Operations::iter`].
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    encoded: &'a Bytes,
    rest: Slices<'a>,
}

impl Iterator for Iter<'_> {
    type Item = Bytes;
    fn next(&mut self) -> Option<Bytes> {
        self.rest.next().map(|operation| self.encoded.slice_ref(operation))
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rest.size_hint()
    }
}

impl ExactSizeIterator for Iter<'_> {}

/// The operations without holding what they are part of.
#[derive(Clone, Debug)]
struct Slices<'a> {
    bytes: &'a [u8],
    left: usize,
}

impl<'a> Iterator for Slices<'a> {
    type Item = &'a [u8];
    fn next(&mut self) -> Option<&'a [u8]> {
        // Whoever made the whole counted them, and wrote or read each length.
        let (length, rest) = self.bytes.split_first_chunk()?;
        let (operation, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        (self.bytes, self.left) = (rest, self.left - 1);
        Some(operation)
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Slices<'_> {}

/// What one client had ready: hashed once, signed once, ordered whole, named by its digest.
/// The digest covers the operations and the signature or authenticator, so a relay
/// that corrupts either makes another frame and condemns nobody (guide.md §4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    group: GroupId,
    client: ClientId,
    number: u64,
    events_seen: u64,
    operations: Operations,
    proof: FrameProof,
    signing: Digest,
    digest: Digest,
}

impl Frame {
    /// The same without its proof.
    #[must_use]
    pub fn draft(&self) -> FrameDraft {
        FrameDraft {
            group: self.group,
            client: self.client,
            number: self.number,
            events_seen: self.events_seen,
            operations: self.operations.iter().collect(),
        }
    }

    /// The group it is meant for.
    #[must_use]
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// The client that signed it.
    #[must_use]
    pub fn client(&self) -> ClientId {
        self.client
    }

    /// The client's number for it, from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The client has delivered all events up to this index.
    #[must_use]
    pub fn events_seen(&self) -> u64 {
        self.events_seen
    }

    /// Its operations in order.
    #[must_use]
    pub fn operations(&self) -> &Operations {
        &self.operations
    }

    /// By what it is its client's: covers [`Frame::signing_digest`].
    #[must_use]
    pub fn proof(&self) -> &FrameProof {
        &self.proof
    }

    /// The client's signature, where it has one.
    #[must_use]
    pub fn signature(&self) -> Option<&Signature> {
        match &self.proof {
            FrameProof::Signature(signature) => Some(signature),
            FrameProof::Authenticator(_) => None,
        }
    }

    /// Whether its client signed it, so that everybody can tell whose it is.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        matches!(self.proof, FrameProof::Signature(_))
    }

    /// What its authenticator has for this replica.
    #[must_use]
    pub fn tag_for(&self, replica: ReplicaId) -> Option<&Tag> {
        match &self.proof {
            FrameProof::Signature(_) => None,
            FrameProof::Authenticator(tags) => tags.get(usize::from(replica.0)),
        }
    }

    /// What the signature covers.
    #[must_use]
    pub fn signing_digest(&self) -> &Digest {
        &self.signing
    }

    /// The name by which it is ordered.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// About how many bytes it takes, in memory and on the wire.
    #[must_use]
    pub fn size(&self) -> usize {
        let tags = match &self.proof {
            FrameProof::Signature(_) => 0,
            FrameProof::Authenticator(tags) => tags.len() * size_of::<Tag>(),
        };
        128 + tags + self.operations.encoded.len()
    }
}

impl Wire for Frame {
    fn encode(&self, out: &mut Vec<u8>) {
        self.group.encode(out);
        self.client.encode(out);
        self.number.encode(out);
        self.events_seen.encode(out);
        let count = self.operations.count;
        match &self.proof {
            FrameProof::Signature(_) => count.encode(out),
            FrameProof::Authenticator(_) => (count | HAS_TAGS).encode(out),
        }
        out.extend_from_slice(&self.operations.encoded);
        match &self.proof {
            FrameProof::Signature(signature) => signature.encode(out),
            FrameProof::Authenticator(tags) => {
                u8::try_from(tags.len()).expect("bounded by MAX_TAGS").encode(out);
                tags.iter().for_each(|tag| out.extend_from_slice(&tag.0));
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let group = Wire::decode(reader)?;
        let client = Wire::decode(reader)?;
        let number: u64 = Wire::decode(reader)?;
        let events_seen = Wire::decode(reader)?;
        let counted = u32::decode(reader)?;
        let count = (counted & !HAS_TAGS) as usize;
        if count > MAX_OPERATIONS {
            return Err(Malformed::TooLong("a frame's operations", count as u64));
        }
        if count == 0 {
            return Err(Malformed::Invalid("a frame without operations"));
        }
        if number == 0 {
            return Err(Malformed::Invalid("frame numbers start at 1"));
        }
        // A copy: a slice would hold all that came with the frame in memory for as long as the frame is kept, and whoever
        // sent it decides how much that is.
        let encoded = Bytes::copy_from_slice(&reader.strings("an operation", count, MAX_OPERATION_BYTES)?);
        let operations = Operations { count: count as u32, encoded };
        let proof = if counted & HAS_TAGS == 0 {
            FrameProof::Signature(Wire::decode(reader)?)
        } else {
            FrameProof::Authenticator(tags(reader)?)
        };
        let signing = signing_digest(group, client, number, events_seen, operations.slices());
        let digest = named(&signing, &proof);
        Ok(Self { group, client, number, events_seen, operations, proof, signing, digest })
    }
}

fn tags(reader: &mut Reader<'_>) -> Result<Box<[Tag]>, Malformed> {
    let count = usize::from(u8::decode(reader)?);
    if count > MAX_TAGS {
        return Err(Malformed::TooLong("an authenticator's tags", count as u64));
    }
    let mut tags = Vec::with_capacity(count.min(reader.remaining() / size_of::<Tag>()));
    for _ in 0..count {
        tags.push(Tag(reader.array()?));
    }
    Ok(tags.into_boxed_slice())
}
