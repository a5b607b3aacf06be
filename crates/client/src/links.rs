//! Which replicas the host is connected to.

use crate::Config;
use troth_types::{ReplicaId, Time};

/// Connections as the host reports them; all count as up until it says otherwise, so a host
/// without connections (the simulator) never has to.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    up: Vec<bool>,
    needed: usize,
    /// Since when too few are up.
    too_few_since: Option<Time>,
}

impl Links {
    pub(crate) fn new(config: &Config) -> Self {
        Self { up: vec![true; config.group.n()], needed: config.believed(), too_few_since: None }
    }

    /// Notes a change; answers whether the connection is newly up.
    pub(crate) fn set(&mut self, now: Time, replica: ReplicaId, up: bool) -> bool {
        let was = std::mem::replace(&mut self.up[usize::from(replica.0)], up);
        if self.enough() {
            self.too_few_since = None;
        } else {
            self.too_few_since = self.too_few_since.or(Some(now));
        }
        up && !was
    }

    pub(crate) fn is_up(&self, replica: ReplicaId) -> bool {
        self.up[usize::from(replica.0)]
    }

    /// Whether as many are up as must agree, without which nothing can complete.
    pub(crate) fn enough(&self) -> bool {
        self.up.iter().filter(|up| **up).count() >= self.needed
    }

    pub(crate) fn all_up(&self) -> bool {
        self.up.iter().all(|up| *up)
    }

    pub(crate) fn too_few_since(&self) -> Option<Time> {
        self.too_few_since
    }

    pub(crate) fn unreachable(&self) -> Vec<ReplicaId> {
        let down = self.up.iter().enumerate().filter(|(_, up)| !**up);
        down.map(|(index, _)| ReplicaId(u16::try_from(index).expect("a group has at most u16 replicas")))
            .collect()
    }
}
