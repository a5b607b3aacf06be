//! The requests of clients (`zookeeper.jute` of 3.9).

use crate::acl::{Acl, MAX_ENTRIES};
use crate::jute::{BadRecord, Input};
use crate::{Code, opcode};
use bytes::Bytes;

/// The most operations of one transaction.
pub const MAX_OPERATIONS: usize = 1 << 16;

/// What a new node shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Create {
    pub(crate) path: String,
    pub(crate) data: Option<Bytes>,
    pub(crate) acl: Option<Vec<Acl>>,
    pub(crate) mode: Mode,
    /// Whether the answer has the node's stat.
    pub(crate) shows_stat: bool,
}

/// How it shall stay (`CreateMode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    pub(crate) lasting: Lasting,
    /// Whether a number is put behind its name.
    pub(crate) sequential: bool,
}

/// See [`Stay`](crate::node::Stay), before it is known whose session it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lasting {
    Persistent,
    Ephemeral,
    Container,
    Ttl(i64),
}

/// An operation that changes the tree, or is part of a transaction that does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Create(Create),
    Delete {
        path: String,
        version: i32,
    },
    SetData {
        path: String,
        data: Option<Bytes>,
        version: i32,
    },
    SetAcl {
        path: String,
        acl: Option<Vec<Acl>>,
        version: i32,
    },
    /// At least so many children were created below this node, here or where it was imported from.
    ContinueSequence {
        path: String,
        creations: i32,
    },
    Check {
        path: String,
        version: i32,
    },
}

/// One that reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Exists { path: String },
    Data { path: String },
    Children { path: String, shows_stat: bool },
    Acl { path: String },
    Ephemerals { prefix: String },
    Descendants { path: String },
    Who,
}

/// What a watch is put on.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Rewatch {
    /// The last transaction that the client has seen.
    pub(crate) seen: i64,
    pub(crate) data: Vec<String>,
    pub(crate) exists: Vec<String>,
    pub(crate) children: Vec<String>,
    pub(crate) persistent: Vec<String>,
    pub(crate) recursive: Vec<String>,
}

/// Which watches are meant (`Watcher.WatcherType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watches {
    Children,
    Data,
    Any,
    Persistent,
    Recursive,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Write(Write),
    Look {
        look: Look,
        watch: bool,
    },
    Multi(Vec<Write>),
    MultiRead(Vec<Look>),
    Sync {
        path: String,
    },
    Auth {
        scheme: String,
        credentials: Bytes,
    },
    Rewatch(Rewatch),
    AddWatch {
        path: String,
        recursive: bool,
    },
    /// Whether there is such a watch; it goes where `remove` says so.
    Watched {
        path: String,
        which: Watches,
        remove: bool,
    },
    /// Other servers; nobody gets them this way.
    Reconfig,
    Ping,
    Close,
}

fn path(input: &mut Input<'_>) -> Result<String, BadRecord> {
    // A null path is no path; what checks it says so.
    Ok(input.text()?.unwrap_or_default())
}

fn acl(input: &mut Input<'_>) -> Result<Option<Vec<Acl>>, Wrong> {
    let list = input.vector(12, Acl::read)?;
    let long = list.as_ref().is_some_and(|list| list.len() > MAX_ENTRIES);
    if long { Err(Wrong::Code(Code::InvalidAcl)) } else { Ok(list) }
}

fn paths(input: &mut Input<'_>) -> Result<Vec<String>, BadRecord> {
    Ok(input.vector(4, path)?.unwrap_or_default())
}

/// What of a record is unreadable, or asks for what there is not.
enum Wrong {
    Record,
    Code(Code),
}

impl From<BadRecord> for Wrong {
    fn from(_: BadRecord) -> Self {
        Self::Record
    }
}

impl From<Wrong> for Code {
    fn from(wrong: Wrong) -> Self {
        match wrong {
            Wrong::Record => Self::MarshallingError,
            Wrong::Code(code) => code,
        }
    }
}

fn create(code: i32, input: &mut Input<'_>) -> Result<Create, Wrong> {
    let (path, data, acl, flags) = (path(input)?, input.buffer()?, acl(input)?, input.int()?);
    let ttl = if code == opcode::CREATE_TTL { Some(input.long()?) } else { None };
    let (lasting, sequential) = match (flags, ttl) {
        (0, None) => (Lasting::Persistent, false),
        (1, None) => (Lasting::Ephemeral, false),
        (2, None) => (Lasting::Persistent, true),
        (3, None) => (Lasting::Ephemeral, true),
        (4, None) => (Lasting::Container, false),
        (5 | 6, Some(ttl)) if (1..=crate::node::MAX_TTL).contains(&ttl) => (Lasting::Ttl(ttl), flags == 6),
        _ => return Err(Wrong::Code(Code::BadArguments)),
    };
    let shows_stat = code != opcode::CREATE;
    Ok(Create { path, data, acl, mode: Mode { lasting, sequential }, shows_stat })
}

fn write(code: i32, input: &mut Input<'_>) -> Result<Option<Write>, Wrong> {
    Ok(Some(match code {
        opcode::CREATE | opcode::CREATE2 | opcode::CREATE_CONTAINER | opcode::CREATE_TTL => {
            Write::Create(create(code, input)?)
        }
        opcode::DELETE => Write::Delete { path: path(input)?, version: input.int()? },
        opcode::SET_DATA => {
            Write::SetData { path: path(input)?, data: input.buffer()?, version: input.int()? }
        }
        opcode::SET_ACL => Write::SetAcl { path: path(input)?, acl: acl(input)?, version: input.int()? },
        opcode::CHECK => Write::Check { path: path(input)?, version: input.int()? },
        opcode::CONTINUE_SEQUENCE => {
            let (path, creations) = (path(input)?, input.int()?);
            if creations < 0 {
                return Err(Wrong::Code(Code::BadArguments));
            }
            Write::ContinueSequence { path, creations }
        }
        _ => return Ok(None),
    }))
}

fn look(code: i32, input: &mut Input<'_>) -> Result<Option<Look>, Wrong> {
    Ok(Some(match code {
        opcode::EXISTS => Look::Exists { path: path(input)? },
        opcode::GET_DATA => Look::Data { path: path(input)? },
        opcode::GET_CHILDREN => Look::Children { path: path(input)?, shows_stat: false },
        opcode::GET_CHILDREN2 => Look::Children { path: path(input)?, shows_stat: true },
        opcode::GET_ACL => Look::Acl { path: path(input)? },
        opcode::GET_EPHEMERALS => Look::Ephemerals { prefix: path(input)? },
        opcode::GET_ALL_CHILDREN_NUMBER => Look::Descendants { path: path(input)? },
        opcode::WHO_AM_I => Look::Who,
        _ => return Ok(None),
    }))
}

/// Whether a read of this kind says if it watches.
fn watches(code: i32) -> bool {
    matches!(code, opcode::EXISTS | opcode::GET_DATA | opcode::GET_CHILDREN | opcode::GET_CHILDREN2)
}

/// The operations of a transaction, each behind a header, up to the last header.
fn operations<T>(
    input: &mut Input<'_>,
    mut one: impl FnMut(i32, &mut Input<'_>) -> Result<T, Wrong>,
) -> Result<Vec<T>, Wrong> {
    let mut all = Vec::new();
    loop {
        let (code, done, _) = (input.int()?, input.boolean()?, input.int()?);
        if done {
            return Ok(all);
        }
        if all.len() == MAX_OPERATIONS {
            return Err(Wrong::Record);
        }
        all.push(one(code, input)?);
    }
}

/// Whether these are servers as ZooKeeper writes them: `server.N=…` with commas or lines between, or none at all.
fn names_servers(text: &str) -> bool {
    let is_server = |part: &str| {
        let number = part.trim().strip_prefix("server.").and_then(|rest| rest.split_once('='));
        number.is_some_and(|(number, place)| number.parse::<u64>().is_ok() && place.contains(':'))
    };
    text.is_empty() || text.split([',', '\n']).all(is_server)
}

/// Whether these are the numbers of servers, or none.
fn numbers_servers(text: &str) -> bool {
    text.is_empty() || text.split(',').all(|number| number.trim().parse::<u64>().is_ok())
}

/// Reads the record of a request; what is behind it does not matter, as for ZooKeeper.
pub(crate) fn read(code: i32, body: &Bytes) -> Result<Request, Code> {
    Ok(request(code, &mut Input::new(body))?)
}

fn request(code: i32, input: &mut Input<'_>) -> Result<Request, Wrong> {
    if let Some(look) = look(code, input)? {
        let watch = watches(code) && input.boolean()?;
        return Ok(Request::Look { look, watch });
    }
    if let Some(write) = write(code, input)? {
        return Ok(Request::Write(write));
    }
    let unknown = || Wrong::Code(Code::Unimplemented);
    Ok(match code {
        opcode::MULTI => {
            let part = |code, input: &mut Input<'_>| match write(code, input)? {
                None | Some(Write::SetAcl { .. } | Write::ContinueSequence { .. }) => Err(Wrong::Record),
                Some(write) => Ok(write),
            };
            Request::Multi(operations(input, part)?)
        }
        opcode::MULTI_READ => {
            let part = |code, input: &mut Input<'_>| match look(code, input)? {
                Some(look @ (Look::Data { .. } | Look::Children { shows_stat: false, .. })) => {
                    input.boolean()?;
                    Ok(look)
                }
                _ => Err(Wrong::Record),
            };
            Request::MultiRead(operations(input, part)?)
        }
        opcode::SYNC => Request::Sync { path: path(input)? },
        opcode::AUTH => {
            input.int()?;
            Request::Auth { scheme: path(input)?, credentials: input.buffer()?.unwrap_or_default() }
        }
        opcode::SET_WATCHES | opcode::SET_WATCHES2 => {
            let (seen, data, exists) = (input.long()?, paths(input)?, paths(input)?);
            let mut rewatch = Rewatch { seen, data, exists, children: paths(input)?, ..Rewatch::default() };
            if code == opcode::SET_WATCHES2 {
                (rewatch.persistent, rewatch.recursive) = (paths(input)?, paths(input)?);
            }
            Request::Rewatch(rewatch)
        }
        opcode::ADD_WATCH => {
            let path = path(input)?;
            let recursive = match input.int()? {
                0 => false,
                1 => true,
                _ => return Err(Wrong::Code(Code::BadArguments)),
            };
            Request::AddWatch { path, recursive }
        }
        opcode::CHECK_WATCHES | opcode::REMOVE_WATCHES => {
            let path = path(input)?;
            let which = match input.int()? {
                1 => Watches::Children,
                2 => Watches::Data,
                3 => Watches::Any,
                4 => Watches::Persistent,
                5 => Watches::Recursive,
                _ => return Err(Wrong::Code(Code::BadArguments)),
            };
            Request::Watched { path, which, remove: code == opcode::REMOVE_WATCHES }
        }
        opcode::RECONFIG => {
            let servers = (path(input)?, path(input)?, path(input)?);
            input.long()?;
            if !names_servers(&servers.0) || !numbers_servers(&servers.1) || !names_servers(&servers.2) {
                return Err(Wrong::Code(Code::BadArguments));
            }
            Request::Reconfig
        }
        opcode::PING => Request::Ping,
        opcode::CLOSE_SESSION => Request::Close,
        _ => return Err(unknown()),
    })
}

/// Whether a request changes nothing and watches nothing, so that it need not be ordered. One that is none may be either.
#[must_use]
pub fn only_reads(code: i32, body: &Bytes) -> bool {
    match read(code, body) {
        Ok(Request::Look { watch, .. }) => !watch,
        Ok(Request::MultiRead(_) | Request::Ping) => true,
        _ => false,
    }
}

/// Whether a request shows a list that may be too long to be shown.
#[must_use]
pub fn may_be_long(code: i32, body: &Bytes) -> bool {
    !looks_at_one(code) && matches!(read(code, body), Ok(Request::Look { .. } | Request::MultiRead(_)))
}

/// Whether requests with this code that change and watch nothing ([`only_reads`]) show one node, or who asks, and no list of
/// nodes that could be long: they may stand together in one [`Operation::Reads`](crate::Operation::Reads).
#[must_use]
pub fn looks_at_one(code: i32) -> bool {
    matches!(code, opcode::EXISTS | opcode::GET_DATA | opcode::GET_ACL | opcode::WHO_AM_I)
}
