//! The whole run: start, break and recover until the time is over, a last look at every key by every
//! client, and the judgement.

use crate::Failure;
use crate::cli::Plan;
use crate::faults::{Fault, Kind, Schedule};
use crate::history::Outcome;
use crate::judge;
use crate::load::Load;
use crate::machines::Machines;
use crate::processes::Processes;
use crate::relay::{Relay, Weather};
use crate::report::Report;
use crate::{history, stale, status};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;

/// How long the cluster may take to serve its first client.
const START: Duration = Duration::from_secs(30);
/// Between two looks at what is waited for.
const LOOK: Duration = Duration::from_millis(50);
/// Between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(10);
/// After which a recovery is slow: everything killed and started again must serve within it. Said, and
/// in the result; a failure is only what takes longer than `--recover-within`.
const SLOW: Duration = Duration::from_secs(10);

/// Runs, prints, and tells whether everything held.
pub(crate) fn run(plan: &Plan) -> Result<bool, Failure> {
    let seed = match plan.seed {
        Some(seed) => seed,
        // Short enough to be typed again.
        None => u64::from(getrandom::u32()?),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = LocalSet::new().block_on(&runtime, chaos(plan, seed))?;
    report.print(plan.json);
    Ok(report.good())
}

async fn chaos(plan: &Plan, seed: u64) -> Result<Report, Failure> {
    let (machines, relay) = Machines::make(plan.f, plan.clients).await?;
    let scratch = machines.scratch().display();
    println!("seed {seed}, {} replicas, {} clients, files in {scratch}", 2 * plan.f + 1, plan.clients);
    let processes = Processes::start(&plan.troth, &machines)?;
    let load = Load::start(plan, seed, &machines, START).await?;
    let schedule = Schedule::new(seed, plan.f);
    let began = Instant::now();
    let mut stage = Stage {
        plan,
        processes,
        relay,
        load,
        schedule,
        began,
        said: began,
        recent: Vec::new(),
        faults: BTreeMap::new(),
        slowest: Duration::ZERO,
        slow: Vec::new(),
        addresses: status::addresses(&machines),
    };

    let mut failures = Vec::new();
    let held = match stage.break_things().await {
        Ok(()) => stage.come_to_rest().await,
        broken => broken,
    };
    if let Err(why) = held {
        failures.push(why);
        stage.say_status().await;
    }
    stage.relay.clear();
    stage.judge(&machines, seed, failures)
}

/// A run under way.
struct Stage<'a> {
    plan: &'a Plan,
    processes: Processes,
    relay: Relay,
    load: Load,
    schedule: Schedule,
    began: Instant,
    /// When the last line of progress was printed.
    said: Instant,
    /// What was broken since.
    recent: Vec<String>,
    faults: BTreeMap<Kind, u32>,
    /// The longest time from a fault's end to the first answer to what was asked after it.
    slowest: Duration,
    /// Recoveries that were slow, in words.
    slow: Vec<String>,
    /// Where the replicas say how they are.
    addresses: Vec<String>,
}

impl Stage<'_> {
    /// Faults until the time is over. An error says what did not hold.
    async fn break_things(&mut self) -> Result<(), String> {
        let over = self.began + Duration::from_secs(60 * self.plan.minutes);
        while Instant::now() < over {
            let fault = self.schedule.next();
            self.pass(fault.calm, None).await?;
            *self.faults.entry(fault.kind).or_default() += 1;
            self.recent.push(fault.describe());
            fault.strike(&mut self.processes, &self.relay).map_err(|why| why.to_string())?;
            self.pass(fault.lasts, Some(&fault)).await?;
            fault.heal(&mut self.processes, &self.relay).map_err(|why| why.to_string())?;
            self.recover(&fault).await?;
        }
        Ok(())
    }

    /// Waits until something that was asked after the fault's end has an answer.
    async fn recover(&mut self, fault: &Fault) -> Result<(), String> {
        let (healed, bound) = (Instant::now(), Duration::from_secs(self.plan.recover_within));
        let since = self.load.shared.history.borrow().now();
        let mut is_slow = false;
        while self.load.shared.history.borrow().answered() < since {
            self.pass(LOOK, None).await?;
            if healed.elapsed() > SLOW && !is_slow {
                is_slow = true;
                println!("no answer for {} s after: {}", SLOW.as_secs(), fault.describe());
                self.say_status().await;
            }
            if healed.elapsed() > bound {
                return Err(format!(
                    "no operation was answered within {} s after: {}",
                    bound.as_secs(),
                    fault.describe()
                ));
            }
        }
        self.slowest = self.slowest.max(healed.elapsed());
        if is_slow {
            self.slow.push(format!("{:.1} s after: {}", healed.elapsed().as_secs_f64(), fault.describe()));
        }
        Ok(())
    }

    async fn say_status(&self) {
        for line in status::lines(&self.addresses).await {
            println!("         {line}");
        }
    }

    /// Lets time pass, watches the replicas and tells of the progress.
    async fn pass(&mut self, time: Duration, fault: Option<&Fault>) -> Result<(), String> {
        let since = Instant::now();
        while since.elapsed() < time {
            tokio::time::sleep(LOOK.min(time)).await;
            if let Some(fault) = fault.filter(|fault| fault.kind == Kind::Reset) {
                let breaks = fault.breaks_clients(since.elapsed());
                self.relay.of_clients(if breaks { Weather::Broken } else { Weather::Clear });
            }
            if let Some(why) = self.processes.ended() {
                return Err(why);
            }
            if self.said.elapsed() > PROGRESS {
                self.say();
            }
        }
        Ok(())
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

    /// After the last fault: every client must get an answer for every key.
    async fn come_to_rest(&mut self) -> Result<(), String> {
        self.say();
        self.load.stop().await.map_err(|why| why.to_string())?;
        self.load.finish(Duration::from_secs(self.plan.recover_within)).await?;
        self.processes.ended().map_or(Ok(()), Err)
    }

    /// Ends the cluster and judges what happened.
    fn judge(self, machines: &Machines, seed: u64, mut failures: Vec<String>) -> Result<Report, Failure> {
        drop(self.processes);
        let live = failures.is_empty();
        let history = self.load.shared.history.borrow();
        failures.extend(history.strange().iter().take(5).cloned());
        let lost = stale::lost(history.records());
        failures.extend(lost.iter().take(5).map(|lost| format!("acknowledged, but gone: {lost}")));

        let within = Duration::from_secs(self.plan.judge_within);
        let file = machines.scratch().join("history.jsonl");
        history::write(history.records(), &file)?;
        println!("judging {} operations", history.records().len());
        let verdict = judge::judge(&self.plan.judge, &file, within)?;
        if !verdict.good() {
            let place = [&verdict.key, &verdict.why].map(String::as_str).join(" ");
            failures.push(format!("the history is judged: {} {}", verdict.verdict, place.trim()));
        }
        let stale_verdict = match stale::stale(history.records()) {
            None => "none could be made".to_owned(),
            Some(wrong) => {
                let file = machines.scratch().join("stale.jsonl");
                history::write(&wrong, &file)?;
                let found = judge::judge(&self.plan.judge, &file, within)?;
                if found.wrong() { "found".to_owned() } else { found.verdict }
            }
        };
        if stale_verdict != "found" {
            failures.push(format!("a history made stale on purpose must be found: {stale_verdict}"));
        }

        let scratch = machines.scratch().to_path_buf();
        let kept = !failures.is_empty();
        if !kept {
            std::fs::remove_dir_all(&scratch)?;
        }
        Ok(Report {
            seed,
            f: self.plan.f,
            seconds: self.began.elapsed().as_secs(),
            operations: history.records().len(),
            acknowledged: history.records().iter().filter(|record| record.wrote()).count(),
            unknown: history.count(Outcome::Unknown),
            failed: history.count(Outcome::Failed),
            faults: self.faults,
            slowest: self.slowest,
            slow: self.slow,
            live,
            lost: lost.len(),
            verdict: verdict.verdict,
            stale_verdict,
            failures,
            scratch: kept.then_some(scratch),
        })
    }
}
