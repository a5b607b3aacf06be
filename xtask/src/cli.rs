//! Commands, their options and how they report.

use serde_json::{Value, json};
use std::process::ExitCode;

/// One option of a command.
pub struct Opt {
    /// With its dashes.
    pub name: &'static str,
    /// The name of its value for the help text; empty for a switch.
    pub value: &'static str,
    /// What it does.
    pub help: &'static str,
}

/// One command.
pub struct Command {
    /// As it is typed.
    pub name: &'static str,
    /// The positional words it takes, for the help text.
    pub words: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Everything that a person needs to know to use it.
    pub details: &'static str,
    /// Its options; every command has `--json` besides.
    pub options: &'static [Opt],
    /// Does it. An error means that it could not find out.
    pub run: fn(&Arguments) -> Result<Report, String>,
}

/// What a command found.
pub struct Report {
    /// Whether what the command checks holds.
    pub ok: bool,
    /// The last line for people.
    pub summary: String,
    /// The result for machines, an object.
    pub json: Value,
}

impl Command {
    /// The help text.
    pub fn help(&self) -> String {
        let mut text = format!(
            "cargo xtask {} {}[options]\n\n{}\n\n{}\n\nOptions:\n",
            self.name,
            if self.words.is_empty() { String::new() } else { format!("{} ", self.words) },
            self.summary,
            self.details.trim()
        );
        for option in self.options {
            text += &format!("  {:<22} {}\n", format!("{} {}", option.name, option.value), option.help);
        }
        text +=
            &format!("  {:<22} {}\n", "--json", "end with the result as one JSON object on the last line");
        text + "\nExit: 0 where it holds, 1 where it does not or could not be found out, 2 for wrong usage."
    }

    /// Runs the command and prints its report.
    pub fn execute(&self, arguments: &Arguments) -> ExitCode {
        let (ok, summary, mut json) = match (self.run)(arguments) {
            Ok(report) => (report.ok, report.summary, report.json),
            Err(why) => (false, format!("{}: could not run: {why}", self.name), json!({ "error": why })),
        };
        if arguments.flag("--json") {
            json["command"] = self.name.into();
            json["ok"] = ok.into();
            println!("{summary}\n{json}");
        } else {
            println!("{summary}");
        }
        if ok { ExitCode::SUCCESS } else { ExitCode::from(1) }
    }
}

/// The list of commands.
pub fn overview(commands: &[Command]) -> String {
    let mut text = String::from("cargo xtask <command> [options]\n\nCommands:\n");
    text += &format!("  {:<10} {}\n", "sim", crate::sim::SUMMARY);
    for command in commands {
        text += &format!("  {:<10} {}\n", command.name, command.summary);
    }
    text + "\nEach says more with --help, and ends with one JSON object with --json."
}

/// The words and options given to a command.
#[derive(Debug, Default)]
pub struct Arguments {
    /// Words that are no options.
    pub words: Vec<String>,
    options: Vec<(String, String)>,
}

impl Arguments {
    /// Parses what follows the command's name.
    pub fn parse(command: &Command, given: &[String]) -> Result<Self, String> {
        let mut parsed = Self::default();
        let mut given = given.iter();
        while let Some(word) = given.next() {
            if !word.starts_with('-') {
                parsed.words.push(word.clone());
                continue;
            }
            let (name, attached) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_string())),
                None => (word.as_str(), None),
            };
            let known = command.options.iter().find(|option| option.name == name);
            let takes_value = match known {
                Some(option) => !option.value.is_empty(),
                None if name == "--json" => false,
                None => return Err(format!("'{}' has no option '{name}'.", command.name)),
            };
            let value = match (takes_value, attached) {
                (true, Some(value)) => value,
                (true, None) => {
                    given.next().cloned().ok_or_else(|| format!("'{name}' needs a value after it."))?
                }
                (false, None) => String::new(),
                (false, Some(_)) => return Err(format!("'{name}' takes no value.")),
            };
            parsed.options.push((name.to_string(), value));
        }
        if command.words.is_empty() && !parsed.words.is_empty() {
            return Err(format!("'{}' takes no words; '{}' is one.", command.name, parsed.words[0]));
        }
        Ok(parsed)
    }

    /// Whether a switch was given.
    pub fn flag(&self, name: &str) -> bool {
        self.options.iter().any(|(option, _)| option == name)
    }

    /// All values given to an option; several may stand in one, with commas between.
    pub fn all(&self, name: &str) -> Vec<String> {
        let values = self.options.iter().filter(|(option, _)| option == name);
        values.flat_map(|(_, value)| value.split(',')).map(|value| value.trim().to_string()).collect()
    }

    /// The number given to an option, or its default.
    pub fn number(&self, name: &str, default: u64) -> Result<u64, String> {
        match self.options.iter().rev().find(|(option, _)| option == name) {
            None => Ok(default),
            Some((_, value)) => value.parse().map_err(|_| format!("'{name} {value}': not a number.")),
        }
    }
}

/// Lays rows out in columns, the first row being the heading.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line += cell;
            line += &" ".repeat(width - cell.chars().count() + 2);
        }
        text += line.trim_end();
        text.push('\n');
        if number == 0 {
            let rule: usize = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
            text += &"-".repeat(rule);
            text.push('\n');
        }
    }
    text
}

/// Shortens a line for a table or a message.
pub fn shorten(line: &str, limit: usize) -> String {
    let line = line.trim();
    if line.chars().count() <= limit {
        return line.to_string();
    }
    line.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}
