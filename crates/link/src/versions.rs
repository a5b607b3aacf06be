//! Which versions of the messages the two ends of a connection speak.
//!
//! The first message that an end sends says so, inside the authenticated stream: nobody between the two can
//! make them speak an older version. Ends of the release before this existed send none, and count ours among the
//! messages that they do not know; they speak version 1. So the handshake and the frames around messages stay
//! as they are ([`WIRE_VERSION`](crate::WIRE_VERSION)), and what changes from release to release is what messages mean.

use core::fmt;

/// What a first message that says versions begins with. No message of version 1 begins with its first byte.
const MARK: &[u8; 6] = b"\xfftroth";
/// The version of whoever says nothing.
const UNSAID: u16 = 1;

/// A range of versions of the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Versions {
    /// The oldest.
    pub oldest: u16,
    /// The newest.
    pub newest: u16,
}

impl Versions {
    /// What this release speaks. Version 1 is the messages as they were before anybody said versions;
    /// version 2 is the same, from an end that ignores kinds of messages that it does not know.
    pub const SPOKEN: Self = Self { oldest: 1, newest: 2 };

    /// Those of an end that says nothing.
    pub const UNSAID: Self = Self { oldest: UNSAID, newest: UNSAID };

    /// The newest version that both speak, if there is one.
    #[must_use]
    pub fn common(self, other: Self) -> Option<u16> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }

    /// The first message of a connection.
    #[must_use]
    pub fn first_message(self) -> Vec<u8> {
        let mut message = MARK.to_vec();
        message.extend_from_slice(&self.oldest.to_le_bytes());
        message.extend_from_slice(&self.newest.to_le_bytes());
        message
    }

    /// What the first message of the other end says; nothing where it is an ordinary message. What stands behind
    /// the two numbers is for later versions.
    #[must_use]
    pub fn of_first_message(message: &[u8]) -> Option<Self> {
        let said = message.strip_prefix(MARK)?;
        let [a, b, c, d] = *said.first_chunk::<4>()?;
        let (oldest, newest) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        (oldest <= newest).then_some(Self { oldest, newest })
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.oldest == self.newest {
            write!(f, "version {}", self.newest)
        } else {
            write!(f, "versions {} to {}", self.oldest, self.newest)
        }
    }
}
