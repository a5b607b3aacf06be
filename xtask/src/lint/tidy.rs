//! Small rules of order: length of files, marks of unfinished work, titles of pages.

use super::Finding;
use crate::source::{is_go, is_rust, is_test};
use crate::workspace::SourceFile;

/// The most lines of a production file. Longer ones have more than one subject.
const MOST_LINES: usize = 500;
/// Marks of work that is not done. Written in parts, so that this file does not trip over itself.
const MARKS: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X"), concat!("TO", "DO")];

/// The names of all rules of order.
pub const RULES: &[&str] = &["length", "marks", "title"];

/// All places that break a rule of order.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        let mut report = |rule, line, what: String| {
            findings.push(Finding { rule, path: file.path.clone(), line, what });
        };
        let lines = file.text.lines().count();
        if (is_rust(file) || is_go(file)) && !is_test(&file.path) && lines > MOST_LINES {
            report("length", 0, format!("{lines} lines; split it by subject, {MOST_LINES} are the most"));
        }
        for (number, line) in file.text.lines().enumerate() {
            for mark in MARKS.iter().filter(|mark| has_word(line, mark)) {
                report("marks", number + 1, format!("'{mark}': do it now, or file an issue"));
            }
        }
        if file.path.ends_with(".md") {
            let titles = titles(&file.text);
            if titles != 1 {
                report("title", 0, format!("{titles} titles ('# …'); a page has one"));
            }
        }
    }
    findings
}

fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c == '_' || c.is_alphanumeric();
    line.match_indices(word).any(|(at, _)| {
        !line[..at].chars().next_back().is_some_and(is_part)
            && !line[at + word.len()..].chars().next().is_some_and(is_part)
    })
}

/// The number of first-level headings outside code blocks.
fn titles(page: &str) -> usize {
    let mut in_code = false;
    let mut titles = 0;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code && line.starts_with("# ") {
            titles += 1;
        }
    }
    titles
}
