//! `kazoo`: the test suite of a ZooKeeper client, once against ZooKeeper and once against Troth.

pub mod ensemble;
pub mod given;
pub mod junit;
pub mod server;
mod set_up;
pub mod verdict;

use crate::cli::{Arguments, Command, Opt, Report, table};
use crate::{process, workspace};
use junit::Outcomes;
use serde_json::json;
use set_up::Tools;
use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::time::Duration;
use verdict::Verdict;

/// The command.
pub const COMMAND: Command = Command {
    name: "kazoo",
    words: "",
    summary: "run kazoo's own test suite against ZooKeeper and against Troth",
    details: "
Kazoo is the ZooKeeper client of Python programs; its package has its tests. They start three servers of ZooKeeper by
the command `java`, kill and restart them, and use what they serve. This runs them as they are, once with a JDK's
`java` and the artifacts of ZooKeeper 3.9.5, and once with a program of that name before it on the PATH that starts a
replica and a gateway of Troth for each server that the suite asks for, and with them ends and restarts.
It prints every test that does not pass on both, with the reason, and how long each run took. It holds where, of the
tests that pass on ZooKeeper in modules that need servers, at least 97 % pass on Troth; a skip is no pass.
What is fetched once (the Python packages that bench/peers/kazoo pins, ZooKeeper's artifacts) and what is written stays
below target/kazoo: zookeeper.xml and troth.xml have what pytest says. Needs `python3` with venv, `mvn`, a JDK, and a
network the first time.
--servers 5 has the suite start five servers, for f = 2. Of a protocol with 3f+1 replicas the last servers run two each.
With --liars the last replicas lie to clients and to each other: a build for that, of which no more than f do. Tests that
stop a server then have more than f faulty replicas, and may fail.
--modules asks the same of some modules only.",
    options: &[
        Opt {
            name: "--only",
            value: "zookeeper|troth",
            help: "run one of the two; the outcomes of the other are those of its last run, where there are some",
        },
        Opt {
            name: "--modules",
            value: "<name,…>",
            help: "only these modules with servers (test_client, test_watchers, …), and the same share of their tests",
        },
        Opt { name: "--select", value: "<expr>", help: "only tests whose names match (pytest's -k)" },
        Opt {
            name: "--protocol",
            value: "minbft|pbft|a2m-pbft-e|a2m-pbft-ea",
            help: "how the replicas agree; minbft where not given",
        },
        Opt { name: "--servers", value: "<n>", help: "how many servers the suite has; 3 where not given" },
        Opt { name: "--liars", value: "<n>", help: "replicas that lie; none where not given" },
        Opt {
            name: "--troth",
            value: "<path>",
            help: "the troth command to use, where it is not to be built here (release)",
        },
        Opt { name: "--keep", value: "", help: "leave the logs and files of the servers in target/kazoo/servers" },
    ],
    run,
};

/// What one run of the whole suite may take.
const LIMIT: Duration = Duration::from_secs(25 * 60);
/// Seconds that one test may take.
const TEST_SECONDS: u64 = 120;
/// Ports from here on, of which each server takes five in a row of ten.
const PORTS: u16 = 20_000;
/// The most servers.
const MOST: u64 = 9;

fn run(arguments: &Arguments) -> Result<Report, String> {
    let root = workspace::root();
    let home = workspace::target(&root).join("kazoo");
    std::fs::create_dir_all(&home).map_err(|why| format!("{}: {why}", home.display()))?;
    let selected = arguments.all("--select").join(",");
    let only = arguments.all("--only").pop();
    if let Some(other) = only.as_ref().filter(|only| !["zookeeper", "troth"].contains(&only.as_str())) {
        return Err(format!("--only {other}: it is zookeeper or troth"));
    }
    let runs = |which: &str| only.as_ref().is_none_or(|only| only == which);
    let servers = arguments.number("--servers", 3)?;
    let liars = arguments.number("--liars", 0)?;
    if !(3..=MOST).contains(&servers) || servers.is_multiple_of(2) || liars > servers / 2 {
        return Err(format!("there are 3, 5, … {MOST} servers, and at most f of 2f+1 lie"));
    }
    let protocol = arguments.all("--protocol").pop().unwrap_or("minbft".to_string());
    let built = arguments.all("--troth").pop().map(PathBuf::from);
    let tools = set_up::tools(&root, &home, built, liars > 0)?;
    let modules: Vec<String> =
        arguments.all("--modules").iter().flat_map(|list| list.split(',')).map(str::to_string).collect();
    if let Some(other) = modules.iter().find(|module| !verdict::WITH_SERVERS.contains(&module.as_str())) {
        return Err(format!("--modules {other}: they are {}", verdict::WITH_SERVERS.join(", ")));
    }
    let suite = Suite { tools: &tools, home: &home, selected: &selected, modules: &modules, servers };

    let zookeeper = if runs("zookeeper") { suite.run("zookeeper", &[])? } else { suite.last("zookeeper")? };
    let place = home.join("servers");
    let troth = if runs("troth") {
        set_up::remove(&place)?;
        let before = std::env::var_os("PATH").unwrap_or_default();
        let path = [set_up::shim(&home)?].into_iter().chain(std::env::split_paths(&before));
        let path = std::env::join_paths(path).map_err(|why| why.to_string())?;
        let named = [
            ("PATH", path),
            (server::HOME, place.clone().into()),
            (server::TROTH, tools.troth.clone().into()),
            (server::PROTOCOL, protocol.into()),
            (server::LIARS, liars.to_string().into()),
        ];
        suite.run("troth", &named)?
    } else {
        suite.last("troth")?
    };
    if !arguments.flag("--keep") {
        set_up::remove(&place)?;
    }
    Ok(report(&zookeeper, &troth, &modules, only.is_none() && selected.is_empty()))
}

/// The outcomes of one run.
#[derive(Default)]
struct Ended {
    outcomes: Outcomes,
    /// How long it took; nothing for an earlier one.
    seconds: Option<f64>,
}

/// How the suite is run.
struct Suite<'a> {
    tools: &'a Tools,
    home: &'a Path,
    selected: &'a str,
    modules: &'a [String],
    servers: u64,
}

impl Suite<'_> {
    /// The outcomes of the last run; none where there was none.
    fn last(&self, name: &str) -> Result<Ended, String> {
        match std::fs::read_to_string(self.home.join(format!("{name}.xml"))) {
            Ok(text) => Ok(Ended { outcomes: junit::read(&text)?, seconds: None }),
            Err(_) => Ok(Ended::default()),
        }
    }

    /// Runs it to its end.
    fn run(&self, name: &str, environment: &[(&str, OsString)]) -> Result<Ended, String> {
        println!("kazoo {} against {name}", self.tools.version);
        let (file, scratch) = (self.home.join(format!("{name}.xml")), self.home.join(format!("{name}-tmp")));
        set_up::remove(&scratch)?;
        std::fs::create_dir_all(&scratch).map_err(|why| format!("{}: {why}", scratch.display()))?;
        // What an earlier run left must not pass for the outcome of this one.
        let _ = std::fs::remove_file(&file);
        let mut program = Program::new(&self.tools.pytest);
        program
            .args(["--pyargs", "kazoo.tests", "-q", "-p", "no:cacheprovider", "--timeout"])
            .arg(TEST_SECONDS.to_string())
            .arg("--junitxml")
            .arg(&file)
            .current_dir(&scratch)
            .env("TMPDIR", &scratch)
            .env("CI", "1")
            .env("ZOOKEEPER_VERSION", set_up::ZOOKEEPER)
            .env("ZOOKEEPER_CLASSPATH", &self.tools.classpath)
            .env("ZOOKEEPER_CLUSTER_SIZE", self.servers.to_string())
            .env("ZOOKEEPER_PORT_OFFSET", ports(self.servers)?.to_string());
        // Modules that are named to pytest itself have no names in what it writes.
        let modules: Vec<String> = self.modules.iter().map(|module| format!("{module}.py")).collect();
        let wanted = [modules.join(" or "), self.selected.to_string()];
        let wanted: Vec<String> =
            wanted.iter().filter(|one| !one.is_empty()).map(|one| format!("({one})")).collect();
        if !wanted.is_empty() {
            program.args(["-k", &wanted.join(" and ")]);
        }
        program.envs(environment.iter().map(|(name, value)| (*name, value)));
        let mut alive = |so_far: Duration, line: &str| println!("  {} s: {line}", so_far.as_secs());
        let ran = process::run(&mut program, LIMIT, &mut alive)?;
        let log = self.home.join(format!("{name}.log"));
        std::fs::write(&log, ran.all.join("\n")).map_err(|why| format!("{}: {why}", log.display()))?;
        let read = std::fs::read_to_string(&file).map_err(|why| why.to_string());
        let outcomes = read.and_then(|text| junit::read(&text)).map_err(|why| {
            let (how, said) = (ran.ending.describe(), ran.tail(20));
            format!("pytest left no outcomes ({how}, {why}):\n{said}\n  all of it: {}", log.display())
        })?;
        set_up::remove(&scratch)?;
        Ok(Ended { outcomes, seconds: Some(ran.seconds) })
    }
}

/// The first of a row of ports that are free now.
fn ports(servers: u64) -> Result<u16, String> {
    let row = u16::try_from(10 * servers).map_err(|why| why.to_string())?;
    let free = |from: &u16| (0..row).all(|port| TcpListener::bind(("127.0.0.1", from + port)).is_ok());
    let mut rows = (PORTS..32_000).step_by(100);
    rows.find(free).ok_or_else(|| format!("no ports are free from {PORTS} on"))
}

fn report(zookeeper: &Ended, troth: &Ended, modules: &[String], whole: bool) -> Report {
    let verdict = Verdict::of(&zookeeper.outcomes, &troth.outcomes, modules);
    let mut rows = vec![["test", "on ZooKeeper", "on Troth"].map(str::to_string).to_vec()];
    // Of a selection the rest was not run, which is no news.
    let news = |here: &str| whole || here != verdict::NOT_RUN;
    let others = verdict.others.iter().filter(|(_, _, here)| news(here));
    rows.extend(others.map(|(test, there, here)| vec![test.clone(), there.clone(), here.clone()]));
    println!("{}", table(&rows));
    let mut json = verdict.json();
    json["seconds"] = json!({ "zookeeper": zookeeper.seconds, "troth": troth.seconds });
    let of = |name: &str, ended: &Ended| {
        let (passed, failed, skipped) = verdict::counted(&ended.outcomes, modules);
        let took = ended.seconds.map_or("earlier".to_string(), |seconds| format!("{seconds:.0} s"));
        format!("on {name} {passed} passed, {failed} failed, {skipped} skipped ({took})")
    };
    let both = format!("{}; {}", of("ZooKeeper", zookeeper), of("Troth", troth));
    let expected = verdict::expected(modules);
    let sound = verdict.wanted >= expected;
    let summary = if !whole {
        format!("tests with servers: {both}; a part holds nothing")
    } else if !sound {
        let wanted = verdict.wanted;
        format!(
            "tests with servers: {both}; {wanted} pass on ZooKeeper, and at least {expected} do where nothing is wrong with the set-up"
        )
    } else {
        let (passed, wanted, bar) = (verdict.passed, verdict.wanted, verdict::BAR);
        let percent = 100.0 * passed as f64 / wanted as f64;
        format!(
            "{passed} of {wanted} tests with servers that pass on ZooKeeper pass on Troth ({percent:.1} %, {bar} % are needed); {both}"
        )
    };
    Report { ok: whole && sound && verdict.holds(), summary, json }
}
