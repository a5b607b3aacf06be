//! A run under way: time passes, faults come and go, and what must hold meanwhile is looked at.

use crate::cli::Plan;
use crate::faults::{Breakable, Fault, Kind, Schedule};
use crate::load::Load;
use crate::machines::Machines;
use crate::processes::{Ended, Part, Processes};
use crate::readmission::Operator;
use crate::relay::{Relay, Weather};
use crate::status;
use crate::strike::Effects;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Between two looks at what is waited for.
const LOOK: Duration = Duration::from_millis(50);
/// Between two looks at what replicas say of themselves.
const ASK: Duration = Duration::from_millis(200);
/// Between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(10);
/// After which a recovery is slow: everything killed and started again must serve within it. Said, and
/// in the result; a failure is only what takes longer than `--recover-within`.
const SLOW: Duration = Duration::from_secs(10);
/// How long the group does without what is gone for good.
const WITHOUT: Duration = Duration::from_secs(5);
/// How often a fault must come until one that never did anything is an error.
const OFTEN: u32 = 3;

/// What does not hold.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// A process ended by itself.
    Ended(Ended),
    /// Anything else.
    Said(String),
}

impl Trouble {
    /// For people.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Ended(ended) => ended.describe(),
            Self::Said(why) => why.clone(),
        }
    }
}

impl<E: std::fmt::Display> From<E> for Trouble {
    fn from(why: E) -> Self {
        Self::Said(why.to_string())
    }
}

/// A run under way.
pub(crate) struct Stage<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) processes: Processes,
    pub(crate) relay: Relay,
    pub(crate) load: Load,
    pub(crate) operator: Operator,
    pub(crate) began: Instant,
    /// When the last line of progress was printed.
    said: Instant,
    /// What was broken since.
    recent: Vec<String>,
    pub(crate) faults: BTreeMap<Kind, u32>,
    pub(crate) effects: Effects,
    /// The longest time from a fault's end to the first answer to what was asked after it.
    pub(crate) slowest: Duration,
    /// The longest time from a fault's end until every replica had what the group had reached then.
    pub(crate) slowest_return: Duration,
    /// Recoveries that were slow, in words.
    pub(crate) slow: Vec<String>,
    /// What a scenario measured.
    pub(crate) figures: Map<String, Value>,
    /// Replicas that are missing for good.
    gone: BTreeSet<u16>,
    /// Where the replicas say how they are.
    pub(crate) addresses: Vec<String>,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        machines: &Machines,
        processes: Processes,
        relay: Relay,
        load: Load,
    ) -> Self {
        let began = Instant::now();
        Self {
            plan,
            processes,
            relay,
            load,
            operator: Operator::new(&plan.troth, machines.operator()),
            began,
            said: began,
            recent: Vec::new(),
            faults: BTreeMap::new(),
            effects: Effects::default(),
            slowest: Duration::ZERO,
            slowest_return: Duration::ZERO,
            slow: Vec::new(),
            figures: Map::new(),
            gone: BTreeSet::new(),
            addresses: status::addresses(machines),
        }
    }

    /// Faults until the time is over. An error says what did not hold.
    pub(crate) async fn break_things(
        &mut self,
        mut schedule: Schedule,
        group: Breakable,
    ) -> Result<(), Trouble> {
        let over = self.began + Duration::from_secs(60 * self.plan.minutes);
        while Instant::now() < over {
            let mut fault = schedule.next();
            self.pass(fault.calm, None).await?;
            if fault.aims
                && let Some(primary) = status::primary(&self.addresses).await
                && !fault.victims.contains(&primary)
            {
                fault.victims[0] = primary;
            }
            self.bear(&fault).await?;
            self.recover(&fault).await?;
        }
        if !group.readmits {
            self.lose_for_good(group).await?;
        }
        self.effective()
    }

    /// Wipes as many disks as replicas may be faulty. They must refuse to start, and the group must do without them
    /// from then on.
    async fn lose_for_good(&mut self, group: Breakable) -> Result<(), Trouble> {
        let primary = status::primary(&self.addresses).await.unwrap_or(0);
        let victims = (0..group.faults).map(|more| (primary + more) % group.replicas);
        for victim in victims {
            self.recent.push(format!("wiped disk of {victim} for good"));
            self.processes.kill(&[victim], self.processes.parts())?;
            self.processes.wipe(victim, &[Part::Replica])?;
            self.processes.must_refuse(victim).await?;
            self.gone.insert(victim);
            self.effects.gone += 1;
        }
        let (since, healed) = (self.load.shared.history.borrow().now(), Instant::now());
        while self.load.shared.history.borrow().answered() < since {
            self.pass(LOOK, None).await?;
            if healed.elapsed() > Duration::from_secs(self.plan.recover_within) {
                return Err(Trouble::Said(format!("no operation was answered without {:?}", self.gone)));
            }
        }
        self.slowest = self.slowest.max(healed.elapsed());
        self.pass(WITHOUT, None).await
    }

    /// One fault, from its beginning to its end.
    pub(crate) async fn bear(&mut self, fault: &Fault) -> Result<(), Trouble> {
        *self.faults.entry(fault.kind).or_default() += 1;
        self.effects.liars += fault.liars.len() as u64;
        self.recent.push(fault.describe());
        let complaints = fault.complaints(&self.processes);
        fault.strike(&mut self.processes, &self.relay).await?;
        self.pass(fault.lasts, Some(fault)).await?;
        self.effects.full += (fault.complaints(&self.processes) - complaints) as u64;
        fault.heal(&mut self.processes, &self.relay, &self.operator).await?;
        self.effects.deaths = self.processes.deaths;
        if fault.kind == Kind::Wipe {
            self.effects.readmitted += fault.victims.len() as u64;
        }
        Ok(())
    }

    /// Waits until something that was asked after the fault's end has an answer, and then until every replica
    /// votes and has what the group had reached at that end: before that, another fault would be one too many.
    pub(crate) async fn recover(&mut self, fault: &Fault) -> Result<(), Trouble> {
        let healed = Instant::now();
        let goal = status::reached(&self.addresses).await;
        let since = self.load.shared.history.borrow().now();
        let mut is_slow = false;
        while self.load.shared.history.borrow().answered() < since {
            self.wait(LOOK, healed, "no operation was answered", fault).await?;
            if healed.elapsed() > SLOW && !is_slow {
                is_slow = true;
                println!("no answer for {} s after: {}", SLOW.as_secs(), fault.describe());
                self.say_status().await;
            }
        }
        self.slowest = self.slowest.max(healed.elapsed());
        if is_slow {
            self.slow.push(format!("{:.1} s after: {}", healed.elapsed().as_secs_f64(), fault.describe()));
        }
        while !self.all_back(goal).await {
            self.wait(ASK, healed, "not every replica was back and voted", fault).await?;
        }
        self.slowest_return = self.slowest_return.max(healed.elapsed());
        Ok(())
    }

    async fn wait(
        &mut self,
        time: Duration,
        since: Instant,
        what: &str,
        fault: &Fault,
    ) -> Result<(), Trouble> {
        self.pass(time, None).await?;
        let bound = Duration::from_secs(self.plan.recover_within);
        if since.elapsed() > bound {
            return Err(Trouble::Said(format!(
                "{what} within {} s after: {}",
                bound.as_secs(),
                fault.describe()
            )));
        }
        Ok(())
    }

    /// Whether every replica that is not gone for good answers, votes and has executed so much.
    pub(crate) async fn all_back(&self, goal: u64) -> bool {
        let all = status::all(&self.addresses).await;
        let mut there = (0u16..).zip(&all).filter(|(replica, _)| !self.gone.contains(replica));
        there.all(|(_, told)| told.as_ref().is_ok_and(|told| told.votes && told.executed >= goal))
    }

    /// A fault that never did what it is for shows nothing.
    fn effective(&self) -> Result<(), Trouble> {
        let count = |kinds: &[Kind]| kinds.iter().filter_map(|kind| self.faults.get(kind)).sum::<u32>();
        let rows = [
            (count(&[Kind::Lose, Kind::LoseEverything]), self.effects.deaths, "no process died in a sync"),
            (count(&[Kind::Full]), self.effects.full, "no replica found its disk full"),
        ];
        match rows.iter().find(|(struck, done, _)| *struck >= OFTEN && *done == 0) {
            Some((struck, _, what)) => Err(Trouble::Said(format!("{what}, though it was to {struck} times"))),
            None => Ok(()),
        }
    }

    pub(crate) async fn say_status(&self) {
        for line in status::lines(&self.addresses).await {
            println!("         {line}");
        }
    }

    /// Lets time pass, watches the processes and tells of the progress.
    pub(crate) async fn pass(&mut self, time: Duration, fault: Option<&Fault>) -> Result<(), Trouble> {
        let since = Instant::now();
        while since.elapsed() < time {
            tokio::time::sleep(LOOK.min(time)).await;
            if let Some(fault) = fault.filter(|fault| fault.kind == Kind::Reset) {
                let breaks = fault.breaks_clients(since.elapsed());
                self.relay.of_clients(if breaks { Weather::Broken } else { Weather::Clear });
            }
            self.look()?;
            if self.said.elapsed() > PROGRESS {
                self.say();
            }
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), Trouble> {
        self.processes.ended().map_or(Ok(()), |ended| Err(Trouble::Ended(ended)))
    }

    fn say(&mut self) {
        self.said = Instant::now();
        let history = self.load.shared.history.borrow();
        let (all, unknown) = (history.records().len(), history.given_up());
        let broken =
            if self.recent.is_empty() { "nothing broken".to_owned() } else { self.recent.join(", ") };
        println!("{:>5} s  {all} operations, {unknown} unknown: {broken}", self.began.elapsed().as_secs());
        self.recent.clear();
    }

    /// After the last fault: every client must get an answer for every key, every acknowledged write must be
    /// there, and every replica must vote.
    pub(crate) async fn come_to_rest(&mut self) -> Result<(), Trouble> {
        self.say();
        self.load.stop().await.map_err(|why| Trouble::Said(why.to_string()))?;
        let patience = Duration::from_secs(self.plan.recover_within);
        self.load.finish(patience).await?;
        self.load.count_up(patience).await?;
        let (goal, give_up) = (status::reached(&self.addresses).await, Instant::now() + patience);
        while !self.all_back(goal).await {
            if Instant::now() > give_up {
                return Err(Trouble::Said(format!(
                    "not every replica was there and voted in the end, {} s after the last operation",
                    patience.as_secs()
                )));
            }
            self.pass(ASK, None).await?;
        }
        self.look()
    }
}
