//! What pytest says of each test in a JUnit file.

use std::collections::BTreeMap;

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Well.
    Passed,
    /// It was not run, for this reason.
    Skipped(String),
    /// It failed, or what is done before or after it did.
    Failed(String),
}

/// The tests by name: the class with its modules, two colons, the function.
pub type Outcomes = BTreeMap<String, Outcome>;

/// Reads the tests of a file. Of a test that is there twice the worse end counts.
///
/// # Errors
/// Where it is no such file, or cut off.
pub fn read(text: &str) -> Result<Outcomes, String> {
    if !text.contains("<testsuite") || !text.contains("</testsuite>") {
        return Err("it is no whole JUnit file".to_string());
    }
    let mut outcomes = Outcomes::new();
    let mut rest = text;
    while let Some(at) = rest.find("<testcase") {
        let (tag, behind) = tag(&rest[at..])?;
        let name = format!("{}::{}", attribute(tag, "classname")?, attribute(tag, "name")?);
        let (body, behind) = if tag.ends_with('/') {
            ("", behind)
        } else {
            behind.split_once("</testcase>").ok_or_else(|| format!("{name} has no end"))?
        };
        let outcome = outcome(body)?;
        let worst = outcomes.entry(name).or_insert(Outcome::Passed);
        if matches!((&*worst, &outcome), (Outcome::Passed, _) | (Outcome::Skipped(_), Outcome::Failed(_))) {
            *worst = outcome;
        }
        rest = behind;
    }
    Ok(outcomes)
}

fn outcome(body: &str) -> Result<Outcome, String> {
    let reason = |mark: &str| -> Result<Option<String>, String> {
        let Some(at) = body.find(mark) else { return Ok(None) };
        let (tag, _) = tag(&body[at..])?;
        Ok(Some(attribute(tag, "message").unwrap_or_default()))
    };
    for mark in ["<failure", "<error"] {
        if let Some(why) = reason(mark)? {
            return Ok(Outcome::Failed(why));
        }
    }
    Ok(reason("<skipped")?.map_or(Outcome::Passed, Outcome::Skipped))
}

/// A tag without its brackets, and what is behind it.
fn tag(text: &str) -> Result<(&str, &str), String> {
    let mut quoted = false;
    for (at, letter) in text.char_indices() {
        match letter {
            '"' => quoted = !quoted,
            '>' if !quoted => return Ok((&text[1..at], &text[at + 1..])),
            _ => {}
        }
    }
    Err("a tag has no end".to_string())
}

fn attribute(tag: &str, name: &str) -> Result<String, String> {
    let mark = format!(" {name}=\"");
    let value = tag.split_once(&mark).and_then(|(_, rest)| rest.split_once('"'));
    value.map(|(value, _)| plain(value)).ok_or_else(|| format!("a tag has no {name}: {tag}"))
}

fn plain(text: &str) -> String {
    let marks =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#10;", "\n"), ("&#9;", "\t"), ("&apos;", "'")];
    let replaced = marks.iter().fold(text.to_string(), |text, (mark, letter)| text.replace(mark, letter));
    // Last, or what it makes would be read again.
    replaced.replace("&amp;", "&")
}
