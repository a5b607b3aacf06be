//! Where the workspace is, what is in it, and how to call cargo in it.

use crate::process;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the workspace: the one that cargo runs this program in, else the one it was built in.
pub fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&here).parent().expect("xtask lies below the root of the workspace").to_path_buf()
}

/// The directory for build results.
pub fn target(root: &Path) -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(given) => root.join(given),
        None => root.join("target"),
    }
}

/// cargo in `directory`, with plain output.
pub fn cargo(directory: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(directory).env("CARGO_TERM_COLOR", "never").env("CARGO_TERM_PROGRESS_WHEN", "never");
    // What cargo set for this program means nothing to a cargo that builds others.
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("CARGO_PKG_") || name_text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// One file of the workspace.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its path from the root, with `/` between the parts.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// The paths that git tracks or would track, relative to the root, in order.
pub fn paths(root: &Path) -> Result<Vec<String>, String> {
    let mut git = Command::new("git");
    git.current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let mut paths: Vec<String> = process::output(&mut git)?
        .split('\0')
        .filter(|path| !path.is_empty() && root.join(path).is_file())
        .map(str::to_string)
        .collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// All text files of the workspace; what is not UTF-8 is left out.
pub fn files(root: &Path) -> Result<Vec<SourceFile>, String> {
    let mut files = Vec::new();
    for path in paths(root)? {
        let bytes = std::fs::read(root.join(&path)).map_err(|why| format!("{path}: {why}"))?;
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(SourceFile { path, text });
        }
    }
    Ok(files)
}

/// What cargo knows about the packages; with `dependencies`, about everything in the lock file.
pub fn metadata(root: &Path, dependencies: bool) -> Result<Value, String> {
    let mut command = cargo(root);
    command.args(["metadata", "--format-version", "1", "--locked"]);
    if !dependencies {
        command.arg("--no-deps");
    }
    serde_json::from_str(&process::output(&mut command)?).map_err(|why| format!("cargo metadata: {why}"))
}

/// The commit that is checked out, short.
pub fn commit(root: &Path) -> String {
    let mut git = Command::new("git");
    git.current_dir(root).args(["rev-parse", "--short=12", "HEAD"]);
    process::output(&mut git).map_or("unknown".to_string(), |commit| commit.trim().to_string())
}

/// Whether the tree differs from that commit.
pub fn dirty(root: &Path) -> bool {
    let mut git = Command::new("git");
    git.current_dir(root).args(["status", "--porcelain"]);
    process::output(&mut git).map_or(true, |changes| !changes.trim().is_empty())
}

/// Parses a TOML file below the root.
pub fn toml(root: &Path, path: &str) -> Result<toml::Table, String> {
    let text = std::fs::read_to_string(root.join(path)).map_err(|why| format!("{path}: {why}"))?;
    text.parse().map_err(|why| format!("{path}: {why}"))
}
