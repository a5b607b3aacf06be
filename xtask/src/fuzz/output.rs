//! What libFuzzer says of a run.

use crate::process::{Ending, Ran};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// How a target did.
#[derive(Clone, Debug)]
pub struct Run {
    /// Which.
    pub target: String,
    /// Inputs that were tried.
    pub inputs: u64,
    /// Edges of the program that they reached.
    pub edges: u64,
    /// Inputs that are kept.
    pub corpus: u64,
    /// What was found, if anything was.
    pub found: Option<Found>,
}

/// An input on which a target is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// `crash`, `hang` or `memory`.
    pub what: &'static str,
    /// The input, where the engine wrote it.
    pub input: Option<PathBuf>,
    /// What was said, shortened.
    pub said: String,
}

impl Run {
    /// Reads the output of a run.
    pub fn of(target: &str, ran: &Ran) -> Self {
        let mut run = Self {
            target: target.to_string(),
            inputs: 0,
            edges: 0,
            corpus: 0,
            found: Found::of(ran.ending, &ran.all),
        };
        for line in &ran.all {
            if let Some(count) = line.strip_prefix("stat::number_of_executed_units:") {
                run.inputs = count.trim().parse().unwrap_or(run.inputs);
            } else if line.starts_with('#') {
                run.read_progress(line);
            }
        }
        run
    }

    /// A line as `#2048 pulse cov: 312 ft: 800 corp: 92/4012b lim: 43 exec/s: 1024 rss: 38Mb`.
    fn read_progress(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let after = |name: &str| {
            let at = words.iter().position(|word| *word == name)?;
            words.get(at + 1)?.split('/').next()?.parse().ok()
        };
        if let Some(tried) = words[0].strip_prefix('#').and_then(|count| count.parse().ok()) {
            self.inputs = self.inputs.max(tried);
        }
        self.edges = after("cov:").unwrap_or(self.edges);
        self.corpus = after("corp:").unwrap_or(self.corpus);
    }

    /// For machines.
    pub fn json(&self) -> Value {
        json!({
            "target": self.target, "inputs": self.inputs, "edges": self.edges, "corpus": self.corpus,
            "found": self.found.as_ref().map(|found| found.what),
            "input": self.found.as_ref().and_then(|found| found.input.as_ref()),
        })
    }
}

impl Found {
    /// What a run that did not end well found.
    pub fn of(ending: Ending, said: &[String]) -> Option<Self> {
        if ending.good() {
            return None;
        }
        let any = |text: &str| said.iter().any(|line| line.contains(text));
        let what = if ending == Ending::TimedOut || any("ERROR: libFuzzer: timeout") {
            "hang"
        } else if any("over its bound of") || any("ERROR: libFuzzer: out-of-memory") {
            "memory"
        } else {
            "crash"
        };
        let input = said.iter().find_map(|line| line.split_once("Test unit written to "));
        let panic =
            said.iter().position(|line| line.contains("panicked at") || line.contains("ERROR: libFuzzer"));
        let from = panic.unwrap_or(said.len().saturating_sub(6));
        let said =
            said[from..].iter().take(6).map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n");
        Some(Self { what, input: input.map(|(_, path)| PathBuf::from(path.trim())), said })
    }

    /// For people: what happened, and how to see it again.
    pub fn describe(&self, target: &str, root: &Path) -> String {
        let input = self.input.as_ref().map(|input| {
            let input = input.strip_prefix(root).unwrap_or(input).display();
            format!("\n  run it again: cargo xtask fuzz --target {target} --input {input}")
        });
        format!("  {target}: {}\n{}{}", self.what, self.said, input.unwrap_or_default())
    }
}
