//! ZooKeeper's packets, as far as a gateway looks into them.

use bytes::Bytes;
use troth_zookeeper::Password;
use troth_zookeeper::jute::{BadRecord, Input};

/// The transaction number of an answer to a ping.
pub(crate) const PING_XID: i32 = -2;
/// That of an event.
pub(crate) const EVENT_XID: i32 = -1;
/// `KeeperState.SyncConnected`: the only state of which events speak.
const SYNC_CONNECTED: i32 = 3;

/// The first packet of a client (`ConnectRequest`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectRequest {
    /// The last transaction that it was shown.
    pub(crate) seen: i64,
    /// The time-out that it wishes, in milliseconds.
    pub(crate) timeout: i32,
    /// Its session; 0 for a new one.
    pub(crate) session: i64,
    /// The session's password.
    pub(crate) password: Bytes,
    /// Whether it would take an answer from a server that only reads; old clients do not say.
    pub(crate) read_only: Option<bool>,
}

/// Reads the first packet of a client.
pub(crate) fn read_connect(packet: &Bytes) -> Result<ConnectRequest, BadRecord> {
    let mut input = Input::new(packet);
    let (_version, seen, timeout, session) = (input.int()?, input.long()?, input.int()?, input.long()?);
    let password = input.buffer()?.unwrap_or_default();
    Ok(ConnectRequest { seen, timeout, session, password, read_only: input.boolean().ok() })
}

/// Any other packet: its transaction number, its operation, and the record.
pub(crate) fn read_request(packet: &Bytes) -> Result<(i32, i32, Bytes), BadRecord> {
    let mut input = Input::new(packet);
    let (xid, code) = (input.int()?, input.int()?);
    Ok((xid, code, packet.slice(packet.len() - input.remaining()..)))
}

/// A packet behind its length.
fn framed(capacity: usize, fill: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut out = Vec::with_capacity(4 + capacity);
    out.extend_from_slice(&[0; 4]);
    fill(&mut out);
    let length = i32::try_from(out.len() - 4).expect("what is written is bounded far below");
    out[..4].copy_from_slice(&length.to_be_bytes());
    Bytes::from(out)
}

fn header(out: &mut Vec<u8>, xid: i32, zxid: i64, error: i32) {
    out.extend_from_slice(&xid.to_be_bytes());
    out.extend_from_slice(&zxid.to_be_bytes());
    out.extend_from_slice(&error.to_be_bytes());
}

fn buffer(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = i32::try_from(bytes.len()).expect("what is written is bounded far below");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
}

/// A reply.
pub(crate) fn reply(xid: i32, zxid: i64, error: i32, body: &[u8]) -> Bytes {
    framed(16 + body.len(), |out| {
        header(out, xid, zxid, error);
        out.extend_from_slice(body);
    })
}

/// An event (`WatcherEvent`), with the transaction that brought it about, as 3.9 says it.
pub(crate) fn event(zxid: i64, kind: i32, path: &str) -> Bytes {
    framed(28 + path.len(), |out| {
        header(out, EVENT_XID, zxid, 0);
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(&SYNC_CONNECTED.to_be_bytes());
        buffer(out, path.as_bytes());
    })
}

/// The answer to a client's first packet (`ConnectResponse`).
pub(crate) fn connected(timeout: i32, session: i64, password: &Password, says_read_only: bool) -> Bytes {
    framed(37, |out| {
        out.extend_from_slice(&0_i32.to_be_bytes());
        out.extend_from_slice(&timeout.to_be_bytes());
        out.extend_from_slice(&session.to_be_bytes());
        buffer(out, password);
        if says_read_only {
            out.push(0);
        }
    })
}

/// The answer to a client whose session is over, or never was.
pub(crate) fn refused(says_read_only: bool) -> Bytes {
    connected(0, 0, &[0; 16], says_read_only)
}
