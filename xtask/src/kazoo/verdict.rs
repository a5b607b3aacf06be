//! What two runs of the suite say beside each other.

use super::junit::{Outcome, Outcomes};
use crate::cli::shorten;
use serde_json::{Value, json};

/// The suite's modules that start servers.
pub const WITH_SERVERS: [&str; 14] = [
    "test_barrier",
    "test_cache",
    "test_client",
    "test_connection",
    "test_counter",
    "test_election",
    "test_interrupt",
    "test_lease",
    "test_lock",
    "test_partitioner",
    "test_party",
    "test_queue",
    "test_sasl",
    "test_watchers",
];
/// What is said of a test that was not run.
pub const NOT_RUN: &str = "not run";
/// Percent of the tests there that pass on ZooKeeper must pass on Troth.
pub const BAR: usize = 97;
/// So many of them pass on ZooKeeper where nothing is wrong with the machine or the set-up.
pub const EXPECTED: usize = 240;
/// So many of any one module.
const EXPECTED_EACH: usize = 20;

/// How many must pass on ZooKeeper: of these modules, or of all where none are named.
pub fn expected(modules: &[String]) -> usize {
    if modules.is_empty() { EXPECTED } else { EXPECTED_EACH * modules.len() }
}

/// Whether a test is in one of these modules, or in any with servers where none are named.
fn is_wanted(test: &str, modules: &[String]) -> bool {
    has_servers(test) && (modules.is_empty() || modules.iter().any(|wanted| module(test) == wanted))
}

/// The module of a test.
pub fn module(test: &str) -> &str {
    let class = test.split("::").next().unwrap_or_default();
    class.split('.').find(|part| part.starts_with("test_")).unwrap_or(class)
}

/// Whether a test is in a module that starts servers.
pub fn has_servers(test: &str) -> bool {
    WITH_SERVERS.contains(&module(test))
}

/// What was found.
#[derive(Debug)]
pub struct Verdict {
    /// Tests with servers that pass on ZooKeeper.
    pub wanted: usize,
    /// Of those, tests that pass on Troth.
    pub passed: usize,
    /// Tests that do not end on Troth as they do on ZooKeeper, or pass on neither: name, there, here.
    pub others: Vec<(String, String, String)>,
}

impl Verdict {
    /// Compares these modules; all where none are named.
    pub fn of(zookeeper: &Outcomes, troth: &Outcomes, modules: &[String]) -> Self {
        let wanted: Vec<&String> = zookeeper
            .iter()
            .filter(|(test, outcome)| is_wanted(test, modules) && **outcome == Outcome::Passed)
            .map(|(test, _)| test)
            .collect();
        let passed = wanted.iter().filter(|test| troth.get(**test) == Some(&Outcome::Passed)).count();
        let mut names: Vec<&String> = zookeeper.keys().chain(troth.keys()).collect();
        names.sort();
        names.dedup();
        names.retain(|test| modules.is_empty() || is_wanted(test, modules));
        let good = |outcome: Option<&Outcome>| outcome == Some(&Outcome::Passed);
        let others = names
            .into_iter()
            .map(|test| (test, zookeeper.get(test), troth.get(test)))
            .filter(|(_, there, here)| !(good(*there) && good(*here)))
            .map(|(test, there, here)| (test.clone(), words(there), words(here)))
            .collect();
        Self { wanted: wanted.len(), passed, others }
    }

    /// Whether it is over the bar.
    pub fn holds(&self) -> bool {
        self.wanted > 0 && self.passed * 100 >= BAR * self.wanted
    }

    /// For machines.
    pub fn json(&self) -> Value {
        let others = self
            .others
            .iter()
            .map(|(test, there, here)| json!({ "test": test, "zookeeper": there, "troth": here }));
        json!({ "wanted": self.wanted, "passed": self.passed, "others": others.collect::<Vec<_>>() })
    }
}

fn words(outcome: Option<&Outcome>) -> String {
    match outcome {
        None => NOT_RUN.to_string(),
        Some(Outcome::Passed) => "passed".to_string(),
        Some(Outcome::Skipped(why)) => shorten(&format!("skipped: {}", one_line(why)), 120),
        Some(Outcome::Failed(why)) => shorten(&format!("failed: {}", one_line(why)), 120),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// How many tests of the modules with servers passed, failed and were skipped.
pub fn counted(outcomes: &Outcomes, modules: &[String]) -> (usize, usize, usize) {
    let wanted = outcomes.iter().filter(|(test, _)| is_wanted(test, modules));
    wanted.fold((0, 0, 0), |(passed, failed, skipped), (_, outcome)| match outcome {
        Outcome::Passed => (passed + 1, failed, skipped),
        Outcome::Failed(_) => (passed, failed + 1, skipped),
        Outcome::Skipped(_) => (passed, failed, skipped + 1),
    })
}
