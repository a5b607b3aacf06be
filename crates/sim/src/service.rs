//! What the group replicates: one of the services, under the same machinery.

use bytes::Bytes;
use std::fmt;
use troth_exec::{Application, FrameOperations, OpContext, State, StateView};
use troth_kv::Kv;
use troth_types::{ClientId, Time};
use troth_zookeeper::ZooKeeper;

/// Which service a world runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServiceKind {
    /// The key-value service.
    #[default]
    Kv,
    /// The coordination service.
    ZooKeeper,
}

impl ServiceKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Kv, Self::ZooKeeper];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kv => "kv",
            Self::ZooKeeper => "zookeeper",
        }
    }

    /// The service as every replica has it.
    #[must_use]
    pub fn served(self) -> Service {
        match self {
            Self::Kv => Service::Kv(Kv::default()),
            Self::ZooKeeper => Service::ZooKeeper(coordination()),
        }
    }
}

impl fmt::Display for ServiceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The coordination service as the worlds set it: runs last a few seconds of virtual time, in which sessions must end; and
/// a gateway must meet the bound on its sessions.
#[must_use]
pub fn coordination() -> ZooKeeper {
    ZooKeeper {
        superuser: Some(troth_zookeeper::acl::digest_id("super:secret")),
        timeouts: (200, 3_000),
        grace: 240,
        sessions: 12,
        enforces_quotas: true,
        ..ZooKeeper::default()
    }
}

/// A service.
#[derive(Clone, Debug)]
pub enum Service {
    /// The key-value service.
    Kv(Kv),
    /// The coordination service.
    ZooKeeper(ZooKeeper),
}

/// Calls the same method of whichever service it is.
macro_rules! whichever {
    ($self:ident, $service:ident => $call:expr) => {
        match $self {
            Service::Kv($service) => $call,
            Service::ZooKeeper($service) => $call,
        }
    };
}

impl Application for Service {
    const SCANS: bool = Kv::SCANS || ZooKeeper::SCANS;

    fn execute(&self, state: &mut State<'_>, cx: &mut OpContext<'_>, operation: &Bytes) -> Bytes {
        whichever!(self, service => service.execute(state, cx, operation))
    }
    fn execute_frame(&self, state: &mut State<'_>, operations: &mut FrameOperations<'_>) {
        whichever!(self, service => service.execute_frame(state, operations));
    }
    fn query(&self, state: &StateView<'_>, client: ClientId, operation: &Bytes) -> Bytes {
        whichever!(self, service => service.query(state, client, operation))
    }
    fn only_reads(&self, operation: &Bytes) -> bool {
        whichever!(self, service => service.only_reads(operation))
    }
    fn too_large(&self) -> Bytes {
        whichever!(self, service => service.too_large())
    }
    fn outlives_clients(&self, key: &[u8]) -> bool {
        whichever!(self, service => service.outlives_clients(key))
    }
    fn next_deadline(&self, state: &StateView<'_>) -> Option<Time> {
        whichever!(self, service => service.next_deadline(state))
    }
    fn on_deadline(&self, state: &mut State<'_>, cx: &mut OpContext<'_>) {
        whichever!(self, service => service.on_deadline(state, cx));
    }
}
