//! The proofs of requests, as they are named on the command line.

use clap::ValueEnum;
use troth_node::config::Auth;

/// By what clients' requests show whose they are.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum AuthName {
    /// By a signature, which every replica checks.
    Signed,
    /// By a MAC for each replica, which costs a replica next to nothing; requests that are sent again are signed.
    Mac,
    /// By a signature, and what the replicas say in agreeing on them too: slower, and who lies can be shown to lie.
    AllSigned,
}

impl AuthName {
    /// The same in the configuration.
    pub(crate) fn auth(self) -> Auth {
        match self {
            Self::Signed => Auth::Signed,
            Self::Mac => Auth::Mac,
            Self::AllSigned => Auth::AllSigned,
        }
    }
}
