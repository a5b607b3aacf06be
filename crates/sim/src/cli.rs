//! The command line: `sim PROTOCOL --f F --seeds N …`.

use crate::a2m_pbft_e::A2mPbftEWorld;
use crate::a2m_pbft_ea::A2mPbftEaWorld;
use crate::checks::PROPERTIES;
use crate::minbft::MinBftWorld;
use crate::pbft::PbftWorld;
use crate::report::Report;
use crate::shrink::{run as run_seed, shrink};
use crate::{Options, Outcome, Overrides, Protocol, ServiceKind};
use serde_json::json;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// How the command is used.
pub const USAGE: &str = "\
sim PROTOCOL [--f F] [--seeds N] [--start S] [--threads T] [--json]
             [--service S]      what the group replicates: kv (the default) or zookeeper
             [--consistency C]  what clients' reads show: linearizable (the default) or, of the coordination service,
                                sequential
             [--literal RULE]   follow a printed rule literally; only general adversaries
             [--only PROPERTY]  with --literal: judge this property alone, such as agreement
             [--views V]        end a run when a correct replica enters view V
             [--faulty K]       K faulty replicas, more than f: nothing need make progress, and clients
                                must see one history all the same
             [--negative]       faulty replicas clone their trusted component: must find violations
             [--twice]          run each seed twice and compare the hashes of all events
             [--keep-going]     go on after a violation
             [--seed S]         replay one seed with a trace of its last events
             [--trace LINES]    with --seed: how much of the end to show, 200 by default
             [--shrink]         with --seed: take away what is not needed for the failure
exit: 0 nothing found, 1 a violation (or too little happened), 2 could not run";

struct Arguments {
    f: u16,
    seeds: u64,
    start: u64,
    threads: usize,
    json: bool,
    twice: bool,
    keep_going: bool,
    seed: Option<u64>,
    shrink: bool,
    trace: usize,
    overrides: Overrides,
}

/// Runs the command. `args` are the words after `sim`.
#[must_use]
pub fn run(args: &[String]) -> ExitCode {
    let Some((protocol, rest)) = args.split_first() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match protocol.as_str() {
        _ if args.iter().any(|word| word == "--help" || word == "-h") => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        MinBftWorld::NAME => command::<MinBftWorld>(rest),
        PbftWorld::NAME => command::<PbftWorld>(rest),
        A2mPbftEWorld::NAME => command::<A2mPbftEWorld>(rest),
        A2mPbftEaWorld::NAME => command::<A2mPbftEaWorld>(rest),
        other => {
            let names =
                [MinBftWorld::NAME, PbftWorld::NAME, A2mPbftEWorld::NAME, A2mPbftEaWorld::NAME].join(", ");
            eprintln!("no protocol is called {other}; there are: {names}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn parse<P: Protocol>(args: &[String]) -> Result<Arguments, String> {
    let mut arguments = Arguments {
        f: 1,
        seeds: 100,
        start: 0,
        threads: 2,
        json: false,
        twice: false,
        keep_going: false,
        seed: None,
        shrink: false,
        trace: 200,
        overrides: Overrides::default(),
    };
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |text: &String| text.parse::<u64>().map_err(|_| format!("{word} {text}: not a number"));
        match word.as_str() {
            "--f" => {
                let f = number(value()?)?;
                arguments.f =
                    u16::try_from(f).ok().filter(|f| (1..=10).contains(f)).ok_or("--f takes 1 to 10")?;
            }
            "--seeds" => arguments.seeds = number(value()?)?,
            "--start" => arguments.start = number(value()?)?,
            "--threads" => arguments.threads = number(value()?)?.clamp(1, 256) as usize,
            "--json" => arguments.json = true,
            "--twice" => arguments.twice = true,
            "--keep-going" => arguments.keep_going = true,
            "--faulty" => {
                let faulty = u16::try_from(number(value()?)?).map_err(|_| "--faulty takes a number")?;
                arguments.overrides.faulty = Some(faulty);
            }
            "--service" => {
                let name = value()?;
                let named = ServiceKind::ALL.into_iter().find(|service| service.name() == name);
                arguments.overrides.service = named.ok_or(format!("no service is called {name}"))?;
            }
            "--consistency" => {
                arguments.overrides.recent = match value()?.as_str() {
                    "linearizable" => false,
                    "sequential" => true,
                    other => return Err(format!("reads are linearizable or sequential, and never {other}")),
                }
            }
            "--negative" => arguments.overrides.negative = true,
            "--trust-blind" => arguments.overrides.trust_blind = true,
            "--seed" => arguments.seed = Some(number(value()?)?),
            "--views" => arguments.overrides.views = Some(number(value()?)?),
            "--only" => {
                let name = value()?;
                if !PROPERTIES.contains(&name.as_str()) {
                    return Err(format!(
                        "no property is called {name}; there are: {}",
                        PROPERTIES.join(", ")
                    ));
                }
                arguments.overrides.only = Some(name.clone());
            }
            "--trace" => arguments.trace = number(value()?)? as usize,
            "--shrink" => arguments.shrink = true,
            "--literal" => {
                let name = value()?;
                if !P::literals().contains(&name.as_str()) {
                    return Err(format!(
                        "no literal rule is called {name}; there are: {}",
                        P::literals().join(", ")
                    ));
                }
                arguments.overrides.literal = Some(name.clone());
            }
            other => return Err(format!("what is {other}?")),
        }
    }
    if arguments.overrides.only.is_some() && arguments.overrides.literal.is_none() {
        return Err("--only goes with --literal: without a flawed rule everything must hold".to_owned());
    }
    let faulty = arguments.overrides.faulty.unwrap_or(arguments.f + 1);
    if !P::one_history_beyond_f() && arguments.overrides.faulty.is_some() {
        return Err(format!("{} promises nothing with more than f faulty replicas", P::NAME));
    }
    if arguments.overrides.service != ServiceKind::Kv && arguments.overrides.faulty.is_some() {
        return Err("only histories of the key-value service are judged with more than f faulty".to_owned());
    }
    if arguments.overrides.service == ServiceKind::Kv && arguments.overrides.recent {
        return Err("histories of the key-value service are judged as linearizable".to_owned());
    }
    if !(arguments.f + 1..=2 * arguments.f).contains(&faulty) {
        return Err(format!("--faulty takes {} to {}", arguments.f + 1, 2 * arguments.f));
    }
    Ok(arguments)
}

fn command<P: Protocol>(args: &[String]) -> ExitCode {
    match parse::<P>(args) {
        Err(why) => {
            eprintln!("{why}\n{USAGE}");
            ExitCode::from(2)
        }
        Ok(arguments) => match arguments.seed {
            Some(seed) => replay::<P>(&arguments, seed),
            None => search::<P>(&arguments),
        },
    }
}

fn reproduce<P: Protocol>(arguments: &Arguments, seed: u64) -> String {
    let mut line = format!("cargo xtask sim {} --f {} --seed {seed}", P::NAME, arguments.f);
    if arguments.overrides.service != ServiceKind::default() {
        line += &format!(" --service {}", arguments.overrides.service);
    }
    if arguments.overrides.recent {
        line += " --consistency sequential";
    }
    if let Some(literal) = &arguments.overrides.literal {
        line += &format!(" --literal {literal}");
    }
    if let Some(only) = &arguments.overrides.only {
        line += &format!(" --only {only:?}");
    }
    if let Some(faulty) = arguments.overrides.faulty {
        line += &format!(" --faulty {faulty}");
    }
    if arguments.overrides.negative {
        line += " --negative";
    }
    if let Some(views) = arguments.overrides.views {
        line += &format!(" --views {views}");
    }
    if arguments.overrides.trust_blind {
        line += " --trust-blind";
    }
    line
}

/// Bytes of a worker's stack: as much as a main thread has.
const STACK: usize = 8 << 20;

/// A panic is a violation too: an assertion of the code under test. The process may be built to abort
/// on panics, so the hook says which seed it was and ends it.
fn report_panics(line: impl Fn() -> String + Send + Sync + 'static, as_json: bool) {
    std::panic::set_hook(Box::new(move |info| {
        let actor = crate::world::actor();
        if cfg!(panic = "unwind") {
            PANIC.set(Some(format!("{actor}: {info}")));
            return;
        }
        let line = line();
        for line in crate::world::last_lines() {
            println!("{line}");
        }
        println!("VIOLATION of assertions: {actor}: {info}\nREPRODUCE: {line}");
        if as_json {
            let detail = info.to_string();
            let result =
                json!({ "ok": false, "property": "assertions", "detail": detail, "reproduce": line });
            println!("{result}");
        }
        std::process::exit(1);
    }));
}

/// Runs a seed; where panics unwind, one becomes a violation of the seed.
fn run_caught<P: Protocol>(seed: u64, f: u16, overrides: &Overrides, traced: usize) -> Outcome {
    let caught = std::panic::catch_unwind(|| run_seed::<P>(seed, f, overrides, traced));
    caught.unwrap_or_else(|_| {
        let detail = PANIC.take().unwrap_or_default();
        let violation = crate::checks::Violation { property: "assertions", detail, nodes: Vec::new() };
        Outcome { violation: Some(violation), ..Outcome::default() }
    })
}

std::thread_local! {
    static PANIC: std::cell::Cell<Option<String>> = const { std::cell::Cell::new(None) };
    static CURRENT: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

fn replay<P: Protocol>(arguments: &Arguments, seed: u64) -> ExitCode {
    let line = reproduce::<P>(arguments, seed);
    report_panics(move || line.clone(), arguments.json);
    let overrides = if arguments.shrink {
        shrink::<P>(seed, arguments.f, &arguments.overrides, |step| println!("  {step}"))
    } else {
        arguments.overrides.clone()
    };
    let options = Options::draw(seed, arguments.f, P::shape(arguments.f), &overrides);
    let outcome = run_caught::<P>(seed, arguments.f, &overrides, arguments.trace);
    for line in &outcome.trace {
        println!("{line}");
    }
    println!("{options}");
    println!("hash {:016x}, {} steps, {} requests ordered", outcome.hash, outcome.steps, outcome.ordered);
    let failed = outcome.violation.is_some();
    match &outcome.violation {
        Some(violation) => {
            println!("VIOLATION of {}: {}", violation.property, violation.detail);
            println!("REPRODUCE: {}", reproduce::<P>(arguments, seed));
        }
        None => println!("nothing found"),
    }
    if arguments.json {
        let property = outcome.violation.as_ref().map_or("", |violation| violation.property);
        let hash = format!("{:016x}", outcome.hash);
        println!("{}", json!({ "ok": !failed, "seed": seed, "hash": hash, "property": property }));
    }
    ExitCode::from(u8::from(failed))
}

struct Found {
    seed: u64,
    outcome: Outcome,
}

#[expect(clippy::disallowed_methods, reason = "wall time measures the simulator and enters no run")]
fn search<P: Protocol>(arguments: &Arguments) -> ExitCode {
    let (f, as_json) = (arguments.f, arguments.json);
    let prefix = reproduce::<P>(arguments, 0);
    report_panics(move || prefix.replace(" --seed 0", &format!(" --seed {}", CURRENT.get())), as_json);
    let next = AtomicU64::new(arguments.start);
    let end = arguments.start.saturating_add(arguments.seeds);
    let stop = AtomicBool::new(false);
    let found: Mutex<Vec<Found>> = Mutex::new(Vec::new());
    let total: Mutex<Report> = Mutex::new(Report::default());
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads {
            let worker = std::thread::Builder::new().stack_size(STACK);
            let started = worker.spawn_scoped(scope, || {
                let mut report = Report::default();
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        break;
                    }
                    CURRENT.set(seed);
                    let mut outcome = run_caught::<P>(seed, f, &arguments.overrides, 0);
                    if arguments.twice && outcome.violation.is_none() {
                        let again = run_caught::<P>(seed, f, &arguments.overrides, 0);
                        if again.hash != outcome.hash {
                            let detail = format!("hashes {:016x} and {:016x}", outcome.hash, again.hash);
                            outcome.violation = Some(crate::checks::Violation {
                                property: "determinism",
                                detail,
                                nodes: Vec::new(),
                            });
                        }
                    }
                    report.add(seed, &outcome);
                    if outcome.violation.is_some() {
                        if !arguments.keep_going {
                            stop.store(true, Ordering::Relaxed);
                        }
                        found
                            .lock()
                            .unwrap_or_else(|poisoned| poisoned.into_inner())
                            .push(Found { seed, outcome });
                    }
                }
                total.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).merge(&report);
            });
            started.expect("the system has room for a few threads");
        }
    });
    let seconds = began.elapsed().as_secs_f64().max(1e-6);
    let mut found = found.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    found.sort_by_key(|one| one.seed);
    let report = total.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    conclude::<P>(arguments, &report, &found, seconds)
}

fn conclude<P: Protocol>(arguments: &Arguments, report: &Report, found: &[Found], seconds: f64) -> ExitCode {
    let service = arguments.overrides.service;
    let recent = arguments.overrides.recent;
    let mut what = if service == ServiceKind::default() { String::new() } else { format!(" {service}") };
    what += if recent { " sequential" } else { "" };
    print!("{}{what} f = {} {}", P::NAME, arguments.f, report.text(seconds, arguments.threads));
    for one in found {
        let Some(violation) = &one.outcome.violation else { continue };
        if !arguments.json && one.seed == found[0].seed && !arguments.keep_going {
            let traced = run_caught::<P>(one.seed, arguments.f, &arguments.overrides, 40);
            for line in &traced.trace {
                println!("{line}");
            }
            println!("{}", Options::draw(one.seed, arguments.f, P::shape(arguments.f), &arguments.overrides));
        }
        println!("VIOLATION of {} in seed {}: {}", violation.property, one.seed, violation.detail);
        println!("REPRODUCE: {}", reproduce::<P>(arguments, one.seed));
    }
    // Special modes look for one thing and show nothing about coverage.
    let plain = arguments.overrides == Overrides { service, recent, ..Overrides::default() };
    let rare = report
        .rare(P::REPLACES, P::acceptance(&P::group(1)).tentative)
        .or_else(|| report.rarely_done(service))
        .filter(|_| plain && found.is_empty());
    if let Some(rare) = &rare {
        println!("TOO LITTLE HAPPENED: {rare}");
    }
    let ok = found.is_empty() && rare.is_none();
    if arguments.json {
        let first = found.first();
        let violation = first.and_then(|one| one.outcome.violation.as_ref());
        let mut result = report.json(seconds, arguments.threads);
        result["ok"] = json!(ok);
        result["protocol"] = json!(P::NAME);
        result["service"] = json!(service.name());
        result["consistency"] = json!(if recent { "sequential" } else { "linearizable" });
        result["f"] = json!(arguments.f);
        result["seed"] = json!(first.map(|one| one.seed));
        result["property"] = json!(violation.map_or("", |violation| violation.property));
        result["detail"] = json!(violation.map_or("", |violation| &violation.detail));
        result["rare"] = json!(rare.unwrap_or_default());
        println!("{result}");
    }
    ExitCode::from(u8::from(!ok))
}
