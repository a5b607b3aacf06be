//! What a client of ZooKeeper writes and reads, as little of it as a load needs.

use bytes::{Buf, Bytes};
use troth_zookeeper::acl::perms;
use troth_zookeeper::jute::Output;
use troth_zookeeper::opcode;

/// The longest packet that is taken.
const LONGEST: usize = 4 << 20;
/// Milliseconds that a session asks for.
const SESSION: i32 = 30_000;

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    /// The number that the client gave its request.
    pub(super) xid: i32,
    /// 0 for none.
    pub(super) error: i32,
}

/// A packet: its length, then what it is.
fn packet(record: &[u8]) -> Vec<u8> {
    let length = u32::try_from(record.len()).expect("requests are short");
    [&length.to_be_bytes()[..], record].concat()
}

/// Asks for a new session.
pub(super) fn connect() -> Vec<u8> {
    let mut out = Output::new();
    out.int(0).long(0).int(SESSION).long(0).buffer(&[0; 16]).boolean(false);
    packet(&out.finish())
}

/// What of a request does not change from one to the next: its length, a place for its number, and the rest.
#[derive(Clone, Debug)]
pub(super) struct Template(Vec<u8>);

impl Template {
    fn new(code: i32, rest: &Bytes) -> Self {
        let mut out = Output::new();
        out.int(0).int(code);
        Self(packet(&[&out.finish()[..], rest].concat()))
    }

    /// Reads the data of a node.
    pub(super) fn get(path: &str) -> Self {
        let mut out = Output::new();
        out.text(path).boolean(false);
        Self::new(opcode::GET_DATA, &out.finish())
    }

    /// Writes it.
    pub(super) fn set(path: &str, data: &[u8]) -> Self {
        let mut out = Output::new();
        out.text(path).buffer(data).int(-1);
        Self::new(opcode::SET_DATA, &out.finish())
    }

    /// Makes a node that stays.
    pub(super) fn create(path: &str, data: &[u8]) -> Self {
        let mut out = Output::new();
        // One entry of its access control list, and flags: anybody may do anything, and it stays.
        out.text(path).buffer(data).length(1).int(perms::ALL).text("world").text("anyone").int(0);
        Self::new(opcode::CREATE, &out.finish())
    }

    /// Removes one.
    pub(super) fn delete(path: &str) -> Self {
        let mut out = Output::new();
        out.text(path).int(-1);
        Self::new(opcode::DELETE, &out.finish())
    }

    /// Ends the session.
    pub(super) fn close() -> Self {
        Self::new(opcode::CLOSE_SESSION, &Bytes::new())
    }

    /// Adds the request under this number.
    pub(super) fn write(&self, xid: i32, out: &mut Vec<u8>) {
        let at = out.len();
        out.extend_from_slice(&self.0);
        out[at + 4..at + 8].copy_from_slice(&xid.to_be_bytes());
    }
}

/// Takes a whole packet off the front of what came, if there is one.
pub(super) fn take<'a>(bytes: &mut &'a [u8]) -> Result<Option<&'a [u8]>, String> {
    let Some(length) = bytes.first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_be_bytes(*length) as usize;
    if length > LONGEST {
        return Err(format!("a server says that a packet has {length} bytes"));
    }
    let Some(packet) = bytes.get(4..4 + length) else { return Ok(None) };
    bytes.advance(4 + length);
    Ok(Some(packet))
}

/// Reads the head of an answer.
pub(super) fn answered(packet: &[u8]) -> Result<Answered, String> {
    let number =
        |at: usize| packet.get(at..at + 4)?.first_chunk::<4>().map(|bytes| i32::from_be_bytes(*bytes));
    match (number(0), number(12)) {
        (Some(xid), Some(error)) => Ok(Answered { xid, error }),
        _ => Err(format!("an answer of {} bytes", packet.len())),
    }
}

/// Whether a session was given, by the answer to [`connect`].
pub(super) fn accepted(packet: &[u8]) -> bool {
    // Version, time-out, session: a time-out of 0 is a refusal.
    packet.get(4..8).is_some_and(|timeout| timeout != [0; 4])
}
