//! `attacks`: builds the measuring program with its attackers and passes its result on.

use crate::bench;
use crate::cli::{Arguments, Command, Opt, Report};
use std::time::Duration;

/// The command.
pub const COMMAND: Command = Command {
    name: "attacks",
    words: "",
    summary: "attack a real cluster in ways that nobody can prove: what honest clients still get done",
    details: "
Builds crates/bench (release) with the feature `adversaries` and runs it: groups that bear one faulty replica with
honest clients that load them, in turns without and with one attacker, each time from the group's start on:

  slow          a primary that delays every proposal to just under the time-out
  unfair        a primary that takes one client's requests in just under the time-out
  withholding   a primary that leaves f backups out when it proposes, and answers no client
  forger        a client that sends nothing but frames that it did not sign
  fetcher       a replica, in the place of the one that the group bears, that asks for the state without end
  reboot        with minbft and a2m-pbft-ea: a primary that is killed and comes back with its trusted component as it
                was before the load; everything is on disk before it leaves. It must refuse to serve
  dear          a client of the key-value store whose frames are good and take long to execute
  crowding      the same with many frames under way that take a tenth of that
  partial       with pbft, all frames with authenticators: a client whose tags are right for one replica alone

It holds where honest clients, all of them together and the one that is served least, get at least half of the
operations done that they get done without an attacker.",
    options: &[
        Opt {
            name: "--protocol",
            value: "minbft|pbft|a2m-pbft-e|a2m-pbft-ea",
            help: "how the replicas agree; minbft where not given",
        },
        Opt { name: "--seconds", value: "<n>", help: "of each run; 15 where not given" },
        Opt { name: "--rounds", value: "<n>", help: "runs of each kind, in turns with those without; 3 where not given" },
        Opt { name: "--kind", value: "<kind>", help: "one of the above; all where not given" },
        Opt { name: "--connections", value: "<n>", help: "honest clients; 16 where not given" },
        Opt {
            name: "--outstanding",
            value: "<n>",
            help: "requests outstanding over all honest clients; 1000 where not given",
        },
        Opt { name: "--rate", value: "<n>", help: "bytes per second of a flood to each replica; 50000000 where not given" },
    ],
    run,
};

/// What everything beside the runs may take; the program bounds each of them itself.
const OVERHEAD: Duration = Duration::from_secs(300);

fn run(arguments: &Arguments) -> Result<Report, String> {
    let mut words = vec!["attacks".to_string(), "--json".to_string()];
    let mut number = |name: &str, default| -> Result<u64, String> {
        let number = arguments.number(name, default)?;
        words.extend([name.to_string(), number.to_string()]);
        Ok(number)
    };
    let (seconds, rounds) = (number("--seconds", 15)?, number("--rounds", 3)?);
    for (name, default) in [("--connections", 16), ("--outstanding", 1000), ("--rate", 50_000_000)] {
        number(name, default)?;
    }
    let mut name = "attacks".to_string();
    if let Some(protocol) = arguments.all("--protocol").pop() {
        if protocol != "minbft" {
            name = format!("{name}-{protocol}");
        }
        words.extend(["--protocol".to_string(), protocol]);
    }
    let kinds = arguments.all("--kind").join(",");
    let whole = kinds.is_empty();
    if !whole {
        words.extend(["--kind".to_string(), kinds]);
    }
    // Nine attacks at most, each with as many runs without one; a group takes seconds to start and to end.
    let limit = Duration::from_secs(seconds.saturating_add(10).saturating_mul(rounds.saturating_mul(18)));

    // Alone, or a `troth` that serves would be built with attackers beside it.
    let built = ["--package", "troth-bench", "--features", "adversaries"];
    let report = bench::heard(words, &built, limit.saturating_add(OVERHEAD))?;
    // A part says nothing of the whole.
    if whole {
        bench::keep(&report, &name)?;
    }
    Ok(report)
}
