//! The whole run: start, sessions, faults until the time is over, last looks, and the judgement.

use super::checks;
use super::client::Session;
use super::faults::{Kind, Schedule};
use super::figures::Figures;
use super::gateways::Gateways;
use super::load;
use super::report::Report;
use super::spoil;
use super::stage::{Ours, Stage, targets};
use super::world::World;
use crate::Failure;
use crate::cli::Plan;
use crate::history;
use crate::judge;
use crate::machines::Machines;
use crate::processes::Processes;
use crate::random::Random;
use crate::run::{agreed, home};
use crate::stale;
use crate::status;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::LocalSet;
use troth_node::config::{Service, free_ports};

/// Within which the first session must find all nodes made.
const START: Duration = Duration::from_secs(60);
/// The first session's time-out, in milliseconds.
const MAKER_TIMEOUT: u32 = 30_000;

/// Runs, prints, and tells whether everything held.
pub(crate) fn run(plan: &Plan, seed: u64) -> Result<bool, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = LocalSet::new().block_on(&runtime, chaos(plan, seed))?;
    report.print(plan.json);
    Ok(report.good())
}

async fn chaos(plan: &Plan, seed: u64) -> Result<Report, Failure> {
    let patience = Duration::from_secs(plan.recover_within);
    if !plan.against.is_empty() {
        let scratch = std::env::temp_dir().join(format!("troth-chaos-{}", std::process::id()));
        std::fs::create_dir(&scratch)?;
        println!("seed {seed}, servers {:?}, {} sessions", plan.against, plan.sessions);
        let world = Rc::new(World::new(plan.against.clone()));
        let mut stage = Stage::new(world, None, patience);
        let held = play(plan, seed, &mut stage, None).await;
        return judgement(plan, seed, stage, held, scratch, &[]);
    }
    let gateways = plan.gateways;
    let (machines, relay) =
        Machines::make(Service::ZooKeeper, agreed(plan)?, plan.f, gateways, home(plan)?).await?;
    let ports = free_ports(gateways.into())?;
    let listen: Vec<SocketAddr> = ports.into_iter().map(|port| ([127, 0, 0, 1], port).into()).collect();
    let targets = targets(&machines, listen.len());
    println!(
        "seed {seed}, {}, {} replicas, {gateways} gateways, {} sessions, files in {}",
        plan.agreement(),
        targets.replicas,
        plan.sessions,
        machines.scratch().display()
    );
    let mut ours = Ours {
        processes: Processes::start(&plan.troth, &machines, None)?,
        gateways: Gateways::new(&plan.troth, &machines, &listen),
        addresses: status::addresses(&machines),
    };
    ours.gateways.begin()?;
    let mut stage = Stage::new(Rc::new(World::new(listen)), Some(ours), patience);
    let held = play(plan, seed, &mut stage, Some(Schedule::new(seed, targets))).await;
    // The connections of gateways pass it.
    drop(relay);
    judgement(plan, seed, stage, held, machines.scratch().to_path_buf(), &targets.kinds())
}

/// All that happens; an error says what did not hold.
async fn play(
    plan: &Plan,
    seed: u64,
    stage: &mut Stage,
    schedule: Option<Schedule>,
) -> Result<Vec<(String, i64)>, Failure> {
    let world = Rc::clone(&stage.world);
    let made = tokio::time::timeout(START, async {
        let maker = Session::open(&world, MAKER_TIMEOUT, Random::stream(seed, 2)).await;
        load::lay_out(&maker, &world, plan.minutes).await?;
        maker.close().await;
        Ok::<(), String>(())
    });
    made.await
        .map_err(|_| format!("the service did not take its first nodes within {} s", START.as_secs()))??;
    stage.whole().await?;
    let people = (0..plan.sessions.into()).map(|number| load::person(Rc::clone(&world), number, seed));
    let people: Vec<_> = people.map(tokio::task::spawn_local).collect();
    let time = Duration::from_secs(60 * plan.minutes);
    match schedule {
        Some(schedule) => stage.break_things(schedule, time).await?,
        None => stage.pass(time).await?,
    }
    let sessions = stage.unwind(people).await?;
    let looked = tokio::time::timeout(START + 2 * stage.patience, stage.look_around(&sessions, seed));
    let looked = looked.await.map_err(|_| "the last looks at all nodes had no end")?;
    let left = looked?;
    stage.whole().await?;
    Ok(left)
}

/// Ends what runs and judges what happened.
fn judgement(
    plan: &Plan,
    seed: u64,
    stage: Stage,
    held: Result<Vec<(String, i64)>, Failure>,
    scratch: PathBuf,
    kinds: &[Kind],
) -> Result<Report, Failure> {
    let Stage { world, ours, faults, slowest, slowest_return, began, .. } = stage;
    drop(ours);
    let seconds = began.elapsed().as_secs();
    let journals = world.journals();
    let records = checks::records(&journals);
    let figures = Figures::of(&journals, &records, faults);
    println!("looking at {} journals with {} requests", figures.sessions, figures.requests);

    let live = held.is_ok();
    let mut failures = match held {
        Ok(left) => checks::left_behind(&left, &journals),
        Err(why) => vec![why.to_string()],
    };
    failures.extend(world.strangeness());
    failures.extend(checks::all(&journals));
    failures.extend(stale::lost(&records).into_iter().map(|lost| format!("acknowledged, but gone: {lost}")));
    if live {
        failures.extend(figures.too_few(plan.minutes, kinds));
        // What does not hold must be found; where something does not already, that shows nothing.
        if failures.is_empty() {
            failures.extend(spoil::unnoticed(&journals));
        }
    }
    let within = Duration::from_secs(plan.judge_within);
    let file = scratch.join("history.jsonl");
    history::write(&records, &file)?;
    println!("judging {} operations on registers", records.len());
    let verdict = judge::judge(&plan.judge, &file, within)?;
    if !verdict.good() {
        failures.push(format!("the history is judged: {} {} {}", verdict.verdict, verdict.key, verdict.why));
    }
    let stale_verdict = match stale::stale(&records) {
        None => "none could be made".to_owned(),
        Some(stale) => {
            let file = scratch.join("stale.jsonl");
            history::write(&stale, &file)?;
            let found = judge::judge(&plan.judge, &file, within)?;
            if found.wrong() { "found".to_owned() } else { found.verdict }
        }
    };
    if stale_verdict != "found" {
        failures.push(format!("a history made stale on purpose must be found: {stale_verdict}"));
    }
    let kept = !failures.is_empty();
    if kept {
        std::fs::write(scratch.join("journals.txt"), format!("{journals:#?}"))?;
    } else {
        std::fs::remove_dir_all(&scratch)?;
    }
    Ok(Report {
        seed,
        protocol: plan.protocol,
        auth: plan.auth,
        agreement: plan.agreement(),
        f: plan.f,
        seconds,
        figures,
        slowest,
        slowest_return,
        live,
        verdict: verdict.verdict,
        stale_verdict,
        failures,
        scratch: kept.then_some(scratch),
    })
}
