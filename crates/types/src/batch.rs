//! A batch: what one sequence number orders.

use crate::{Digest, Hasher, Malformed, Reader, Time, Wire, put_list};

/// The most frames any configuration may allow in a batch; a bound for the decoder.
const MAX_FRAMES: usize = 1 << 12;

/// The frames of one sequence number, by digest and in execution order, with the agreed time at
/// which they execute (guide.md §1.2, §1.3). A batch without frames only moves time forward.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Batch {
    /// Microseconds since the Unix epoch, proposed by the primary and checked by the others.
    pub time: Time,
    /// The frames' digests.
    pub frames: Vec<Digest>,
}

impl Batch {
    /// The batch's digest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut hasher = Hasher::new("troth/batch/v1");
        hasher.number(self.time.0).number(self.frames.len() as u64);
        for frame in &self.frames {
            hasher.digest(frame);
        }
        hasher.finish()
    }
}

impl Wire for Batch {
    fn encode(&self, out: &mut Vec<u8>) {
        self.time.encode(out);
        put_list(out, &self.frames);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { time: Wire::decode(reader)?, frames: reader.list("a batch's frames", MAX_FRAMES)? })
    }
}
