//! `flood`: builds the measuring program and passes its result on.

use crate::bench;
use crate::cli::{Arguments, Command, Opt, Report};
use std::time::Duration;

/// The command.
pub const COMMAND: Command = Command {
    name: "flood",
    words: "",
    summary: "flood a real cluster: what honest clients still get done, and what memory the replicas take",
    details: "
Builds crates/bench (release) and runs it: a group that bears one faulty replica, honest clients that load them, and in turns
with a baseline one that floods: a replica with its real keys in the place of the one that the group bears
(questions, repetitions, wrong signatures, garbage), a client with its real keys (frames beyond its window, wrong
signatures, repetitions, reads, garbage), and 5,000 idle connections to each replica, half of them clients'.
The flooder offers each honest replica ten times the bytes that it reads from honest parties. In the baseline
the same flood goes to a socket that discards it, so that it costs the machine what flooding costs; a flooding
replica is silent there towards the group.
It holds where honest clients get at least 80 % of the operations per second of the baseline done, and no
replica ever has more resident than the bound that its configuration allows (`memory_bound` in `/status`;
docs/internals/bounds.md says what is in it). Where all floods were measured as they are by default, for 60 s each,
or 30 s with another protocol than minbft, what was measured is written to bench/results, a file for each protocol.",
    options: &[
        Opt {
            name: "--protocol",
            value: "minbft|pbft|a2m-pbft-e|a2m-pbft-ea",
            help: "how the replicas agree; minbft where not given",
        },
        Opt { name: "--seconds", value: "<n>", help: "of each flood and of each baseline; 60 where not given" },
        Opt { name: "--kind", value: "<kind>", help: "peer, client, idle; all where not given" },
        Opt { name: "--connections", value: "<n>", help: "honest clients; 16 where not given" },
        Opt { name: "--idle", value: "<n>", help: "idle connections to each replica; 5000 where not given" },
        Opt { name: "--times", value: "<n>", help: "times the honest bytes; 10 where not given" },
        Opt {
            name: "--durability",
            value: "always|memory",
            help: "what replicas keep; memory where not given",
        },
    ],
    run,
};

/// The seconds of each flood, at least, that are a result to keep: of MinBFT, and of every other protocol.
const KEPT: (u64, u64) = (60, 30);
/// What everything beside the floods may take; the program bounds each part of it itself.
const OVERHEAD: Duration = Duration::from_secs(600);

fn run(arguments: &Arguments) -> Result<Report, String> {
    let mut words = vec!["flood".to_string(), "--json".to_string()];
    let mut number = |name: &str, default| -> Result<u64, String> {
        let number = arguments.number(name, default)?;
        words.extend([name.to_string(), number.to_string()]);
        Ok(number)
    };
    let seconds = number("--seconds", 60)?;
    let mut usual = true;
    for (name, default) in [("--connections", 16), ("--idle", 5000), ("--times", 10)] {
        usual &= number(name, default)? == default;
    }
    for name in ["--kind", "--durability"] {
        let given = arguments.all(name).join(",");
        if !given.is_empty() {
            usual = false;
            words.extend([name.to_string(), given]);
        }
    }
    let protocol = arguments.all("--protocol").pop();
    if let Some(protocol) = &protocol {
        words.extend(["--protocol".to_string(), protocol.clone()]);
    }
    let limit = Duration::from_secs(seconds.saturating_mul(6)).saturating_add(OVERHEAD);
    let report = bench::heard(words, &bench::HONEST, limit)?;
    // A part says nothing of the whole.
    if let Some(name) = kept(protocol.as_deref(), seconds).filter(|_| usual) {
        bench::keep(&report, &name)?;
    }
    Ok(report)
}

/// What the result of so many seconds of each flood is kept as, where they are enough.
pub fn kept(protocol: Option<&str>, seconds: u64) -> Option<String> {
    match protocol {
        None | Some("minbft") => (seconds >= KEPT.0).then(|| "flood".to_string()),
        Some(other) => (seconds >= KEPT.1).then(|| format!("flood-{other}")),
    }
}
