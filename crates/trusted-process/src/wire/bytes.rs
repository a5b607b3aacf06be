//! Reading and writing the parts that all frames are made of.

use super::{Fault, MAX_BLOB, MAX_CALLS, MAX_FRAME, Malformed, PREFIX};
use troth_trusted::a2m::{LogId, MOST_OPERATIONS};
use troth_trusted::{
    COUNTERS, CounterId, CounterValue, Digest, Epoch, Identity, Move, Moves, MultiCertificate, Proof,
};

const PROOF_MAC: u8 = 1;
const PROOF_SIGNATURE: u8 = 2;

/// Reads a frame from left to right.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if bytes.len() > MAX_FRAME { Err(Fault::TooLong(bytes.len()).into()) } else { Ok(Self(bytes)) }
    }

    /// A list for so many elements, of at least a byte each: room for as many as have come, whatever is announced, and no
    /// more, as a list that grows by doubling takes.
    pub(super) fn room_for<T>(&self, count: usize) -> Vec<T> {
        Vec::with_capacity(count.min(self.0.len()))
    }

    /// Demands that nothing is left.
    pub(super) fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Fault::Trailing.into()) }
    }

    pub(super) fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (part, rest) = self.0.split_first_chunk::<N>().ok_or(Fault::Short)?;
        self.0 = rest;
        Ok(*part)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        self.take::<1>().map(|[byte]| byte)
    }

    /// Demands the byte that says which frame this is.
    pub(super) fn kind(&mut self, expected: u8) -> Result<(), Malformed> {
        match self.byte()? {
            kind if kind == expected => Ok(()),
            other => Err(Fault::Tag(other).into()),
        }
    }

    pub(super) fn number(&mut self) -> Result<u16, Malformed> {
        self.take().map(u16::from_be_bytes)
    }

    pub(super) fn epoch(&mut self) -> Result<Epoch, Malformed> {
        self.take().map(|bytes| Epoch(u64::from_be_bytes(bytes)))
    }

    pub(super) fn identity(&mut self) -> Result<Identity, Malformed> {
        Ok(Identity { group: self.take()?, replica: self.number()?, epoch: self.epoch()? })
    }

    pub(super) fn counter(&mut self) -> Result<CounterId, Malformed> {
        self.number().map(CounterId)
    }

    pub(super) fn value(&mut self) -> Result<CounterValue, Malformed> {
        self.take().map(|bytes| CounterValue(u128::from_be_bytes(bytes)))
    }

    pub(super) fn digest(&mut self) -> Result<Digest, Malformed> {
        self.take()
    }

    pub(super) fn one_move(&mut self) -> Result<Move, Malformed> {
        Ok(Move { counter: self.counter()?, previous: self.value()?, new: self.value()? })
    }

    pub(super) fn moves(&mut self) -> Result<Moves, Malformed> {
        let count = usize::from(self.byte()?);
        if count > COUNTERS {
            return Err(Fault::Moves.into());
        }
        let mut moves = Vec::with_capacity(count);
        for _ in 0..count {
            moves.push(self.one_move()?);
        }
        Moves::new(&moves).ok_or(Fault::Moves.into())
    }

    pub(super) fn proof(&mut self) -> Result<Proof, Malformed> {
        match self.byte()? {
            PROOF_MAC => self.take().map(Proof::Mac),
            PROOF_SIGNATURE => self.take().map(Proof::Signature),
            other => Err(Fault::Tag(other).into()),
        }
    }

    pub(super) fn multi_certificate(&mut self) -> Result<MultiCertificate, Malformed> {
        Ok(MultiCertificate { epoch: self.epoch()?, moves: self.moves()?, proof: self.proof()? })
    }

    /// A blob behind its length, which is checked before anything is taken.
    pub(super) fn blob(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::from(self.number()?);
        if length > MAX_BLOB {
            return Err(Fault::Blob(length).into());
        }
        let (blob, rest) = self.0.split_at_checked(length).ok_or(Fault::Short)?;
        self.0 = rest;
        Ok(blob)
    }

    pub(super) fn log(&mut self) -> Result<LogId, Malformed> {
        self.number().map(LogId)
    }

    /// A count of operations on logs or of answers to them, checked before anything is allocated for them.
    pub(super) fn operations(&mut self) -> Result<usize, Malformed> {
        let count = usize::from(self.number()?);
        if count > MOST_OPERATIONS { Err(Fault::Operations(count).into()) } else { Ok(count) }
    }

    /// A count of calls or answers, checked before anything is allocated for them.
    pub(super) fn count(&mut self) -> Result<usize, Malformed> {
        let count = usize::from(self.byte()?);
        if count > MAX_CALLS { Err(Fault::Count(count).into()) } else { Ok(count) }
    }
}

/// Appends one frame to a buffer.
pub(super) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Writer<'a> {
    /// Starts a frame of a kind.
    pub(super) fn new(out: &'a mut Vec<u8>, kind: u8) -> Self {
        let start = out.len();
        out.extend_from_slice(&[0; PREFIX]);
        out.push(kind);
        Self { out, start }
    }

    /// Ends the frame by writing its length before it.
    pub(super) fn finish(self) {
        let length = self.out.len() - self.start - PREFIX;
        assert!(length <= MAX_FRAME, "the longest batch of the longest calls fits into a frame");
        self.out[self.start..self.start + PREFIX].copy_from_slice(&(length as u32).to_be_bytes());
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    pub(super) fn number(&mut self, number: u16) {
        self.put(&number.to_be_bytes());
    }

    pub(super) fn epoch(&mut self, epoch: Epoch) {
        self.put(&epoch.0.to_be_bytes());
    }

    pub(super) fn identity(&mut self, identity: &Identity) {
        self.put(&identity.group);
        self.number(identity.replica);
        self.epoch(identity.epoch);
    }

    pub(super) fn counter(&mut self, counter: CounterId) {
        self.number(counter.0);
    }

    pub(super) fn value(&mut self, value: CounterValue) {
        self.put(&value.0.to_be_bytes());
    }

    pub(super) fn one_move(&mut self, moved: &Move) {
        self.counter(moved.counter);
        self.value(moved.previous);
        self.value(moved.new);
    }

    pub(super) fn moves(&mut self, moves: &Moves) {
        self.byte(moves.as_slice().len() as u8);
        for moved in moves.as_slice() {
            self.one_move(moved);
        }
    }

    pub(super) fn proof(&mut self, proof: &Proof) {
        match proof {
            Proof::Mac(tag) => {
                self.byte(PROOF_MAC);
                self.put(tag);
            }
            Proof::Signature(signature) => {
                self.byte(PROOF_SIGNATURE);
                self.put(signature);
            }
        }
    }

    pub(super) fn multi_certificate(&mut self, certificate: &MultiCertificate) {
        self.epoch(certificate.epoch);
        self.moves(&certificate.moves);
        self.proof(&certificate.proof);
    }

    pub(super) fn blob(&mut self, blob: &[u8]) {
        assert!(blob.len() <= MAX_BLOB, "whoever sends a blob has looked at its length");
        self.number(blob.len() as u16);
        self.put(blob);
    }

    pub(super) fn operations(&mut self, count: usize) {
        assert!(count <= MOST_OPERATIONS, "no component does more in a call");
        self.number(count as u16);
    }

    pub(super) fn count(&mut self, count: usize) {
        assert!(count <= MAX_CALLS, "whoever sends a frame has cut its batch to length");
        self.byte(count as u8);
    }
}
