//! A correct replica: its host, its clock's timers, its disk and the checks of what it is sent.

use super::{App, Fuzzed, Kept, signer};
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_auth::{Directory, FrameVerifier, MessageVerifier};
use troth_core::{Env, Host, ReplicaTimer, Resume};
use troth_trusted::Resumed;
use troth_trusted::a2m::Attestation;
use troth_types::{Configuration, Group, ReplicaId, Seq, Time};

/// A correct replica.
pub(super) struct Node<P: Fuzzed> {
    pub(super) me: ReplicaId,
    pub(super) host: Host<App<P>>,
    pub(super) timers: BTreeMap<ReplicaTimer<P::Timer>, Time>,
    pub(super) kept: Kept,
    pub(super) messages: MessageVerifier,
    pub(super) frames: FrameVerifier,
    /// The last batch after which its state was held against the others'.
    pub(super) compared: Seq,
    /// Whether its process has ended for good.
    pub(super) ended: bool,
}

impl<P: Fuzzed> Node<P> {
    /// One that never ran.
    pub(super) fn fresh(
        me: ReplicaId,
        machine: App<P>,
        group: Group,
        env: Env,
        messages: MessageVerifier,
        frames: FrameVerifier,
    ) -> Self {
        let host = Host::fresh(machine, me, group, Arc::new(signer(me)), true, env);
        Self {
            me,
            host: host.expect("a fresh machine starts"),
            timers: BTreeMap::new(),
            kept: Kept::default(),
            messages,
            frames,
            compared: Seq(0),
            ended: false,
        }
    }

    /// Checks from now on what comes by the keys of this configuration.
    pub(super) fn configured(&mut self, group: &Group, configuration: Arc<Configuration>) {
        let directory = Arc::new(Directory::new(group.id(), configuration));
        self.messages = self.messages.with_directory(Arc::clone(&directory));
        self.frames = self.frames.with_directory(directory);
    }

    /// Its process ends, and another one goes on from what was kept and what its component says of itself.
    pub(super) fn restart(
        &mut self,
        machine: App<P>,
        group: Group,
        env: Env,
        kept: Kept,
        counters: &[Resumed],
        logs: &[Attestation],
    ) -> Result<(), String> {
        self.timers.clear();
        let signer = Arc::new(signer(self.me));
        let resume = Resume { counters, logs };
        let (snapshot, log) = (kept.snapshot.clone(), &kept.log);
        self.host = Host::recover(machine, self.me, group, signer, env, snapshot, log, resume)
            .map_err(|why| why.to_string())?;
        self.kept = kept;
        (self.compared, self.ended) = (Seq(0), false);
        Ok(())
    }
}
