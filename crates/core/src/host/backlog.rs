//! How much memory a host's backlog holds, about: a full disk must not make it grow without end.

use super::{Command, Host};
use crate::{Machine, PeerMessage};
use bytes::Bytes;
use troth_types::{Reply, ReplyBody, ToClient};

/// What a message of a protocol counts: most are smaller, and large ones are few and share what they hold.
const MESSAGE: usize = 1 << 10;
/// What the rest of a command counts.
const COMMAND: usize = 1 << 8;

impl<M: Machine> Host<M> {
    /// Bytes that wait for the disk or the component, about: what to bound, beside [`Host::backlog`], while
    /// those do not answer. The bodies of messages yet to be certified, which the protocol bounds, are not
    /// counted.
    #[must_use]
    pub fn backlog_bytes(&self) -> usize {
        self.held
    }

    /// A command waits, until it is taken out.
    pub(super) fn hold(&mut self, command: &Command<M>) {
        self.held = self.held.saturating_add(weight(command));
    }

    /// A record waits, until it is taken out as a command.
    pub(super) fn hold_record(&mut self, record: &Bytes) {
        self.held = self.held.saturating_add(COMMAND + record.len());
    }

    /// A command is taken out.
    pub(super) fn release(&mut self, command: &Command<M>) {
        self.held = self.held.saturating_sub(weight(command));
    }
}

/// What a command counts; the same whenever it is asked.
fn weight<M: Machine>(command: &Command<M>) -> usize {
    let content = match command {
        Command::Append(record) => record.len(),
        Command::Peer { message, .. } => match message {
            PeerMessage::Protocol(_) => MESSAGE,
            PeerMessage::FetchFrames(digests) => digests.len() * 32,
            PeerMessage::Frames(frames) => frames.iter().map(|frame| frame.size()).sum(),
            PeerMessage::FetchState(fetch) => fetch.path.len(),
            PeerMessage::StatePiece(piece) => piece.path.len() + piece.content.len(),
        },
        Command::Client(message) => match message {
            ToClient::Reply(Reply { body, .. }) | ToClient::Tentative(Reply { body, .. }) => results(body),
            ToClient::ReadReply(reply) => results(&reply.body),
            ToClient::Event(event) => event.payload.len(),
            ToClient::Refusal(_) => 0,
            ToClient::Attested(reply) => results(&reply.reply.body) + reply.size_of_proof(),
            ToClient::AttestedRead(read) => results(&read.reply.body) + read.size_of_proof(),
        },
        // These never wait for long, or hold nothing that is not held anyway.
        Command::NewSegment { .. }
        | Command::Sync
        | Command::Attest(_)
        | Command::Logs(_)
        | Command::Draw(_)
        | Command::Return(_)
        | Command::SetTimer { .. }
        | Command::CancelTimer(_)
        | Command::Configured(_)
        | Command::Note(_)
        | Command::Halt(_) => return 0,
    };
    COMMAND + content
}

fn results(body: &ReplyBody) -> usize {
    match body {
        ReplyBody::Full(results) => results.iter().map(|result| result.len() + size_of::<Bytes>()).sum(),
        ReplyBody::Digest(_) => 0,
    }
}
