//! Requests as the model reads them: once more from the records, so that nothing is shared with what it judges but the
//! fields themselves.

use bytes::Bytes;
use troth_zookeeper::acl::{Acl, Id, MAX_ENTRIES, MAX_ID};
use troth_zookeeper::jute::{BadRecord, Input};
use troth_zookeeper::{Code, opcode};

/// The longest time to live: what is left of a number of 64 bits beside the marks in its two highest bytes, with one to spare.
const LONGEST_TTL: i64 = 0xff_ffff_ffff;

/// How a new node stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Persistent,
    Ephemeral,
    Container,
    Ttl(i64),
}

/// A step of a transaction, or all of it.
#[derive(Clone, Debug)]
pub enum Write {
    Create {
        path: String,
        data: Bytes,
        acl: Vec<Acl>,
        kind: Kind,
        numbered: bool,
        wants_stat: bool,
    },
    Delete {
        path: String,
        version: i32,
    },
    SetData {
        path: String,
        data: Bytes,
        version: i32,
    },
    SetAcl {
        path: String,
        acl: Vec<Acl>,
        version: i32,
    },
    Check {
        path: String,
        version: i32,
    },
    /// Sequential children go on at this number, if they are not past it.
    GoOn {
        path: String,
        number: i32,
    },
}

/// A read.
#[derive(Clone, Debug)]
pub enum Look {
    Exists(String),
    Data(String),
    Children { path: String, wants_stat: bool },
    Acl(String),
    Ephemerals(String),
    Descendants(String),
    Who,
}

/// Which watches of a path are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meant {
    Children,
    Data,
    All,
    Persistent,
    Recursive,
}

/// A request.
#[derive(Clone, Debug)]
pub enum Ask {
    Write(Write),
    Look {
        look: Look,
        watch: bool,
    },
    Multi(Vec<Write>),
    MultiRead(Vec<Look>),
    Sync(String),
    Auth {
        scheme: String,
        credentials: Bytes,
    },
    /// Data, exists, children, persistent, recursive.
    Rewatch {
        seen: i64,
        lists: [Vec<String>; 5],
    },
    AddWatch {
        path: String,
        recursive: bool,
    },
    Watched {
        path: String,
        meant: Meant,
        remove: bool,
    },
    Reconfig,
    Ping,
    Close,
}

type Read<T> = Result<T, Code>;

fn bad(_: BadRecord) -> Code {
    Code::MarshallingError
}

fn text(input: &mut Input<'_>) -> Read<String> {
    Ok(input.text().map_err(bad)?.unwrap_or_default())
}

fn bytes(input: &mut Input<'_>) -> Read<Bytes> {
    Ok(input.buffer().map_err(bad)?.unwrap_or_default())
}

fn int(input: &mut Input<'_>) -> Read<i32> {
    input.int().map_err(bad)
}

fn texts(input: &mut Input<'_>) -> Read<Vec<String>> {
    let one = |input: &mut Input<'_>| Ok(input.text()?.unwrap_or_default());
    Ok(input.vector(4, one).map_err(bad)?.unwrap_or_default())
}

fn acl(input: &mut Input<'_>) -> Read<Vec<Acl>> {
    let name = |input: &mut Input<'_>| {
        let name = input.text()?.ok_or(BadRecord)?;
        if name.len() > MAX_ID { Err(BadRecord) } else { Ok(name) }
    };
    let entry = |input: &mut Input<'_>| {
        let perms = input.int()?;
        Ok(Acl { perms, id: Id { scheme: name(input)?, id: name(input)? } })
    };
    let list = input.vector(12, entry).map_err(bad)?.unwrap_or_default();
    if list.len() > MAX_ENTRIES { Err(Code::InvalidAcl) } else { Ok(list) }
}

fn create(code: i32, input: &mut Input<'_>) -> Read<Write> {
    let (path, data, acl, flags) = (text(input)?, bytes(input)?, acl(input)?, int(input)?);
    let with_ttl = code == opcode::CREATE_TTL;
    let ttl = if with_ttl { input.long().map_err(bad)? } else { 0 };
    let kind = match flags {
        0 | 2 if !with_ttl => Kind::Persistent,
        1 | 3 if !with_ttl => Kind::Ephemeral,
        4 if !with_ttl => Kind::Container,
        5 | 6 if with_ttl && ttl > 0 && ttl <= LONGEST_TTL => Kind::Ttl(ttl),
        _ => return Err(Code::BadArguments),
    };
    let numbered = matches!(flags, 2 | 3 | 6);
    Ok(Write::Create { path, data, acl, kind, numbered, wants_stat: code != opcode::CREATE })
}

fn write(code: i32, input: &mut Input<'_>) -> Option<Read<Write>> {
    let run = |input: &mut Input<'_>| {
        Ok(match code {
            opcode::DELETE => Write::Delete { path: text(input)?, version: int(input)? },
            opcode::SET_DATA => {
                Write::SetData { path: text(input)?, data: bytes(input)?, version: int(input)? }
            }
            opcode::SET_ACL => Write::SetAcl { path: text(input)?, acl: acl(input)?, version: int(input)? },
            opcode::CHECK => Write::Check { path: text(input)?, version: int(input)? },
            opcode::CONTINUE_SEQUENCE => {
                let (path, number) = (text(input)?, int(input)?);
                if number.is_negative() {
                    return Err(Code::BadArguments);
                }
                Write::GoOn { path, number }
            }
            _ => create(code, input)?,
        })
    };
    matches!(
        code,
        opcode::CREATE
            | opcode::CREATE2
            | opcode::CREATE_CONTAINER
            | opcode::CREATE_TTL
            | opcode::DELETE
            | opcode::SET_DATA
            | opcode::SET_ACL
            | opcode::CHECK
            | opcode::CONTINUE_SEQUENCE
    )
    .then(|| run(input))
}

fn look(code: i32, input: &mut Input<'_>) -> Option<Read<Look>> {
    Some(match code {
        opcode::EXISTS => text(input).map(Look::Exists),
        opcode::GET_DATA => text(input).map(Look::Data),
        opcode::GET_CHILDREN => text(input).map(|path| Look::Children { path, wants_stat: false }),
        opcode::GET_CHILDREN2 => text(input).map(|path| Look::Children { path, wants_stat: true }),
        opcode::GET_ACL => text(input).map(Look::Acl),
        opcode::GET_EPHEMERALS => text(input).map(Look::Ephemerals),
        opcode::GET_ALL_CHILDREN_NUMBER => text(input).map(Look::Descendants),
        opcode::WHO_AM_I => Ok(Look::Who),
        _ => return None,
    })
}

/// What stands behind headers, up to the header that says that nothing follows.
fn steps<T>(input: &mut Input<'_>, one: impl Fn(i32, &mut Input<'_>) -> Read<T>) -> Read<Vec<T>> {
    let mut all = Vec::new();
    loop {
        let code = int(input)?;
        let last = input.boolean().map_err(bad)?;
        int(input)?;
        if last {
            return Ok(all);
        }
        all.push(one(code, input)?);
    }
}

/// Whether a text lists servers with their numbers and addresses, or is empty.
fn are_servers(text: &str) -> bool {
    text.is_empty()
        || text.replace('\n', ",").split(',').all(|server| match server.trim().split_once('=') {
            Some((name, address)) => {
                let number = name.strip_prefix("server.").map(str::parse::<u64>);
                matches!(number, Some(Ok(_))) && address.contains(':')
            }
            None => false,
        })
}

/// Reads a request.
pub fn read(code: i32, body: &Bytes) -> Read<Ask> {
    let input = &mut Input::new(body);
    if let Some(look) = look(code, input) {
        let look = look?;
        let says_watch =
            !matches!(look, Look::Acl(_) | Look::Ephemerals(_) | Look::Descendants(_) | Look::Who);
        let watch = says_watch && input.boolean().map_err(bad)?;
        return Ok(Ask::Look { look, watch });
    }
    if let Some(write) = write(code, input) {
        return write.map(Ask::Write);
    }
    Ok(match code {
        opcode::MULTI => Ask::Multi(steps(input, |code, input| match write(code, input) {
            Some(Ok(Write::SetAcl { .. } | Write::GoOn { .. })) | None => Err(Code::MarshallingError),
            Some(step) => step,
        })?),
        opcode::MULTI_READ => Ask::MultiRead(steps(input, |code, input| match look(code, input) {
            Some(Ok(look @ (Look::Data(_) | Look::Children { wants_stat: false, .. }))) => {
                input.boolean().map_err(bad)?;
                Ok(look)
            }
            _ => Err(Code::MarshallingError),
        })?),
        opcode::SYNC => Ask::Sync(text(input)?),
        opcode::AUTH => {
            int(input)?;
            Ask::Auth { scheme: text(input)?, credentials: bytes(input)? }
        }
        opcode::SET_WATCHES | opcode::SET_WATCHES2 => {
            let seen = input.long().map_err(bad)?;
            let mut lists = [texts(input)?, texts(input)?, texts(input)?, Vec::new(), Vec::new()];
            if code == opcode::SET_WATCHES2 {
                lists[3] = texts(input)?;
                lists[4] = texts(input)?;
            }
            Ask::Rewatch { seen, lists }
        }
        opcode::ADD_WATCH => {
            let path = text(input)?;
            let mode = int(input)?;
            if !matches!(mode, 0 | 1) {
                return Err(Code::BadArguments);
            }
            Ask::AddWatch { path, recursive: mode == 1 }
        }
        opcode::CHECK_WATCHES | opcode::REMOVE_WATCHES => {
            let path = text(input)?;
            let meant = match int(input)? {
                1 => Meant::Children,
                2 => Meant::Data,
                3 => Meant::All,
                4 => Meant::Persistent,
                5 => Meant::Recursive,
                _ => return Err(Code::BadArguments),
            };
            Ask::Watched { path, meant, remove: code == opcode::REMOVE_WATCHES }
        }
        opcode::RECONFIG => {
            let (joining, leaving, all) = (text(input)?, text(input)?, text(input)?);
            input.long().map_err(bad)?;
            let numbers = |text: &str| text.split(',').all(|number| number.trim().parse::<u64>().is_ok());
            if !are_servers(&joining) || !are_servers(&all) || !(leaving.is_empty() || numbers(&leaving)) {
                return Err(Code::BadArguments);
            }
            Ask::Reconfig
        }
        opcode::PING => Ask::Ping,
        opcode::CLOSE_SESSION => Ask::Close,
        _ => return Err(Code::Unimplemented),
    })
}
