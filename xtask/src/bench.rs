//! `bench`: builds the measuring program and passes its result on.

use crate::cli::{Arguments, Command, Opt, Report};
use crate::{process, workspace};
use std::path::Path;
use std::process::Command as Program;
use std::time::Duration;

/// The command.
pub const COMMAND: Command = Command {
    name: "bench",
    words: "null",
    summary: "measure a real cluster beside the same service unreplicated",
    details: "
Builds crates/bench (release) and runs it. `null` starts 2f+1 replica processes that serve nothing,
and beside them the same service in one process; loads one and the other in turns on 127.0.0.1; and
prints medians and spread of throughput, latency, processor time, bytes and system calls per
operation. It holds where the cluster reaches at least 1/8 of the unreplicated service's operations
per second. With `--durability always` it measures what that costs instead: one client alone beside
the disk's own fdatasync in the same run, at most 6 times it, with the counter in process and in a
process of its own; and many requests outstanding beside durability memory. docs/benchmarks.md says how to read it; a machine that does other work measures that.",
    options: &[
        Opt { name: "--f", value: "<n>", help: "faulty replicas to bear; 1 where not given" },
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
        Opt { name: "--rounds", value: "<n>", help: "rounds of each kind; 3 where not given" },
    ],
    run,
};

/// What building and everything beside the rounds may take; the program bounds its rounds itself.
const OVERHEAD: Duration = Duration::from_secs(120);

fn run(arguments: &Arguments) -> Result<Report, String> {
    if arguments.words != ["null"] {
        return Err("there is one benchmark so far: null".to_string());
    }
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

    if let Some(durability) = arguments.all("--durability").pop() {
        words.extend(["--durability".to_string(), durability]);
    }

    let root = workspace::root();
    build(&root)?;
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

/// Builds the measuring program, and the one that it starts trusted processes with.
pub fn build(root: &Path) -> Result<(), String> {
    let status = workspace::cargo(root)
        .args(["build", "--release", "--quiet", "--locked", "--package", "troth-bench", "--package", "troth"])
        .status()
        .map_err(|why| format!("cargo does not start: {why}"))?;
    if status.success() { Ok(()) } else { Err(format!("the benchmark does not build ({status})")) }
}
