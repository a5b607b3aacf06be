//! The whole run: start, break and recover until the time is over, a last look at every key by every
//! client, and the judgement.

use crate::Failure;
use crate::cli::{Home, Plan, Plant};
use crate::faults::{Breakable, Schedule};
use crate::history::{self, Outcome};
use crate::judge;
use crate::load::Load;
use crate::machines::Machines;
use crate::processes::Processes;
use crate::report::Report;
use crate::stage::{Stage, Trouble};
use crate::stale;
use std::time::Duration;
use tokio::task::LocalSet;
use troth_node::config::{Auth, Protocol, Service, TrustedHome};

/// How long the cluster may take to serve its first client.
const START: Duration = Duration::from_secs(30);

/// Runs, prints, and tells whether everything held.
pub(crate) fn run(plan: &Plan, seed: u64) -> Result<bool, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = LocalSet::new().block_on(&runtime, chaos(plan, seed))?;
    report.print(plan.json);
    Ok(report.good())
}

async fn chaos(plan: &Plan, seed: u64) -> Result<Report, Failure> {
    let (home, agreed) = (home(plan)?, agreed(plan)?);
    let (machines, relay) = Machines::make(Service::Kv, agreed, plan.f, plan.clients, home).await?;
    let group = Breakable::of(&machines.cluster);
    println!(
        "seed {seed}, {}, {} replicas, {} clients, files in {}",
        plan.agreement(),
        group.replicas,
        plan.clients,
        machines.scratch().display()
    );
    let planted = plan.plant.filter(|plant| *plant != Plant::Nothing);
    let processes = Processes::start(&plan.troth, &machines, planted.map(Plant::name))?;
    let load = Load::start(plan, seed, &machines, START).await?;
    let mut stage = Stage::new(plan, &machines, processes, relay, load);

    let mut caught = None;
    let played = match (plan.plant, plan.scenario) {
        (Some(plant), _) => stage.catch(plant, seed).await.map(|found| caught = found),
        (None, Some(scenario)) => stage.play(scenario, seed).await,
        (None, None) => {
            println!("{}", group.describe());
            stage.break_things(Schedule::new(seed, group), group).await
        }
    };
    let held = match played {
        Ok(()) if caught.is_none() => stage.come_to_rest().await,
        other => other,
    };
    if let Err(why) = &held {
        println!("{}", why.describe());
        stage.say_status().await;
    }
    stage.relay.clear();
    judgement(stage, &machines, seed, held, caught)
}

/// Where trusted components live, and whether what was asked for can be.
pub(crate) fn home(plan: &Plan) -> Result<TrustedHome, Failure> {
    if !plan.protocol.has_components() {
        let of_components = plan.trusted_home.is_some() || plan.plant.is_some_and(Plant::is_of_components);
        if of_components {
            return Err(format!("the replicas of {} have no trusted components", plan.protocol).into());
        }
    }
    Ok(match plan.trusted_home {
        Some(Home::InProcess) => TrustedHome::InProcess,
        Some(Home::Process) | None => TrustedHome::Process,
    })
}

/// How the replicas agree and by what requests show whose they are, where these go together.
pub(crate) fn agreed(plan: &Plan) -> Result<(Protocol, Auth), Failure> {
    let (protocol, auth) = (plan.protocol, plan.auth);
    if !protocol.takes(auth) {
        return Err(format!("{protocol} takes no --auth {auth}; only pbft does").into());
    }
    Ok((protocol, auth))
}

/// Ends the cluster and judges what happened.
fn judgement(
    stage: Stage<'_>,
    machines: &Machines,
    seed: u64,
    held: Result<(), Trouble>,
    mut caught: Option<String>,
) -> Result<Report, Failure> {
    let plan = stage.plan;
    drop(stage.processes);
    let live = held.is_ok();
    let history = stage.load.shared.history.borrow();
    let ledger = stage.load.shared.ledger.borrow();

    let mut wrong: Vec<String> = Vec::new();
    wrong.extend(history.strange().iter().chain(ledger.strangeness()).take(5).cloned());
    let lost = stale::lost(history.records());
    let lost: Vec<&String> = lost.iter().chain(ledger.lost()).collect();
    wrong.extend(lost.iter().take(5).map(|lost| format!("acknowledged, but gone: {lost}")));
    let (verdict, stale_verdict) = if caught.is_some() {
        ("not judged".to_owned(), "not judged".to_owned())
    } else {
        judged(plan, machines, history.records(), &mut wrong)?
    };

    let mut failures: Vec<String> = held.err().iter().map(Trouble::describe).collect();
    if plan.plant.is_some() && caught.is_none() {
        // What is wrong is what was to be found.
        caught = wrong.first().cloned();
        if caught.is_none() {
            failures.push("the planted bug was not caught".to_owned());
        }
    } else {
        failures.extend(wrong);
    }
    if plan.plant.is_none() && stale_verdict != "found" {
        failures.push(format!("a history made stale on purpose must be found: {stale_verdict}"));
    }
    if plan.plant.is_some() && caught.is_some() {
        // A cluster with that bug need not go on.
        failures.clear();
    }

    let scratch = machines.scratch().to_path_buf();
    let kept = !failures.is_empty();
    if !kept {
        std::fs::remove_dir_all(&scratch)?;
    }
    Ok(Report {
        seed,
        protocol: plan.protocol,
        auth: plan.auth,
        agreement: plan.agreement(),
        f: plan.f,
        seconds: stage.began.elapsed().as_secs(),
        operations: history.records().len(),
        acknowledged: ledger.acknowledged(),
        compared: ledger.compared(),
        unknown: history.count(Outcome::Unknown),
        failed: history.count(Outcome::Failed),
        faults: stage.faults,
        effects: stage.effects,
        slowest: stage.slowest,
        slowest_return: stage.slowest_return,
        slow: stage.slow,
        scenario: plan.scenario,
        figures: stage.figures,
        plant: plan.plant,
        caught,
        live,
        lost: lost.len(),
        verdict,
        stale_verdict,
        failures,
        scratch: kept.then_some(scratch),
    })
}

/// What the judge says of the history, and of the same one made wrong.
fn judged(
    plan: &Plan,
    machines: &Machines,
    records: &[history::Record],
    wrong: &mut Vec<String>,
) -> Result<(String, String), Failure> {
    let within = Duration::from_secs(plan.judge_within);
    let file = machines.scratch().join("history.jsonl");
    history::write(records, &file)?;
    println!("judging {} operations", records.len());
    let verdict = judge::judge(&plan.judge, &file, within)?;
    if !verdict.good() {
        let place = [&verdict.key, &verdict.why].map(String::as_str).join(" ");
        wrong.push(format!("the history is judged: {} {}", verdict.verdict, place.trim()));
    }
    let stale_verdict = match stale::stale(records) {
        None => "none could be made".to_owned(),
        Some(stale) => {
            let file = machines.scratch().join("stale.jsonl");
            history::write(&stale, &file)?;
            let found = judge::judge(&plan.judge, &file, within)?;
            if found.wrong() { "found".to_owned() } else { found.verdict }
        }
    };
    Ok((verdict.verdict, stale_verdict))
}
