//! One of the two trees, as a client of its server sees it.

use crate::failure::{Failure, NOT_DONE};
use bytes::Bytes;
use std::net::SocketAddr;
use tokio::net::TcpSocket;
use troth_zookeeper::acl::Acl;
use troth_zookeeper::jute::{BadRecord, Output};
use troth_zookeeper::{Code, opcode};
use troth_zookeeper_client::wire::{self, Kind, Stat};
use troth_zookeeper_client::{Connection, Lost, Pending, Refusal, Reply, Tls};

/// The longest answer that is taken, in bytes. Troth shows at most 2 MiB at once, and keeps no node with more, so that
/// nothing whose answer is longer could be imported.
const LONGEST: usize = (2 << 20) + (64 << 10);

/// Why a node was not read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// What the server says.
    Refused(i32),
    /// The answer has so many bytes.
    AnswerTooLong(usize),
    /// The request would have so many bytes.
    RequestTooLong(usize),
    /// The answer is none.
    Strange,
}

impl Wrong {
    pub(super) fn is(self, code: Code) -> bool {
        self == Self::Refused(code.number())
    }
}

impl From<BadRecord> for Wrong {
    fn from(_: BadRecord) -> Self {
        Self::Strange
    }
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let code = match self {
            Self::Refused(code) => *code,
            Self::AnswerTooLong(bytes) => {
                return write!(f, "the answer has {bytes} bytes; Troth shows at most 2 MiB at once");
            }
            Self::RequestTooLong(bytes) => {
                return write!(f, "it takes {bytes} bytes in one packet, more than the group takes");
            }
            Self::Strange => return write!(f, "the answer is no record of ZooKeeper's"),
        };
        let known = [
            (Code::NoNode, "it is not there"),
            (Code::NoAuth, "no permission; give the superuser's credentials (--from-digest, --to-digest)"),
            (Code::NodeExists, "it is there already"),
            (Code::NotEmpty, "it has children"),
            (Code::NoChildrenForEphemerals, "what is above it is ephemeral there"),
            (
                Code::InvalidAcl,
                "its access control list has a scheme or an identity that Troth does not know, or more than 128 entries or \
                 8 KiB; shorten it at the ensemble and import again",
            ),
            (
                Code::BadArguments,
                "its path is longer than 4,000 bytes, deeper than 256 steps, or has characters that none may have",
            ),
            (Code::MarshallingError, "it is larger than what is taken, or shown, at once"),
            (Code::QuotaExceeded, "a quota that is enforced, or a bound, would be passed"),
        ];
        match known.iter().find(|(known, _)| known.number() == code) {
            Some((_, words)) => write!(f, "{words}"),
            None => write!(f, "error {code}"),
        }
    }
}

/// A node, without its children.
#[derive(Clone, Debug)]
pub(super) struct Copy {
    pub(super) data: Option<Bytes>,
    pub(super) acl: Vec<Acl>,
    pub(super) stat: Stat,
}

/// A node on its way.
pub(super) struct Coming(Pending, Pending);

/// A server and where the tree begins there.
#[derive(Debug)]
pub(super) struct Side {
    /// What it is called in messages.
    pub(super) name: String,
    pub(super) connection: Connection,
    /// What stands before every path; empty for the root.
    pub(super) prefix: String,
    /// The longest packet that it takes, in bytes.
    pub(super) packet_bytes: usize,
}

impl Side {
    /// Opens a session with the first of these that gives one, and proves to be these (`name:password`).
    pub(super) async fn open(
        what: &str,
        addresses: &[String],
        tls: Option<&Tls>,
        digests: &[String],
        events: usize,
    ) -> Result<Self, Failure> {
        let mut why = Vec::new();
        for address in addresses {
            let connection = match Connection::open(address, tls, LONGEST, events).await {
                Ok(connection) => connection,
                Err(lost) => {
                    why.push(format!("{address}: {lost}"));
                    continue;
                }
            };
            return Self::prove(format!("{what} ({address})"), connection, digests).await;
        }
        Err(Failure::new(NOT_DONE, format!("no session with the {what}: {}", why.join("; "))))
    }

    /// The same with a gateway of our own, from a socket that it knows.
    pub(super) async fn open_own(
        what: &str,
        socket: TcpSocket,
        address: SocketAddr,
        digests: &[String],
    ) -> Result<Self, Failure> {
        let connection = Connection::open_from(socket, address, LONGEST, 1).await;
        let connection = connection.map_err(|lost| {
            Failure::new(NOT_DONE, format!("no session with the {what}: {address}: {lost}"))
        })?;
        Self::prove(what.to_owned(), connection, digests).await
    }

    async fn prove(name: String, connection: Connection, digests: &[String]) -> Result<Self, Failure> {
        let side = Self { name, connection, prefix: String::new(), packet_bytes: 0xf_ffff };
        for digest in digests {
            let mut record = Output::new();
            record.int(0).text("digest").buffer(digest.as_bytes());
            let reply = side.connection.ask(opcode::AUTH, record.finish()).await;
            let reply = reply.map_err(|lost| side.lost(&lost))?;
            if reply.outcome.is_err() {
                let user = digest.split(':').next().unwrap_or_default();
                return Err(Failure::usage(format!("{} refuses the credentials of {user}", side.name)));
            }
        }
        Ok(side)
    }

    pub(super) fn lost(&self, lost: &Lost) -> Failure {
        Failure::new(
            NOT_DONE,
            format!(
                "the {} was lost: {lost}\n  mend: run the same command again; what is there and equal is not written again",
                self.name
            ),
        )
    }

    /// The path there.
    pub(super) fn at(&self, path: &str) -> String {
        match (self.prefix.as_str(), path) {
            ("", path) => path.to_owned(),
            (prefix, "/") => prefix.to_owned(),
            (prefix, path) => format!("{prefix}{path}"),
        }
    }

    fn record(&self, path: &str, fill: impl FnOnce(&mut Output)) -> Bytes {
        let mut out = Output::new();
        out.text(&self.at(path));
        fill(&mut out);
        out.finish()
    }

    fn look(&self, code: i32, path: &str) -> Pending {
        let watches = code != opcode::GET_ACL;
        let record = self.record(path, |out| {
            if watches {
                out.boolean(false);
            }
        });
        self.connection.send(code, record)
    }

    /// The answer, where the connection lasts; the last transaction that the server knew, with it.
    pub(super) async fn answer(&self, pending: Pending) -> Result<(i64, Result<Bytes, Wrong>), Failure> {
        let Reply { zxid, outcome } = pending.wait().await.map_err(|lost| self.lost(&lost))?;
        let outcome = outcome.map_err(|refusal| match refusal {
            Refusal::Error(code) => Wrong::Refused(code),
            Refusal::TooLong(bytes) => Wrong::AnswerTooLong(bytes),
        });
        Ok((zxid, outcome))
    }

    async fn read<T>(
        &self,
        pending: Pending,
        read: impl FnOnce(&Bytes) -> Result<T, BadRecord>,
    ) -> Result<Result<T, Wrong>, Failure> {
        Ok(self.answer(pending).await?.1.and_then(|body| read(&body).map_err(Wrong::from)))
    }

    /// Asks for a node.
    pub(super) fn fetch(&self, path: &str) -> Coming {
        Coming(self.look(opcode::GET_DATA, path), self.look(opcode::GET_ACL, path))
    }

    /// Takes it.
    pub(super) async fn fetched(&self, coming: Coming) -> Result<Result<Copy, Wrong>, Failure> {
        let data = self.read(coming.0, wire::read_data).await?;
        let acl = self.read(coming.1, wire::read_acl).await?;
        Ok(data.and_then(|(data, stat)| Ok(Copy { data, acl: acl?, stat })))
    }

    /// Asks for the names of a node's children.
    pub(super) fn list(&self, path: &str) -> Pending {
        self.look(opcode::GET_CHILDREN2, path)
    }

    /// Takes them, and the node's stat.
    pub(super) async fn listed(
        &self,
        pending: Pending,
    ) -> Result<Result<(Vec<String>, Stat), Wrong>, Failure> {
        self.read(pending, wire::read_children).await
    }

    /// Asks for a node's stat.
    pub(super) fn look_at(&self, path: &str) -> Pending {
        self.look(opcode::EXISTS, path)
    }

    /// Takes it; none where there is no node.
    pub(super) async fn looked_at(&self, pending: Pending) -> Result<Result<Option<Stat>, Wrong>, Failure> {
        Ok(match self.read(pending, wire::read_stat).await? {
            Ok(stat) => Ok(Some(stat)),
            Err(wrong) if wrong.is(Code::NoNode) => Ok(None),
            Err(wrong) => Err(wrong),
        })
    }

    /// Has the server know all that has happened, and says which transaction was the last.
    pub(super) async fn sync(&self) -> Result<i64, Failure> {
        let mut root = Output::new();
        root.text("/");
        let pending = self.connection.send(opcode::SYNC, root.finish());
        let (zxid, outcome) = self.answer(pending).await?;
        outcome.map_err(|wrong| Failure::new(NOT_DONE, format!("{}: sync: {wrong}", self.name)))?;
        Ok(zxid)
    }

    fn write(&self, code: i32, record: Bytes) -> Result<Pending, Wrong> {
        // Number and operation stand before the record.
        let bytes = record.len() + 8;
        if bytes > self.packet_bytes {
            return Err(Wrong::RequestTooLong(bytes));
        }
        Ok(self.connection.send(code, record))
    }

    /// Creates a node like this one, below one that is there.
    pub(super) fn create(&self, path: &str, like: &Copy) -> Result<Pending, Wrong> {
        let (code, flags, ttl) = match like.stat.kind() {
            Kind::Container => (opcode::CREATE_CONTAINER, 4, None),
            Kind::Ttl(millis) => (opcode::CREATE_TTL, 5, Some(millis)),
            Kind::Persistent | Kind::Ephemeral => (opcode::CREATE2, 0, None),
        };
        let record = self.record(path, |out| {
            put_data(out, like.data.as_ref());
            put_acl(out, &like.acl);
            out.int(flags);
            if let Some(millis) = ttl {
                out.long(millis);
            }
        });
        self.write(code, record)
    }

    pub(super) fn set_data(&self, path: &str, data: Option<&Bytes>) -> Result<Pending, Wrong> {
        let record = self.record(path, |out| {
            put_data(out, data);
            out.int(-1);
        });
        self.write(opcode::SET_DATA, record)
    }

    pub(super) fn set_acl(&self, path: &str, acl: &[Acl]) -> Result<Pending, Wrong> {
        let record = self.record(path, |out| {
            put_acl(out, acl);
            out.int(-1);
        });
        self.write(opcode::SET_ACL, record)
    }

    /// Names of sequential children go on behind those that were given at the source.
    pub(super) fn continue_sequence(&self, path: &str, creations: i32) -> Result<Pending, Wrong> {
        let record = self.record(path, |out| {
            out.int(creations);
        });
        self.write(opcode::CONTINUE_SEQUENCE, record)
    }

    pub(super) fn delete(&self, path: &str) -> Result<Pending, Wrong> {
        let record = self.record(path, |out| {
            out.int(-1);
        });
        self.write(opcode::DELETE, record)
    }
}

fn put_data(out: &mut Output, data: Option<&Bytes>) {
    match data {
        Some(data) => out.buffer(data),
        None => out.int(-1),
    };
}

fn put_acl(out: &mut Output, acl: &[Acl]) {
    out.length(acl.len());
    for entry in acl {
        entry.write(out);
    }
}
