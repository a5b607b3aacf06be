//! Hunting one planted bug: with the tests of a package, with the simulator, or with both.

use super::table::{Mutant, Search};
use super::tree::Tree;
use crate::check::test_counts;
use crate::process::{self, Ending, Ran};
use crate::{cli, sim, workspace};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// For one build. The first in a copy builds everything.
const BUILD_LIMIT: Duration = Duration::from_secs(900);
/// For the tests of one package. A bug that makes them hang is caught by this.
const TEST_LIMIT: Duration = Duration::from_secs(180);
/// For one search. A bug that is not found by then has survived.
const SEARCH_LIMIT: Duration = Duration::from_secs(300);
/// Seeds that the search must pass without a bug.
const BASELINE_SEEDS: u64 = 60;
/// Seeds of the first search, before the tests: a bug that the simulator finds, it mostly finds in these.
const FIRST_SEEDS: u64 = 100;

/// What became of a planted bug.
pub enum Verdict {
    /// A test failed, or hung.
    Test {
        /// The first that failed.
        name: String,
        /// How many.
        count: usize,
    },
    /// The simulator found a violation.
    Checker {
        /// Which checker.
        name: String,
        /// The seed.
        seed: u64,
        /// How many seeds it took.
        after: u64,
    },
    /// Nothing noticed.
    Survived(String),
    /// The bug could not be planted or built.
    Broken(String),
}

impl Verdict {
    /// Whether the bug was caught.
    pub fn caught(&self) -> bool {
        matches!(self, Self::Test { .. } | Self::Checker { .. })
    }

    /// For people.
    pub fn describe(&self) -> String {
        match self {
            Self::Test { name, count: 1 } => format!("caught by test {name}"),
            Self::Test { name, count } => format!("caught by test {name} and {} more", count - 1),
            Self::Checker { name, seed, after } => {
                format!("caught by checker {name} after {after} seeds (seed {seed})")
            }
            Self::Survived(why) => format!("SURVIVED: {why}"),
            Self::Broken(why) => format!("NOT PLANTED: {}", cli::shorten(why, 300)),
        }
    }

    /// For machines.
    pub fn json(&self) -> Value {
        match self {
            Self::Test { name, count } => json!({ "test": name, "failing": count }),
            Self::Checker { name, seed, after } => json!({ "checker": name, "seed": seed, "after": after }),
            Self::Survived(why) => json!({ "survived": why }),
            Self::Broken(why) => json!({ "broken": why }),
        }
    }
}

/// One worker with its own copy and build directory.
pub struct Hunter {
    tree: Tree,
    build: PathBuf,
    protocol: String,
    threads: usize,
    /// Search with all seeds before the tests are asked.
    search_all: bool,
}

impl Hunter {
    /// A worker whose searches use this many threads, and with `search_all` all their seeds before the
    /// tests are asked.
    pub fn new(tree: Tree, build: PathBuf, protocol: &str, threads: usize, search_all: bool) -> Self {
        Self { tree, build, protocol: protocol.to_string(), threads, search_all }
    }

    /// Runs the hunts of all these bugs, briefly, on the copy without a bug. Anything that fires here
    /// would seem to catch every bug.
    pub fn baseline(&self, mutants: &[Mutant], say: &dyn Fn(String)) -> Result<(), String> {
        let packages: BTreeSet<&String> = mutants.iter().filter_map(|mutant| mutant.tests.as_ref()).collect();
        for package in packages {
            match self.test(package) {
                Verdict::Survived(_) => say(format!("tests of {package}: all pass")),
                verdict => {
                    return Err(format!("without a bug, the tests of {package}: {}", verdict.describe()));
                }
            }
        }
        let mut searches: BTreeMap<(u64, &[String]), u64> = BTreeMap::new();
        for search in mutants.iter().filter_map(|mutant| mutant.sim.as_ref()) {
            let seeds = searches.entry((search.f, search.options.as_slice())).or_default();
            *seeds = (*seeds).max(search.seeds.min(BASELINE_SEEDS));
        }
        for ((f, options), seeds) in searches {
            let search = Search { f, seeds, options: options.to_vec() };
            match self.search(&search, None) {
                Verdict::Survived(_) => {
                    say(format!("search with f = {f} {}: nothing in {seeds} seeds", options.join(" ")))
                }
                verdict => return Err(format!("without a bug, f = {f}: {}", verdict.describe())),
            }
        }
        Ok(())
    }

    /// Plants a bug, hunts it and takes it out again.
    pub fn hunt(&self, mutant: &Mutant) -> Verdict {
        let original = match self.tree.read(&mutant.file) {
            Ok(text) => text,
            Err(why) => return Verdict::Broken(why),
        };
        let planted = mutant.plant(&original).and_then(|text| self.tree.write(&mutant.file, text.as_bytes()));
        let verdict = match planted {
            Err(why) => Verdict::Broken(why),
            Ok(()) => self.hunt_planted(mutant),
        };
        match self.tree.write(&mutant.file, original.as_bytes()) {
            Ok(()) => verdict,
            Err(why) => Verdict::Broken(why),
        }
    }

    /// A brief search first, because a checker that fires says most of a bug; then the tests, which take
    /// seconds; then, for a bug that got past both, the search with all its seeds.
    fn hunt_planted(&self, mutant: &Mutant) -> Verdict {
        let mut verdict = Verdict::Survived("nothing hunts it".to_string());
        let mut left = mutant.sim.as_ref();
        if let Some(search) = left {
            let first = if self.search_all { search.seeds } else { search.seeds.min(FIRST_SEEDS) };
            verdict = self.search(&Search { seeds: first, ..search.clone() }, mutant.checker.as_deref());
            left = left.filter(|search| search.seeds > first);
        }
        if let (Verdict::Survived(_), Some(package)) = (&verdict, &mutant.tests) {
            verdict = self.test(package);
        }
        if let (Verdict::Survived(_), Some(search)) = (&verdict, left) {
            verdict = self.search(search, mutant.checker.as_deref());
        }
        verdict
    }

    fn cargo(&self, arguments: &[&str], limit: Duration) -> Result<Ran, String> {
        let mut command = workspace::cargo(&self.tree.root);
        command.args(arguments).env("CARGO_TARGET_DIR", &self.build).env("RUSTFLAGS", "-Awarnings");
        process::run(&mut command, limit, &mut |_, _| {})
    }

    /// The tests of one package.
    fn test(&self, package: &str) -> Verdict {
        let base = ["test", "--profile", "mutants", "--locked", "--package", package];
        let arguments: Vec<&str> = base.into_iter().chain(targets(package).iter().copied()).collect();
        let only_build: Vec<&str> = arguments.iter().copied().chain(["--no-run", "--quiet"]).collect();
        match self.cargo(&only_build, BUILD_LIMIT) {
            Ok(ran) if ran.ending.good() => {}
            Ok(ran) => return Verdict::Broken(format!("it does not compile:\n{}", ran.tail(25))),
            Err(why) => return Verdict::Broken(why),
        }
        let ran = match self.cargo(&arguments, TEST_LIMIT) {
            Ok(ran) => ran,
            Err(why) => return Verdict::Broken(why),
        };
        let names = test_counts(&ran.stdout).names;
        match (ran.ending, names.first()) {
            (Ending::Exit(0), _) => Verdict::Survived(format!("the tests of {package} pass")),
            (_, Some(first)) => Verdict::Test { name: format!("{package}::{first}"), count: names.len() },
            (ending, None) => Verdict::Test { name: format!("{package} ({})", ending.describe()), count: 1 },
        }
    }

    /// A search that ends at the first violation.
    fn search(&self, search: &Search, demanded: Option<&str>) -> Verdict {
        let arguments = [&["build", "--profile", "mutants", "--locked", "--quiet"], sim::TARGET].concat();
        match self.cargo(&arguments, BUILD_LIMIT) {
            Ok(ran) if ran.ending.good() => {}
            Ok(ran) => return Verdict::Broken(format!("it does not compile:\n{}", ran.tail(25))),
            Err(why) => return Verdict::Broken(why),
        }
        let (f, seeds, threads) = (search.f.to_string(), search.seeds.to_string(), self.threads.to_string());
        let mut command = Command::new(self.build.join("mutants").join(sim::PROGRAM));
        command.arg(&self.protocol).args(["--f", &f, "--seeds", &seeds, "--threads", &threads, "--json"]);
        command.args(&search.options).current_dir(&self.build);
        match process::run(&mut command, SEARCH_LIMIT, &mut |_, _| {}) {
            Err(why) => Verdict::Broken(why),
            Ok(ran) => found(&ran, search, demanded),
        }
    }
}

/// Which tests of a package hunt: the program has no library, and its other tests start clusters.
fn targets(package: &str) -> &'static [&'static str] {
    if package == "troth" { &["--bins"] } else { &["--lib", "--tests"] }
}

/// Reads what a search found.
fn found(ran: &Ran, search: &Search, demanded: Option<&str>) -> Verdict {
    match ran.ending {
        Ending::Exit(0) => {
            Verdict::Survived(format!("{} seeds found nothing at f = {}", search.seeds, search.f))
        }
        Ending::TimedOut => {
            Verdict::Survived(format!("{} s of search found nothing", SEARCH_LIMIT.as_secs()))
        }
        Ending::Exit(1) => {
            let Some(json) = ran.json() else {
                return Verdict::Broken(format!("the simulator's last line is no result:\n{}", ran.tail(10)));
            };
            let text = |name: &str| json[name].as_str().unwrap_or_default().to_string();
            // Where no checker fired, something that every sound run brings about did not happen.
            let name = if text("property").is_empty() { "coverage".to_string() } else { text("property") };
            if demanded.is_some_and(|demanded| demanded != name) {
                return Verdict::Survived(format!(
                    "the search stopped at '{name}', and another checker was to notice"
                ));
            }
            // A failed assertion ends the simulator at once, and names its seed in the command only.
            let reproduce = text("reproduce");
            let named = reproduce.rsplit_once("--seed ").and_then(|(_, seed)| seed.trim().parse().ok());
            let seed = json["seed"].as_u64().or(named).unwrap_or(0);
            Verdict::Checker { name, seed, after: json["seeds"].as_u64().unwrap_or(seed + 1) }
        }
        ending => {
            Verdict::Broken(format!("the simulator itself failed ({}):\n{}", ending.describe(), ran.tail(10)))
        }
    }
}
