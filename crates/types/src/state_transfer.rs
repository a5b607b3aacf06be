//! What replicas exchange to bring one of them to a certified state.

use crate::{Digest, Malformed, Reader, Seq, Wire, put_bytes};
use bytes::Bytes;

/// The most bytes of one piece.
const MAX_PIECE: usize = 1 << 24;
/// The longest path into the state's tree.
const MAX_PATH: usize = 1 << 10;

/// Asks for one piece of the state at a checkpoint. What `path` means is the executor's matter
/// (a place in its Merkle tree); agreement only carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateFetch {
    /// The checkpoint's sequence number.
    pub seq: Seq,
    /// The checkpoint's digest: answers for another target are never mixed in.
    pub digest: Digest,
    /// The place in the state's tree.
    pub path: Bytes,
}

/// One piece of the state at a checkpoint, verifiable against the checkpoint's digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatePiece {
    /// The checkpoint's sequence number.
    pub seq: Seq,
    /// The checkpoint's digest.
    pub digest: Digest,
    /// The place in the state's tree.
    pub path: Bytes,
    /// The piece; the executor knows its form.
    pub content: Bytes,
}

impl Wire for StateFetch {
    fn encode(&self, out: &mut Vec<u8>) {
        self.seq.encode(out);
        self.digest.encode(out);
        put_bytes(out, &self.path);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            seq: Wire::decode(reader)?,
            digest: Wire::decode(reader)?,
            // It waits for its turn: as a part of the record that it came in it would keep all of that.
            path: Bytes::copy_from_slice(&reader.bytes("a path", MAX_PATH)?),
        })
    }
}

impl Wire for StatePiece {
    fn encode(&self, out: &mut Vec<u8>) {
        self.seq.encode(out);
        self.digest.encode(out);
        put_bytes(out, &self.path);
        put_bytes(out, &self.content);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            seq: Wire::decode(reader)?,
            digest: Wire::decode(reader)?,
            path: reader.bytes("a path", MAX_PATH)?,
            content: reader.bytes("a piece of state", MAX_PIECE)?,
        })
    }
}
