//! What an operator orders to change a group's configuration, and what comes of it.

use crate::configuration::{MAX_ADDRESS, MAX_CLIENTS, text};
use crate::{
    ClientId, ComponentKey, Configuration, Digest, HostKeys, Malformed, Reader, ReplicaId, Seq, Wire,
    put_bytes,
};
use core::fmt;

/// The longest reason of a refusal, in bytes.
const MAX_REASON: usize = 1024;

/// A change that an operator orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A replica goes on with another trusted component, on the same host or on another one: its old
    /// component is lost, or it is not trusted any more.
    Admit {
        /// Which.
        replica: ReplicaId,
        /// The new component's epoch.
        epoch: u64,
        /// What checks its certificates.
        component: ComponentKey,
        /// The new host, if it is another.
        host: Option<HostKeys>,
    },
    /// A replica that keeps its host, its keys and its log goes on with another trusted component, whose logs are empty
    /// (`docs/protocols/a2m-pbft-e.md`, N5). Done only where the configuration is the one that the operator was shown when he
    /// announced it.
    Renew {
        /// Which.
        replica: ReplicaId,
        /// The new component's epoch.
        epoch: u64,
        /// What checks what it attests.
        component: ComponentKey,
        /// Names the configuration that the operator was shown ([`Configuration::digest`]).
        shown: Digest,
    },
    /// A replica's host has other keys or another address; its component stays.
    Rekey {
        /// Which.
        replica: ReplicaId,
        /// The host.
        host: HostKeys,
    },
    /// A client that the group never had may have operations ordered, with these keys.
    AddClient {
        /// Which.
        client: ClientId,
        /// Its public key for signatures.
        key: [u8; 32],
        /// Its public key for links.
        link: [u8; 32],
    },
    /// What is ordered of a client does nothing any more. Its number is not given again.
    RemoveClient(ClientId),
    /// Nothing: the answer shows the configuration.
    Show,
    /// That a [`Change::Renew`] of this replica is to follow. The configuration is another one from here on, though nothing but
    /// its number is, so that no renewal that was signed before is done any more.
    Announce {
        /// Which.
        replica: ReplicaId,
    },
}

impl Wire for Change {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Admit { replica, epoch, component, host } => {
                out.push(0);
                replica.encode(out);
                epoch.encode(out);
                component.encode(out);
                host.encode(out);
            }
            Self::Rekey { replica, host } => {
                out.push(1);
                replica.encode(out);
                host.encode(out);
            }
            Self::AddClient { client, key, link } => {
                out.push(2);
                client.encode(out);
                out.extend_from_slice(key);
                out.extend_from_slice(link);
            }
            Self::RemoveClient(client) => {
                out.push(3);
                client.encode(out);
            }
            Self::Show => out.push(4),
            Self::Renew { replica, epoch, component, shown } => {
                out.push(5);
                replica.encode(out);
                epoch.encode(out);
                component.encode(out);
                shown.encode(out);
            }
            Self::Announce { replica } => {
                out.push(6);
                replica.encode(out);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match u8::decode(reader)? {
            0 => Self::Admit {
                replica: Wire::decode(reader)?,
                epoch: Wire::decode(reader)?,
                component: Wire::decode(reader)?,
                host: Wire::decode(reader)?,
            },
            1 => Self::Rekey { replica: Wire::decode(reader)?, host: Wire::decode(reader)? },
            2 => {
                Self::AddClient { client: Wire::decode(reader)?, key: reader.array()?, link: reader.array()? }
            }
            3 => Self::RemoveClient(Wire::decode(reader)?),
            4 => Self::Show,
            5 => Self::Renew {
                replica: Wire::decode(reader)?,
                epoch: Wire::decode(reader)?,
                component: Wire::decode(reader)?,
                shown: Wire::decode(reader)?,
            },
            6 => Self::Announce { replica: Wire::decode(reader)? },
            other => return Err(Malformed::Tag("a change of the configuration", u64::from(other))),
        })
    }
}

/// The answer to a [`Change`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeAnswer {
    /// The configuration from this batch on.
    Done(Seq, Configuration),
    /// Nothing changed; the text says why and what to do.
    Refused(String),
}

impl Wire for ChangeAnswer {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Done(at, configuration) => {
                out.push(0);
                at.encode(out);
                configuration.encode(out);
            }
            Self::Refused(why) => {
                out.push(1);
                put_bytes(out, why.as_bytes());
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        match u8::decode(reader)? {
            0 => Ok(Self::Done(Wire::decode(reader)?, Wire::decode(reader)?)),
            1 => Ok(Self::Refused(text(reader, "a reason", MAX_REASON)?)),
            other => Err(Malformed::Tag("the answer to a change", u64::from(other))),
        }
    }
}

/// Why a change was refused. The same at every replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The group does not have this replica.
    NoSuchReplica(ReplicaId),
    /// The new component's epoch is not above the present one's.
    OldEpoch {
        /// The present epoch.
        present: u64,
    },
    /// As many replicas as may fail have not been back for long enough.
    TooMany {
        /// The batch from which on another may be admitted.
        until: Seq,
    },
    /// The configuration is not the one that the operator was shown.
    Changed,
    /// The operator cannot be removed.
    Operator,
    /// The group does not have this client.
    NoSuchClient(ClientId),
    /// The group has or had a client of this number.
    TakenClient(ClientId),
    /// The group has had as many clients as it can.
    TooManyClients,
    /// The address is too long.
    Address,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchReplica(replica) => write!(f, "the group has no replica {}", replica.0),
            Self::OldEpoch { present } => {
                write!(f, "the component's epoch must be above {present}, the present one")
            }
            Self::TooMany { until } => write!(
                f,
                "as many replicas as may fail were admitted lately and do not vote yet; try again after batch {}",
                until.0
            ),
            Self::Changed => {
                write!(
                    f,
                    "the configuration is not the one that this was asked for in; look at it and ask again"
                )
            }
            Self::Operator => write!(f, "the operator cannot be removed"),
            Self::NoSuchClient(client) => write!(f, "the group has no client {}", client.0),
            Self::TakenClient(client) => {
                write!(f, "the group has or had a client {}; choose a number that was never used", client.0)
            }
            Self::TooManyClients => write!(f, "a group has at most {MAX_CLIENTS} clients in its life"),
            Self::Address => write!(f, "an address has at most {MAX_ADDRESS} bytes"),
        }
    }
}

impl std::error::Error for Refused {}
