//! A reply with what proves where the replica's history holds the request, and one to a read with what proves where that
//! history ends (paper 000 §4.2).

use crate::{Digest, Malformed, ReadReply, Reader, Renewed, Reply, Time, Wire, put_bytes, put_list};
use bytes::Bytes;

/// The most siblings on a path; a bound for the decoder.
const MAX_PATH: usize = 8;
/// The most bytes of an attestation; a bound for the decoder.
const MAX_ATTESTATION: usize = 512;

/// Where a request stands in a replica's history: a slot of the history's log, and the request's place in the batch
/// that fills it. The client checks all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The trusted component's attestation of the slot.
    pub attestation: Bytes,
    /// The batch's agreed time.
    pub time: Time,
    /// The request's place in the batch, from 0.
    pub index: u16,
    /// How many requests the batch has.
    pub count: u16,
    /// The siblings from the request up to the batch's root.
    pub path: Vec<Digest>,
}

/// A reply with the place of its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttestedReply {
    /// The reply.
    pub reply: Reply,
    /// The place.
    pub place: Place,
    /// Which components count in its slot in the place of those that the group began with, by the history up to there.
    pub renewed: Vec<Renewed>,
}

/// Where a replica's history ended when a read was answered: attested under the root over the nonces of all reads that
/// were answered with it. The client checks all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEnd {
    /// The trusted component's attestation of the end.
    pub attestation: Bytes,
    /// The place of the read's nonce among them, from 0.
    pub index: u16,
    /// How many nonces there are.
    pub count: u16,
    /// The siblings from the nonce up to the root.
    pub path: Vec<Digest>,
}

/// The answer to a read with the end of the history that it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttestedRead {
    /// The answer.
    pub reply: ReadReply,
    /// The end.
    pub end: HistoryEnd,
    /// Which components count in its slot in the place of those that the group began with, by the history up to there.
    pub renewed: Vec<Renewed>,
}

impl AttestedRead {
    /// The bytes of what comes beside the answer, about.
    #[must_use]
    pub fn size_of_proof(&self) -> usize {
        let path = self.end.path.len() * size_of::<Digest>();
        self.end.attestation.len() + path + size_of_val(self.renewed.as_slice())
    }
}

impl AttestedReply {
    /// The bytes of what comes beside the reply, about.
    #[must_use]
    pub fn size_of_proof(&self) -> usize {
        let path = self.place.path.len() * size_of::<Digest>();
        self.place.attestation.len() + path + size_of_val(self.renewed.as_slice())
    }
}

impl Wire for Place {
    fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, &self.attestation);
        self.time.encode(out);
        self.index.encode(out);
        self.count.encode(out);
        put_list(out, &self.path);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            attestation: reader.bytes("an attestation", MAX_ATTESTATION)?,
            time: Wire::decode(reader)?,
            index: Wire::decode(reader)?,
            count: Wire::decode(reader)?,
            path: reader.list("a path", MAX_PATH)?,
        })
    }
}

impl Wire for HistoryEnd {
    fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, &self.attestation);
        self.index.encode(out);
        self.count.encode(out);
        put_list(out, &self.path);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            attestation: reader.bytes("an attestation", MAX_ATTESTATION)?,
            index: Wire::decode(reader)?,
            count: Wire::decode(reader)?,
            path: reader.list("a path", MAX_PATH)?,
        })
    }
}
