//! The simulator without the rest of the workspace: `cargo run --release -p troth-sim --example sim -- minbft --f 1`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    troth_sim::cli::run(&args)
}
