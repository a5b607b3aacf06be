//! Reading an input as the steps of a small program.

/// What is left of an input. Where it has ended there are zeros.
pub(crate) struct Steps<'a>(&'a [u8]);

impl<'a> Steps<'a> {
    pub(crate) fn new(input: &'a [u8]) -> Self {
        Self(input)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(crate) fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let drawn = if bound <= 256 { usize::from(self.byte()) } else { usize::from(self.short()) };
        drawn % bound
    }

    /// True for one byte in so many.
    pub(crate) fn one_in(&mut self, times: u8) -> bool {
        self.byte().is_multiple_of(times)
    }

    /// One of several.
    pub(crate) fn one_of<'b, T>(&mut self, all: &'b [T]) -> Option<&'b T> {
        if all.is_empty() { None } else { Some(&all[self.below(all.len())]) }
    }

    /// Bytes behind a length of one byte, or fewer where the input ends.
    pub(crate) fn chunk(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte());
        self.take(length)
    }

    /// So many bytes, or fewer where the input ends.
    pub(crate) fn take(&mut self, length: usize) -> &'a [u8] {
        let (chunk, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        chunk
    }

    /// All that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

/// Damages a file as the steps say: some bytes changed, put in, taken out, or the file cut.
pub(crate) fn damage(steps: &mut Steps<'_>, bytes: &mut Vec<u8>) {
    let at = steps.below(bytes.len() + 1);
    match steps.byte() % 6 {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= steps.byte().max(1);
            }
        }
        1 => bytes.truncate(at),
        2 => {
            let chunk = steps.chunk();
            bytes.splice(at..at, chunk.iter().copied());
        }
        3 => {
            let until = (at + usize::from(steps.byte())).min(bytes.len());
            bytes.drain(at..until);
        }
        4 => {
            let chunk = steps.chunk();
            let until = (at + chunk.len()).min(bytes.len());
            bytes[at..until].copy_from_slice(&chunk[..until - at]);
        }
        _ => bytes.resize(bytes.len() + usize::from(steps.byte()) * 16, 0),
    }
}
