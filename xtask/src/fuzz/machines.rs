//! Which agreement machines there are, by the source, and which targets drive them, by `fuzz/targets.toml`.

use super::decoders::{Impl, Registry, head, names};
use crate::source::{is_rust, is_test, tokens};
use crate::workspace::SourceFile;
use std::collections::BTreeMap;
use toml::Value;

/// Where the protocols stand.
const PROTOCOLS: &str = "crates/protocols/";
/// The contract that makes a type a machine.
const CONTRACT: &str = "Agreement";

/// The targets of an agreement machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driven {
    /// Drives replicas of it.
    pub drives: String,
    /// Starts one from a log that says anything.
    pub recovers: String,
}

impl Driven {
    /// Reads the entry of a machine.
    pub fn parse(machine: &str, entry: &Value) -> Result<Self, String> {
        let target = |key: &str| {
            let target = entry.get(key).and_then(Value::as_str).map(str::to_string);
            target.ok_or(format!("targets.toml: {machine} has no target under '{key}'"))
        };
        Ok(Self { drives: target("drives")?, recovers: target("recovers")? })
    }
}

impl Registry {
    /// What is wrong: machines that nothing drives, entries that stand for no machine, and targets that there are not.
    pub fn check_machines(&self, machines: &BTreeMap<String, String>) -> Vec<String> {
        let mut wrong = Vec::new();
        for (machine, place) in machines.iter().filter(|(machine, _)| !self.machines.contains_key(*machine)) {
            wrong.push(format!(
                "{place}: nothing drives the agreement machine {machine}; name a target that does, and one that starts it \
                 from its log, in [machines] of fuzz/targets.toml"
            ));
        }
        for (machine, Driven { drives, recovers }) in &self.machines {
            if !machines.contains_key(machine) {
                wrong.push(format!(
                    "fuzz/targets.toml: there is no machine {machine} in the source; remove it"
                ));
            }
            for target in [drives, recovers].into_iter().filter(|target| !self.targets.contains(*target)) {
                wrong.push(format!("fuzz/targets.toml: {machine} names '{target}', which is no target"));
            }
            if drives == recovers {
                wrong.push(format!(
                    "fuzz/targets.toml: {machine} has one target for two purposes, '{drives}'"
                ));
            }
        }
        wrong
    }
}

/// All agreement machines in the source, as `crate::Type`, each with the place where it stands.
pub fn all(files: &[SourceFile]) -> BTreeMap<String, String> {
    let mut machines = BTreeMap::new();
    for file in files.iter().filter(|file| is_rust(file) && !is_test(&file.path)) {
        let Some((place, _)) = names(&file.path).filter(|_| file.path.starts_with(PROTOCOLS)) else {
            continue;
        };
        let tokens = tokens(&file.text);
        for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.is("impl")) {
            let implemented = Impl::of(head(&tokens[at..]));
            if implemented.is(CONTRACT) {
                let name = format!("{place}::{}", implemented.of);
                machines.entry(name).or_insert_with(|| format!("{}:{}", file.path, token.line));
            }
        }
    }
    machines
}
