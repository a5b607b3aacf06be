//! What can be said on the command line.

use crate::admin::Admin;
use crate::gateway::{Gateway, USUAL as GATEWAY, address};
use crate::import::Import;
use crate::init::ZooKeeperSettings;
use crate::suggest::USUAL_DIR;
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use troth_node::config::{Auth, Protocol};

/// Troth keeps a service right although some of its replicas fail or lie.
#[derive(Debug, Parser)]
#[command(
    name = "troth",
    version,
    after_help = "\
Try it:
  troth up                          three replicas on this machine, until Ctrl-C
  troth kv put greeting hello       (in another terminal)
  troth kv get greeting
  troth status

Exit codes:
  0  done
  1  the answer is no: no such key, another version, over a limit; the group refuses
     a change; a backup is damaged; what was imported is not equal in the end; the
     doctor found something that fails
  2  wrong usage or configuration
  3  this replica, or its trusted component, ran before and must not start again
  4  no answer in time: whether it was done is unknown
  5  not done: too few replicas can be reached, or something in the system refused"
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// What to log, as in RUST_LOG: warn, info, debug, or target=level pairs.
    #[arg(long, global = true, env = "RUST_LOG", value_name = "FILTER", hide_env_values = true)]
    pub(crate) log: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a new cluster: keys and configuration.
    #[command(after_help = "\
Examples:
  troth init                                    three replicas on this machine, in ./troth-data
  troth init --f 2 --dir /tmp/five              five replicas, two of which may fail
  troth init --protocol pbft                    four replicas that need no trusted component
  troth init --protocol a2m-pbft-e              four replicas; one history even if two lie
  troth init --hosts 10.0.0.1,10.0.0.2,10.0.0.3 one replica per machine, each on --base-port
  troth init --service zookeeper                a coordination service

Then copy cluster.toml to every machine, and each replica's directory to its own machine only.")]
    Init(Init),
    /// Run one replica until SIGINT or SIGTERM.
    #[command(after_help = "\
Example:
  troth replica --dir troth-data --id 0

With durability = \"always\" it goes on from what its disk holds. With \"memory\" a
replica whose trusted component has ended must not start again (exit code 3),
because its counter, or its attested logs, are gone: in process it ends with the
replica, and a `troth trusted` that was started by itself goes on without it. The
group bears f stopped replicas. One of a pbft group may start again: it has no
component, and nothing is lost until the machine starts anew.

With trusted_home = \"process\" it asks a `troth trusted`. Where nobody serves its
socket it starts one itself, which is no isolation; with --trusted-socket it
only connects.")]
    Replica(Replica),
    /// Run the trusted component of one replica in a hardened process of its own.
    #[command(after_help = "\
Examples:
  troth trusted --dir troth-data --id 0 --user troth-trusted    as root: becomes that user
  troth trusted --dir troth-data --id 0                         as a user of its own already

It serves the one replica until it is killed, and may be killed and started again
at any moment. Only started as root or as a user that is not the replica's does it
protect the key and the counters from whoever takes over the replica; its log says
which of its walls stand. docs/operating/trusted-process.md has the set-up.")]
    Trusted(Trusted),
    /// Run a whole cluster on this machine until Ctrl-C.
    #[command(after_help = "\
Examples:
  troth up                    three replicas, one may fail; files in ./troth-data while it runs
  troth up --f 2              five replicas, two may fail
  troth up --protocol pbft    four replicas without trusted components, one may fail
  troth up --zookeeper        three replicas and a gateway for ZooKeeper's clients on 127.0.0.1:2181
  troth up --dir my-cluster   the cluster that `troth init --dir my-cluster` made

A cluster that it makes has ports that were free then, others each time: `troth status`
shows them. For ports that stay: `troth init --base-port 4700`, and then `troth up`.")]
    Up(Up),
    /// Use the key-value service.
    Kv(Kv),
    /// Serve the clients of another system, as a client of the group.
    Gateway(Gateway),
    /// Bring the data of another system into a group.
    Import(Import),
    /// Check this machine: kernel, permissions, clocks, disks, isolation, and whether the replicas answer.
    #[command(after_help = "\
One line per finding: ok, warn or fail, with what to do. Exit code 1 where something
failed. Run it as the replica's user or as root, or it sees less.")]
    Doctor(crate::doctor::Doctor),
    /// Take a certified backup of the running group, from a replica of this machine.
    #[command(after_help = "\
Examples:
  troth backup --to /backups/monday          everything acknowledged so far
  troth backup --to /backups/monday --last   the last stable checkpoint as it is

The state is fetched from the replica while it goes on serving, and every piece is
verified against what a quorum of replicas certified. Keep the printed content digest apart
from the backup: `troth restore --content-digest` holds a backup against it.")]
    Backup(crate::backup::Backup),
    /// Make a new cluster, with new keys, that begins with the content of a backup.
    #[command(after_help = "\
Examples:
  troth restore --from /backups/monday --dir new-cluster
  troth restore --from /backups/monday --dir new --hosts 10.0.0.1,10.0.0.2,10.0.0.3

Then go on as after `troth init`: each replica's directory, with its file genesis,
belongs on its own machine. Keys, clients and what was kept for them are new. Ports are 4700
and up as with `troth init`, whatever the backup's group had: --base-port takes others.")]
    Restore(crate::restore::Restore),
    /// Show every replica: process, view, primary, progress, suspicions.
    Status(crate::status::Status),
    /// Change who the replicas and clients are, as the operator.
    Admin(Admin),
    /// Watch three replicas stay right while one is killed, lies and is replaced; `make demo` runs it.
    #[cfg_attr(not(feature = "demo-adversary"), command(hide = true))]
    Demo(Demo),
}

impl Command {
    /// The cluster's directory, where it is about one.
    pub(crate) fn dir(&self) -> Option<&Path> {
        let dir = match self {
            Self::Init(arguments) => &arguments.dir,
            Self::Replica(arguments) => &arguments.dir,
            Self::Trusted(arguments) => &arguments.dir,
            Self::Up(arguments) => &arguments.dir,
            Self::Kv(arguments) => &arguments.dir,
            Self::Gateway(arguments) => &arguments.dir,
            Self::Import(arguments) => &arguments.dir,
            Self::Doctor(arguments) => &arguments.dir,
            Self::Backup(arguments) => &arguments.dir,
            Self::Restore(arguments) => &arguments.dir,
            Self::Status(arguments) => &arguments.dir,
            Self::Admin(arguments) => &arguments.dir,
            Self::Demo(_) => return None,
        };
        Some(&dir.dir)
    }
}

/// Where the cluster's files are.
#[derive(Args, Clone, Debug)]
pub(crate) struct Dir {
    /// The cluster's directory.
    #[arg(long, global = true, env = "TROTH_DIR", default_value = USUAL_DIR, value_name = "DIRECTORY")]
    pub(crate) dir: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ServiceName {
    /// Keys and values.
    Kv,
    /// Nothing, for measurements.
    Null,
    /// A coordination service, to gateways that ZooKeeper's clients connect to.
    Zookeeper,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TrustedName {
    /// One key that all trusted components share: fast.
    Hmac,
    /// A key per component: one that leaks harms one replica only.
    Ed25519,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum HomeName {
    /// In the replica's process: whoever takes over the replica has the component too.
    InProcess,
    /// In a process of its own (`troth trusted`), with its key and counters in trusted-N/.
    Process,
}

#[derive(Args, Debug)]
pub(crate) struct Init {
    #[command(flatten)]
    pub(crate) dir: Dir,
    /// What the group serves.
    #[arg(long, value_enum, default_value = "kv")]
    pub(crate) service: ServiceName,
    #[command(flatten)]
    pub(crate) zookeeper: ZooKeeperSettings,
    #[command(flatten)]
    pub(crate) shape: Shape,
}

/// What a new cluster is made of.
#[derive(Args, Debug)]
pub(crate) struct Shape {
    /// How the replicas agree: minbft (2f+1 replicas, each with a trusted component), pbft (3f+1, nothing trusted),
    /// a2m-pbft-e (3f+1, each of which attests its history) or a2m-pbft-ea (2f+1, each of which attests all it says).
    /// Where absent: minbft; with `troth restore` the protocol of the backup's group.
    #[arg(long)]
    pub(crate) protocol: Option<Protocol>,
    /// How requests prove who sent them: signed (every replica checks a signature), or with pbft also mac (a MAC for
    /// each replica, which costs next to nothing; what is sent again is signed) or all-signed (signatures, and on what
    /// replicas say in agreeing too: slower, and who lies can be shown to lie). Where absent: signed; with `troth
    /// restore` as in the backup's group, where the protocol takes that.
    #[arg(long)]
    pub(crate) auth: Option<Auth>,
    /// Faulty replicas to bear: the group gets 2f+1 with minbft and a2m-pbft-ea, 3f+1 with the others. Where absent: 1;
    /// with `troth restore` as many as the backup's group bore.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=50))]
    pub(crate) f: Option<u16>,
    /// How trusted components certify; hmac where absent, ed25519 with --trusted-home process and with a2m-pbft-e and
    /// a2m-pbft-ea, which take nothing else. Not with pbft.
    #[arg(long, value_enum)]
    pub(crate) trusted: Option<TrustedName>,
    /// Where trusted components live; in-process where absent. Not with pbft.
    #[arg(long, value_enum)]
    pub(crate) trusted_home: Option<HomeName>,
    /// As root: the user that the trusted components' directories belong to, by name, UID or UID:GID.
    #[arg(long, value_name = "USER")]
    pub(crate) trusted_user: Option<String>,
    /// What each replica keeps.
    #[arg(long, value_enum, default_value = "always")]
    pub(crate) durability: DurabilityName,
    /// The first replica's port; replica i takes base + i, and its /status and /metrics base + 100 + i. With --hosts each
    /// is on a machine of its own, and all take base and base + 100.
    #[arg(long, default_value_t = 4700, value_parser = clap::value_parser!(u16).range(1..=65_000))]
    pub(crate) base_port: u16,
    /// The replicas' machines, in order; all on 127.0.0.1 where absent.
    #[arg(long, value_delimiter = ',', value_name = "HOST,…")]
    pub(crate) hosts: Vec<String>,
    /// How many clients get keys.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) clients: u16,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum DurabilityName {
    /// Everything is on disk before anything that depends on it leaves; a replica may be stopped at any
    /// moment and started again.
    Always,
    /// Everything is on disk 10 ms later (durability_interval_ms in cluster.toml); a replica that was killed
    /// comes back, one whose machine lost power must be readmitted (with minbft; with the others it stays out).
    Interval,
    /// Nothing is ever synced; a replica whose trusted component has ended must be readmitted (with minbft, and with
    /// a2m-pbft-e where that has a process of its own; with the others it stays out). With pbft, one whose machine has started anew must not vote again.
    Memory,
}

#[derive(Args, Debug)]
pub(crate) struct Replica {
    #[command(flatten)]
    pub(crate) dir: Dir,
    /// Which replica, from 0.
    #[arg(long)]
    pub(crate) id: u16,
    /// Where the trusted process serves: connect to it, and never start one. Only where it lives in a
    /// process of its own.
    #[arg(long, value_name = "PATH")]
    pub(crate) trusted_socket: Option<PathBuf>,
    /// Have every call of the trusted component take so many microseconds at least, to try how the group would do
    /// with a slower component.
    #[arg(long, value_name = "MICROS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub(crate) trusted_delay: u64,
    /// Stop when standard input ends; `troth up` starts its replicas so.
    #[arg(long, hide = true)]
    pub(crate) until_stdin_ends: bool,
    /// Misbehave; in demonstration builds only.
    #[cfg(feature = "demo-adversary")]
    #[arg(long, value_enum)]
    pub(crate) adversary: Option<Adversary>,
    #[cfg(feature = "faults")]
    #[command(flatten)]
    pub(crate) misfortune: Misfortune,
}

/// What goes wrong, in the builds of `cargo xtask chaos` only.
#[cfg(feature = "faults")]
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Misfortune {
    /// A file that says when to die and lose what was not synced, how much space there is and how far the
    /// clock is off.
    #[arg(long, value_name = "PATH")]
    pub(crate) orders: Option<PathBuf>,
    /// Have this bug.
    #[arg(long, value_enum)]
    pub(crate) plant: Option<PlantName>,
}

#[cfg(feature = "faults")]
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PlantName {
    /// The log says that something is durable when it is written.
    SkipLogSync,
    /// The trusted store does.
    SkipTrustedSync,
    /// The component certifies what is not durable yet.
    CertifyBeforeBody,
}

#[derive(Args, Debug)]
pub(crate) struct Trusted {
    #[command(flatten)]
    pub(crate) dir: Dir,
    /// Whose component: the replica's number, from 0.
    #[arg(long)]
    pub(crate) id: u16,
    /// The user to become, by name, UID or UID:GID; needed as root, where trusted-N does not already belong
    /// to one.
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// The user whose process may ask; the owner of the replica's directory where absent.
    #[arg(long, value_name = "UID")]
    pub(crate) allow_uid: Option<u32>,
    /// Where to serve; socket-N/trusted.sock below the cluster's directory where absent.
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Stop when standard input ends; a replica starts its trusted process so.
    #[arg(long, hide = true)]
    pub(crate) until_stdin_ends: bool,
    #[cfg(feature = "faults")]
    #[command(flatten)]
    pub(crate) misfortune: Misfortune,
}

#[cfg(feature = "demo-adversary")]
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Adversary {
    /// Lies to clients and tells each replica something else.
    Liar,
    /// Computes one operation wrongly, as a machine with bad memory would, and else does what it should.
    Miscompute,
    /// As primary, delays every proposal to just under the time-out.
    Slow,
    /// As primary, takes the first client's requests in just under the time-out.
    Unfair,
    /// As primary, shows its proposals to f backups only and answers no client.
    Withholding,
}

#[cfg(feature = "demo-adversary")]
impl Adversary {
    /// How it leads, where it leads badly.
    pub(crate) fn tyranny(self) -> Option<troth_node::Tyranny> {
        match self {
            Self::Slow => Some(troth_node::Tyranny::Slow),
            Self::Unfair => Some(troth_node::Tyranny::Unfair(troth_types::ClientId(1))),
            Self::Withholding => Some(troth_node::Tyranny::Withholding),
            Self::Liar | Self::Miscompute => None,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct Up {
    #[command(flatten)]
    pub(crate) dir: Dir,
    /// How the replicas of a new cluster agree, minbft, pbft, a2m-pbft-e or a2m-pbft-ea; minbft where absent.
    #[arg(long)]
    pub(crate) protocol: Option<Protocol>,
    /// How requests to a new cluster prove who sent them: signed, which is usual, or with pbft also mac or all-signed;
    /// `troth init --help` says what they are.
    #[arg(long)]
    pub(crate) auth: Option<Auth>,
    /// Faulty replicas to bear, where a new cluster is made: it gets 2f+1 with minbft and a2m-pbft-ea, else 3f+1.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=10))]
    pub(crate) f: Option<u16>,
    /// Serve a coordination service, with a gateway that ZooKeeper's clients connect to; on 127.0.0.1:2181 where no
    /// address is given.
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, require_equals = true, default_missing_value = GATEWAY, value_parser = address)]
    pub(crate) zookeeper: Option<SocketAddr>,
}

#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// How the replicas agree, minbft, pbft, a2m-pbft-e or a2m-pbft-ea; one is replaced with minbft alone.
    #[arg(long, default_value_t)]
    pub(crate) protocol: Protocol,
    /// How requests prove who sent them: signed, which is usual, or with pbft also mac or all-signed; `troth init
    /// --help` says what they are.
    #[arg(long)]
    pub(crate) auth: Option<Auth>,
    /// Keep the replicas' logs and configuration, and say where.
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  troth kv put greeting hello
  troth kv get greeting
  troth kv cas greeting --version 1 'good evening'    only if it is still version 1
  troth kv cas lock --absent me                       only if the key does not exist
  troth kv scan user/ --limit 20
  troth kv watch greeting                             prints every change until Ctrl-C
  troth kv delete greeting

Exit code 1 where the service says no, 4 where it is unknown whether it was done, 5
where it was not; `troth --help` lists all.")]
pub(crate) struct Kv {
    #[command(flatten)]
    pub(crate) dir: Dir,
    /// The client to be, whose keys are in clients/client-N.toml below --dir; a free one where absent. One process at a
    /// time may be a client.
    #[arg(long, global = true)]
    pub(crate) client: Option<u64>,
    /// Seconds to wait for the group, and for each answer; 5 and 30 where absent.
    #[arg(long, global = true, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) wait: Option<u64>,
    #[command(subcommand)]
    pub(crate) operation: KvOperation,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KvOperation {
    /// Print a key's value; exit code 1 where there is none.
    Get {
        /// The key.
        key: String,
        /// Print the version before the value.
        #[arg(long)]
        version: bool,
    },
    /// Write a key.
    Put {
        /// The key.
        key: String,
        /// Its value; `-` reads it from standard input.
        value: String,
    },
    /// Delete a key; exit code 1 where there is none.
    Delete {
        /// The key.
        key: String,
    },
    /// Write a key only if it has the expected version, or does not exist; exit code 1 where that is not so.
    #[command(group(ArgGroup::new("expected").required(true).args(["version", "absent"])))]
    Cas {
        /// The key.
        key: String,
        /// The new value.
        value: String,
        /// The version it must have.
        #[arg(long)]
        version: Option<u64>,
        /// The key must not exist.
        #[arg(long)]
        absent: bool,
    },
    /// Print keys and values in order.
    Scan {
        /// What the keys start with; all keys where empty.
        #[arg(default_value = "")]
        prefix: String,
        /// The most keys to print.
        #[arg(long, default_value_t = 1000)]
        limit: u32,
    },
    /// Print every change of a key until Ctrl-C.
    Watch {
        /// The key, or what keys start with.
        key: String,
        /// Watch all keys that start so.
        #[arg(long)]
        prefix: bool,
        /// Stop after so many changes.
        #[arg(long)]
        count: Option<u64>,
    },
}
