//! `check`: everything that must hold before a commit.

use crate::cli::{Arguments, Command, Opt, Report, shorten, table};
use crate::lint::{Finding, allow, layers, purity, supply, tidy};
use crate::process::{self, Ending, Ran};
use crate::{mutants, paper, sim, workspace};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The command.
pub const COMMAND: Command = Command {
    name: "check",
    words: "",
    summary: "everything that must hold before a commit: format, lints, licences, tests, a short simulation",
    details: "
Steps, in this order; all run, whatever fails before:

  format        cargo fmt --check
  purity        below the runtime no clock, network, file, thread, randomness, async, hash order;
                nothing unfinished anywhere (exceptions with reasons: xtask/allow.toml)
  tidy          files of at most 500 lines, no marks of unfinished work, one title per page
  layers        dependencies point downwards only (table: xtask/src/lint/layers.rs)
  supply        licences, banned crates and sources of the lock file (rules: deny.toml)
  paper         every rule label in the specification, at code and on a test
  planted       the tables of planted bugs are well-formed, and every bug in them still applies
  clippy        all targets, warnings are errors (disallowed methods: clippy.toml)
  tests         all tests of the workspace
  doctests      all examples in the documentation
  sim-build     the simulator, in release
  sim-f1..3     a short search for each f (MinBFT); sim-pbft-f1, sim-pbft-f2 of PBFT, sim-e-f1, sim-e-f2 of A2M-PBFT-E, sim-ea-f1, sim-ea-f2 of
                A2M-PBFT-EA, sim-zk-f1, sim-zk-f2 of the coordination service on MinBFT
  control       cloned trusted components, outside the fault model: here the checkers must fire
  determinism   three seeds for each f, each run twice: the same hash of all events

Nothing is written outside the build directory. The last line counts every test, and every other
step as one.",
    options: &[
        Opt { name: "--only", value: "STEP,…", help: "run these steps only" },
        Opt { name: "--skip", value: "STEP,…", help: "leave these steps out" },
        Opt { name: "--seeds", value: "N", help: "seeds per f in the short search (150)" },
        Opt { name: "--list", value: "", help: "list the steps and end" },
    ],
    run,
};

/// What a step found out.
struct Outcome {
    passed: u64,
    failed: u64,
    /// One line.
    note: String,
    /// What a person needs to mend it.
    details: String,
}

impl Outcome {
    fn of(ok: bool, note: impl Into<String>, details: impl Into<String>) -> Self {
        Self { passed: u64::from(ok), failed: u64::from(!ok), note: note.into(), details: details.into() }
    }

    fn findings(findings: &[Finding], looked_at: String) -> Self {
        let details: Vec<String> = findings.iter().map(ToString::to_string).collect();
        let note = if findings.is_empty() { looked_at } else { format!("{} findings", findings.len()) };
        Self::of(findings.is_empty(), note, details.join("\n"))
    }
}

type Step = (&'static str, u64, fn(&Context) -> Result<Outcome, String>);

/// Lines of what a failed test said that are shown.
const SAID_BY_A_TEST: usize = 12;

/// Name, time limit in seconds, and what it does.
const STEPS: &[Step] = &[
    ("format", 60, format),
    ("purity", 30, purity_lint),
    ("tidy", 30, tidy_lint),
    ("layers", 60, layers_lint),
    ("supply", 120, supply_lint),
    ("paper", 30, paper_coverage),
    ("planted", 30, planted_bugs),
    ("clippy", 900, clippy),
    ("tests", 1200, tests),
    ("doctests", 600, doctests),
    ("sim-build", 900, sim_build),
    ("sim-f1", 300, |context| search(context, &["minbft"], 1)),
    ("sim-f2", 300, |context| search(context, &["minbft"], 2)),
    ("sim-f3", 300, |context| search(context, &["minbft"], 3)),
    ("sim-pbft-f1", 300, |context| search(context, &["pbft"], 1)),
    ("sim-pbft-f2", 300, |context| search(context, &["pbft"], 2)),
    ("sim-e-f1", 300, |context| search(context, &["a2m-pbft-e"], 1)),
    ("sim-e-f2", 300, |context| search(context, &["a2m-pbft-e"], 2)),
    ("sim-ea-f1", 300, |context| search(context, &["a2m-pbft-ea"], 1)),
    ("sim-ea-f2", 300, |context| search(context, &["a2m-pbft-ea"], 2)),
    ("sim-zk-f1", 300, |context| search(context, ZOOKEEPER, 1)),
    ("sim-zk-f2", 300, |context| search(context, ZOOKEEPER, 2)),
    ("control", 300, control),
    ("determinism", 300, determinism),
];

struct Context {
    root: PathBuf,
    seeds: u64,
    started: Instant,
    limit: Duration,
    step: &'static str,
}

impl Context {
    /// Runs a program within the step's time and says every half minute that it is alive.
    fn run(&self, command: &mut std::process::Command) -> Result<Ran, String> {
        let ran = process::run(command, self.limit, &mut |_, line| {
            println!("{} {:<12} … {}", self.clock(), self.step, shorten(line, 100));
        })?;
        if ran.ending == Ending::TimedOut {
            println!("{} {:<12} over its time of {} s", self.clock(), self.step, self.limit.as_secs());
        }
        Ok(ran)
    }

    fn clock(&self) -> String {
        format!("[{:6.1} s]", self.started.elapsed().as_secs_f64())
    }

    fn cargo(&self, arguments: &[&str]) -> Result<Ran, String> {
        self.run(workspace::cargo(&self.root).args(arguments))
    }
}

fn run(arguments: &Arguments) -> Result<Report, String> {
    let (only, skip) = (arguments.all("--only"), arguments.all("--skip"));
    if let Some(unknown) = only.iter().chain(&skip).find(|name| !STEPS.iter().any(|step| step.0 == **name)) {
        return Err(format!("there is no step '{unknown}'; --list shows them"));
    }
    let chosen =
        |name: &str| (only.is_empty() || only.iter().any(|n| n == name)) && !skip.iter().any(|n| n == name);
    let steps: Vec<&Step> = STEPS.iter().filter(|step| chosen(step.0)).collect();
    if arguments.flag("--list") {
        let names: Vec<&str> = steps.iter().map(|step| step.0).collect();
        return Ok(Report { ok: true, summary: names.join("\n"), json: json!({ "steps": names }) });
    }
    let mut context = Context {
        root: workspace::root(),
        seeds: arguments.number("--seeds", 150)?,
        started: Instant::now(),
        limit: Duration::ZERO,
        step: "",
    };
    let mut rows = vec![["step", "result", "seconds", ""].map(str::to_string).to_vec()];
    let (mut passed, mut failed, mut results) = (0, 0, Vec::new());
    for (name, limit, step) in steps {
        (context.step, context.limit) = (*name, Duration::from_secs(*limit));
        println!("{} {name:<12} …", context.clock());
        let began = Instant::now();
        let outcome = step(&context).unwrap_or_else(|why| Outcome::of(false, shorten(&why, 200), why));
        let seconds = began.elapsed().as_secs_f64();
        let word = if outcome.failed == 0 { "ok" } else { "FAILED" };
        println!("{} {name:<12} {word} ({seconds:.1} s) {}", context.clock(), outcome.note);
        if outcome.failed > 0 && !outcome.details.is_empty() {
            println!("{}", indent(&outcome.details));
        }
        passed += outcome.passed;
        failed += outcome.failed;
        rows.push(vec![(*name).to_string(), word.to_string(), format!("{seconds:.1}"), outcome.note.clone()]);
        results.push(json!({
            "step": name, "ok": outcome.failed == 0, "passed": outcome.passed, "failed": outcome.failed,
            "seconds": seconds, "note": outcome.note,
        }));
    }
    println!("\n{}", table(&rows));
    let json = json!({ "passed": passed, "failed": failed, "steps": Value::from(results) });
    Ok(Report { ok: failed == 0, summary: format!("{passed} passed, {failed} failed"), json })
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect::<String>().trim_end().to_string()
}

fn format(context: &Context) -> Result<Outcome, String> {
    let ran = context.cargo(&["fmt", "--all", "--", "--check", "--color", "never"])?;
    Ok(Outcome::of(
        ran.ending.good(),
        if ran.ending.good() { "" } else { "run cargo fmt --all" },
        ran.tail(60),
    ))
}

fn purity_lint(context: &Context) -> Result<Outcome, String> {
    text_lint(context, purity::check)
}

fn tidy_lint(context: &Context) -> Result<Outcome, String> {
    text_lint(context, tidy::check)
}

/// A lint over the files, with the exceptions that concern its own rules.
fn text_lint(
    context: &Context,
    lint: fn(&[workspace::SourceFile]) -> Vec<Finding>,
) -> Result<Outcome, String> {
    let files = workspace::files(&context.root)?;
    let allowed = allow::parse(&workspace::toml(&context.root, "xtask/allow.toml")?)?;
    let rules = if context.step == "purity" { purity::rules() } else { tidy::RULES.to_vec() };
    if let Some(entry) = allowed.iter().find(|entry| !is_known_rule(entry.rule())) {
        return Err(format!("allow.toml: there is no rule '{}'", entry.rule()));
    }
    let concerned: Vec<_> = allowed.into_iter().filter(|entry| rules.contains(&entry.rule())).collect();
    let findings = allow::apply(lint(&files), &concerned);
    Ok(Outcome::findings(&findings, format!("{} files, {} exceptions", files.len(), concerned.len())))
}

fn is_known_rule(rule: &str) -> bool {
    tidy::RULES.contains(&rule) || purity::rules().contains(&rule)
}

fn layers_lint(context: &Context) -> Result<Outcome, String> {
    let metadata = workspace::metadata(&context.root, false)?;
    let packages = metadata["packages"].as_array().map_or(0, Vec::len);
    let findings = layers::check(&metadata, &context.root.to_string_lossy());
    Ok(Outcome::findings(&findings, format!("{packages} packages")))
}

fn supply_lint(context: &Context) -> Result<Outcome, String> {
    let policy = supply::Policy::parse(&workspace::toml(&context.root, "deny.toml")?)?;
    let metadata = workspace::metadata(&context.root, true)?;
    let packages = metadata["packages"].as_array().map_or(0, Vec::len);
    Ok(Outcome::findings(&policy.check(&metadata), format!("{packages} packages in the lock file")))
}

fn paper_coverage(context: &Context) -> Result<Outcome, String> {
    let coverage = paper::check(&workspace::files(&context.root)?);
    let labels = coverage.rows.len() - 1;
    let ok = coverage.missing.is_empty() && labels > 0;
    Ok(Outcome::of(
        ok,
        format!("{labels} rules, {} missing", coverage.missing.len()),
        coverage.missing.join("\n"),
    ))
}

/// A bug that no longer applies is a guard that nothing watches: the hunt itself is a long run of its own.
fn planted_bugs(context: &Context) -> Result<Outcome, String> {
    let (bugs, wrong) = mutants::fit(&context.root)?;
    Ok(Outcome::of(
        wrong.is_empty() && bugs > 0,
        format!("{bugs} bugs, {} do not fit the code", wrong.len()),
        wrong.join("\n"),
    ))
}

fn clippy(context: &Context) -> Result<Outcome, String> {
    let ran = context.cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--locked",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ])?;
    Ok(Outcome::of(ran.ending.good(), ran.ending.describe(), ran.tail(120)))
}

fn tests(context: &Context) -> Result<Outcome, String> {
    let ran = context.cargo(&[
        "test",
        "--workspace",
        "--locked",
        "--no-fail-fast",
        "--lib",
        "--bins",
        "--tests",
    ])?;
    Ok(count_tests(&ran))
}

fn doctests(context: &Context) -> Result<Outcome, String> {
    Ok(count_tests(&context.cargo(&["test", "--workspace", "--locked", "--no-fail-fast", "--doc"])?))
}

/// Adds up what the test programs printed. An ignored test counts as failed: there shall be none.
fn count_tests(ran: &Ran) -> Outcome {
    let counts = test_counts(&ran.stdout);
    let good = ran.ending.good() && counts.ignored == 0;
    let mut failed = counts.failed + counts.ignored;
    if !good && failed == 0 {
        failed = 1;
    }
    let note = format!("{} passed, {failed} failed, {}", counts.passed, ran.ending.describe());
    let names = if counts.names.is_empty() {
        String::new()
    } else {
        format!("failed: {}\n", counts.names.join(", "))
    };
    let said: String = failed_tests_said(&ran.stdout).into_iter().map(|line| format!("{line}\n")).collect();
    Outcome { passed: counts.passed, failed, note, details: format!("{names}{said}{}", ran.tail(120)) }
}

/// The first lines of what each failed test said: the programs that run after its own push them out of the tail.
pub fn failed_tests_said(lines: &[String]) -> Vec<&str> {
    let (mut said, mut left) = (Vec::new(), 0);
    for line in lines {
        if line.starts_with("---- ") && line.ends_with(" ----") {
            left = SAID_BY_A_TEST;
        } else if line == "failures:" {
            left = 0;
        }
        if left > 0 {
            said.push(line.as_str());
            left -= 1;
        }
    }
    said
}

/// What test programs printed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TestCounts {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that were skipped.
    pub ignored: u64,
    /// The names of those that failed.
    pub names: Vec<String>,
}

/// Reads the output of `cargo test`.
pub fn test_counts(lines: &[String]) -> TestCounts {
    let mut counts = TestCounts::default();
    for line in lines {
        if let Some(result) = line.strip_prefix("test result: ") {
            let number = |word: &str| -> u64 {
                let before = result.split(&format!(" {word}")).next().unwrap_or_default();
                before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
            };
            counts.passed += number("passed");
            counts.failed += number("failed");
            counts.ignored += number("ignored");
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            counts.names.push(name.to_string());
        }
    }
    counts
}

fn sim_build(context: &Context) -> Result<Outcome, String> {
    let ran = context.cargo(&[&["build", "--release", "--quiet", "--locked"], sim::TARGET].concat())?;
    Ok(Outcome::of(ran.ending.good(), ran.ending.describe(), ran.tail(60)))
}

fn simulate(context: &Context, arguments: &[&str]) -> Result<Ran, String> {
    context.run(std::process::Command::new(sim::program(&context.root)).args(arguments))
}

fn search(context: &Context, what: &[&str], f: u32) -> Result<Outcome, String> {
    let (f, seeds) = (f.to_string(), context.seeds.to_string());
    let ran = simulate(context, &[what, &["--f", &f, "--seeds", &seeds, "--json"]].concat())?;
    let note = match ran.ending {
        Ending::Exit(0) => format!("{seeds} seeds, nothing found"),
        ending => ending.describe(),
    };
    Ok(Outcome::of(ran.ending.good(), note, ran.tail(40)))
}

/// The coordination service in the simulator.
const ZOOKEEPER: &[&str] = &["minbft", "--service", "zookeeper"];

/// The negative control: checkers that stay silent here would stay silent anywhere.
fn control(context: &Context) -> Result<Outcome, String> {
    let ran = simulate(context, &["minbft", "--f", "1", "--seeds", "200", "--negative", "--json"])?;
    let property =
        ran.json().and_then(|json| json["property"].as_str().map(str::to_string)).unwrap_or_default();
    let fired = ran.ending == Ending::Exit(1) && !property.is_empty();
    let note = if fired { format!("'{property}' fired") } else { "no checker fired".to_string() };
    Ok(Outcome::of(fired, note, ran.tail(20)))
}

/// Each seed twice in two processes: equal results, hash included.
fn determinism(context: &Context) -> Result<Outcome, String> {
    let mut compared = 0;
    for (protocol, f) in [
        ("minbft", "1"),
        ("minbft", "2"),
        ("minbft", "3"),
        ("pbft", "1"),
        ("pbft", "2"),
        ("a2m-pbft-ea", "2"),
    ] {
        for seed in ["1", "2", "3"] {
            let arguments = [protocol, "--f", f, "--seed", seed, "--json"];
            let (first, second) = (simulate(context, &arguments)?, simulate(context, &arguments)?);
            let hash = |ran: &Ran| ran.json().and_then(|json| json["hash"].as_str().map(str::to_string));
            match (hash(&first), hash(&second)) {
                (Some(one), Some(other)) if one == other => compared += 1,
                (Some(one), Some(other)) => {
                    let details = format!("{protocol}, f {f}, seed {seed}: {one} and then {other}");
                    return Ok(Outcome::of(false, "two runs of one seed differ", details));
                }
                _ => return Ok(Outcome::of(false, "the simulator gave no hash", first.tail(20))),
            }
        }
    }
    Ok(Outcome::of(true, format!("{compared} seeds, each twice"), ""))
}
