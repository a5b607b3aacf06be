//! What the client machine asks its host to do.

use crate::{ClientError, Course};
use bytes::Bytes;
use troth_types::{Event, ReplicaId, ToReplica};

/// Names a submission until its [`Output::Done`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Something for the host to do, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a message to a replica. It may be lost: the machine repeats what matters.
    Send {
        /// To whom.
        to: ReplicaId,
        /// What.
        message: ToReplica,
    },
    /// A submission ended. Every ticket ends once, at its deadline at the latest.
    Done {
        /// Which one.
        ticket: Ticket,
        /// One result per operation, in order; or what is known.
        result: Result<Vec<Bytes>, ClientError>,
        /// Where its time went; of one without results nothing is told.
        course: Course,
    },
    /// The service tells the client something. Events come in index order without gaps, each
    /// once; only where the client's outbox overflowed at the replicas an event with an empty
    /// payload (and sequence number 0) stands for all up to its index, which are lost: the
    /// application reads afresh what it follows.
    Event(Event),
}
