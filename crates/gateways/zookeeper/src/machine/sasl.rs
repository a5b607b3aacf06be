//! SASL with the mechanism DIGEST-MD5 (RFC 2831), quality `auth`: a client proves that it knows a user's password. Names and
//! passwords are compared as UTF-8.

use super::connection::Connection;
use super::line::{Pending, Reply, State, What};
use super::measures::{Ended, Refused, Times};
use super::{ConnectionId, Machine};
use bytes::Bytes;
use core::fmt::Write;
use md5::{Digest, Md5};
use std::collections::BTreeMap;
use troth_types::{Time, Wire};
use troth_zookeeper::acl::Id;
use troth_zookeeper::jute::{Input, Output};
use troth_zookeeper::{Code, Operation};

/// The realm and the service that ZooKeeper's servers name.
const REALM: &str = "zk-sasl-md5";
const SERVICE: &str = "zookeeper/";
/// The longest token of a client.
const MAX_TOKEN: usize = 4096;

/// How far a connection is with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sasl {
    /// Nothing was said.
    #[default]
    Begins,
    /// The client was given a nonce.
    Challenged,
    /// It has used it.
    Over,
}

/// The fields of a client's token, each once.
pub(crate) fn read_fields(token: &[u8]) -> Option<BTreeMap<String, String>> {
    let text = std::str::from_utf8(token).ok().filter(|text| text.len() <= MAX_TOKEN)?;
    let (mut fields, mut rest) = (BTreeMap::new(), text.trim());
    while !rest.is_empty() {
        let (name, behind) = rest.split_once('=')?;
        let (value, behind) = match behind.strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let end = behind.find(',').unwrap_or(behind.len());
                (behind[..end].trim().to_owned(), &behind[end..])
            }
        };
        if fields.insert(name.trim().to_owned(), value).is_some() {
            return None;
        }
        let behind = behind.trim_start();
        rest = if behind.is_empty() { behind } else { behind.strip_prefix(',')?.trim_start() };
    }
    Some(fields)
}

/// What stands up to the closing quotation mark, and what stands behind it.
fn unquote(quoted: &str) -> Option<(String, &str)> {
    let (mut value, mut characters) = (String::new(), quoted.char_indices());
    loop {
        match characters.next()? {
            (at, '"') => return Some((value, &quoted[at + 1..])),
            (_, '\\') => value.push(characters.next()?.1),
            (_, other) => value.push(other),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn nonce(connection: &Connection) -> String {
    hex(&connection.random[16..])
}

fn challenge(nonce: &str) -> String {
    format!("realm=\"{REALM}\",nonce=\"{nonce}\",qop=\"auth\",charset=utf-8,algorithm=md5-sess")
}

/// The user that a token proves, and the server's own proof.
fn prove(users: &BTreeMap<String, String>, nonce: &str, token: &[u8]) -> Option<(String, String)> {
    let fields = read_fields(token)?;
    let field = |name: &str| fields.get(name).map(String::as_str);
    let user = field("username")?;
    let password = users.get(user)?;
    let (count, own_nonce, uri) = (field("nc")?, field("cnonce")?, field("digest-uri")?);
    rule!("ZKG-A1");
    // The nonce and the realm are compared with the proof, which is made of these.
    let fits = count == "00000001"
        && field("qop").unwrap_or("auth") == "auth"
        && uri.starts_with(SERVICE)
        // Nobody is somebody else here.
        && field("authzid").is_none_or(|other| other == user);
    if !fits {
        return None;
    }
    let secret = Md5::digest(format!("{user}:{REALM}:{password}"));
    let mut first = Md5::new();
    first.update(secret);
    first.update(format!(":{nonce}:{own_nonce}"));
    if let Some(other) = field("authzid") {
        first.update(format!(":{other}"));
    }
    let first = hex(&first.finalize());
    let proof = |second: &str| {
        let second = hex(&Md5::digest(format!("{second}:{uri}")));
        hex(&Md5::digest(format!("{first}:{nonce}:{count}:{own_nonce}:auth:{second}")))
    };
    let matches = field("response")?.eq_ignore_ascii_case(&proof("AUTHENTICATE"));
    matches.then(|| (user.to_owned(), format!("rspauth={}", proof(""))))
}

/// The record of an answer with a token.
fn record(token: &[u8]) -> Bytes {
    let mut out = Output::new();
    out.buffer(token);
    out.finish()
}

/// The record of one without.
pub(super) fn no_token() -> Bytes {
    let mut out = Output::new();
    out.int(-1);
    out.finish()
}

impl Machine {
    /// A token of a client that has a session.
    pub(super) fn sasl(&mut self, now: Time, id: ConnectionId, xid: i32, bytes: usize, body: &Bytes) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let Ok(token) = Input::new(body).buffer() else {
            self.measures.refuse(Refused::Malformed);
            return self.end(id, false, Ended::Malformed);
        };
        let (nonce, stage) = (nonce(connection), connection.sasl);
        let Some(session) = connection.session() else { return };
        let at = session.at;
        let settled = |body, error, last| {
            let reply = Reply { zxid: 0, error, body, last };
            (What::Identify(Bytes::new()), Bytes::new(), State::Settled(reply))
        };
        let (what, operation, state);
        let mut disproved = None;
        match (stage, token.unwrap_or_default()) {
            (Sasl::Begins, token) if token.is_empty() && !self.settings.users.is_empty() => {
                connection.sasl = Sasl::Challenged;
                (what, operation, state) = settled(record(challenge(&nonce).as_bytes()), 0, false);
            }
            (stage, token) => {
                connection.sasl = Sasl::Over;
                let proven = prove(&self.settings.users, &nonce, &token);
                rule!("ZKG-A2");
                match proven.filter(|_| stage == Sasl::Challenged) {
                    Some((user, proof)) => {
                        what = What::Identify(record(proof.as_bytes()));
                        operation = Operation::Identify { at, id: Id::new("sasl", &user) }.to_wire();
                        state = State::Waiting;
                    }
                    None => {
                        let said = read_fields(&token).and_then(|mut fields| fields.remove("username"));
                        disproved = Some(said.unwrap_or_default());
                        let error = Code::AuthFailed.number();
                        (what, operation, state) = settled(no_token(), error, true);
                    }
                }
            }
        }
        let pending = Pending {
            xid,
            what,
            bytes,
            since: now,
            operation,
            reads: false,
            gathers: false,
            may_be_long: false,
            repeats: false,
            alone: false,
            ends: true,
            watches: false,
            times: Times::default(),
            state,
        };
        self.wait(id, pending);
        if let Some(user) = disproved {
            self.audit_disproved(now, id, &user);
        }
    }
}
