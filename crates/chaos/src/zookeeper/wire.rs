//! ZooKeeper's packets, as a client writes and reads them.

use super::journal::{Ask, Change, Done, Lasts, Stat};
use bytes::{Buf, Bytes, BytesMut};
use troth_zookeeper::jute::{BadRecord, Input, Output};
use troth_zookeeper::opcode;

/// The longest packet that is taken: no answer to this load is near it.
const LONGEST: usize = 4 << 20;
/// The number of an answer to a ping, of an event and of `setWatches`.
const PING: i32 = -2;
const EVENT: i32 = -1;
const REWATCH: i32 = -8;
/// All permissions.
const ALL: i32 = 31;

/// What a server answers to the first packet (`ConnectResponse`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attached {
    /// Milliseconds; 0 or less where the session is over.
    pub(crate) timeout: i32,
    pub(crate) session: i64,
    pub(crate) password: Bytes,
}

/// What a server says afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    Pong,
    Fired { zxid: i64, change: Change, path: String },
    Reply { xid: i32, zxid: i64, error: i32, body: Bytes },
}

fn framed(record: &[u8]) -> Bytes {
    let length = i32::try_from(record.len()).expect("what is asked is short");
    Bytes::from([&length.to_be_bytes()[..], record].concat())
}

/// The first packet (`ConnectRequest`).
pub(crate) fn connect(seen: i64, timeout: u32, session: i64, password: &[u8]) -> Bytes {
    let mut out = Output::new();
    out.int(0).long(seen).int(i32::try_from(timeout).unwrap_or(i32::MAX)).long(session);
    out.buffer(password).boolean(false);
    framed(&out.finish())
}

/// A sign of life.
pub(crate) fn ping() -> Bytes {
    let mut out = Output::new();
    out.int(PING).int(opcode::PING);
    framed(&out.finish())
}

/// The number under which a request is answered: its own but where the protocol has one for all.
pub(crate) fn xid(ask: &Ask, own: i32) -> i32 {
    if matches!(ask, Ask::Rewatch { .. }) { REWATCH } else { own }
}

/// A request.
pub(crate) fn request(xid: i32, ask: &Ask) -> Bytes {
    let mut out = Output::new();
    out.int(xid);
    match ask {
        Ask::Create { path, value, lasts } => {
            out.int(opcode::CREATE2).text(path).buffer(value.as_bytes());
            out.length(1).int(ALL).text("world").text("anyone");
            out.int(match lasts {
                Lasts::Always => 0,
                Lasts::Session => 1,
                Lasts::SessionNumbered => 3,
            });
        }
        Ask::Delete { path } => {
            out.int(opcode::DELETE).text(path).int(-1);
        }
        Ask::Set { path, value, expected } => {
            out.int(opcode::SET_DATA).text(path).buffer(value.as_bytes()).int(expected.unwrap_or(-1));
        }
        Ask::Get { path, watch } => {
            out.int(opcode::GET_DATA).text(path).boolean(*watch);
        }
        Ask::Exists { path, watch } => {
            out.int(opcode::EXISTS).text(path).boolean(*watch);
        }
        Ask::Children { path, watch } => {
            out.int(opcode::GET_CHILDREN2).text(path).boolean(*watch);
        }
        Ask::Rewatch { seen, data, exists, children } => {
            out.int(opcode::SET_WATCHES2).long(*seen);
            for paths in [data, exists, children] {
                out.length(paths.len());
                for path in paths {
                    out.text(path);
                }
            }
            out.length(0).length(0);
        }
        Ask::Close => {
            out.int(opcode::CLOSE_SESSION);
        }
    }
    framed(&out.finish())
}

/// Takes the first packet out of what has come, if it is there whole.
pub(crate) fn take(buffer: &mut BytesMut) -> Result<Option<Bytes>, BadRecord> {
    let Some(length) = buffer.first_chunk::<4>() else { return Ok(None) };
    let length = usize::try_from(i32::from_be_bytes(*length)).map_err(|_| BadRecord)?;
    if length > LONGEST {
        return Err(BadRecord);
    }
    if buffer.len() < 4 + length {
        return Ok(None);
    }
    buffer.advance(4);
    Ok(Some(buffer.split_to(length).freeze()))
}

/// Reads the answer to the first packet.
pub(crate) fn attached(packet: &Bytes) -> Result<Attached, BadRecord> {
    let mut input = Input::new(packet);
    let (_version, timeout, session) = (input.int()?, input.int()?, input.long()?);
    Ok(Attached { timeout, session, password: input.buffer()?.unwrap_or_default() })
}

/// Reads any other.
pub(crate) fn packet(packet: &Bytes) -> Result<Packet, BadRecord> {
    let mut input = Input::new(packet);
    let (xid, zxid, error) = (input.int()?, input.long()?, input.int()?);
    Ok(match xid {
        PING => Packet::Pong,
        EVENT => {
            let (kind, _state) = (input.int()?, input.int()?);
            let change = Change::of(kind).ok_or(BadRecord)?;
            Packet::Fired { zxid, change, path: input.text()?.unwrap_or_default() }
        }
        _ => Packet::Reply { xid, zxid, error, body: packet.slice(packet.len() - input.remaining()..) },
    })
}

fn stat(input: &mut Input<'_>) -> Result<Stat, BadRecord> {
    let (created, modified, _ctime, _mtime) = (input.long()?, input.long()?, input.long()?, input.long()?);
    let (version, _cversion, _aversion, owner) = (input.int()?, input.int()?, input.int()?, input.long()?);
    let (_length, _children, children) = (input.int()?, input.int()?, input.long()?);
    Ok(Stat { created, modified, version, owner, children })
}

/// Reads what a request without an error is answered with.
pub(crate) fn done(ask: &Ask, body: &Bytes) -> Result<Done, BadRecord> {
    let mut input = Input::new(body);
    Ok(match ask {
        Ask::Create { .. } => {
            Done::Created { path: input.text()?.ok_or(BadRecord)?, stat: stat(&mut input)? }
        }
        Ask::Set { .. } | Ask::Exists { .. } => Done::Stat(stat(&mut input)?),
        Ask::Get { .. } => {
            let value = input.buffer()?.unwrap_or_default();
            let value = String::from_utf8(value.to_vec()).map_err(|_| BadRecord)?;
            Done::Value { value, stat: stat(&mut input)? }
        }
        Ask::Children { .. } => {
            let names = input.vector(4, |input| input.text()?.ok_or(BadRecord))?.unwrap_or_default();
            Done::Children { names, stat: stat(&mut input)? }
        }
        Ask::Delete { .. } | Ask::Rewatch { .. } | Ask::Close => Done::Nothing,
    })
}
