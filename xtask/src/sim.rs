//! `sim`: builds the simulator and hands everything to it.

use crate::workspace;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// For the list of commands.
pub const SUMMARY: &str = "search seeds for violations, replay one, shrink one";

/// For `help sim`; the simulator's own `--help` says the rest.
pub const HELP: &str = "\
cargo xtask sim <protocol> [options]

search seeds for violations, replay one, shrink one

Builds the simulator (crates/sim, release) and passes everything on to it:

  cargo xtask sim minbft --f 2 --seeds 3000          search
  cargo xtask sim minbft --f 2 --seed 17             replay one seed, event by event the same run
  cargo xtask sim minbft --f 2 --seed 17 --shrink    the smallest run that still fails
  cargo xtask sim minbft --service zookeeper --f 1 --seeds 2000
                                                     the coordination service in the key-value service's place
  cargo xtask sim minbft --service zookeeper --consistency sequential --f 1 --seeds 2000
                                                     with reads that need not show the present
  cargo xtask sim minbft --literal F-M1 --f 2 --seeds 20000
                                                     with a paper's flawed rule switched on

`cargo xtask sim --help` lists the simulator's options.

Exit: 0 where nothing was found, 1 where a violation was found, 2 where it could not run.";

/// What cargo builds the simulator from: an example, so that it is in no installed binary.
pub const TARGET: &[&str] = &["--package", "troth-sim", "--example", "sim"];

/// Where cargo puts it, below the directory of the profile.
pub const PROGRAM: &str = "examples/sim";

/// Runs the simulator with the given words and passes its exit code on.
pub fn run(words: &[String]) -> ExitCode {
    let root = workspace::root();
    let built =
        workspace::cargo(&root).args(["build", "--release", "--quiet", "--locked"]).args(TARGET).status();
    match built {
        Ok(status) if status.success() => {}
        Ok(status) => {
            eprintln!("the simulator does not build ({status})");
            return ExitCode::from(2);
        }
        Err(why) => {
            eprintln!("cargo does not start: {why}");
            return ExitCode::from(2);
        }
    }
    match Command::new(program(&root)).args(words).status().map(|status| status.code()) {
        Ok(Some(0)) => ExitCode::SUCCESS,
        Ok(Some(1)) => ExitCode::from(1),
        Ok(code) => {
            if code != Some(2) {
                eprintln!("the simulator itself failed (exit {code:?})");
            }
            ExitCode::from(2)
        }
        Err(why) => {
            eprintln!("the simulator does not start: {why}");
            ExitCode::from(2)
        }
    }
}

/// Where the built simulator is.
pub fn program(root: &Path) -> PathBuf {
    workspace::target(root).join("release").join(PROGRAM)
}
