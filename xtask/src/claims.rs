//! `claims`: runs every claim of the project and writes what came out to `docs/claims.md`.

use crate::cli::{self, Arguments, Command, Opt, Report, shorten};
use crate::process::{self, Ending};
use crate::workspace;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use toml::{Table, Value};

/// The command.
pub const COMMAND: Command = Command {
    name: "claims",
    words: "",
    summary: "run every claim of the project from a clean clone and write docs/claims.md",
    details: "
Reads xtask/claims.toml: what is claimed, the command that shows it, the exit code that it must end
with, the least that figures of its JSON result must reach, and its time limit. Clones the last commit into an empty directory, runs the commands there in
order, and writes docs/claims.md in this tree: claim, command, last line of output, result, seconds
and commit. With --only the other rows of that page stay as they are.",
    options: &[
        Opt { name: "--only", value: "ID,…", help: "run these only" },
        Opt {
            name: "--here",
            value: "",
            help: "run in this tree, with what is built already, instead of a clone",
        },
        Opt { name: "--list", value: "", help: "list the claims and end" },
    ],
    run,
};

/// The page that is written.
const PAGE: &str = "docs/claims.md";
/// What benchmarks write.
const RESULTS: &str = "bench/results";

/// One claim.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Its name.
    pub id: String,
    /// What is claimed.
    pub text: String,
    /// The command that shows it, for bash.
    pub command: String,
    /// The exit code that it must end with.
    pub exit: i32,
    /// Figures in its JSON result, and the least that each must be.
    pub least: Vec<(String, f64)>,
    /// What the line to show contains; without it, the last line is shown.
    pub shows: Option<String>,
    /// The most seconds that it may take.
    pub limit: u64,
}

/// What came out of one.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Whether it held.
    pub ok: bool,
    /// The last line of its output, or how it ended.
    pub line: String,
    /// How long it took.
    pub seconds: f64,
}

/// Reads the table.
pub fn parse(table: &Table) -> Result<Vec<Claim>, String> {
    let entries = table.get("claim").and_then(Value::as_array).ok_or("claims.toml: there is no [[claim]]")?;
    let mut claims = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        let text = |name: &str| {
            let text = entry.get(name).and_then(Value::as_str);
            text.map(str::to_string).ok_or(format!("claims.toml: claim {} has no '{name}'", number + 1))
        };
        let limit =
            entry.get("limit").and_then(Value::as_integer).and_then(|limit| u64::try_from(limit).ok());
        claims.push(Claim {
            id: text("id")?,
            text: text("claim")?,
            command: text("command")?,
            exit: entry.get("exit").and_then(Value::as_integer).map_or(0, |exit| exit as i32),
            least: least(entry.get("least"))
                .map_err(|why| format!("claims.toml: claim {}: {why}", number + 1))?,
            shows: entry.get("shows").and_then(Value::as_str).map(str::to_string),
            limit: limit.ok_or(format!("claims.toml: claim {} has no 'limit' in seconds", number + 1))?,
        });
    }
    Ok(claims)
}

fn least(table: Option<&Value>) -> Result<Vec<(String, f64)>, String> {
    let Some(table) = table else { return Ok(Vec::new()) };
    let table = table.as_table().ok_or("'least' is a table of figures")?;
    let number = |value: &Value| value.as_float().or(value.as_integer().map(|whole| whole as f64));
    table
        .iter()
        .map(|(name, value)| Ok((name.clone(), number(value).ok_or(format!("'{name}' takes a number"))?)))
        .collect()
}

/// The figures that the claim falls short of, in words. A figure that is not in the result falls short.
pub fn short(claim: &Claim, result: Option<&serde_json::Value>) -> Vec<String> {
    let wrong = claim.least.iter().filter_map(|(name, least)| {
        let figure = result.and_then(|result| result[name].as_f64());
        match figure {
            Some(figure) if figure >= *least => None,
            Some(figure) => Some(format!("{name} is {figure}, at least {least} is claimed")),
            None => Some(format!("no {name} in the result")),
        }
    });
    wrong.collect()
}

fn run(arguments: &Arguments) -> Result<Report, String> {
    let root = workspace::root();
    let claims = parse(&workspace::toml(&root, "xtask/claims.toml")?)?;
    let only = arguments.all("--only");
    if let Some(unknown) = only.iter().find(|id| !claims.iter().any(|claim| claim.id == **id)) {
        return Err(format!("there is no claim '{unknown}'; --list shows them"));
    }
    let chosen: Vec<&Claim> =
        claims.iter().filter(|claim| only.is_empty() || only.contains(&claim.id)).collect();
    if arguments.flag("--list") {
        let mut rows = vec![["claim", "limit", "command"].map(str::to_string).to_vec()];
        rows.extend(
            chosen
                .iter()
                .map(|claim| vec![claim.id.clone(), format!("{} s", claim.limit), claim.command.clone()]),
        );
        print!("{}", cli::table(&rows));
        let ids: Vec<&str> = chosen.iter().map(|claim| claim.id.as_str()).collect();
        return Ok(Report {
            ok: true,
            summary: format!("claims: {}", ids.len()),
            json: json!({ "claims": ids }),
        });
    }
    let here = arguments.flag("--here");
    let place = if here { root.clone() } else { clone(&root)? };
    let mut commit = workspace::commit(&root);
    if here && workspace::dirty(&root) {
        commit += "+";
    }
    println!("{} claims in {} at {commit}", chosen.len(), place.display());
    let started = Instant::now();
    let old = std::fs::read_to_string(root.join(PAGE)).unwrap_or_default();
    let mut shown: Vec<(&Claim, Shown)> = Vec::with_capacity(chosen.len());
    let mut all = || {
        for claim in &chosen {
            println!("[{:6.0} s] {}: {}", started.elapsed().as_secs_f64(), claim.id, claim.command);
            let one = show(claim, &place, here)?;
            println!("[{:6.0} s] {}: {}", started.elapsed().as_secs_f64(), claim.id, one.describe());
            shown.push((claim, one));
            if !here {
                keep_results(&place, &root)?;
            }
            // After each: what was shown in an hour is not lost where the next takes too long.
            std::fs::write(root.join(PAGE), page(&claims, &shown, &commit, &old))
                .map_err(|why| format!("{PAGE}: {why}"))?;
        }
        Ok(())
    };
    let done: Result<(), String> = all();
    if !here {
        let _ = std::fs::remove_dir_all(&place);
    }
    done.map(|()| report(&shown, &commit, started.elapsed()))
}

impl Shown {
    fn describe(&self) -> String {
        format!(
            "{} ({:.0} s) {}",
            if self.ok { "holds" } else { "FAILED" },
            self.seconds,
            shorten(&self.line, 160)
        )
    }
}

fn report(shown: &[(&Claim, Shown)], commit: &str, took: Duration) -> Report {
    let mut rows = vec![["claim", "result", "seconds", "last line"].map(str::to_string).to_vec()];
    for (claim, shown) in shown {
        let result = if shown.ok { "holds" } else { "FAILED" }.to_string();
        rows.push(vec![claim.id.clone(), result, format!("{:.0}", shown.seconds), shorten(&shown.line, 120)]);
    }
    println!("\n{}", cli::table(&rows));
    let held = shown.iter().filter(|(_, shown)| shown.ok).count();
    let results: Vec<_> = shown
        .iter()
        .map(|(claim, shown)| {
            json!({ "id": claim.id, "ok": shown.ok, "seconds": shown.seconds, "line": shown.line, "command": claim.command })
        })
        .collect();
    Report {
        ok: held == shown.len(),
        summary: format!(
            "claims: {held} of {} hold at {commit}, {:.0} min",
            shown.len(),
            took.as_secs_f64() / 60.0
        ),
        json: json!({ "commit": commit, "held": held, "claims": results }),
    }
}

/// A clone of the last commit in an empty directory.
fn clone(root: &Path) -> Result<PathBuf, String> {
    let place = std::env::temp_dir().join(format!("troth-claims-{}", std::process::id()));
    let mut git = std::process::Command::new("git");
    git.args(["clone", "--quiet", "--no-hardlinks"]).arg(root).arg(&place);
    process::output(&mut git)?;
    Ok(place)
}

/// Brings what the clone's benchmarks wrote here: the figures that the page quotes are read beside it.
fn keep_results(place: &Path, root: &Path) -> Result<(), String> {
    let mut git = std::process::Command::new("git");
    git.args(["ls-files", "--modified", "--others", "--exclude-standard", "--", RESULTS]).current_dir(place);
    for file in process::output(&mut git)?.lines() {
        std::fs::create_dir_all(root.join(RESULTS))
            .and_then(|()| std::fs::copy(place.join(file), root.join(file)))
            .map_err(|why| format!("{file}: {why}"))?;
    }
    Ok(())
}

fn show(claim: &Claim, place: &Path, here: bool) -> Result<Shown, String> {
    let mut bash = std::process::Command::new("bash");
    bash.arg("-c").arg(&claim.command).current_dir(place);
    if !here {
        // The clone builds everything itself.
        bash.env_remove("CARGO_TARGET_DIR");
    }
    let ran = process::run(&mut bash, Duration::from_secs(claim.limit), &mut |time, line| {
        println!("           … {:.0} s {}", time.as_secs_f64(), shorten(line, 120));
    })?;
    let result = ran.json();
    let short = short(claim, result.as_ref());
    let ok = ran.ending == Ending::Exit(claim.exit) && short.is_empty();
    let lines = || ran.stdout.iter().rev().map(|line| line.trim()).filter(|line| !line.is_empty());
    // The object has the line for people in it, and is not for the page.
    let mut spoken = lines().filter(|line| !line.starts_with('{'));
    let wanted = claim.shows.as_ref().and_then(|part| spoken.find(|line| line.contains(part)));
    let said = match wanted {
        Some(line) => line,
        // The line before the object is the one for people.
        None if result.is_some() => lines().nth(1).unwrap_or(""),
        None if ran.last_line().is_empty() => ran.all.last().map_or("", String::as_str),
        None => ran.last_line(),
    };
    if !ok {
        println!("{}", ran.tail(30));
    }
    let line = if ok {
        said.to_string()
    } else {
        let ending = format!("{} (expected exit {})", ran.ending.describe(), claim.exit);
        format!("{}: {said}", [vec![ending], short].concat().join("; "))
    };
    Ok(Shown { ok, line, seconds: ran.seconds })
}

/// The page: a row for every claim, from this run, else from the old page, else empty.
pub fn page(claims: &[Claim], shown: &[(&Claim, Shown)], commit: &str, old: &str) -> String {
    let mut page = String::from(
        "# Claims\n\n\
         Every claim of the project, the command that shows it, and what it printed when it last ran: each row at the \
         commit it names, which may be older than this page. `holds`: the command ended as claimed. `fails`: it did not, \
         and ARCHITECTURE.md (\"Not built yet\") or benchmarks.md says why. `not run`: nobody has shown it yet. Written by \
         `cargo xtask claims` after each claim, in a clean clone of that commit, or with `--here` in the tree as it is (`+`: \
         with changes that are in no commit).\n\n\
         | claim | what | command | last line | result | seconds | commit |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for claim in claims {
        let start = format!("| {} |", claim.id);
        let text = |text: &str| text.replace('|', "\\|").replace('\n', " ");
        let fresh = shown.iter().find(|(other, _)| other.id == claim.id).map(|(_, shown)| shown);
        let rest = match (fresh, old.lines().find(|line| line.starts_with(&start)).and_then(results)) {
            (Some(shown), _) => format!(
                "{} | {} | {:.0} | {commit} |",
                text(&shorten(&shown.line, 300)),
                if shown.ok { "holds" } else { "**fails**" },
                shown.seconds
            ),
            (None, Some(old)) => old,
            (None, None) => "– | not run | – | – |".to_string(),
        };
        page += &format!("{start} {} | `{}` | {rest}\n", text(&claim.text), text(&claim.command));
    }
    page
}

/// The last four columns of a row.
fn results(row: &str) -> Option<String> {
    let cells: Vec<&str> = row.trim_end().trim_end_matches('|').split(" | ").collect();
    let last = cells.get(cells.len().checked_sub(4)?..)?;
    Some(format!("{} |", last.join(" | ").trim()))
}
