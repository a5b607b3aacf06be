//! Identifiers, groups, frames, replies and the canonical wire codec: the vocabulary that every
//! other crate of Troth shares. Nothing here knows a protocol, a socket or a clock.
#![forbid(unsafe_code)]

mod attested_reply;
mod batch;
mod change;
mod client_message;
mod codec;
mod configuration;
mod digest;
mod frame;
mod group;
mod ids;
mod limits;
mod renewed;
mod state_transfer;

pub use attested_reply::{AttestedRead, AttestedReply, HistoryEnd, Place};
pub use batch::Batch;
pub use change::{Change, ChangeAnswer, Refused};
pub use client_message::{
    Event, Read, ReadReply, Refusal, RefusalReason, Reply, ReplyBody, ToClient, ToReplica, Wish,
};
pub use codec::{Malformed, Reader, Wire, put_bytes, put_list};
pub use configuration::{Admission, ClientEntry, ComponentKey, Configuration, HostKeys, Member, OPERATOR};
pub use digest::{Digest, Hasher};
pub use frame::{Frame, FrameDraft, FrameProof, Iter as OperationsIter, Operations, Tag};
pub use group::{Group, GroupError, GroupId};
pub use ids::{ClientId, ReplicaId, Seq, Signature, Time, View};
pub use limits::Limits;
pub use renewed::Renewed;
pub use state_transfer::{StateFetch, StatePiece};

#[cfg(test)]
mod tests;
