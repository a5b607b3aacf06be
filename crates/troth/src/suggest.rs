//! Commands in messages, as they work for whoever reads them: with the `--dir` that was given. Messages come from
//! crates that know nothing of a command line, so it is put in where they are shown.

use std::ffi::OsString;
use std::path::Path;

/// Where a cluster is while nobody says otherwise.
pub(crate) const USUAL_DIR: &str = "troth-data";

/// What is said, with commands for the cluster in this directory.
pub(crate) fn in_dir(said: &str, dir: &Path) -> String {
    let usual = std::env::var_os("TROTH_DIR").unwrap_or_else(|| OsString::from(USUAL_DIR));
    // Also without it they are for this directory.
    if dir == Path::new(&usual) {
        return said.to_owned();
    }
    let there = dir.join("cluster.toml").exists();
    with_dir(said, &format!(" --dir {}", quoted(&dir.display().to_string())), there)
}

/// The same, where the words to put in are known, and whether a cluster is in that directory.
pub(crate) fn with_dir(said: &str, words: &str, there: bool) -> String {
    let mut shown = String::new();
    let mut rest = said;
    while let Some(at) = rest.find("troth ") {
        let begins = rest[..at].chars().next_back().is_none_or(|letter| " `'(\n".contains(letter));
        let name_ends = at + "troth ".len();
        let length = if begins { command(&rest[name_ends..], there) } else { 0 };
        let (before, after) = rest.split_at(name_ends + length);
        shown += before;
        if length > 0 && !after.starts_with(" --dir") {
            shown += words;
        }
        rest = after;
    }
    shown + rest
}

/// How long the command is that these words begin with, up to where its options may stand; zero where it is none,
/// or is not for a cluster that exists.
fn command(words: &str, there: bool) -> usize {
    let word = |from: usize| {
        let rest = &words[from..];
        let end = rest.find(|letter: char| !letter.is_ascii_lowercase() && letter != '-');
        &rest[..end.unwrap_or(rest.len())]
    };
    let first = word(0);
    match first {
        "status" | "kv" | "up" | "doctor" | "replica" => first.len(),
        // It makes a cluster, and never a second one in a directory.
        "init" if !there => first.len(),
        "gateway"
            if words[first.len()..].starts_with(" zookeeper") && word(first.len() + 1) == "zookeeper" =>
        {
            first.len() + " zookeeper".len()
        }
        "admin" if words[first.len()..].starts_with(' ') => match word(first.len() + 1) {
            action @ ("show" | "readmit" | "replace" | "rekey" | "add-client" | "remove-client") => {
                first.len() + 1 + action.len()
            }
            _ => 0,
        },
        _ => 0,
    }
}

/// Text as a shell takes it for one word.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_./-+:@%,=".contains(letter);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}
