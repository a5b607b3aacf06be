//! A host in the world: its disk, its component, its clock and its timers.

use crate::component::{Component, FIRST_EPOCH};
use crate::logs::LogsComponent;
use crate::service::Service;
use crate::storage::SimStorage;
use crate::watched::{Tap, Watched};
use crate::world::event::Timer;
use crate::{Options, Protocol, Rng};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use troth_auth::Signer;
use troth_core::{Env, Host, RecoveryError, Replica, Resume, Unsettled, settle_slots};
use troth_exec::{Executor, Snapshot};
use troth_trusted::a2m;
use troth_trusted::{Refusal, Resumed};
use troth_trusted_host::{Answer, Call, TrustedComponent};
use troth_types::{Configuration, Group, Limits, ReplicaId, Seq, Time};

use crate::storage::Storage;

/// The machine that every node runs.
pub type Machine<P> = Replica<<P as Protocol>::Agreement, Watched<Executor<Service>>>;

/// The wall clock at virtual time 0: microseconds since the Unix epoch.
pub(crate) const WALL_START: u64 = 1_700_000_000_000_000;

/// A host and what belongs to it.
pub struct Node<P: Protocol> {
    /// The replica it plays.
    pub replica: ReplicaId,
    /// The adversary that it belongs to and its place there, if it is faulty.
    pub adversary: Option<(usize, usize)>,
    /// The host; none while it is down.
    pub host: Option<Host<Machine<P>>>,
    /// Its log.
    pub storage: SimStorage<Snapshot>,
    /// Its trusted component; a faulty replica's real one is with its puppet.
    pub component: Component,
    /// The logs of its component, where it has any; a faulty replica's are with its adversary.
    pub logs: Option<LogsComponent>,
    /// What its executor did, not collected yet.
    pub tap: Tap,
    /// Counts its lives; events of earlier ones are stale.
    pub life: u32,
    /// Its timers, by local time.
    pub timers: BTreeMap<Timer<P>, Time>,
    /// Waits for a sync or for the component: no command is carried out before.
    pub busy: bool,
    /// A clone of an earlier state, for amnesia.
    pub saved: Option<Machine<P>>,
    /// What it executed or installed last.
    pub executed: Seq,
    /// Goes back to it as soon as nothing is under way.
    pub goes_back: bool,
    /// Commands until it crashes between two of them.
    pub crash_in: Option<u64>,
    /// The epoch of its component.
    pub epoch: u64,
    /// Whether it votes: not from the loss of its machine until it was admitted and has begun.
    pub votes: bool,
    /// Whether its machine is new and never ran.
    pub blank: bool,
    /// The configuration that it knows.
    pub configuration: Arc<Configuration>,
    /// The one that the operator has put on its disk.
    pub handed: Arc<Configuration>,
    local_start: u64,
    wall_skew: u64,
    /// What its wall clock shows is its owner's choice.
    pub clock: Option<OwnClock>,
}

/// A wall clock that a faulty replica sets as it likes: it is off by this for a while and by that for the next, or goes
/// slowly for a while and then fast.
#[derive(Clone, Copy, Debug)]
pub struct OwnClock {
    seed: u64,
    /// Microseconds until it is set anew.
    period: u64,
    /// Microseconds by which it is off at most.
    most: u64,
}

impl OwnClock {
    /// One that is off by so many microseconds at most.
    pub fn new(rng: &mut Rng, most: u64) -> Self {
        Self { seed: rng.next(), period: rng.range(30_000, 600_000), most }
    }

    fn shows(&self, wall: u64, now: u64) -> u64 {
        if self.seed.is_multiple_of(2) {
            // It falls behind and catches up, without a jump.
            let (phase, turn) = (now % (2 * self.period), self.period);
            return wall.saturating_sub(self.most * phase.min(2 * turn - phase) / turn);
        }
        let mut rng = Rng::stream(self.seed, "clock", now / self.period);
        let off = rng.below(self.most);
        if rng.one_in(3) { wall.saturating_add(off) } else { wall.saturating_sub(off) }
    }
}

/// Everything needed to build a node's machine.
pub struct Blueprint {
    /// The seed's world.
    pub options: Options,
    /// The group.
    pub group: Group,
    /// The group's limits.
    pub limits: Limits,
    /// The replicas' host keys, by number.
    pub signers: Vec<Arc<dyn Signer>>,
    /// Who is in the group when it begins.
    pub configuration: Arc<Configuration>,
}

impl Blueprint {
    fn machine<P: Protocol>(&self, me: ReplicaId, epoch: Option<u64>, tap: &Tap) -> Machine<P> {
        let agreement = P::agreement(&self.options, &self.group, me, epoch);
        let executor = Executor::with_configuration(
            self.options.service.served(),
            self.limits,
            Arc::clone(&self.configuration),
            self.options.window + self.options.interval,
        );
        let late = Rng::stream(self.options.seed, "hashing", u64::from(me.0)).one_in(4);
        Replica::new(me, self.group, agreement, Watched::new(executor, Rc::clone(tap), late))
    }

    fn signer(&self, me: ReplicaId) -> Arc<dyn Signer> {
        Arc::clone(&self.signers[usize::from(me.0)])
    }
}

impl<P: Protocol> Node<P> {
    /// A node that has not started.
    #[must_use]
    pub fn new(
        replica: ReplicaId,
        adversary: Option<(usize, usize)>,
        component: Component,
        local_start: u64,
        wall_skew: u64,
    ) -> Self {
        Self {
            replica,
            adversary,
            host: None,
            storage: SimStorage::default(),
            component,
            logs: None,
            tap: Tap::default(),
            life: 0,
            timers: BTreeMap::new(),
            busy: false,
            saved: None,
            executed: Seq(0),
            goes_back: false,
            crash_in: None,
            epoch: FIRST_EPOCH,
            votes: true,
            blank: false,
            configuration: Arc::default(),
            handed: Arc::default(),
            local_start,
            wall_skew,
            clock: None,
        }
    }

    /// The node's clocks.
    #[must_use]
    pub fn env(&self, now: u64) -> Env {
        let wall = WALL_START + self.wall_skew + now;
        let wall = self.clock.map_or(wall, |clock| clock.shows(wall, now));
        Env { now: Time(self.local_start + now), wall: Time(wall) }
    }

    /// Virtual time of a local one.
    #[must_use]
    pub fn virtual_time(&self, local: Time) -> u64 {
        local.0.saturating_sub(self.local_start)
    }

    /// The epoch that it goes by: a faulty replica goes on when its component was replaced.
    fn own_epoch(&self) -> Option<u64> {
        self.adversary.is_none().then_some(self.epoch)
    }

    /// Starts for the first time.
    pub fn start(&mut self, blueprint: &Blueprint, now: u64) -> Result<(), RecoveryError> {
        let machine = blueprint.machine::<P>(self.replica, self.own_epoch(), &self.tap);
        let signer = blueprint.signer(self.replica);
        let durable = blueprint.options.durable && self.adversary.is_none();
        let env = self.env(now);
        self.host = Some(Host::fresh(machine, self.replica, blueprint.group, signer, durable, env)?);
        Ok(())
    }

    /// Stops at once; the disk loses what a crash loses.
    pub fn crash(&mut self, rng: &mut crate::Rng) {
        self.host = None;
        self.life += 1;
        self.busy = false;
        self.timers.clear();
        self.crash_in = None;
        self.storage.crash(rng);
        // What the executor did is undone, and was never seen: nothing left before it was collected.
        self.tap = Tap::default();
    }

    /// Loses everything; what starts next is another machine with another component.
    pub fn lose(&mut self, rng: &mut crate::Rng, component: Component, epoch: u64) {
        self.crash(rng);
        self.storage = SimStorage::default();
        self.component = component;
        self.epoch = epoch;
        self.votes = false;
        self.blank = true;
    }

    /// Starts again from its disk and its component.
    pub fn restart(&mut self, blueprint: &Blueprint, now: u64) -> Result<(), RecoveryError> {
        let calls: Vec<Call> =
            P::counters().iter().map(|counter| Call::Resume { counter: *counter }).collect();
        let resumed: Vec<Resumed> = self
            .component
            .call(&calls)
            .into_iter()
            .filter_map(|answer| match answer {
                Answer::Resumed(resumed) => Some(*resumed),
                _ => None,
            })
            .collect();
        let machine = blueprint.machine::<P>(self.replica, self.own_epoch(), &self.tap);
        let signer = blueprint.signer(self.replica);
        let (snapshot, log) = self.storage.read();
        // What a disk holds are bytes.
        let snapshot = match snapshot.map(|snapshot| Snapshot::decode(&snapshot.encode())) {
            Some(None) => return Err(RecoveryError::Machine("the snapshot does not decode")),
            decoded => decoded.flatten(),
        };
        let env = self.env(now);
        let logs = &mut self.logs;
        let ask = |operations: &[a2m::Operation]| match logs {
            Some(logs) => logs.call(operations),
            None => Err(a2m::LogRefusal::Halted),
        };
        let attested = settle_slots::<Machine<P>>(&log, self.replica, blueprint.group.id(), ask);
        let attested = attested.map_err(|why| match why {
            Unsettled::Malformed(why) => RecoveryError::Malformed(why),
            Unsettled::Refused(_) => RecoveryError::Machine("the logs do not answer"),
        })?;
        let resume = Resume { counters: &resumed, logs: &attested };
        let (me, group) = (self.replica, blueprint.group);
        let host = Host::recover(machine, me, group, signer, env, snapshot, &log, resume)?;
        self.host = Some(host);
        Ok(())
    }

    /// Asks the node's own component.
    pub fn attest(&mut self, call: &Call) -> Answer {
        self.component.call(std::slice::from_ref(call)).pop().unwrap_or(Answer::Refused(Refusal::Halted))
    }
}
