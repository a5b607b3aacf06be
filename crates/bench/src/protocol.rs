//! What a measured group is: its agreement protocol, its size, where its trusted components live, and by what its
//! clients' frames show whose they are.

use troth_node::config::{Auth, Protocol, TrustedHome, TrustedKind};

/// A group to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    pub(crate) protocol: Protocol,
    pub(crate) faults: u16,
    /// Where its components live; nowhere where the protocol has none.
    pub(crate) home: TrustedHome,
    /// By what clients' frames show whose they are.
    pub(crate) auth: Auth,
}

impl Agreed {
    /// With components at this home, where the protocol has any.
    pub(crate) fn new(protocol: Protocol, faults: u16, home: TrustedHome) -> Self {
        let (_, home) = protocol.components(protocol.usual_kind(home), home);
        Self { protocol, faults, home, auth: Auth::Signed }
    }

    /// MinBFT, with components at this home.
    pub(crate) fn minbft(faults: u16, home: TrustedHome) -> Self {
        Self::new(Protocol::MinBft, faults, home)
    }

    /// With components in the replicas' processes, where it has any.
    pub(crate) fn in_process(protocol: Protocol, faults: u16) -> Self {
        Self::new(protocol, faults, TrustedHome::InProcess)
    }

    /// The same with frames that show by this whose they are.
    pub(crate) fn with_auth(self, auth: Auth) -> Self {
        Self { auth, ..self }
    }

    /// How its components certify.
    pub(crate) fn kind(self) -> TrustedKind {
        self.protocol.usual_kind(self.home)
    }

    /// How many replicas it has.
    pub(crate) fn replicas(self) -> u16 {
        self.protocol.replicas(self.faults)
    }
}
