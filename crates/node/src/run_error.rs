//! Why a replica did not start, or stopped by itself.

use crate::config::ConfigError;
use crate::durable::DurableError;
use crate::engine::Stopped;
use crate::genesis::GenesisError;
use crate::marker::MarkerError;
use std::io;
use thiserror::Error;
use troth_a2m_pbft_e::DIVERGED;
pub use troth_core::RecoveryError;
use troth_trusted::Refusal;
use troth_trusted::a2m::LogRefusal;

/// Why a replica did not start, or stopped by itself.
#[derive(Debug, Error)]
pub enum RunError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It ran before.
    #[error(transparent)]
    Marker(#[from] MarkerError),
    /// It has no first state.
    #[error(transparent)]
    Genesis(#[from] GenesisError),
    /// An address cannot be listened on.
    #[error("cannot listen on {0}: {1}\n  mend: {mend}", mend = cannot_listen(.1))]
    Listen(String, io::Error),
    /// The operating system refused something else.
    #[error("the operating system refused: {0}")]
    System(#[from] io::Error),
    /// The machine did not start.
    #[error("the replica cannot start: {0}")]
    Start(#[from] RecoveryError),
    /// What is on its disk cannot be continued.
    #[error(transparent)]
    Durable(#[from] DurableError),
    /// Its disk failed while it ran.
    #[error(
        "the disk failed: {0}\n  mend: nothing that was acknowledged is lost. Look at the disk and the system's log; then \
         start the replica again: it goes on from what the disk holds, or says why it cannot"
    )]
    Disk(String),
    /// A thread of its own panicked.
    #[error(
        "the replica's {0} thread panicked; what it said stands before this line\n  mend: this is a bug of Troth: please report \
         it. Nothing that was acknowledged is lost; start the replica again"
    )]
    Panicked(&'static str),
    /// The trusted component does nothing more.
    #[error(
        "the trusted component has stopped: its counters could not be stored, or its process is gone\n  mend: nothing is lost. \
         Make space on its disk and look at the lines before this one; then start the replica again: it goes on, or says why it \
         cannot"
    )]
    Halted,
    /// The trusted component no longer follows this replica.
    #[error(
        "the trusted component refused to go on: {0:?}\n  mend: where the lines before this one say that its process or its \
         disk failed, see to that and start the replica again; else leave it stopped, it must not vote any more"
    )]
    Component(Refusal),
    /// The trusted component's logs no longer follow this replica.
    #[error(
        "the trusted component's logs refused to go on: {0:?}\n  mend: where the lines before this one say that its process or \
         its disk failed, see to that and start the replica again; else leave it stopped, it must not vote any more"
    )]
    Logs(LogRefusal),
    /// The replica contradicts its trusted component.
    #[error("{0}\n  mend: leave the replica stopped, it must not vote any more")]
    Contradiction(&'static str),
}

impl RunError {
    /// Whether what is lost, or cannot be gone on with, is the trusted component alone, as far as this tells: the replica's
    /// log may be whole.
    #[must_use]
    pub fn is_of_component(&self) -> bool {
        match self {
            Self::Durable(why) => why.is_of_component(),
            Self::Contradiction(why) => *why == DIVERGED,
            _ => false,
        }
    }
}

impl From<Stopped> for RunError {
    fn from(why: Stopped) -> Self {
        match why {
            Stopped::Component(Refusal::Halted) => Self::Halted,
            Stopped::Component(refusal) => Self::Component(refusal),
            Stopped::Logs(refusal) => Self::Logs(refusal),
            Stopped::Machine(why) => Self::Contradiction(why),
            Stopped::Disk(why) => Self::Disk(why),
            Stopped::NoRandomness => Self::System(io::Error::other("it gives no random bytes")),
            Stopped::Panicked(thread) => Self::Panicked(thread),
        }
    }
}

/// What is to be done where an address cannot be listened on.
fn cannot_listen(why: &io::Error) -> &'static str {
    if why.kind() == io::ErrorKind::AddrNotAvailable {
        return "this machine does not have that address: see that --id is this machine's replica. Where the others reach it by an \
                address that its machine does not have (NAT), put 0.0.0.0 and the same ports into `address` and `http` of \
                its own table in this machine's cluster.toml, and there alone";
    }
    "see whether this replica runs already (`troth status`); else stop what listens there, or change the address in cluster.toml \
     (everywhere: the file is the same for all)"
}
