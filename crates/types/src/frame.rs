//! The client frame: the unit of ordering.

use crate::{ClientId, Digest, GroupId, Hasher, Malformed, Reader, Signature, Wire, put_bytes};
use bytes::Bytes;

/// The most operations any configuration may allow in a frame; a bound for the decoder.
const MAX_OPERATIONS: usize = 1 << 16;
/// The most bytes any configuration may allow in one operation; a bound for the decoder.
const MAX_OPERATION_BYTES: usize = 1 << 26;

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
        let mut hasher = Hasher::new("troth/frame/v1");
        hasher.fixed(&self.group.0).number(self.client.0).number(self.number).number(self.events_seen);
        hasher.number(self.operations.len() as u64);
        for operation in &self.operations {
            hasher.bytes(operation);
        }
        hasher.finish()
    }

    /// The frame with its signature.
    #[must_use]
    pub fn sign(self, signature: Signature) -> Frame {
        let signing = self.signing_digest();
        Frame::assemble(self, signing, signature)
    }
}

/// What one client had ready: hashed once, signed once, ordered whole, named by its digest
/// (design.md §2). The digest covers the operations and the signature, so a relay that corrupts
/// either makes another frame and condemns nobody (protocols.md §4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    draft: FrameDraft,
    signature: Signature,
    signing: Digest,
    digest: Digest,
}

impl Frame {
    fn assemble(draft: FrameDraft, signing: Digest, signature: Signature) -> Self {
        let mut hasher = Hasher::new("troth/signed-frame/v1");
        hasher.digest(&signing).fixed(&signature.0);
        let digest = hasher.finish();
        Self { draft, signature, signing, digest }
    }

    /// The group it is meant for.
    #[must_use]
    pub fn group(&self) -> GroupId {
        self.draft.group
    }

    /// The client that signed it.
    #[must_use]
    pub fn client(&self) -> ClientId {
        self.draft.client
    }

    /// The client's number for it, from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.draft.number
    }

    /// The client has delivered all events up to this index.
    #[must_use]
    pub fn events_seen(&self) -> u64 {
        self.draft.events_seen
    }

    /// Its operations in order.
    #[must_use]
    pub fn operations(&self) -> &[Bytes] {
        &self.draft.operations
    }

    /// The client's signature over [`Frame::signing_digest`].
    #[must_use]
    pub fn signature(&self) -> &Signature {
        &self.signature
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
        128 + self.draft.operations.iter().map(|operation| operation.len() + 4).sum::<usize>()
    }
}

impl Wire for Frame {
    fn encode(&self, out: &mut Vec<u8>) {
        self.draft.group.encode(out);
        self.draft.client.encode(out);
        self.draft.number.encode(out);
        self.draft.events_seen.encode(out);
        let count = u32::try_from(self.draft.operations.len()).expect("bounded by MAX_OPERATIONS");
        count.encode(out);
        for operation in &self.draft.operations {
            put_bytes(out, operation);
        }
        self.signature.encode(out);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let group = Wire::decode(reader)?;
        let client = Wire::decode(reader)?;
        let number: u64 = Wire::decode(reader)?;
        let events_seen = Wire::decode(reader)?;
        let count = u32::decode(reader)? as usize;
        if count > MAX_OPERATIONS {
            return Err(Malformed::TooLong("a frame's operations", count as u64));
        }
        if count == 0 {
            return Err(Malformed::Invalid("a frame without operations"));
        }
        if number == 0 {
            return Err(Malformed::Invalid("frame numbers start at 1"));
        }
        let mut operations = Vec::with_capacity(count.min(reader.remaining() / 4));
        for _ in 0..count {
            operations.push(reader.bytes("an operation", MAX_OPERATION_BYTES)?);
        }
        let signature = Wire::decode(reader)?;
        let draft = FrameDraft { group, client, number, events_seen, operations };
        let signing = draft.signing_digest();
        Ok(Self::assemble(draft, signing, signature))
    }
}
