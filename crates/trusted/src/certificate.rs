//! What a component certifies, and the bytes a proof covers.

use crate::value::{COUNTERS, CounterId, CounterValue, Digest, Epoch, Identity, Move, Moves};

/// The evidence that a component made a statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Proof {
    /// HMAC-SHA-256 under the group's key: convinces whoever holds the key.
    Mac([u8; 32]),
    /// Ed25519: convinces anybody who knows the component's public key.
    Signature([u8; 64]),
}

/// The statement that one counter moved, and for which digest.
///
/// The digest is not in it: the verifier computes it from the message it received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Certificate {
    /// The epoch of the component that made it.
    pub epoch: Epoch,
    /// The counter that moved.
    pub counter: CounterId,
    /// Its value before: shows that nothing was skipped.
    pub previous: CounterValue,
    /// Its value after.
    pub new: CounterValue,
    /// The evidence.
    pub proof: Proof,
}

impl Certificate {
    /// The move that this certificate states.
    pub fn moved(&self) -> Move {
        Move { counter: self.counter, previous: self.previous, new: self.new }
    }
}

/// The statement that several counters moved at once, all for one digest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MultiCertificate {
    /// The epoch of the component that made it.
    pub epoch: Epoch,
    /// All the moves; none of them is certified without the others.
    pub moves: Moves,
    /// The evidence.
    pub proof: Proof,
}

const TAG: &[u8; 15] = b"troth-attest/v1";
const HEAD: usize = TAG.len() + 1 + 16 + 2 + 8;
const KIND_ONE: u8 = 1;
const KIND_MULTI: u8 = 2;

/// Length in bytes of the statement that one counter moved.
pub const ONE: usize = HEAD + 2 + 16 + 16 + 32;
/// Length in bytes of the statement that several counters moved.
pub(crate) const MULTI: usize = HEAD + COUNTERS * (1 + 16 + 16) + 32;

/// Fills a fixed-length array from left to right; all numbers are big-endian.
pub(crate) struct Writer<const N: usize> {
    bytes: [u8; N],
    at: usize,
}

impl<const N: usize> Writer<N> {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; N], at: 0 }
    }

    pub(crate) fn put(&mut self, part: &[u8]) {
        let end = self.at + part.len();
        self.bytes[self.at..end].copy_from_slice(part);
        self.at = end;
    }

    pub(crate) fn identity(&mut self, identity: &Identity) {
        self.put(&identity.group);
        self.put(&identity.replica.to_be_bytes());
        self.put(&identity.epoch.0.to_be_bytes());
    }

    pub(crate) fn value(&mut self, value: CounterValue) {
        self.put(&value.0.to_be_bytes());
    }

    pub(crate) fn written(&self) -> &[u8] {
        &self.bytes[..self.at]
    }

    /// The array; every layout fills it exactly, and each test of a layout would show a mistake.
    pub(crate) fn finish(self) -> [u8; N] {
        assert!(self.at == N, "a layout fills its array exactly");
        self.bytes
    }
}

/// What the proof of a certificate covers, for the component `identity` and this digest: for checks of many
/// signatures at once. Whoever uses it compares the epochs.
pub fn statement(identity: &Identity, certificate: &Certificate, digest: &Digest) -> [u8; ONE] {
    one(identity, &certificate.moved(), digest)
}

/// The bytes certified for one move: `tag ‖ kind ‖ group ‖ replica ‖ epoch ‖ counter ‖ previous ‖ new ‖ digest`.
pub(crate) fn one(identity: &Identity, moved: &Move, digest: &Digest) -> [u8; ONE] {
    let mut out = Writer::<ONE>::new();
    out.put(TAG);
    out.put(&[KIND_ONE]);
    out.identity(identity);
    out.put(&moved.counter.0.to_be_bytes());
    out.value(moved.previous);
    out.value(moved.new);
    out.put(digest);
    out.finish()
}

/// The bytes certified for several moves: as [`one`], with a place for every counter, which holds
/// `1 ‖ previous ‖ new` where the counter moved and zeros where it did not.
pub(crate) fn multi(identity: &Identity, moves: &Moves, digest: &Digest) -> [u8; MULTI] {
    let mut out = Writer::<MULTI>::new();
    out.put(TAG);
    out.put(&[KIND_MULTI]);
    out.identity(identity);
    for counter in 0..COUNTERS as u16 {
        match moves.get(CounterId(counter)) {
            Some(moved) => {
                out.put(&[1]);
                out.value(moved.previous);
                out.value(moved.new);
            }
            None => out.put(&[0; 33]),
        }
    }
    out.put(digest);
    out.finish()
}
