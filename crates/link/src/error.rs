//! Why a connection cannot be made or goes on no more.

use crate::PeerId;
use thiserror::Error;

/// What ended a connection or refused a message. After any error but [`LinkError::TooLarge`] and
/// [`LinkError::Full`] of a writer the connection is of no use and should be dropped.
#[derive(Debug, Error)]
pub enum LinkError {
    /// The operating system's word.
    #[error("the connection failed: {0}")]
    Io(#[from] std::io::Error),
    /// The handshake did not end in time.
    #[error("the handshake took too long")]
    TimedOut,
    /// The peer speaks another version of the wire format.
    #[error("the peer speaks wire version {0}, this is version {version}", version = crate::WIRE_VERSION)]
    Version(u8),
    /// There is no version of the messages that both ends speak.
    #[error(
        "the peer speaks {theirs} of the messages and this end {ours}; mend: upgrade the older of the two to a release that both understand"
    )]
    NoCommonVersion {
        /// What the peer speaks.
        theirs: crate::Versions,
        /// What this end speaks.
        ours: crate::Versions,
    },
    /// The handshake failed: the peer holds another key than configured, belongs to another
    /// group, or sent no handshake at all. Which of them cannot be told.
    #[error("the handshake failed: another key, another group, or not a peer at all")]
    Handshake,
    /// The peer says it is somebody whom the configuration does not know.
    #[error("{0:?} is not in the configuration")]
    UnknownPeer(PeerId),
    /// The peer says it is somebody whose configured key it does not hold.
    #[error("the caller who says it is {0:?} holds another key")]
    WrongKey(PeerId),
    /// A message is over the limit.
    #[error("a message of {bytes} bytes is over the limit of {limit}")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The connection's limit.
        limit: usize,
    },
    /// The writer holds as much as it may; flush first.
    #[error("too many bytes wait to be written")]
    Full,
    /// The stream ended inside a record or a message.
    #[error("the stream ended inside a message")]
    Truncated,
    /// A record is not what the peer sealed.
    #[error("a record was not sealed by the peer, or not as the next one")]
    Forged,
    /// A record that has room left ends inside a message or holds nothing: to open it would bring no message, and
    /// nobody would be charged for it.
    #[error("a record that is not full ends inside a message or is empty")]
    Unfilled,
    /// This machine has no randomness to offer.
    #[error("no randomness from the operating system")]
    Randomness,
}
