//! What a run needs: kazoo with its tests, ZooKeeper, troth, and the program that stands in for `java`.

use super::server::NAME;
use crate::peers::{archives, step};
use crate::workspace;
use std::path::{Path, PathBuf};
use std::process::Command as Program;

/// The version of ZooKeeper that bench/peers/zookeeper/pom.xml pins.
pub const ZOOKEEPER: &str = "3.9.5";
/// What is installed, below the root.
const REQUIREMENTS: &str = "bench/peers/kazoo/requirements.txt";

/// Where everything is.
pub struct Tools {
    /// The program that runs the tests.
    pub pytest: PathBuf,
    /// Kazoo's version.
    pub version: String,
    /// ZooKeeper's archives, as `java` takes them.
    pub classpath: PathBuf,
    /// The command under test.
    pub troth: PathBuf,
}

/// Fetches and builds what is not there.
pub fn tools(root: &Path, home: &Path, troth: Option<PathBuf>, liars: bool) -> Result<Tools, String> {
    let wanted = root.join(REQUIREMENTS);
    let requirements =
        std::fs::read_to_string(&wanted).map_err(|why| format!("{}: {why}", wanted.display()))?;
    let version = requirements.lines().find_map(|line| line.strip_prefix("kazoo=="));
    let version = version.ok_or_else(|| format!("{REQUIREMENTS} pins no kazoo"))?.to_string();
    let bin = environment(home, &wanted, &requirements)?;
    let place = home.join("zookeeper");
    remove(&place)?;
    archives(root, &place.join("lib"))?;
    let troth = troth.map_or_else(
        || build(root, liars),
        |given| std::path::absolute(given).map_err(|why| why.to_string()),
    )?;
    Ok(Tools { pytest: bin.join("pytest"), version, classpath: place.join("lib/*"), troth })
}

/// The command as it is released; or with replicas that lie, which is built for that alone.
fn build(root: &Path, liars: bool) -> Result<PathBuf, String> {
    let (profile, features) = if liars { ("chaos", "demo-adversary") } else { ("release", "") };
    println!("building troth");
    let built = workspace::cargo(root)
        .args(["build", "--quiet", "--locked", "--package", "troth", "--profile", profile])
        .args(["--features", features])
        .status()
        .map_err(|why| format!("cargo does not start: {why}"))?;
    if !built.success() {
        return Err(format!("troth does not build ({built})"));
    }
    Ok(workspace::target(root).join(profile).join("troth"))
}

/// The programs of a Python environment with exactly what is wanted.
fn environment(home: &Path, wanted: &Path, requirements: &str) -> Result<PathBuf, String> {
    let (place, mark) = (home.join("venv"), home.join("venv/installed"));
    let bin = place.join("bin");
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == requirements) {
        return Ok(bin);
    }
    remove(&place)?;
    step(
        "making a Python environment",
        Program::new("python3").args(["-m", "venv"]).arg(&place),
        "have Python 3.10 or newer with venv on the PATH (apt-get install python3-venv)",
    )?;
    step(
        "installing kazoo with its tests",
        Program::new(bin.join("pip"))
            .args(["install", "--quiet", "--disable-pip-version-check", "--requirement"])
            .arg(wanted),
        "let pip fetch what bench/peers/kazoo/requirements.txt names once",
    )?;
    std::fs::write(&mark, requirements).map_err(|why| format!("{}: {why}", mark.display()))?;
    Ok(bin)
}

/// A directory in which this program is called `java`.
pub fn shim(home: &Path) -> Result<PathBuf, String> {
    let place = home.join("bin");
    remove(&place)?;
    let link = place.join(NAME);
    let own = std::env::current_exe().map_err(|why| format!("where this program is: {why}"))?;
    std::fs::create_dir_all(&place)
        .and_then(|()| std::os::unix::fs::symlink(own, &link))
        .map_err(|why| format!("{}: {why}", link.display()))?;
    Ok(place)
}

/// Removes a directory, if it is there.
pub fn remove(place: &Path) -> Result<(), String> {
    match std::fs::remove_dir_all(place) {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => Err(format!("{}: {why}", place.display())),
        _ => Ok(()),
    }
}
