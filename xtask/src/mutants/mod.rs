//! `mutants`: plants known bugs, one at a time, and shows what catches each.

mod hunt;
pub mod table;
mod tree;

use crate::cli::{self, Arguments, Command, Opt, Report};
use crate::{paper, workspace};
use hunt::Verdict;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use table::Mutant;

const TABLES: &str = "xtask/mutants";

/// The command.
pub const COMMAND: Command = Command {
    name: "mutants",
    words: "<table>",
    summary: "plant known bugs, one at a time, and show which checker or test catches each",
    details: "
cargo xtask mutants minbft reads xtask/mutants/minbft.toml, an array of [[mutant]]:

  id       its name
  file     the file to change
  find     the text to replace; it must occur exactly once in the file
  replace  what stands there instead
  breaks   what goes wrong, in words
  label    (optional) the rule, or list of rules, whose guard this removes
  tests    (optional) the package whose own tests should notice
  sim      (optional) { f, seeds, options } for the search that should notice
  checker  (optional) the checker that must be the one to notice in the search

'protocol' before them says which protocol the simulator runs, where that is not the table's name.

Each bug is planted in a copy of the workspace below the build directory, built with the profile
'mutants', and hunted: by the first 100 seeds of the search, which ends at the first violation; where it
survives that, by the tests, which take seconds; and where it survives those, by the search with all its
seeds. With --search all seeds come before the tests (hours, for what the tests of a package see and the
simulator does not).
Before that, the copy without a bug must pass the same hunts: a checker that always fires proves
nothing. The command fails where a bug survives, where one no longer applies or does not compile,
and where a rule marked '(guard)' in docs/protocols has no bug that names it.",
    options: &[
        Opt { name: "--only", value: "ID,…", help: "plant these only" },
        Opt { name: "--list", value: "", help: "list the bugs, check that each applies, and end" },
        Opt { name: "--search", value: "", help: "search with all seeds before asking the tests" },
        Opt { name: "--jobs", value: "N", help: "how many to hunt at a time (one per core)" },
    ],
    run,
};

fn run(arguments: &Arguments) -> Result<Report, String> {
    let [name] = arguments.words.as_slice() else {
        return Err("say which table: cargo xtask mutants minbft".to_string());
    };
    let root = workspace::root();
    let (mut mutants, wrong) = load(&root, name)?;
    let path = path_of(name);
    let only = arguments.all("--only");
    if let Some(unknown) = only.iter().find(|id| !mutants.iter().any(|mutant| mutant.id == **id)) {
        return Err(format!("there is no bug '{unknown}' in {path}; --list shows them"));
    }
    if !only.is_empty() {
        mutants.retain(|mutant| only.contains(&mutant.id));
    }
    if arguments.flag("--list") {
        return Ok(list(&mutants, &wrong));
    }
    if !wrong.is_empty() {
        return Err(format!("the table does not fit the code:\n  {}", wrong.join("\n  ")));
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    let jobs = arguments.number("--jobs", cores)?.clamp(1, mutants.len().max(1) as u64) as usize;
    let protocol = table::protocol(&workspace::toml(&root, &path)?, name);
    hunt_all(&root, &protocol, &mutants, jobs, arguments.flag("--search"))
}

/// Where the table of a protocol lies.
fn path_of(name: &str) -> String {
    format!("{TABLES}/{name}.toml")
}

/// A table, and what does not fit the code or the protocol's page.
fn load(root: &Path, name: &str) -> Result<(Vec<Mutant>, Vec<String>), String> {
    let path = path_of(name);
    let mutants = table::parse(&workspace::toml(root, &path)?).map_err(|why| format!("{path}: {why}"))?;
    let mut wrong = table::stale(&mutants, &|file| std::fs::read_to_string(root.join(file)).ok());
    wrong.extend(unguarded(root, name, &mutants)?);
    Ok((mutants, wrong))
}

/// How many bugs all tables hold, and what in them does not fit.
pub fn fit(root: &Path) -> Result<(usize, Vec<String>), String> {
    let names = std::fs::read_dir(root.join(TABLES)).map_err(|why| format!("{TABLES}: {why}"))?;
    let (mut bugs, mut wrong) = (0, Vec::new());
    for name in names {
        let name = name.map_err(|why| format!("{TABLES}: {why}"))?.path();
        if let Some(protocol) = name.file_stem().and_then(|stem| stem.to_str()) {
            let (mutants, stale) = load(root, protocol)?;
            bugs += mutants.len();
            wrong.extend(stale);
        }
    }
    Ok((bugs, wrong))
}

/// Rules that accept or ignore something, but whose guard no bug removes.
fn unguarded(root: &Path, page: &str, mutants: &[Mutant]) -> Result<Vec<String>, String> {
    let named: BTreeSet<&str> =
        mutants.iter().flat_map(|mutant| mutant.labels.iter().map(String::as_str)).collect();
    let path = format!("docs/protocols/{page}.md");
    let definitions = paper::definitions(&workspace::files(root)?);
    let here: Vec<_> =
        definitions.into_iter().filter(|definition| definition.place.starts_with(&path)).collect();
    let mut wrong = Vec::new();
    for label in named.iter().filter(|label| !here.iter().any(|definition| definition.label == **label)) {
        wrong.push(format!("{label}: a bug names it, but {path} does not define it"));
    }
    for guard in
        here.iter().filter(|definition| definition.guard && !named.contains(definition.label.as_str()))
    {
        wrong.push(format!("{}: it guards ({}), and no bug removes its guard", guard.label, guard.place));
    }
    Ok(wrong)
}

fn list(mutants: &[Mutant], wrong: &[String]) -> Report {
    let mut rows = vec![["bug", "file", "labels", "hunted by", "breaks"].map(str::to_string).to_vec()];
    for mutant in mutants {
        rows.push(vec![
            mutant.id.clone(),
            mutant.file.clone(),
            mutant.labels.join(" "),
            mutant.hunters(),
            mutant.breaks.clone(),
        ]);
    }
    print!("{}", cli::table(&rows));
    for what in wrong {
        println!("wrong: {what}");
    }
    let ids: Vec<&str> = mutants.iter().map(|mutant| mutant.id.as_str()).collect();
    let summary =
        format!("mutants: {} bugs in the table, {} do not fit the code", mutants.len(), wrong.len());
    Report { ok: wrong.is_empty(), summary, json: json!({ "bugs": ids, "wrong": wrong }) }
}

fn hunt_all(
    root: &Path,
    protocol: &str,
    mutants: &[Mutant],
    jobs: usize,
    search_all: bool,
) -> Result<Report, String> {
    let started = Instant::now();
    let files = workspace::paths(root)?;
    let directory = workspace::target(root).join("mutants");
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = (cores / jobs).max(1);
    let next = AtomicUsize::new(0);
    let verdicts: Mutex<Vec<Option<(Verdict, f64)>>> = Mutex::new(mutants.iter().map(|_| None).collect());
    let say = |line: String| println!("[{:6.1} s] {line}", started.elapsed().as_secs_f64());
    let hunters: Result<Vec<hunt::Hunter>, String> = (0..jobs)
        .map(|job| {
            let tree = tree::Tree::sync(root, &files, &directory.join(format!("tree-{job}")))?;
            let build = directory.join(format!("build-{job}"));
            Ok(hunt::Hunter::new(tree, build, protocol, threads, search_all))
        })
        .collect();
    let mut hunters = hunters?;
    say(format!("{} bugs, {jobs} at a time; first the same hunts without a bug", mutants.len()));
    hunters[0].baseline(mutants, &say)?;
    say("without a bug nothing fires".to_string());
    std::thread::scope(|scope| {
        for hunter in &mut hunters {
            scope.spawn(|| {
                while let Some(mutant) = mutants.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let began = Instant::now();
                    let verdict = hunter.hunt(mutant);
                    let seconds = began.elapsed().as_secs_f64();
                    say(format!("{:<32} {} ({seconds:.0} s)", mutant.id, verdict.describe()));
                    let at =
                        mutants.iter().position(|other| other.id == mutant.id).expect("it is from there");
                    verdicts.lock().expect("no hunter panics while it holds this")[at] =
                        Some((verdict, seconds));
                }
            });
        }
    });
    let verdicts = verdicts.into_inner().map_err(|_| "a hunter panicked")?;
    Ok(report(mutants, &verdicts))
}

fn report(mutants: &[Mutant], verdicts: &[Option<(Verdict, f64)>]) -> Report {
    let mut rows = vec![["bug", "result", "seconds", "labels", "breaks"].map(str::to_string).to_vec()];
    let (mut caught, mut results) = (0, Vec::new());
    for (mutant, verdict) in mutants.iter().zip(verdicts) {
        let (text, good, seconds, json) = match verdict {
            None => ("not hunted".to_string(), false, 0.0, json!({})),
            Some((verdict, seconds)) => (verdict.describe(), verdict.caught(), *seconds, verdict.json()),
        };
        caught += usize::from(good);
        let labels = mutant.labels.join(" ");
        rows.push(vec![mutant.id.clone(), text, format!("{seconds:.0}"), labels, mutant.breaks.clone()]);
        results.push(json!({
            "id": mutant.id, "caught": good, "by": json, "seconds": seconds, "labels": mutant.labels,
        }));
    }
    println!("\n{}", cli::table(&rows));
    let summary = format!("mutants: {caught} of {} planted bugs caught", mutants.len());
    Report {
        ok: caught == mutants.len(),
        summary,
        json: json!({ "caught": caught, "planted": mutants.len(), "mutants": results }),
    }
}
