//! What can go wrong, and what is known about the operations then.

use thiserror::Error;
use troth_types::ReplicaId;

/// Why operations that were accepted for sending ended without results. Each says whether they
/// may have been executed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ClientError {
    /// No quorum answered in time. The outcome is UNKNOWN: the operations may have been executed,
    /// may still be, or may never be.
    #[error("no quorum of replicas answered in time; whether the operations were executed is unknown")]
    TimedOut,
    /// The time was over before the operations were sent. They were not executed and will not be.
    #[error("the operations were not sent in time and were not executed")]
    Unsent,
    /// The operations are over the group's limits: this client saw it, or as many replicas say so as are
    /// believed ([`Config::believed`](crate::Config::believed)). Not executed.
    #[error("the operations are over the group's limits; not executed")]
    TooLarge,
    /// As many replicas as are believed do not know the client, or not this key of it. Not executed.
    #[error("the replicas do not know this client or its key; not executed")]
    Unauthorised,
    /// As many replicas as are believed say that the frame's number was used before: they executed it and no longer
    /// keep its results, or another session of this client went past it. The outcome is UNKNOWN.
    #[error(
        "the request's number was used or overtaken before; whether the operations were executed is unknown"
    )]
    TooOld,
    /// Fewer replicas than are believed were connected for too long.
    #[error("too few replicas are reachable, missing {unreachable:?}; {}", Self::fate(*.sent))]
    Unavailable {
        /// The replicas without a connection.
        unreachable: Vec<ReplicaId>,
        /// Whether the operations had been sent: if so their outcome is UNKNOWN, else they were
        /// not executed and will not be.
        sent: bool,
    },
    /// The client was closed.
    #[error("the client was closed; {}", Self::fate(*.sent))]
    Closed {
        /// As in [`ClientError::Unavailable`].
        sent: bool,
    },
}

impl ClientError {
    fn fate(sent: bool) -> &'static str {
        if sent {
            "whether the operations were executed is unknown"
        } else {
            "the operations were not executed"
        }
    }

    /// Whether the operations may have been executed, now or later. Where this is false they were
    /// not and never will be, and it is safe to submit them again.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        match self {
            Self::TimedOut | Self::TooOld => true,
            Self::Unavailable { sent, .. } | Self::Closed { sent } => *sent,
            Self::Unsent | Self::TooLarge | Self::Unauthorised => false,
        }
    }
}

/// Why operations were not accepted for sending. Nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// There is nothing to do.
    #[error("a submission needs at least one operation")]
    Empty,
    /// The operations do not fit one frame of the group's limits.
    #[error("the operations do not fit one frame of the group's limits")]
    TooLarge,
    /// Too much waits already; try again when something has completed.
    #[error("too many operations wait already")]
    Busy,
    /// Fewer replicas than are believed have been connected for too long.
    #[error("too few replicas are reachable, missing {unreachable:?}")]
    Unavailable {
        /// The replicas without a connection.
        unreachable: Vec<ReplicaId>,
    },
}
