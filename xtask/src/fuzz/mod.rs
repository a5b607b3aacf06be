//! `fuzz`: every reader of foreign bytes against inputs that a search guided by coverage makes.

pub mod decoders;
mod engine;
pub mod machines;
pub mod output;

use crate::cli::{Arguments, Command, Opt, Report, table};
use crate::workspace;
use decoders::Registry;
use engine::{Engine, Plan};
use output::{Found, Run};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// The command.
pub const COMMAND: Command = Command {
    name: "fuzz",
    words: "",
    summary: "search inputs on which a reader of foreign bytes crashes, hangs or takes too much memory",
    details: "
Builds the targets of fuzz/ with libFuzzer, with the same compiler as everything else, into target/fuzz, and
runs them two at a time. --seconds is the time of all of them together, which they share alike; each has one
second at least. Prints per target how many inputs were tried, how many edges of the program they reached and
how many inputs are kept for the next run (target/fuzz/corpus).

Fails where a target crashes, takes longer than ten seconds or takes more memory than it states, and names
the input and the command that runs it again; where a decoder in the source has no target, or an agreement
machine no two (fuzz/targets.toml says which covers what); and where three targets that are wrong on purpose are not found out.
An input that was found belongs into fuzz/regressions/<target>/ with the mend: `cargo test -p troth-fuzz` runs
what is there. Needs a C++ compiler (Debian: build-essential).",
    options: &[
        Opt { name: "--seconds", value: "<n>", help: "of search over all targets together; 60 by default" },
        Opt { name: "--target", value: "<name>", help: "only this target; several with commas between" },
        Opt { name: "--input", value: "<file>", help: "give this input to the one --target, and nothing else" },
    ],
    run,
};

/// What building the targets may take.
const BUILD: Duration = Duration::from_secs(1_500);
/// Targets that run at the same time.
const AT_ONCE: u64 = 2;
/// What a target that is wrong on purpose may take to be found out.
const CANARY_SECONDS: u64 = 60;

fn run(arguments: &Arguments) -> Result<Report, String> {
    let root = workspace::root();
    let seconds = arguments.number("--seconds", 60)?;
    let registry = Registry::parse(&workspace::toml(&root, "fuzz/targets.toml")?)?;
    let files = workspace::files(&root)?;
    let mut without = registry.check(&decoders::all(&files));
    without.extend(registry.check_machines(&machines::all(&files)));
    let chosen = chosen(&registry, &arguments.all("--target"))?;
    let engine = Engine::build(&root, BUILD)?;
    if let Some(input) = arguments.all("--input").last() {
        let [target] = &chosen[..] else { return Err("--input needs one --target".to_string()) };
        return again(&engine, target, &root.join(input));
    }
    let longest = engine.write_seeds()?;

    let canaries: Vec<Plan> =
        longest.iter().filter(|(name, _)| name.starts_with("canary-")).map(Plan::canary).collect();
    println!("{} targets that are wrong on purpose:", canaries.len());
    let blind = canaries_missed(&all_of(&engine, &canaries, &|run| {
        println!("  {}: {}", run.target, run.found.as_ref().map_or("not found out", |_| "found out"));
    })?);

    let plans: Vec<Plan> = longest
        .iter()
        .filter(|(name, _)| chosen.contains(name))
        .map(|(name, longest)| Plan {
            target: name.clone(),
            longest: *longest,
            seconds: share(seconds, chosen.len()),
        })
        .collect();
    if plans.len() != chosen.len() {
        return Err("fuzz/targets.toml names a target that fuzz/src/targets does not have".to_string());
    }
    println!("{} targets, {} s each, two at a time:", plans.len(), share(seconds, plans.len()));
    let mut runs = all_of(&engine, &plans, &|run| {
        if let Some(found) = &run.found {
            println!("{}", found.describe(&run.target, &root));
        }
    })?;
    runs.sort_by(|one, other| one.target.cmp(&other.target));
    Ok(report(&registry, &runs, &without, &blind))
}

/// The targets that were asked for, or all.
fn chosen(registry: &Registry, asked: &[String]) -> Result<Vec<String>, String> {
    if asked.is_empty() {
        return Ok(registry.targets.clone());
    }
    match asked.iter().find(|name| !registry.targets.contains(name) && !name.starts_with("canary-")) {
        Some(name) => Err(format!("there is no target '{name}'; there are {}", registry.targets.join(", "))),
        None => Ok(asked.to_vec()),
    }
}

/// The seconds of each target.
pub fn share(seconds: u64, targets: usize) -> u64 {
    (seconds * AT_ONCE / targets.max(1) as u64).max(1)
}

/// Runs the plans, two at a time; `done` hears of each that has ended.
fn all_of(engine: &Engine, plans: &[Plan], done: &(dyn Fn(&Run) + Sync)) -> Result<Vec<Run>, String> {
    let waiting = Mutex::new(plans.iter());
    let results = Mutex::new(Vec::new());
    let next = || waiting.lock().expect("no one panics with it").next();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(plan) = next() {
                    let ran = engine.search(plan);
                    if let Ok(run) = &ran {
                        done(run);
                    }
                    results.lock().expect("no one panics with it").push(ran);
                }
            });
        }
    });
    results.into_inner().expect("no one panics with it").into_iter().collect()
}

/// The canaries that were not found out as what they are.
pub fn canaries_missed(runs: &[Run]) -> Vec<String> {
    let wanted = |target: &str, found: &Found| match target {
        "canary-hang" => found.what == "hang",
        "canary-memory" => found.what == "memory",
        _ => found.what == "crash",
    };
    let is_missed = |run: &&Run| !run.found.as_ref().is_some_and(|found| wanted(&run.target, found));
    runs.iter().filter(is_missed).map(|run| run.target.clone()).collect()
}

fn report(registry: &Registry, runs: &[Run], without: &[String], blind: &[String]) -> Report {
    let mut rows = vec![["target", "inputs", "edges", "corpus", "result"].map(str::to_string).to_vec()];
    for run in runs {
        let result = run.found.as_ref().map_or("nothing found", |found| found.what).to_string();
        rows.push(vec![
            run.target.clone(),
            run.inputs.to_string(),
            run.edges.to_string(),
            run.corpus.to_string(),
            result,
        ]);
    }
    println!("\n{}", table(&rows));
    let mut wrong = without.to_vec();
    wrong.extend(blind.iter().map(|name| format!("{name} is wrong on purpose and was not found out")));
    wrong.extend(runs.iter().filter_map(|run| Some(format!("{}: {}", run.target, run.found.as_ref()?.what))));
    let inputs: u64 = runs.iter().map(|run| run.inputs).sum();
    let ok = wrong.is_empty();
    let summary = if ok {
        format!(
            "{} targets cover {} decoders: {inputs} inputs, no crash, no hang, no memory over its bound",
            runs.len(),
            registry.covered.len()
        )
    } else {
        wrong.join("\n")
    };
    let targets: Vec<_> = runs.iter().map(Run::json).collect();
    let json = json!({
        "inputs": inputs, "targets": targets, "decoders": registry.covered.len(),
        "decoders_exempt": registry.exempt.len(), "wrong": wrong,
    });
    Report { ok, summary, json }
}

fn again(engine: &Engine, target: &str, input: &Path) -> Result<Report, String> {
    let (found, said) = engine.again(target, &PathBuf::from(input))?;
    println!("{said}");
    let summary = found.as_ref().map_or_else(
        || format!("{target} takes this input"),
        |found| format!("{target}: {} with this input", found.what),
    );
    Ok(Report { ok: found.is_none(), summary, json: json!({ "target": target }) })
}
