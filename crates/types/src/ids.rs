//! Small identifiers. Each is its own type, so that a view is never taken for a sequence number.

use crate::{Malformed, Reader, Wire};
use core::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $inner:ty, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self, f)
            }
        }
        impl Wire for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                self.0.encode(out);
            }
            fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
                Ok(Self(Wire::decode(reader)?))
            }
        }
    };
}

number!(
    /// A replica's number in its group, `0..n`. The primary of view v is replica v mod n.
    ReplicaId, u16, "r"
);
number!(
    /// A client's number, as the group's configuration names it.
    ClientId, u64, "c"
);
number!(
    /// A view: one configuration of primary and backups (PBFT §4, MinBFT §4).
    View, u64, "v"
);
number!(
    /// A sequence number: the place of a batch in the total order. The first batch has number 1;
    /// 0 names the initial state.
    Seq, u64, "n"
);
number!(
    /// Microseconds. As a local clock reading it counts from an arbitrary start and never goes
    /// back; as an agreed time it counts from the Unix epoch.
    Time, u64, "t"
);

impl View {
    /// The view after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl Seq {
    /// The sequence number after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl Time {
    /// This time plus `micros` microseconds.
    #[must_use]
    pub fn after(self, micros: u64) -> Self {
        Self(self.0.saturating_add(micros))
    }
}

/// An Ed25519 signature (64 bytes), or what stands in its place where the simulator models
/// signatures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signature(pub [u8; 64]);

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sig:{:02x}{:02x}{:02x}{:02x}", self.0[0], self.0[1], self.0[2], self.0[3])
    }
}

impl Wire for Signature {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self(reader.array()?))
    }
}
