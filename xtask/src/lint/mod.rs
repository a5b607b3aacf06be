//! Lints over the text and the packages of the workspace: what the compiler does not know about
//! this project.

pub mod allow;
pub mod layers;
pub mod purity;
pub mod spdx;
pub mod supply;
pub mod tidy;

use std::fmt;

/// One place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule's short name, as the allow-list names it.
    pub rule: &'static str,
    /// The file, or the package.
    pub path: String,
    /// The line, or zero where it is about the whole.
    pub line: usize,
    /// What is wrong and what to do instead.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, path, line, what } = self;
        match line {
            0 => write!(f, "{path}: [{rule}] {what}"),
            line => write!(f, "{path}:{line}: [{rule}] {what}"),
        }
    }
}
