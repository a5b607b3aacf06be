//! `upgrade`: a replica of the release before in a group with two of today's.

mod group;
mod load;
mod steps;

use crate::cli::{Arguments, Command, Opt, Report};
use crate::{process, workspace};
use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::time::Duration;

/// The command.
pub const COMMAND: Command = Command {
    name: "upgrade",
    words: "",
    summary: "run a replica of the release before in a group with today's",
    details: "
Builds today's `troth` and that of the commit recorded in xtask/upgrade.toml (from `git archive`, below
target/upgrade), and runs groups of three real processes, one replica from the old build and two from
today's, with the old one in each of the three places. Each group works under load, takes checkpoints,
changes its view (by a killed primary, or a stopped one where that is the old replica), has the old
replica fall behind and catch up by state transfer, and has a replica of today's killed and started
again. It holds where no replica accuses another, every replica executes everything and shares a
stable checkpoint above each of these, and every acknowledged write is there in the end.",
    options: &[Opt {
        name: "--from",
        value: "<commit>",
        help: "another commit to build as the release before",
    }],
    run,
};

/// What building one `troth` may take.
const BUILD: Duration = Duration::from_secs(1_500);

fn run(arguments: &Arguments) -> Result<Report, String> {
    let root = workspace::root();
    let commit = match arguments.all("--from").last() {
        Some(commit) => (*commit).to_string(),
        None => recorded(&root)?,
    };
    let commit = resolve(&root, &commit)?;
    let old = build_old(&root, &commit)?;
    let new = build_new(&root)?;
    println!("replicas of {} and of today's {} in one group", &commit[..12], workspace::commit(&root));
    let mut places = Vec::new();
    let mut broken = Vec::new();
    for place in 0..3 {
        println!("the old replica is replica {place}:");
        match steps::run(&new, &old, place) {
            Ok(found) => places.push(found),
            Err(why) => {
                println!("  {why}");
                broken.push(format!("with the old one as replica {place}: {why}"));
            }
        }
    }
    let ok = broken.is_empty();
    let summary = if ok {
        format!(
            "a replica of {} works in a group with two of today's, in each of the three places",
            &commit[..12]
        )
    } else {
        broken.join("\n")
    };
    let json = serde_json::json!({ "ok": ok, "previous": commit, "places": places, "broken": broken });
    Ok(Report { ok, summary, json })
}

fn recorded(root: &Path) -> Result<String, String> {
    let table = workspace::toml(root, "xtask/upgrade.toml")?;
    let commit = table.get("previous").and_then(|value| value.as_str());
    commit.map(str::to_string).ok_or_else(|| "xtask/upgrade.toml: no commit under 'previous'".to_string())
}

/// The commit's whole name. Only digits are taken: a name of a branch would not be the same tomorrow.
fn resolve(root: &Path, commit: &str) -> Result<String, String> {
    let is_name = (7..=40).contains(&commit.len()) && commit.chars().all(|digit| digit.is_ascii_hexdigit());
    if !is_name {
        return Err(format!("'{commit}' is no commit's name: write 7 to 40 hexadecimal digits"));
    }
    let mut git = Program::new("git");
    git.current_dir(root).args(["rev-parse", "--verify", "--quiet", &format!("{commit}^{{commit}}")]);
    let found = process::output(&mut git).map_err(|_| {
        format!("this clone has no commit {commit}\n  mend: fetch the whole history (git fetch --unshallow)")
    })?;
    Ok(found.trim().to_string())
}

/// Builds `troth` as it was and says where it is. What was built before is built no second time.
fn build_old(root: &Path, commit: &str) -> Result<PathBuf, String> {
    let place = workspace::target(root).join("upgrade");
    let source = place.join(&commit[..12]);
    let failed = |what: &str, why: std::io::Error| format!("{what}: {why}");
    if !source.join("Cargo.toml").exists() {
        let archive = place.join(format!("{}.tar", &commit[..12]));
        let unpacked = place.join(format!("{}.unpacking", &commit[..12]));
        let _ = std::fs::remove_dir_all(&unpacked);
        std::fs::create_dir_all(&unpacked).map_err(|why| failed("cannot make target/upgrade", why))?;
        let mut git = Program::new("git");
        git.current_dir(root).args(["archive", "--format=tar", "-o"]).arg(&archive).arg(commit);
        process::output(&mut git)?;
        process::output(Program::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&unpacked))?;
        std::fs::rename(&unpacked, &source)
            .map_err(|why| failed("cannot put the old source in place", why))?;
        let _ = std::fs::remove_file(&archive);
    }
    let target = place.join("target");
    println!("building the release before ({}); minutes the first time", &commit[..12]);
    let mut cargo = workspace::cargo(&source);
    cargo.env("CARGO_TARGET_DIR", &target).args(["build", "--quiet", "--locked", "--package", "troth"]);
    built(&mut cargo, "the release before")?;
    Ok(target.join("debug").join("troth"))
}

fn build_new(root: &Path) -> Result<PathBuf, String> {
    println!("building today's");
    let mut cargo = workspace::cargo(root);
    cargo.args(["build", "--quiet", "--locked", "--package", "troth"]);
    built(&mut cargo, "today's troth")?;
    Ok(workspace::target(root).join("debug").join("troth"))
}

fn built(cargo: &mut Program, what: &str) -> Result<(), String> {
    let ran = process::run(cargo, BUILD, &mut |elapsed, _| println!("  … {} s", elapsed.as_secs()))?;
    if ran.ending.good() {
        return Ok(());
    }
    Err(format!("{what} does not build ({}):\n{}", ran.ending.describe(), ran.tail(20)))
}
