//! The units of systemd that are handed out: they must start what there is.

use crate::cli::Cli;
use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the units expect the program.
const PROGRAM: &str = "/usr/local/bin/troth";

/// Each unit's file and text.
fn units() -> Vec<(PathBuf, String)> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating/units");
    let files = std::fs::read_dir(place).expect("the units").map(|entry| entry.expect("an entry").path());
    files.map(|path| (path.clone(), std::fs::read_to_string(path).expect("a unit"))).collect()
}

/// What a unit starts, for the instance 0.
fn starts(unit: &str) -> Vec<Vec<String>> {
    let lines = unit.lines().filter_map(|line| line.strip_prefix("ExecStart="));
    lines.map(|line| line.replace("%i", "0").split_whitespace().map(str::to_owned).collect()).collect()
}

fn parses(arguments: &[String]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(arguments)
}

#[test]
fn units_start_the_program_with_options_that_it_has() {
    let units = units();
    assert_eq!(units.len(), 3);
    for (path, text) in &units {
        let starts = starts(text);
        assert_eq!(starts.len(), 1, "{}", path.display());
        assert_eq!(starts[0][0], PROGRAM);
        if let Err(why) = parses(&starts[0]) {
            panic!("{}: {why}", path.display());
        }
        // Configuration that is wrong is not mended by another start.
        assert!(text.contains("\nRestartPreventExitStatus=2"), "{}", path.display());
        for line in ["NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectProc=invisible", "UMask=0077"] {
            assert!(text.contains(&format!("\n{line}\n")), "{}: {line}", path.display());
        }
    }
    let other = [PROGRAM, "replica", "--id", "0", "--no-such-option"].map(str::to_owned);
    assert!(parses(&other).is_err());
}

#[test]
fn systemd_takes_the_units_where_it_is_there_to_ask() {
    let there = Command::new("systemd-analyze").arg("--version").output();
    if !there.is_ok_and(|version| version.status.success()) {
        return;
    }
    let place = std::env::temp_dir().join(format!("troth-unit-systemd-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a directory");
    let verify = |path: &Path, text: &str| {
        let copy = place.join(path.file_name().expect("a name"));
        // It asks whether the program is there.
        std::fs::write(&copy, text.replace(PROGRAM, "/bin/true")).expect("our own");
        let output = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&copy).output();
        let output = output.expect("it was there just now");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let units = units();
    for (path, text) in &units {
        let (good, said) = verify(path, text);
        // What it does not know it leaves out, and says so.
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let about = said.lines().find(|line| line.contains(&name));
        assert!(good && about.is_none(), "{name}: {said}");
    }
    let (path, text) = &units[0];
    let (_, said) = verify(path, &text.replace("\nNoNewPrivileges=", "\nNoNewPriviliges="));
    assert!(said.contains("NoNewPriviliges"), "it tells what it does not know: {said}");
    std::fs::remove_dir_all(&place).expect("our own");
}
