//! What a request would change, in words: for those who write down who asked for what. Secrets are left out.

use crate::acl::{Acl, digest_id};
use crate::opcode;
use crate::path::MAX_PATH;
use crate::request::{Lasting, Look, Mode, Request, Write, read};
use bytes::Bytes;
use core::fmt::Write as _;

/// The most entries of an access control list that are told.
const MOST_ENTRIES: usize = 64;
/// The most bytes of one.
const MOST_ENTRY: usize = 256;

/// One change that a request asks for, under the names of ZooKeeper's audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// `create`, `delete`, `setData`, `setAcl`, `reconfig`, `auth`, `closeSession`; `continueSequence`, which is not
    /// ZooKeeper's; `check` for that part of a transaction, which changes nothing.
    pub operation: &'static str,
    /// Of which node; cut where it is longer than any node's.
    pub path: Option<String>,
    /// Of what kind a new node shall be.
    pub kind: Option<&'static str>,
    /// Who shall be allowed what (`setAcl`), as `scheme:id:cdrwa` with commas between, each as [`without_secret`] tells it.
    pub acl: Option<String>,
    /// Who the client says that it is (`auth`), as `scheme:id`. Of `digest` the user's name alone; of other schemes, whose
    /// credentials nobody here knows, nothing.
    pub who: Option<String>,
    /// The identity of `digest` that the group would keep of the client (`auth`), with what proves it: never to be told.
    pub identity: Option<String>,
}

impl Change {
    fn of(operation: &'static str) -> Self {
        Self { operation, path: None, kind: None, acl: None, who: None, identity: None }
    }

    fn at(operation: &'static str, path: String) -> Self {
        Self { path: Some(cut(path, MAX_PATH)), ..Self::of(operation) }
    }
}

/// A text of at most so many bytes.
fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

fn kind(mode: &Mode) -> &'static str {
    match (mode.lasting, mode.sequential) {
        (Lasting::Persistent, false) => "persistent",
        (Lasting::Persistent, true) => "persistent_sequential",
        (Lasting::Ephemeral, false) => "ephemeral",
        (Lasting::Ephemeral, true) => "ephemeral_sequential",
        (Lasting::Container, _) => "container",
        (Lasting::Ttl(_), false) => "persistent_with_ttl",
        (Lasting::Ttl(_), true) => "persistent_sequential_with_ttl",
    }
}

/// An identity as `scheme:id`, without what proves it: from what stands behind the name of a user of `digest` the password can
/// be guessed, and what has no colon may be the password. Of schemes that are not known to have no secrets the name alone is
/// told: `auth` takes what clients wrongly send with it, and one that is mistyped may be any.
#[must_use]
pub fn without_secret(scheme: &str, id: &str) -> String {
    let id = match scheme {
        "world" | "ip" | "x509" | "sasl" => id,
        "digest" => id.split_once(':').map_or("", |(user, _)| user),
        _ => "",
    };
    cut(format!("{scheme}:{id}"), MOST_ENTRY)
}

fn list(acl: &[Acl]) -> String {
    let mut text = String::new();
    for entry in acl.iter().take(MOST_ENTRIES) {
        let letters = [(4, 'c'), (8, 'd'), (1, 'r'), (2, 'w'), (16, 'a')];
        let perms: String =
            letters.iter().filter(|(bit, _)| entry.perms & bit != 0).map(|(_, letter)| letter).collect();
        let comma = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{comma}{}:{perms}", without_secret(&entry.id.scheme, &entry.id.id));
    }
    text
}

fn change(write: Write) -> Change {
    match write {
        Write::Create(create) => {
            Change { kind: Some(kind(&create.mode)), ..Change::at("create", create.path) }
        }
        Write::Delete { path, .. } => Change::at("delete", path),
        Write::SetData { path, .. } => Change::at("setData", path),
        Write::SetAcl { path, acl, .. } => {
            Change { acl: Some(list(&acl.unwrap_or_default())), ..Change::at("setAcl", path) }
        }
        Write::Check { path, .. } => Change::at("check", path),
        Write::ContinueSequence { path, .. } => Change::at("continueSequence", path),
    }
}

fn auth(scheme: &str, credentials: &[u8]) -> Change {
    let credentials = String::from_utf8_lossy(credentials);
    let (shown, identity) = match scheme {
        "digest" => (&*credentials, Some(digest_id(&credentials))),
        _ => ("", None),
    };
    Change { who: Some(without_secret(scheme, shown)), identity, ..Change::of("auth") }
}

/// How a request is called whose record cannot be read.
fn name(code: i32) -> Option<&'static str> {
    Some(match code {
        opcode::CREATE | opcode::CREATE2 | opcode::CREATE_CONTAINER | opcode::CREATE_TTL => "create",
        opcode::DELETE => "delete",
        opcode::SET_DATA => "setData",
        opcode::SET_ACL => "setAcl",
        opcode::CONTINUE_SEQUENCE => "continueSequence",
        opcode::MULTI => "multiOperation",
        opcode::RECONFIG => "reconfig",
        opcode::AUTH => "auth",
        opcode::CLOSE_SESSION => "closeSession",
        _ => return None,
    })
}

/// Whether a request with this code may change nodes or sessions. What only watches is none.
#[must_use]
pub fn may_change(code: i32) -> bool {
    name(code).is_some()
}

/// The changes that a request asks for, in order: of a transaction those of all its parts. Nothing where it asks for none; the
/// name alone where its record cannot be read.
#[must_use]
pub fn changes(code: i32, body: &Bytes) -> Vec<Change> {
    let Some(name) = name(code) else { return Vec::new() };
    match read(code, body) {
        Ok(Request::Write(write)) => vec![change(write)],
        Ok(Request::Multi(writes)) => writes.into_iter().map(change).collect(),
        Ok(Request::Auth { scheme, credentials }) => vec![auth(&scheme, &credentials)],
        Ok(_) | Err(_) => vec![Change::of(name)],
    }
}

/// The path that a request is about, the first where there are several; cut where it is longer than any node's.
#[must_use]
pub fn path_of(code: i32, body: &Bytes) -> Option<String> {
    let of_look = |look: Look| match look {
        Look::Exists { path }
        | Look::Data { path }
        | Look::Children { path, .. }
        | Look::Acl { path }
        | Look::Descendants { path } => Some(path),
        Look::Ephemerals { prefix } => Some(prefix),
        Look::Who => None,
    };
    let path = match read(code, body) {
        Ok(Request::Look { look, .. }) => of_look(look),
        Ok(Request::MultiRead(looks)) => looks.into_iter().find_map(of_look),
        Ok(Request::Write(write)) => change(write).path,
        Ok(Request::Multi(writes)) => writes.into_iter().find_map(|write| change(write).path),
        Ok(Request::Sync { path } | Request::AddWatch { path, .. } | Request::Watched { path, .. }) => {
            Some(path)
        }
        Ok(
            Request::Auth { .. } | Request::Rewatch(_) | Request::Reconfig | Request::Ping | Request::Close,
        ) => None,
        Err(_) => None,
    };
    path.map(|path| cut(path, MAX_PATH))
}
