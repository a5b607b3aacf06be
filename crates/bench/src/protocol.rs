//! Which agreement protocol a measured group runs.

use clap::ValueEnum;
use troth_node::config::{Protocol, TrustedHome};

/// How the replicas of the measured group agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProtocolName {
    /// 2f+1 replicas, each with a trusted component in its process.
    #[value(name = "minbft")]
    MinBft,
    /// 3f+1 replicas, nothing trusted.
    Pbft,
}

impl ProtocolName {
    /// The same in the configuration.
    pub(crate) fn protocol(self) -> Protocol {
        match self {
            Self::MinBft => Protocol::MinBft,
            Self::Pbft => Protocol::Pbft,
        }
    }

    /// Where the components of such a group live.
    pub(crate) fn components(self) -> TrustedHome {
        match self {
            Self::MinBft => TrustedHome::InProcess,
            Self::Pbft => TrustedHome::Nowhere,
        }
    }
}
