//! Running `troth-bench` as a whole.

use std::process::Command;

/// What a measurement ended with.
pub struct Measured {
    /// The object on its last line.
    pub result: serde_json::Value,
    /// Its exit code.
    pub code: Option<i32>,
    /// All that it printed, for whoever reads why a test failed.
    pub printed: String,
}

/// Runs `troth-bench` with `--json` to its end.
pub fn measure(arguments: &[&str]) -> Measured {
    let output = Command::new(env!("CARGO_BIN_EXE_troth-bench"))
        .args(arguments)
        .arg("--json")
        .output()
        .expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let printed = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
    let last = text.lines().last().unwrap_or_default();
    let result = serde_json::from_str(last).unwrap_or_else(|why| panic!("{why}: {printed}"));
    Measured { result, code: output.status.code(), printed }
}
