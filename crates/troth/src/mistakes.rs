//! What was mistyped, and what was probably meant. clap compares words by the letters that they share, which finds
//! nothing for short ones (`ptu`), and looks for them in one place only (`troth get`).

use crate::cli::Cli;
use crate::suggest::quoted;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, Parser};

/// What others call it.
const CALLED: [(&str, &str); 6] =
    [("set", "put"), ("write", "put"), ("read", "get"), ("list", "scan"), ("ls", "scan"), ("rm", "delete")];
/// Letters of the longest word in which one mistake is enough.
const SHORT: usize = 4;

/// What was said on the command line; ends the process where it cannot be understood.
pub(crate) fn parse() -> Cli {
    let words: Vec<_> = std::env::args_os().collect();
    Cli::try_parse_from(&words).unwrap_or_else(|error| {
        let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        explain(error, &words).exit()
    })
}

/// The error with what was probably meant.
pub(crate) fn explain(mut error: clap::Error, words: &[String]) -> clap::Error {
    let context = |error: &clap::Error, kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.clone()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            if let Some(word) = context(&error, ContextKind::InvalidSubcommand) {
                subcommand(&mut error, words, &word);
            }
        }
        ErrorKind::UnknownArgument => {
            if let Some(word) = context(&error, ContextKind::InvalidArg) {
                argument(&mut error, words, &word);
            }
        }
        ErrorKind::ValueValidation => {
            if let Some(said) = no_number(&error) {
                return said;
            }
        }
        _ => {}
    }
    error
}

/// The error where what should be a number is none, in words of the command line instead of the parser's.
fn no_number(error: &clap::Error) -> Option<clap::Error> {
    let why = std::error::Error::source(error)?.to_string();
    let (option, value) = match (error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue)) {
        (Some(ContextValue::String(option)), Some(ContextValue::String(value))) => (option, value),
        _ => return None,
    };
    let meant = ["invalid digit found in string", "cannot parse integer from empty string"];
    meant.contains(&why.as_str()).then(|| {
        let said = format!(
            "'{value}' is no whole number, which '{option}' takes\n\nFor more information, try '--help'.\n"
        );
        clap::Error::raw(ErrorKind::ValueValidation, said)
    })
}

fn subcommand(error: &mut clap::Error, words: &[String], word: &str) {
    let root = Cli::command();
    let path = path(&root, words, word);
    let place = path.last().expect("the command itself");
    let deeper = |exactly: bool| {
        root.get_subcommands().filter(|_| path.len() == 1).find_map(|above| {
            let found = near(word, names(above)).first().copied()?;
            (!exactly || found == word).then(|| format!("{} {found}", above.get_name()))
        })
    };
    // What is a word of another place is no mistyped one of this.
    if let Some(meant) = deeper(true) {
        error.remove(ContextKind::SuggestedSubcommand);
        return tip(error, format!("there is 'troth {meant}'"));
    }
    let here = near(word, names(place));
    if !here.is_empty() {
        let here = here.into_iter().map(str::to_owned).collect();
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(here));
    } else if error.get(ContextKind::SuggestedSubcommand).is_none()
        && let Some(meant) = deeper(false)
    {
        tip(error, format!("there is 'troth {meant}'"));
    }
}

fn argument(error: &mut clap::Error, words: &[String], word: &str) {
    let root = Cli::command();
    let path = path(&root, words, word);
    if let Some(name) = word.strip_prefix("--") {
        let options = path.iter().flat_map(|place| place.get_arguments());
        let near = near(name, options.filter_map(|option| option.get_long()));
        if let Some(option) = near.first()
            && error.get(ContextKind::SuggestedArg).is_none()
        {
            error.insert(ContextKind::SuggestedArg, ContextValue::String(format!("--{option}")));
        }
    } else if let Some(option) = before(words, word).and_then(|before| option_with_equals(&path, before)) {
        tip(error, format!("its value follows with '=': --{option}={word}"));
    } else if !word.starts_with('-')
        && let Some(at) = words.iter().rposition(|other| other == word)
        // What follows a command at once is no second part of anything.
        && at > 1
        && path.last().is_some_and(|place| place.get_name() != words[at - 1])
    {
        tip(error, format!("what has spaces in it must stand in quotes{}", example(words, at)));
    }
}

/// The word before one.
fn before<'a>(words: &'a [String], word: &str) -> Option<&'a str> {
    let at = words.iter().rposition(|other| other == word)?;
    Some(&words[at.checked_sub(1)?])
}

/// The option that a word names, if it takes a value behind `=` alone.
fn option_with_equals<'a>(path: &[&'a Command], word: &str) -> Option<&'a str> {
    let name = word.strip_prefix("--")?;
    let options = path.iter().flat_map(|place| place.get_arguments());
    options
        .filter(|option| option.is_require_equals_set())
        .filter_map(|option| option.get_long())
        .find(|long| *long == name)
}

/// The words that probably are one, as one; nothing where that is not clear.
fn example(words: &[String], at: usize) -> String {
    let is_option = |word: &String| word.starts_with('-');
    if is_option(&words[at - 1]) || is_option(&words[at - 2]) {
        return String::new();
    }
    let parts = words[at - 1..].iter().take_while(|word| !is_option(word));
    let one: Vec<&str> = parts.map(String::as_str).collect();
    format!(": {}", quoted(&one.join(" ")))
}

/// The commands that lead to where a word stands, the outermost first.
fn path<'a>(root: &'a Command, words: &[String], word: &str) -> Vec<&'a Command> {
    let mut path = vec![root];
    for other in words.iter().skip(1).take_while(|other| *other != word) {
        let place = path.last().expect("it begins with the root");
        if let Some(next) = place.find_subcommand(other) {
            path.push(next);
        }
    }
    path
}

fn names(place: &Command) -> impl Iterator<Item = &str> {
    place.get_subcommands().map(Command::get_name)
}

/// Those of the names that a word was probably meant to be, all equally probable.
pub(crate) fn near<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let most = if word.chars().count() <= SHORT { 1 } else { 2 };
    let called = CALLED.iter().find(|(other, _)| *other == word).map(|(_, name)| *name);
    let mut found: Vec<(usize, &str)> = names
        .filter_map(|name| {
            let begins = word.chars().count() > 1 && name.starts_with(word);
            let mistakes = if name == word || called == Some(name) {
                0
            } else if begins {
                1
            } else {
                mistakes(word, name) + 1
            };
            (mistakes <= most + 1).then_some((mistakes, name))
        })
        .collect();
    found.sort_unstable();
    let least = found.first().map(|(mistakes, _)| *mistakes);
    found.into_iter().filter(|(mistakes, _)| Some(*mistakes) == least).map(|(_, name)| name).collect()
}

/// How many letters have to be put in, left out, replaced or swapped with their neighbour to make one word of the
/// other (optimal string alignment).
fn mistakes(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows = vec![(0..=other.len()).collect::<Vec<usize>>()];
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

fn tip(error: &mut clap::Error, words: String) {
    let mut tips = match error.remove(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(tips)) => tips,
        _ => Vec::new(),
    };
    tips.push(StyledStr::from(words));
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
}
