//! `bench peers`: builds etcd and ZooKeeper with their load programs, and has the measuring program run them beside
//! Troth. `bench zookeeper` has it run the coordination service beside ZooKeeper.

use crate::bench::{HONEST, heard, keep};
use crate::cli::{Arguments, Report};
use crate::{process, workspace};
use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::time::Duration;

/// Where the sources lie below the root.
const ETCD: &str = "bench/peers/etcd";
/// The same of ZooKeeper's.
const ZOOKEEPER: &str = "bench/peers/zookeeper";
/// What one step of the set-up may take: etcd is hundreds of packages, fetched and compiled the first time.
const STEP: Duration = Duration::from_secs(1200);
/// What starting, the keys, and connecting may take beside the rounds, which the program bounds itself.
const OVERHEAD: Duration = Duration::from_secs(600);

/// Sets the peers up, measures, and keeps what was measured as a file.
pub fn run(arguments: &Arguments) -> Result<Report, String> {
    let (seconds, rounds) = (arguments.number("--seconds", 5)?, arguments.number("--rounds", 3)?);
    let (root, products) = (workspace::root(), workspace::target(&workspace::root()).join("peers"));
    std::fs::create_dir_all(&products).map_err(|why| format!("{}: {why}", products.display()))?;
    let etcd = etcd(&root, &products)?;
    let zookeeper = zookeeper(&root, &products)?;
    println!("building troth and the measuring program");
    let numbers = ["--seconds".to_string(), seconds.to_string(), "--rounds".to_string(), rounds.to_string()];
    let mut words = vec!["peers".to_string(), "--json".to_string()];
    words.extend(numbers);
    for (name, path) in [("--etcd", etcd), ("--zookeeper", zookeeper)] {
        words.extend([name.to_string(), path.to_string_lossy().into_owned()]);
    }
    // Two cells of five variants, and a round more that is not counted.
    let rounds = seconds.saturating_add(2).saturating_mul(rounds.saturating_add(1)).saturating_mul(10);
    let report = heard(words, &HONEST, Duration::from_secs(rounds).saturating_add(OVERHEAD))?;
    keep(&report, "peers")?;
    Ok(report)
}

/// The coordination service beside ZooKeeper, under one load.
pub fn coordination(arguments: &Arguments) -> Result<Report, String> {
    let (seconds, rounds) = (arguments.number("--seconds", 3)?, arguments.number("--rounds", 3)?);
    let (root, products) = (workspace::root(), workspace::target(&workspace::root()).join("peers"));
    std::fs::create_dir_all(&products).map_err(|why| format!("{}: {why}", products.display()))?;
    let zookeeper = zookeeper(&root, &products)?.to_string_lossy().into_owned();
    println!("building troth and the measuring program");
    let mut words = ["zookeeper", "--json", "--zookeeper", &zookeeper].map(str::to_string).to_vec();
    for (name, number) in [("--seconds", seconds), ("--rounds", rounds)] {
        words.extend([name.to_string(), number.to_string()]);
    }
    let only = arguments.all("--only").pop();
    words.extend(only.iter().flat_map(|part| ["--only".to_string(), (*part).to_string()]));
    // The program bounds its rounds itself: 36 cells of two sides, and as long again for what rounds made.
    let turns = seconds.saturating_add(1).saturating_mul(rounds.saturating_add(1)).saturating_mul(36 * 4);
    let report = heard(words, &HONEST, Duration::from_secs(turns).saturating_add(OVERHEAD * 2))?;
    // A part says nothing of the whole.
    if only.is_none() {
        keep(&report, "zookeeper")?;
    }
    Ok(report)
}

/// The program that is an etcd server and the load on some.
fn etcd(root: &Path, products: &Path) -> Result<PathBuf, String> {
    let program = products.join("etcd");
    step(
        "building etcd and the load on it",
        Program::new("go")
            .current_dir(root.join(ETCD))
            // What go.mod and go.sum name, and nothing else.
            .args(["build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-o"])
            .arg(&program)
            .arg("."),
        "have Go 1.26 or newer on the PATH, and let it fetch the modules that go.mod names once",
    )?;
    Ok(program)
}

/// The directory with ZooKeeper's archives and the classes that run them.
pub fn zookeeper(root: &Path, products: &Path) -> Result<PathBuf, String> {
    let (source, place) = (root.join(ZOOKEEPER), products.join("zookeeper"));
    // Archives of another version and classes without a source would be found, too.
    if place.exists() {
        std::fs::remove_dir_all(&place).map_err(|why| format!("{}: {why}", place.display()))?;
    }
    let (lib, classes) = (place.join("lib"), place.join("classes"));
    archives(root, &lib)?;
    let mut sources = Vec::new();
    for entry in std::fs::read_dir(&source).map_err(|why| format!("{}: {why}", source.display()))?.flatten() {
        sources.extend(
            Some(entry.path()).filter(|path| path.extension().is_some_and(|ending| ending == "java")),
        );
    }
    step(
        "building the load on ZooKeeper",
        Program::new("javac").arg("-d").arg(classes).arg("-cp").arg(lib.join("*")).args(sources),
        "have a JDK of Java 17 or newer on the PATH (apt-get install openjdk-17-jdk-headless)",
    )?;
    Ok(place)
}

/// Puts ZooKeeper's archives, and those that they need, into a directory.
pub fn archives(root: &Path, to: &Path) -> Result<(), String> {
    step(
        "fetching ZooKeeper",
        Program::new("mvn")
            .current_dir(root.join(ZOOKEEPER))
            .args(["--batch-mode", "--quiet", "--strict-checksums", "dependency:copy-dependencies"])
            .arg(format!("-DoutputDirectory={}", to.display())),
        "have Maven 3.8 or newer on the PATH (apt-get install maven), and let it fetch what pom.xml names once",
    )
}

/// One step of a set-up that others do.
pub fn step(what: &str, program: &mut Program, mend: &str) -> Result<(), String> {
    println!("{what}");
    let mut alive = |so_far: Duration, _: &str| println!("  still {what}, {} s so far", so_far.as_secs());
    let ran =
        process::run(program, STEP, &mut alive).map_err(|why| format!("{what}: {why}\n  mend: {mend}"))?;
    if ran.ending.good() {
        return Ok(());
    }
    Err(format!("{what} failed ({}):\n{}\n  mend: {mend}", ran.ending.describe(), ran.tail(20)))
}
