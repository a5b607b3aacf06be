//! `paper`: every rule of a specification page stands at code and on a test, and no mark in the code
//! is without a rule.

use crate::cli::{Arguments, Command, Report, table};
use crate::source::{Kind, is_rust, is_test, tokens};
use crate::workspace::{self, SourceFile};
use serde_json::json;
use std::collections::BTreeMap;

/// The command.
pub const COMMAND: Command = Command {
    name: "paper",
    words: "",
    summary: "check that every rule label stands in the specification, at code and on a test",
    details: "
A specification page docs/protocols/<name>.md defines labels. A label is a token
[A-Z0-9]+-[A-Z]+[0-9]+ whose first part is the page's name in capitals without hyphens
(MINBFT-N3 on minbft.md). It is defined where it opens a list item or a table row, in bold or as
code; after it may stand '(guard)' for a rule that accepts or ignores something:

  - **MINBFT-N3** (guard) a COMMIT counts only if …
  | `MINBFT-N3` | … |

Each label must be defined once, stand at least once as rule!(\"MINBFT-N3\") in production code of
crates/, and be named at least once, as a string \"MINBFT-N3\" (usually covers!(\"MINBFT-N3\")), in a
test: a file below tests/ or src/tests/. A rule! whose label no page defines is an error as well.",
    options: &[],
    run,
};

/// A label as a page defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The label.
    pub label: String,
    /// Where, as `path:line`.
    pub place: String,
    /// Whether the rule accepts or ignores something.
    pub guard: bool,
}

/// Where a label stands.
#[derive(Debug, Default)]
struct Standing {
    defined: Vec<String>,
    guard: bool,
    code: Vec<String>,
    tests: Vec<String>,
}

/// What is wrong, and the table of all labels.
#[derive(Debug)]
pub struct Coverage {
    /// Each missing thing, with its place.
    pub missing: Vec<String>,
    /// Heading and rows: label, guard, specification, code, tests.
    pub rows: Vec<Vec<String>>,
}

fn run(arguments: &Arguments) -> Result<Report, String> {
    let coverage = check(&workspace::files(&workspace::root())?);
    print!("{}", table(&coverage.rows));
    for what in &coverage.missing {
        println!("missing: {what}");
    }
    let labels = coverage.rows.len() - 1;
    let ok = coverage.missing.is_empty() && labels > 0;
    let summary = match (labels, coverage.missing.len()) {
        (0, 0) => "paper: no page in docs/protocols defines a label".to_string(),
        (_, missing) => format!("paper: {labels} rules, {missing} missing"),
    };
    let rows: Vec<_> = coverage.rows[1..]
        .iter()
        .map(|row| json!({ "label": row[0], "guard": row[1] == "guard", "specification": row[2], "code": row[3], "tests": row[4] }))
        .collect();
    let _ = arguments;
    Ok(Report { ok, summary, json: json!({ "rules": rows, "missing": coverage.missing }) })
}

/// Compares the pages with the code.
pub fn check(files: &[SourceFile]) -> Coverage {
    let mut labels: BTreeMap<String, Standing> = BTreeMap::new();
    for definition in definitions(files) {
        let standing = labels.entry(definition.label).or_default();
        standing.defined.push(definition.place);
        standing.guard |= definition.guard;
    }
    let ours = |file: &&SourceFile| is_rust(file) && file.path.starts_with("crates/");
    for file in files.iter().filter(ours) {
        let tokens = tokens(&file.text);
        for (at, token) in tokens.iter().enumerate() {
            let Kind::Text(text) = &token.kind else { continue };
            let place = format!("{}:{}", file.path, token.line);
            if is_test(&file.path) {
                if let Some(standing) = labels.get_mut(text) {
                    standing.tests.push(place);
                }
            } else if at >= 3
                && tokens[at - 3].is("rule")
                && tokens[at - 2].is_punct('!')
                && tokens[at - 1].is_punct('(')
                && !text.starts_with('$')
            {
                labels.entry(text.clone()).or_default().code.push(place);
            }
        }
    }
    judge(&labels)
}

fn judge(labels: &BTreeMap<String, Standing>) -> Coverage {
    let heading = ["label", "guard", "specification", "code", "tests"];
    let mut rows = vec![heading.map(str::to_string).to_vec()];
    let mut missing = Vec::new();
    for (label, standing) in labels {
        let first = standing.defined.first().or(standing.code.first()).cloned().unwrap_or_default();
        match standing.defined.len() {
            0 => missing.push(format!("{label} has no rule on a page in docs/protocols ({first})")),
            1 => {}
            _ => missing.push(format!("{label} is defined more than once ({})", standing.defined.join(", "))),
        }
        if standing.code.is_empty() {
            missing.push(format!("{label} stands at no code: no rule!(\"{label}\") ({first})"));
        }
        if standing.tests.is_empty() && !standing.defined.is_empty() {
            missing.push(format!("{label} is named by no test ({first})"));
        }
        let places = |places: &[String]| match places {
            [] => "MISSING".to_string(),
            [one] => one.clone(),
            [first, rest @ ..] => format!("{first} +{}", rest.len()),
        };
        rows.push(vec![
            label.clone(),
            if standing.guard { "guard".to_string() } else { String::new() },
            places(&standing.defined),
            places(&standing.code),
            places(&standing.tests),
        ]);
    }
    Coverage { missing, rows }
}

/// The labels that the pages in `docs/protocols` define.
pub fn definitions(files: &[SourceFile]) -> Vec<Definition> {
    let mut found = Vec::new();
    for file in files {
        let Some(page) = file.path.strip_prefix("docs/protocols/").and_then(|name| name.strip_suffix(".md"))
        else {
            continue;
        };
        let prefix: String = page.chars().filter(char::is_ascii_alphanumeric).collect();
        let prefix = prefix.to_ascii_uppercase();
        for (number, line) in file.text.lines().enumerate() {
            if let Some((label, rest)) = opening_label(line)
                && label.split_once('-').is_some_and(|(first, _)| first == prefix)
            {
                let place = format!("{}:{}", file.path, number + 1);
                let guard = rest.trim_start().starts_with("(guard");
                found.push(Definition { label, place, guard });
            }
        }
    }
    found
}

/// The label that opens a list item or a table row, and what follows it.
fn opening_label(line: &str) -> Option<(String, &str)> {
    let line = line.trim_start();
    let item = ["- ", "* ", "| ", "|"].iter().find_map(|mark| line.strip_prefix(mark))?.trim_start();
    let (mark, rest) = ["**", "`"].iter().find_map(|mark| Some((*mark, item.strip_prefix(mark)?)))?;
    let (label, rest) = rest.split_once(mark)?;
    is_label(label).then(|| (label.to_string(), rest))
}

/// Whether a token is `[A-Z0-9]+-[A-Z]+[0-9]+`.
fn is_label(token: &str) -> bool {
    let Some((first, second)) = token.split_once('-') else { return false };
    let digits = second.trim_start_matches(|c: char| c.is_ascii_uppercase());
    !first.is_empty()
        && first.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
        && digits.len() < second.len()
        && !digits.is_empty()
        && digits.chars().all(|c| c.is_ascii_digit())
}
