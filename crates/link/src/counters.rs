//! What a connection has moved.

/// Counts of one direction of one connection, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages.
    pub messages: u64,
    /// Bytes on the wire after the handshake, encryption included.
    pub bytes: u64,
    /// Records sealed or opened, each with one authenticator.
    pub records: u64,
    /// Read or write calls that moved bytes.
    pub calls: u64,
}
