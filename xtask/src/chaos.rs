//! `chaos`: builds the program that breaks a real cluster, the replica and the judge, and passes the
//! result on.

use crate::cli::{Arguments, Command, Opt, Report};
use crate::{process, workspace};
use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::time::Duration;

/// The command.
pub const COMMAND: Command = Command {
    name: "chaos",
    words: "[zookeeper] [minbft|pbft|a2m-pbft-e|a2m-pbft-ea]",
    summary: "break a cluster of real processes under load; have the history judged",
    details: "
Builds crates/troth with the features `faults` and `demo-adversary`, crates/chaos (both in a profile of
their own, chaos) and crates/chaos/judge, a Go module, and runs them: 2f+1 replicas with durability
`always`, each with its hardened trusted process, every connection through a relay, and clients that get,
put and compare-and-swap a few keys. With pbft there are 3f+1 replicas and nothing trusted, so no process of
that kind is killed; with a2m-pbft-e 3f+1 and with a2m-pbft-ea 2f+1, whose components keep attested logs. As with
these three none that lost its log comes back, disks are wiped once, in the end, of f replicas that must refuse to
start and without which the others must serve. Which faults a run has it says.
Replicas and trusted processes are killed with SIGKILL, or die in the middle of a sync and lose a random
part of what was not synced, torn writes among it; disks are wiped, whose processes must then refuse to
start and are readmitted by `troth admin`; replicas are stopped and resumed, find their disks full, have
clocks that are ten minutes off, and lie to clients and to each other; links are cut, slowed, doubled and
reset; everything is killed at once. At most f replicas are broken or lie at a time, except where
everything is killed. What is not synced this build holds in memory, so SIGKILL loses that too.
It holds where the cluster serves again after every fault and every replica is back and votes, no process
ends by itself, every client gets an answer for every key in the end, no acknowledged write is gone and
none was done twice, porcupine finds the history linearizable, and it finds the same history with one stale
read not linearizable. After a failure the logs, data and histories stay where the output says.
With `zookeeper` the replicas serve the coordination service, and 200 sessions with ephemeral nodes, locks and
watches use it through three gateways; gateways, replicas and trusted processes are killed with SIGKILL, at
most f replicas at a time and now and then everything at once. It holds where, by what clients saw alone, at
no position of the order two sessions own a lock, no ephemeral node outlives or predeceases its session, no
event comes twice on a connection, every watched change is told before a reply reflects it or is shown by
the client's own `setWatches` after a reconnection, no session is shown the past, versions count, and
porcupine finds the histories of versioned registers linearizable; and where each of these, made wrong on
purpose in a copy of the clients' journals, is found. --against has the sessions use ZooKeeper servers that
run already instead, none of which is killed.
--scenario plays one course of events with figures: restart-all (everything killed at once during load
must serve again within 10 s), catch-up (a replica that was down for 100,000 requests, and one with an
empty disk, must catch up and vote while the load goes on), full-disk (one replica's disk, then the
primary's).
--plant builds one bug in, and then it holds where that is caught: by the refusal of a process to go on
with what it finds, by a lost acknowledged write or by the judge. With `nothing` there is no bug, and the
same course must end as not caught (exit 1).
The seed chooses faults and operations; what the processes do meanwhile is theirs, so a seed makes a
failure likely again and not certain. Needs `go`, 1.26 or newer.",
    options: &[
        Opt {
            name: "--protocol",
            value: "minbft|pbft|a2m-pbft-e|a2m-pbft-ea",
            help: "how the replicas agree, where no word says it; minbft where not given",
        },
        Opt {
            name: "--auth",
            value: "signed|mac|all-signed",
            help: "by what requests show whose they are; signed where not given, others only with pbft",
        },
        Opt { name: "--f", value: "<n>", help: "faulty replicas to bear; 1 where not given" },
        Opt { name: "--minutes", value: "<n>", help: "minutes of faults; 2 where not given" },
        Opt { name: "--seed", value: "<n>", help: "what chooses; one by chance where not given" },
        Opt { name: "--clients", value: "<n>", help: "clients; 8 where not given" },
        Opt {
            name: "--sessions",
            value: "<n>",
            help: "with zookeeper: who has one session after the other; 200 where not given",
        },
        Opt { name: "--gateways", value: "<n>", help: "with zookeeper: gateways; 3 where not given" },
        Opt { name: "--against", value: "<address,…>", help: "with zookeeper: servers that run already" },
        Opt {
            name: "--recover-within",
            value: "<s>",
            help: "seconds after a fault until it serves again; 30 where not given",
        },
        Opt { name: "--scenario", value: "<name>", help: "restart-all, catch-up or full-disk" },
        Opt {
            name: "--plant",
            value: "<bug>",
            help: "skip-log-sync, skip-trusted-sync or certify-before-body must be caught; nothing must not",
        },
        Opt {
            name: "--trusted-home",
            value: "<home>",
            help: "process or in-process: where trusted components live; process where not given; not with pbft",
        },
    ],
    run,
};

/// What everything beside the faults may take; the program bounds each part of it itself.
const OVERHEAD: Duration = Duration::from_secs(600);
/// What the programs are built with; their directory below the target's has its name.
const PROFILE: &str = "chaos";
/// The word for the coordination service.
const ZOOKEEPER: &str = "zookeeper";
/// Where the judge's source lies below the root.
const JUDGE: &str = "crates/chaos/judge";

fn run(arguments: &Arguments) -> Result<Report, String> {
    let (services, protocols): (Vec<String>, Vec<String>) =
        arguments.words.iter().cloned().partition(|word| word == ZOOKEEPER);
    let named = [protocols, arguments.all("--protocol")].concat();
    let protocol = match named.as_slice() {
        [] => "minbft",
        [protocol] => protocol,
        _ => return Err("say one protocol: minbft, pbft, a2m-pbft-e or a2m-pbft-ea".to_string()),
    };
    let mut words = ["--json", "--protocol", protocol].map(str::to_string).to_vec();
    if !services.is_empty() {
        words.extend(["--service", ZOOKEEPER].map(str::to_string));
    }
    let mut number = |name: &str, default| -> Result<u64, String> {
        let number = arguments.number(name, default)?;
        words.extend([name.to_string(), number.to_string()]);
        Ok(number)
    };
    number("--f", 1)?;
    if services.is_empty() {
        number("--clients", 8)?;
    } else {
        number("--sessions", 200)?;
        number("--gateways", 3)?;
    }
    let recovery = number("--recover-within", 30)?.saturating_mul(2);
    let seconds = number("--minutes", 2)?.saturating_mul(60).saturating_add(recovery);
    if !arguments.all("--seed").is_empty() {
        number("--seed", 0)?;
    }
    for name in ["--auth", "--scenario", "--plant", "--trusted-home"] {
        if let Some(value) = arguments.all(name).last() {
            words.extend([name.to_string(), value.to_string()]);
        }
    }
    let against = arguments.all("--against");
    if !against.is_empty() {
        words.extend(["--against".to_string(), against.join(",")]);
    }
    let limit = Duration::from_secs(seconds).saturating_add(OVERHEAD);

    let root = workspace::root();
    let judge = judge(&root)?;
    build(&root)?;
    let programs = workspace::target(&root).join(PROFILE);
    let mut chaos = Program::new(programs.join("troth-chaos"));
    chaos.args(words).arg("--troth").arg(programs.join("troth")).arg("--judge").arg(judge);
    process::report(&mut chaos, limit)
}

/// Builds the judge and says where it is.
fn judge(root: &Path) -> Result<PathBuf, String> {
    let program = workspace::target(root).join("chaos-judge");
    let built = Program::new("go")
        .current_dir(root.join(JUDGE))
        // What go.mod and go.sum name, and nothing else.
        .args(["build", "-mod=readonly", "-buildvcs=false", "-o"])
        .arg(&program)
        .arg(".")
        .output();
    match built {
        Ok(built) if built.status.success() => Ok(program),
        Ok(built) => {
            let said = String::from_utf8_lossy(&built.stderr);
            let mend = "have Go 1.26 or newer, and let it fetch the module that go.mod names once";
            Err(format!("the judge in {JUDGE} does not build:\n{}\n  mend: {mend}", said.trim_end()))
        }
        Err(why) => Err(format!(
            "the judge in {JUDGE} needs Go, and `go` does not start: {why}\n  mend: install Go 1.26 or newer and \
             have it on the PATH"
        )),
    }
}

/// Builds the program that breaks and what it breaks: the latter with features that only it may have, so each
/// on its own.
fn build(root: &Path) -> Result<(), String> {
    let wanted: [&[&str]; 2] =
        [&["--package", "troth", "--features", "faults,demo-adversary"], &["--package", "troth-chaos"]];
    for package in wanted {
        let status = workspace::cargo(root)
            .args(["build", "--profile", PROFILE, "--quiet", "--locked"])
            .args(package)
            .status()
            .map_err(|why| format!("cargo does not start: {why}"))?;
        if !status.success() {
            return Err(format!("the programs do not build ({status})"));
        }
    }
    Ok(())
}
