//! A run under way: time passes, processes are killed and started, and the service must come back.

use super::client::{Failed, Reply, Session};
use super::faults::{Fault, Kind, Schedule, Targets};
use super::gateways::Gateways;
use super::journal::{Ask, Done, child};
use super::layout;
use super::load::LONGEST_TIMEOUT;
use super::world::World;
use crate::Failure;
use crate::machines::Machines;
use crate::processes::Processes;
use crate::random::Random;
use crate::status;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Between two looks at what is waited for.
const LOOK: Duration = Duration::from_millis(50);
/// Between two looks at what replicas say of themselves.
const ASK: Duration = Duration::from_millis(200);
/// Between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(10);
/// How long whoever waits for a lock may take to come to an end, when the load does.
const UNWINDS: Duration = Duration::from_secs(60);
/// A session that looks at everything in the end.
const OBSERVER_TIMEOUT: u32 = 30_000;

/// What there is to break, where it is ours.
pub(crate) struct Ours {
    pub(crate) processes: Processes,
    pub(crate) gateways: Gateways,
    /// Where the replicas say how they are.
    pub(crate) addresses: Vec<String>,
}

/// See the module.
pub(crate) struct Stage {
    pub(crate) world: Rc<World>,
    pub(crate) ours: Option<Ours>,
    /// Within which the service must be back after a fault.
    pub(crate) patience: Duration,
    pub(crate) faults: BTreeMap<Kind, u32>,
    /// The longest time from a fault's end to the first answer to what was asked after it.
    pub(crate) slowest: Duration,
    /// The longest time until every replica was back.
    pub(crate) slowest_return: Duration,
    pub(crate) began: Instant,
    said: Instant,
    recent: Vec<String>,
}

impl Stage {
    pub(crate) fn new(world: Rc<World>, ours: Option<Ours>, patience: Duration) -> Self {
        let began = Instant::now();
        Self {
            world,
            ours,
            patience,
            faults: BTreeMap::new(),
            slowest: Duration::ZERO,
            slowest_return: Duration::ZERO,
            began,
            said: began,
            recent: Vec::new(),
        }
    }

    /// Lets time pass, watches the processes and tells of the progress.
    pub(crate) async fn pass(&mut self, time: Duration) -> Result<(), Failure> {
        let since = Instant::now();
        while since.elapsed() < time {
            tokio::time::sleep(LOOK.min(time)).await;
            if let Some(ours) = &mut self.ours {
                if let Some(ended) = ours.processes.ended() {
                    return Err(ended.describe().into());
                }
                if let Some(ended) = ours.gateways.ended() {
                    return Err(ended.into());
                }
            }
            if self.said.elapsed() > PROGRESS {
                self.said = Instant::now();
                let broken = std::mem::take(&mut self.recent).join(", ");
                println!(
                    "{:>5} s  {} answers: {broken}",
                    self.began.elapsed().as_secs(),
                    self.world.requests()
                );
            }
        }
        Ok(())
    }

    /// Whether every replica votes and has executed so much.
    async fn all_back(&self, goal: u64) -> bool {
        let Some(ours) = &self.ours else { return true };
        let all = status::all(&ours.addresses).await;
        all.iter().all(|told| told.as_ref().is_ok_and(|told| told.votes && told.executed >= goal))
    }

    /// Waits until every replica is back, and started; none of them may be broken.
    pub(crate) async fn whole(&mut self) -> Result<(), Failure> {
        let (goal, since) = match &self.ours {
            Some(ours) => (status::reached(&ours.addresses).await, Instant::now()),
            None => return Ok(()),
        };
        while !self.all_back(goal).await {
            self.pass(ASK).await?;
            if since.elapsed() > self.patience {
                self.say_status().await;
                return Err(format!("not every replica was back after {} s", self.patience.as_secs()).into());
            }
        }
        Ok(())
    }

    async fn say_status(&self) {
        if let Some(ours) = &self.ours {
            for line in status::lines(&ours.addresses).await {
                println!("         {line}");
            }
        }
    }

    /// Faults until the time is over.
    pub(crate) async fn break_things(
        &mut self,
        mut schedule: Schedule,
        time: Duration,
    ) -> Result<(), Failure> {
        let over = Instant::now() + time;
        while Instant::now() < over {
            let mut fault = schedule.next();
            self.pass(fault.calm).await?;
            if let Some(ours) = &self.ours
                && fault.aims
                && let Some(primary) = status::primary(&ours.addresses).await
                && !fault.replicas.contains(&primary)
            {
                fault.replicas[0] = primary;
            }
            self.bear(&fault).await?;
            self.recovers(&fault).await?;
        }
        Ok(())
    }

    async fn bear(&mut self, fault: &Fault) -> Result<(), Failure> {
        *self.faults.entry(fault.kind).or_default() += 1;
        self.recent.push(fault.describe());
        if let Some(ours) = &mut self.ours {
            ours.gateways.kill(&fault.gateways)?;
            ours.processes.kill(&fault.replicas, &fault.parts)?;
        }
        self.pass_broken(fault).await?;
        if let Some(ours) = &mut self.ours {
            fault.replicas.iter().try_for_each(|replica| ours.processes.begin(*replica))?;
            ours.gateways.begin()?;
        }
        Ok(())
    }

    /// What is killed stays so for a while; a replica may end with its trusted process.
    async fn pass_broken(&mut self, fault: &Fault) -> Result<(), Failure> {
        let since = Instant::now();
        while since.elapsed() < fault.lasts {
            tokio::time::sleep(LOOK.min(fault.lasts)).await;
        }
        // Nothing that was to stay may have ended.
        self.pass(LOOK).await
    }

    /// Waits until something that was asked after the fault's end has an answer, and then until every replica is back: before
    /// that, another fault would be one too many.
    async fn recovers(&mut self, fault: &Fault) -> Result<(), Failure> {
        let (healed, since) = (Instant::now(), self.world.now());
        while self.world.last_answered() < since {
            self.pass(LOOK).await?;
            if healed.elapsed() > self.patience {
                self.say_status().await;
                let within = self.patience.as_secs();
                return Err(
                    format!("nothing was answered within {within} s after: {}", fault.describe()).into()
                );
            }
        }
        self.slowest = self.slowest.max(healed.elapsed());
        self.whole().await.map_err(|why| format!("{why}, {}", fault.describe()))?;
        self.slowest_return = self.slowest_return.max(healed.elapsed());
        Ok(())
    }

    /// The load ends: everybody finishes what is begun and leaves the last session as it is.
    pub(crate) async fn unwind(
        &mut self,
        people: Vec<tokio::task::JoinHandle<Session>>,
    ) -> Result<Vec<Session>, Failure> {
        self.world.stop();
        let give_up = Instant::now() + UNWINDS + self.patience;
        while people.iter().any(|person| !person.is_finished()) {
            self.pass(LOOK).await?;
            if Instant::now() > give_up {
                let stuck = people.iter().filter(|person| !person.is_finished()).count();
                return Err(format!("{stuck} sessions did not come to an end of what they were doing").into());
            }
        }
        let mut sessions = Vec::new();
        for person in people {
            sessions.push(person.await?);
        }
        Ok(sessions)
    }

    /// After the load: the ephemeral nodes of all whose clients are gone must go; those of the others must be there until their
    /// sessions are closed. Gives the ephemeral nodes of sessions that are over and that are there all the same.
    pub(crate) async fn look_around(
        &mut self,
        sessions: &[Session],
        seed: u64,
    ) -> Result<Vec<(String, i64)>, Failure> {
        let observer = Session::open(&self.world, OBSERVER_TIMEOUT, Random::stream(seed, 1)).await;
        let living: BTreeSet<i64> = sessions.iter().map(Session::id).collect();
        let give_up = Instant::now() + LONGEST_TIMEOUT + self.patience;
        loop {
            let mut left = ephemerals(&observer).await?;
            left.retain(|(_, session)| !living.contains(session));
            if left.is_empty() {
                break;
            }
            if Instant::now() > give_up {
                return Ok(left);
            }
            self.pass(ASK).await?;
        }
        // Each is shown that it was alive at a position behind what was looked at.
        for session in sessions {
            let _ = insist(session, Ask::Exists { path: "/".to_owned(), watch: false }).await;
        }
        for session in sessions {
            session.close().await;
        }
        let left = ephemerals(&observer).await?;
        observer.close().await;
        Ok(left)
    }
}

async fn insist(session: &Session, ask: Ask) -> Result<Reply, Failure> {
    loop {
        match session.ask(ask.clone()).await {
            Ok(reply) => return Ok(reply),
            Err(Failed::Lost) => {}
            Err(Failed::Over) => return Err(format!("the session is over that asks for {ask:?}").into()),
        }
    }
}

/// All ephemeral nodes, and their sessions.
async fn ephemerals(observer: &Session) -> Result<Vec<(String, i64)>, Failure> {
    let directories = (0..layout::LOCK_COUNT).map(layout::lock);
    let mut all = Vec::new();
    for directory in directories.chain((0..layout::GROUP_COUNT).map(layout::group)) {
        let listed = insist(observer, Ask::Children { path: directory.clone(), watch: false }).await?;
        let Ok(Done::Children { names, .. }) = listed.outcome else {
            return Err(format!("{directory} is not there").into());
        };
        for name in names {
            let path = child(&directory, &name);
            let seen = insist(observer, Ask::Exists { path: path.clone(), watch: false }).await?;
            if let Ok(Done::Stat(stat)) = seen.outcome {
                all.push((path, stat.owner));
            }
        }
    }
    Ok(all)
}

/// What there is to kill.
pub(crate) fn targets(machines: &Machines, gateways: usize) -> Targets {
    let few = |count: usize| u16::try_from(count).expect("a group is small");
    let group = &machines.cluster.group;
    Targets { gateways, replicas: few(group.n()), faults: few(group.f()), apart: machines.apart() }
}
