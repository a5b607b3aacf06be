//! `bench`: builds the measuring program and passes its result on.

use crate::cli::{Arguments, Command, Opt, Report};
use crate::{peers, plot, process, workspace};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::time::Duration;

/// The command.
pub const COMMAND: Command = Command {
    name: "bench",
    words: "null|kv|large|peers|zookeeper|cost|protocols|delays|gates [null|kv]|open [null|kv]|plots",
    summary: "measure a real cluster beside the same service unreplicated",
    details: "
Builds crates/bench (release) and runs it. `null` starts 2f+1 replica processes (3f+1 with --protocol pbft) that serve nothing,
and beside them the same service in one process; loads one and the other in turns on 127.0.0.1; and
prints medians and spread of throughput, latency, processor time, bytes, system calls and allocations per
operation. It holds where the cluster reaches at least 1/8 of the unreplicated service's operations
per second. With `--durability always` it measures what that costs instead: one client alone beside
the disk's own fdatasync in the same run, at most 6 times it, with the counter in process and in a
process of its own; and many requests outstanding beside durability memory. docs/benchmarks.md says how to read it; a machine that does other work measures that.
`gates` measures clusters beside the same service unreplicated with the same durability, in turns: throughput and
one client alone, with durability memory and always, a thousand clients, and f = 2 beside f = 1; and beside
them what the machine itself can do. `kv` is short for `gates kv`: those of the key-value service alone, 256 B values
with durability always. Both take --seconds (3) and --rounds. `large` fills a store of 10 million keys and measures what checkpoints and
snapshots do to the request path, the memory, a restart, and what a replica fetches that missed 1 % of changes.
`peers` measures durable writes of 256 B beside etcd's and ZooKeeper's, three servers each, all syncing, in turns in
the same run: at least 4 times ZooKeeper's and 6 times etcd's with 1,000 outstanding, and one client alone no slower
than with either. It builds etcd from the modules that bench/peers/etcd pins and fetches ZooKeeper from the artifacts
that bench/peers/zookeeper pins, which needs `go`, a JDK, `mvn`, and a network the first time; all of it stays below target/peers.
`zookeeper` measures the coordination service, through one gateway, beside three servers of Apache ZooKeeper under the same
load in turns: setData and create of 256 B and 1 KB, getData, and 70 % reads, with 1, 100 and 1,000 outstanding, both on
disk before they answer and then both without. It holds where durable writes are at least twice ZooKeeper's and reads no slower.
With `open` requests arrive at times that do not depend on answers (Poisson, from a seed) at 10, 25, 50, 75 and 90 %
of the rate that each variant reached in a closed loop before, in turns, and counts each latency from when the request
was due: what a server that stands still does to those who come meanwhile is in it. It says where what waits grows.
It holds where each variant reached every rate that was offered below the one at which it saturates, at one at least,
and the latencies are those of all that was asked, counted from when it was due.
`cost` counts what an operation takes of the servers (system calls by name, wake-ups, allocations, checks of
signatures, trusted calls), measures what each of these costs by itself, and holds where the sum comes to within 20 %
of the processor time that was measured. docs/internals/cost.md reads it. It counts with `perf`, as root.
`protocols` measures every agreement protocol that is served beside PBFT, in turns in the same run, at f = 1 and f = 2 with
requests and replies of 0 and 4 KB: throughput, one client alone, and what an operation takes of processors, bytes,
messages, trusted calls, MACs and signatures, beside what the papers predict. It holds where MinBFT orders at least
1.10 times what PBFT does, A2M-PBFT-E 0.93 and A2M-PBFT-EA 0.90 times, and a batch takes the messages that the papers have. Beside
that it measures, and demands nothing of, PBFT with signed frames, with `auth = \"mac\"` and with `auth = \"all-signed\"` in turns, at
f = 1 and 0/0; `--protocol pbft` measures these alone. `--rounds` is the number of pairs (10).
`delays` measures A2M-PBFT-E and A2M-PBFT-EA with trusted components whose calls take 1 to 1000 µs more, with operations
bundled into a call and with a call for each (the A2M paper's table 2).
What was measured is written to bench/results, that of gates, open, delays, protocols, peers and zookeeper as a picture too; `plots` draws those again.",
    options: &[
        Opt {
            name: "--protocol",
            value: "minbft|pbft|a2m-pbft-e|a2m-pbft-ea",
            help: "of `null`: how the replicas agree; minbft where not given; of `protocols` these alone beside PBFT",
        },
        Opt { name: "--f", value: "<n>", help: "faulty replicas to bear; 1 where not given; of `protocols` 1,2" },
        Opt { name: "--connections", value: "<n>", help: "clients; 16 where not given" },
        Opt {
            name: "--outstanding",
            value: "<n>",
            help: "requests outstanding over all clients; 1000 where not given",
        },
        Opt { name: "--bytes", value: "<n>", help: "bytes of one operation; 0 where not given" },
        Opt {
            name: "--durability",
            value: "always|memory",
            help: "what replicas keep; memory where not given",
        },
        Opt { name: "--seconds", value: "<n>", help: "seconds measured per round; 5 where not given" },
        Opt {
            name: "--percent",
            value: "<n,…>",
            help: "of `open`: rates in percent of the closed loop's; 10,25,50,75,90 where not given",
        },
        Opt {
            name: "--variant",
            value: "<name,…>",
            help: "of `open`: own-process, in-process, unreplicated; all where not given",
        },
        Opt { name: "--seed", value: "<n>", help: "of `open`: what arrivals are drawn from; 1 where not given" },
        Opt { name: "--only", value: "<text>", help: "of `zookeeper`: only what has this in its name" },
        Opt { name: "--cell", value: "<0/0,…>", help: "of `protocols`: these alone; 0/0,4/0,0/4 where not given" },
        Opt { name: "--keys", value: "<n>", help: "of `large`; 10000000 where not given" },
        Opt { name: "--rounds", value: "<n>", help: "rounds of each kind; 3 where not given" },
    ],
    run,
};

/// What building and everything beside the rounds may take; the program bounds its rounds itself.
const OVERHEAD: Duration = Duration::from_secs(120);

fn run(arguments: &Arguments) -> Result<Report, String> {
    match arguments.words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["null"] => null(arguments),
        ["kv"] => gates(arguments, Some("kv")),
        ["large"] => large(arguments),
        ["peers"] => peers::run(arguments),
        ["zookeeper"] => peers::coordination(arguments),
        ["cost"] => cost(arguments),
        ["protocols"] => protocols(arguments),
        ["delays"] => delays(arguments),
        ["gates"] => gates(arguments, None),
        ["gates", service @ ("null" | "kv")] => gates(arguments, Some(service)),
        ["open"] => open(arguments, "null"),
        ["open", service @ ("null" | "kv")] => open(arguments, service),
        ["plots"] => plots(),
        _ => Err("say which benchmark: null, kv, large, peers, zookeeper, cost, protocols, delays, gates [null|kv], open \
                  [null|kv] or plots"
            .to_string()),
    }
}

/// The service that does nothing beside itself unreplicated.
fn null(arguments: &Arguments) -> Result<Report, String> {
    let mut words = vec!["null".to_string(), "--json".to_string()];
    let mut number = |name: &str, default| -> Result<u64, String> {
        let number = arguments.number(name, default)?;
        words.extend([name.to_string(), number.to_string()]);
        Ok(number)
    };
    for (name, default) in [("--f", 1), ("--connections", 16), ("--outstanding", 1000), ("--bytes", 0)] {
        number(name, default)?;
    }
    let seconds = number("--seconds", 5)?.saturating_add(1).saturating_mul(2);
    // At most three clusters, each with one client alone and with many: three times the two of `memory`.
    let limit = Duration::from_secs(seconds.saturating_mul(number("--rounds", 3)?)) * 3 + OVERHEAD * 2;

    for name in ["--durability", "--protocol"] {
        if let Some(given) = arguments.all(name).pop() {
            words.extend([name.to_string(), given]);
        }
    }

    let root = workspace::root();
    build(&root, &HONEST)?;
    let program = workspace::target(&root).join("release").join("troth-bench");
    let ran = process::run(Program::new(program).args(words), limit, &mut |_, _| {})?;
    let Some(json) = ran.json() else {
        return Err(format!("the benchmark gave no result ({}):\n{}", ran.ending.describe(), ran.tail(20)));
    };
    let mut lines: Vec<&str> = ran.stdout.iter().map(String::as_str).collect();
    lines.pop();
    let summary = lines.pop().unwrap_or_default().to_string();
    println!("{}", lines.join("\n"));
    Ok(Report { ok: ran.ending.good() && json["ok"] == true, summary, json })
}

/// Every gate, and what was measured as a file.
fn gates(arguments: &Arguments, service: Option<&str>) -> Result<Report, String> {
    // What each gate is measured with is part of it: another number of clients would be another gate.
    let taken = ["--seconds", "--rounds"];
    let other =
        COMMAND.options.iter().find(|option| arguments.flag(option.name) && !taken.contains(&option.name));
    if let Some(other) = other {
        return Err(format!(
            "gates are measured as they are: they take --seconds and --rounds, and no '{}'",
            other.name
        ));
    }
    let (seconds, rounds) = (arguments.number("--seconds", 3)?, arguments.number("--rounds", 3)?);
    let mut words: Vec<String> = ["suite", "--json"].map(str::to_string).into();
    for (name, value) in [("--seconds", seconds), ("--rounds", rounds)] {
        words.extend([name.to_string(), value.to_string()]);
    }
    if let Some(service) = service {
        words.extend(["--service".to_string(), service.to_string()]);
    }
    // Six cells of at most three variants, a round more that is not counted; a thousand clients take their time to connect.
    let all = rounds.saturating_add(1).saturating_mul(18);
    let limit = Duration::from_secs(seconds.saturating_add(1).saturating_mul(all)) + OVERHEAD * 6;
    let report = heard(words, &HONEST, limit)?;
    let name = format!("gates{}", service.map(|name| format!("-{name}")).unwrap_or_default());
    keep(&report, &name)?;
    Ok(report)
}

/// Requests that arrive by themselves, and what was measured as a file and as a picture.
fn open(arguments: &Arguments, service: &str) -> Result<Report, String> {
    let mut words: Vec<String> = ["open", service, "--json"].map(str::to_string).into();
    let mut number = |name: &str, default| -> Result<u64, String> {
        let number = arguments.number(name, default)?;
        words.extend([name.to_string(), number.to_string()]);
        Ok(number)
    };
    let (seconds, rounds) = (number("--seconds", 5)?, number("--rounds", 3)?);
    for (name, default) in [("--connections", 16), ("--outstanding", 1000), ("--seed", 1)] {
        number(name, default)?;
    }
    if !arguments.all("--bytes").is_empty() {
        number("--bytes", 0)?;
    }
    let mut rates = 5;
    for name in ["--durability", "--percent", "--variant"] {
        let given = arguments.all(name);
        if !given.is_empty() {
            rates = if name == "--percent" { given.len() as u64 } else { rates };
            words.extend([name.to_string(), given.join(",")]);
        }
    }
    // Three variants in a closed loop and at each rate; what waits at the end of a round may take as long again.
    let each = seconds.saturating_add(1).saturating_mul(2).saturating_mul(rounds).saturating_mul(3);
    let limit = Duration::from_secs(each.saturating_mul(rates.saturating_add(1))) + OVERHEAD * 4;
    let report = heard(words, &HONEST, limit)?;
    let always = arguments.all("--durability").last().is_some_and(|durability| durability == "always");
    // A part is no result of the whole.
    if ["--percent", "--variant"].iter().all(|name| arguments.all(name).is_empty()) {
        keep(&report, &format!("open-{service}{}", if always { "-always" } else { "" }))?;
    }
    Ok(report)
}

/// Draws every kept result that has a picture.
fn plots() -> Result<Report, String> {
    let directory = results();
    let mut drawn = Vec::new();
    let entries = std::fs::read_dir(&directory).map_err(|why| format!("{}: {why}", directory.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.extension().is_some_and(|end| end == "json") && picture(&name).is_some() {
            let text = std::fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))?;
            let result = serde_json::from_str(&text).map_err(|why| format!("{}: {why}", path.display()))?;
            draw(&result, &name)?;
            drawn.push(name);
        }
    }
    let summary = format!("{} pictures drawn", drawn.len());
    Ok(Report { ok: !drawn.is_empty(), summary, json: serde_json::json!({ "drawn": drawn }) })
}

/// A state of millions of keys.
fn large(arguments: &Arguments) -> Result<Report, String> {
    let (keys, seconds) = (arguments.number("--keys", 10_000_000)?, arguments.number("--seconds", 30)?);
    let words = ["large", "--json", "--keys", &keys.to_string(), "--seconds", &seconds.to_string()];
    let limit = Duration::from_secs(seconds.saturating_add(1800));
    let report = heard(words.map(str::to_string).into(), &HONEST, limit)?;
    // A smaller one says nothing of it.
    if keys >= 10_000_000 {
        keep(&report, "large")?;
    }
    Ok(report)
}

/// What an operation costs the servers, item by item.
fn cost(arguments: &Arguments) -> Result<Report, String> {
    let seconds = arguments.number("--seconds", 5)?;
    let words = ["cost", "--json", "--seconds", &seconds.to_string()];
    let limit = Duration::from_secs(seconds.saturating_add(1).saturating_mul(8)) + OVERHEAD * 3;
    let report = heard(words.map(str::to_string).into(), &HONEST, limit)?;
    keep(&report, "cost")?;
    Ok(report)
}

/// Every protocol beside PBFT.
fn protocols(arguments: &Arguments) -> Result<Report, String> {
    let mut words: Vec<String> = ["protocols", "--json"].map(str::to_string).into();
    let pairs = arguments.number("--rounds", 10)?;
    let seconds = arguments.number("--seconds", 0)?;
    words.extend(["--pairs".to_string(), pairs.to_string()]);
    if seconds > 0 {
        words.extend(["--millis".to_string(), seconds.saturating_mul(1000).to_string()]);
    }
    for name in ["--f", "--cell", "--protocol"] {
        let given = arguments.all(name);
        if !given.is_empty() {
            words.extend([name.to_string(), given.join(",")]);
        }
    }
    for name in ["--connections", "--outstanding"] {
        if let Some(given) = arguments.all(name).pop() {
            words.extend([name.to_string(), given]);
        }
    }
    // Six cells of at most four protocols, and one more of PBFT's three kinds of frames, each round of many requests and of
    // one; and a round that is not counted.
    let round = Duration::from_secs(seconds.max(2).saturating_add(4));
    let limit =
        round * u32::try_from(pairs.saturating_add(1).saturating_mul(27)).unwrap_or(u32::MAX) + OVERHEAD * 6;
    let report = heard(words, &HONEST, limit)?;
    // A part is no result of the whole.
    if ["--cell", "--protocol"].iter().all(|name| arguments.all(name).is_empty()) {
        keep(&report, "protocols")?;
    }
    Ok(report)
}

/// What slower trusted components cost, and what was measured as a file and as a picture.
fn delays(arguments: &Arguments) -> Result<Report, String> {
    let (rounds, f) = (arguments.number("--rounds", 3)?, arguments.number("--f", 1)?);
    let mut words: Vec<String> = ["delays", "--json"].map(str::to_string).into();
    for (name, value) in [("--pairs", rounds), ("--f", f)] {
        words.extend([name.to_string(), value.to_string()]);
    }
    // Four lines of five delays, each round of many requests and of one, and a round that is not counted.
    let rounds = u32::try_from(rounds.saturating_add(1).saturating_mul(20)).unwrap_or(u32::MAX);
    let report = heard(words, &HONEST, Duration::from_secs(6) * rounds + OVERHEAD * 6)?;
    keep(&report, "delays")?;
    Ok(report)
}

/// Where results are kept.
fn results() -> PathBuf {
    workspace::root().join("bench").join("results")
}

/// Writes what was measured to a file of its own, and its picture beside it where it has one.
pub fn keep(report: &Report, name: &str) -> Result<(), String> {
    let text = serde_json::to_string_pretty(&report.json).map_err(|why| why.to_string())?;
    write(&format!("{name}.json"), &(text + "\n"))?;
    draw(&report.json, name)
}

/// What draws the picture of a result, where it has one.
fn picture(name: &str) -> Option<fn(&Value) -> String> {
    match name.split('-').next() {
        Some("gates") => Some(plot::gates),
        Some("open") => Some(plot::open),
        Some("delays") => Some(plot::delays),
        Some("peers") => Some(plot::peers),
        Some("protocols") => Some(plot::protocols),
        Some("zookeeper") => Some(plot::zookeeper),
        _ => None,
    }
}

/// Draws a result beside it.
fn draw(result: &Value, name: &str) -> Result<(), String> {
    picture(name).map_or(Ok(()), |picture| write(&format!("{name}.svg"), &picture(result)))
}

fn write(name: &str, text: &str) -> Result<(), String> {
    let path = results().join(name);
    std::fs::create_dir_all(results())
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|why| format!("{}: {why}", path.display()))?;
    println!("written to {}", path.strip_prefix(workspace::root()).unwrap_or(&path).display());
    Ok(())
}

/// Builds the measuring program as `built` says, runs it, lets its lines be seen as they come, and makes of the
/// last one, which is JSON, the report.
pub fn heard(words: Vec<String>, built: &[&str], limit: Duration) -> Result<Report, String> {
    let root = workspace::root();
    build(&root, built)?;
    let program = workspace::target(&root).join("release").join("troth-bench");
    process::report(Program::new(program).args(words), limit)
}

/// What measures honestly: the program, and the one that it starts trusted processes with.
pub const HONEST: [&str; 4] = ["--package", "troth-bench", "--package", "troth"];

fn build(root: &Path, built: &[&str]) -> Result<(), String> {
    let status = workspace::cargo(root)
        .args(["build", "--release", "--quiet", "--locked"])
        .args(built)
        .status()
        .map_err(|why| format!("cargo does not start: {why}"))?;
    if status.success() { Ok(()) } else { Err(format!("the benchmark does not build ({status})")) }
}
