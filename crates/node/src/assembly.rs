//! A replica put together from a cluster's files and what its disk holds, before its first turn.

use crate::beside::{Attestor, Desk};
use crate::bodies::Bodies;
use crate::charges::PeerCharges;
use crate::clock::Clock;
use crate::component::{Component, Here};
use crate::config::{Auth, Cluster, Durability, ReplicaSecret};
use crate::connection::Meeting;
use crate::counters::Counters;
use crate::delayed::Delayed;
use crate::durable::{Footing, Found};
use crate::engine::{Engine, Stopped};
use crate::execution_costs::ExecutionCosts;
use crate::fetches::Fetches;
use crate::keys::Keys;
use crate::links::Links;
use crate::pairs::LinkPairs;
use crate::run_error::RunError;
use crate::served::Served;
use crate::timers::Timers;
use crate::turns::Longest;
use crate::unfinished::unfinished_run;
use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use troth_core::{Execution, Host, Machine, RecoveryError, Replica, Resume, Unsettled, settle_slots};
use troth_exec::{Application, Executor, Snapshot as State};
use troth_link::{Identity, PeerId};
use troth_minbft::COUNTER;
use troth_trusted::a2m::{A2m, Attestation};
use troth_trusted::{CounterValue, Resumed, TrustedCore, VolatileStore};
use troth_trusted_host::{Answer, Call, InProcess, InProcessLogs, TrustedLogs, log_room};
use troth_types::{GroupId, ReplicaId};

/// The executor of a service in this cluster.
pub(crate) fn executor<A: Application>(cluster: &Cluster, service: A) -> Executor<A> {
    Executor::with_configuration(service, cluster.limits, cluster.configuration(), cluster.settling())
}

/// The keys that a replica shares with its clients, where the group takes authenticators.
fn pairs(cluster: &Cluster, secret: &ReplicaSecret) -> Option<(ReplicaId, Arc<LinkPairs>)> {
    let identity = || Identity::new(PeerId::Replica(secret.replica), secret.link);
    (cluster.auth == Auth::Mac).then(|| (secret.replica, Arc::new(LinkPairs::new(identity()))))
}

/// A replica of the protocol that has not stepped yet.
pub(crate) fn engine<A: Served, X: Execution<Snapshot = State>>(
    cluster: &Cluster,
    secret: ReplicaSecret,
    mut executor: X,
    clock: Clock,
    footing: Footing,
) -> Result<Engine<A, X>, RunError> {
    let execution_costs = Arc::new(ExecutionCosts::new());
    executor.metered(Arc::<ExecutionCosts>::clone(&execution_costs));
    let (me, group) = (secret.replica, cluster.group);
    let keys = Keys {
        group: group.id(),
        mac: secret.mac.as_ref().map(troth_trusted::MacKey::verifier),
        limits: cluster.limits,
        pairs: pairs(cluster, &secret),
    };
    let agreement = A::of(cluster, &secret);
    let configuration = Arc::clone(executor.configuration());
    let (meeting, epoch) = (Rc::new(Meeting::new(cluster, &secret, &configuration)), secret.epoch);
    let machine = Replica::new(me, group, agreement, executor);
    let (signer, env) = (Arc::new(secret.host), clock.env());
    let (host, attestor, journal, desk) = match footing {
        Footing::Volatile(delay) => {
            let desk = Desk::default();
            let attestor = match secret.trusted {
                Some(key) => {
                    let identity = cluster.identity(me, epoch);
                    let logs = cluster.log_room().map(|room| -> Box<dyn TrustedLogs> {
                        let logs = A2m::start(identity, key.clone(), VolatileStore, log_room(room));
                        Box::new(InProcessLogs::new(logs))
                    });
                    let core = TrustedCore::start(identity, key, VolatileStore);
                    let component: Box<dyn Component> = Box::new(Here::new(InProcess::new(core), logs));
                    if delay.is_zero() {
                        Attestor::Here(component)
                    } else {
                        Attestor::beside(Box::new(Delayed::new(component, delay)), false, desk.clone())?
                    }
                }
                None => Attestor::Nobody,
            };
            let host = Host::fresh(machine, me, group, signer, false, env)?;
            (host, attestor, None, desk)
        }
        Footing::Durable(mut opened) => {
            let host = match opened.found.take() {
                None => Host::fresh(machine, me, group, signer, true, env)?,
                Some(Found { snapshot, log, resumed }) => {
                    let (counters, logs) = match opened.component.as_mut().zip(resumed) {
                        Some((component, resumed)) => (
                            finish(&machine, component.as_mut(), &log, resumed, me, group.id())?,
                            settle(&machine, component.as_mut(), &log, me, group.id())?,
                        ),
                        None => (Vec::new(), Vec::new()),
                    };
                    let resume = Resume { counters: &counters, logs: &logs };
                    Host::recover(machine, me, group, signer, env, snapshot, &log, resume)?
                }
            };
            let quick = cluster.durability != Durability::Always;
            let attestor = match opened.component {
                Some(component) => Attestor::beside(component, quick, opened.desk.clone())?,
                None => Attestor::Nobody,
            };
            (host, attestor, Some(opened.journal), opened.desk)
        }
    };
    // What it executed of its log is nobody's share of a turn.
    execution_costs.take();
    let has_component = !matches!(attestor, Attestor::Nobody);
    Ok(Engine {
        me,
        host,
        attestor,
        bodies: Bodies::new(has_component && cluster.durability == Durability::Always),
        journal,
        desk,
        blocked: None,
        stalled: false,
        disk_full: false,
        counters_full: false,
        diverged: None,
        accused_clients: BTreeSet::new(),
        suspicions: crate::notes::Suspicions::default(),
        frames: keys.frames(&configuration),
        messages: keys.messages(&configuration),
        keys,
        meeting,
        timers: Timers::new(),
        clock,
        counters: Counters::default(),
        links: Links::new(me, &group),
        asked: VecDeque::new(),
        peer_charges: PeerCharges::new(group.n()),
        client_charges: RefCell::default(),
        execution_costs,
        fetches: Fetches::new(group.n()),
        fetched_bytes: 0,
        shown_bytes: 0,
        answered_bytes: 0,
        event_bytes: 0,
        longest_turn: Longest::default(),
        waited: 0,
        #[cfg(feature = "demo-adversary")]
        liar: None,
        #[cfg(feature = "demo-adversary")]
        tyrant: None,
        #[cfg(feature = "faults")]
        early: None,
    })
}

/// What the component certified last, after it has certified what the log shows that it was about to.
fn finish<M: Machine>(
    _of: &M,
    component: &mut dyn Component,
    log: &[bytes::Bytes],
    resumed: Resumed,
    me: ReplicaId,
    group: GroupId,
) -> Result<Vec<Resumed>, RunError> {
    let stands = match &resumed {
        Resumed::Unmoved => CounterValue(0),
        Resumed::One { certificate, .. } => certificate.new,
        Resumed::Multi { .. } | Resumed::Superseded => return Ok(vec![resumed]),
    };
    let unfinished =
        unfinished_run::<M>(log, COUNTER, stands, me, group).map_err(RecoveryError::Malformed)?;
    let Some(call) = unfinished else { return Ok(vec![resumed]) };
    let Call::Attest { new, digest, .. } = call else { unreachable!("a run is one move") };
    tracing::info!(from = stands.0, to = new.0, "has the run certified that was about to be");
    match component.call(&[call]).pop() {
        Some(Answer::Attested(certificate)) => Ok(vec![Resumed::One { certificate, digest }]),
        Some(Answer::Refused(refusal)) => Err(Stopped::Component(refusal).into()),
        _ => Err(RunError::Halted),
    }
}

/// What the component's logs hold, or hold now, of the messages that the replica's log was to have attested.
fn settle<M: Machine>(
    _of: &M,
    component: &mut dyn Component,
    log: &[bytes::Bytes],
    me: ReplicaId,
    group: GroupId,
) -> Result<Vec<Attestation>, RunError> {
    settle_slots::<M>(log, me, group, |operations| component.logs(operations)).map_err(|why| match why {
        Unsettled::Malformed(why) => RecoveryError::Malformed(why).into(),
        Unsettled::Refused(refusal) => Stopped::Logs(refusal).into(),
    })
}
