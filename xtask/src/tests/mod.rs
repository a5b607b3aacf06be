//! Tests of the linters and tables on small fixtures: a linter that nothing trips is not trusted.

mod claims;
mod cli;
mod flood;
mod fuzz;
mod kazoo;
mod layers;
mod mutants;
mod paper;
mod plot;
mod process;
mod purity;
mod source;
mod supply;
mod tidy;

use crate::lint::Finding;
use crate::workspace::SourceFile;

fn file(path: &str, text: &str) -> SourceFile {
    SourceFile { path: path.to_string(), text: text.to_string() }
}

/// The findings as `rule@line`.
fn short(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|finding| format!("{}@{}", finding.rule, finding.line)).collect()
}
