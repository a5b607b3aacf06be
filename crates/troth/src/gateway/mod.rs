//! `troth gateway`: the servers that clients of other systems connect to.

mod beside;
pub(crate) mod passwords;

pub(crate) use beside::{Beside, LOG};

use crate::cli::Dir;
use crate::failure::{Failure, NOT_DONE, USAGE};
use crate::print::say;
use crate::session::{self, Patience, Session};
use clap::{Args, Subcommand, ValueEnum};
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use troth_node::config::{Cluster, Layout, Service};
use troth_types::ClientId;
use troth_zookeeper_gateway::{
    Consistency, FOUR_LETTER_WORDS, Log, Place, Settings, StartError, TlsClients, TlsFiles,
};

/// Where ZooKeeper's clients look for a server.
pub(crate) const USUAL: &str = "127.0.0.1:2181";
/// How the line begins that says that a gateway serves.
pub(crate) const SERVES: &str = "Serves ZooKeeper's clients on ";
/// How long the group may take to answer one operation. A client whose request takes longer is disconnected and asks anew.
const ANSWER: Duration = Duration::from_secs(30);
/// What a packet needs in a frame beside its own bytes.
const AROUND: usize = 4096;

#[derive(Args, Debug)]
pub(crate) struct Gateway {
    #[command(flatten)]
    pub(crate) dir: Dir,
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, Subcommand)]
enum Kind {
    /// Serve ZooKeeper's clients on the machine on which they run, until SIGINT or SIGTERM.
    #[command(after_help = "\
Examples:
  troth gateway zookeeper
  troth gateway zookeeper --listen 127.0.0.1:2181,[::1]:2181 --client 3
  troth gateway zookeeper --tls-listen 0.0.0.0:2281 --tls-certificates own.pem \\
    --tls-key key.pem --tls-clients ca.pem

It is one of the group's clients, and a process of its own for each machine with clients: what it
tells them rests on the word of enough replicas, and what they and it say to each other goes over
no network. It keeps nothing: sessions, their ephemeral nodes and watches are the group's, and a
client that loses its gateway goes on with its session through another one.")]
    Zookeeper(ZooKeeper),
}

#[derive(Args, Debug)]
struct ZooKeeper {
    /// Where clients connect.
    #[arg(long, value_name = "ADDRESS:PORT,…", value_delimiter = ',', default_value = USUAL, value_parser = address)]
    listen: Vec<SocketAddr>,
    /// Where clients connect with TLS; nowhere where absent.
    #[arg(long, value_name = "ADDRESS:PORT,…", value_delimiter = ',', requires_all = ["tls_certificates", "tls_key"], value_parser = address)]
    tls_listen: Vec<SocketAddr>,
    /// The gateway's certificate and those between it and an authority, as PEM. Read again when it changes, like the others.
    #[arg(long, value_name = "FILE", requires = "tls_listen")]
    tls_certificates: Option<PathBuf>,
    /// Its private key, as PEM.
    #[arg(long, value_name = "FILE", requires = "tls_listen")]
    tls_key: Option<PathBuf>,
    /// The authorities of clients' certificates, as PEM: then clients must show one. None is asked of them where absent.
    #[arg(long, value_name = "FILE", requires = "tls_listen")]
    tls_clients: Option<PathBuf>,
    /// Let clients without a certificate connect with TLS, too.
    #[arg(long, requires = "tls_clients")]
    tls_clients_optional: bool,
    /// Where the admin pages and metrics are (http://ADDRESS:PORT/commands and /metrics), neither encrypted nor authenticated; nowhere where absent.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    admin: Option<SocketAddr>,
    /// The group's client to be, whose keys are in clients/client-N.toml below --dir; a free one where absent. One process
    /// at a time may be a client.
    #[arg(long)]
    client: Option<u64>,
    /// The most connections.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// The most connections of one address; 0 for any number.
    #[arg(long, value_name = "N", default_value_t = 60)]
    connections_per_address: u32,
    /// Bytes of all connections together that may wait, for the group or for their clients; where there are more, the
    /// connection with the most is closed.
    #[arg(long, value_name = "BYTES", default_value_t = 512 << 20)]
    memory: usize,
    /// The longest packet of a client, in bytes; who sends a longer one is disconnected.
    #[arg(long, value_name = "BYTES", default_value_t = 0xf_ffff)]
    packet_bytes: usize,
    /// What reads show: the present, or, as with ZooKeeper, at least what the session saw, though others may have written since.
    #[arg(long, value_enum, default_value_t = Reads::Linearizable)]
    consistency: Reads,
    /// The four-letter words that are answered, of conf, cons, crst, envi, isro, mntr, ruok, srst, srvr and stat; * for all
    /// of these.
    #[arg(long, value_name = "WORD,…", value_delimiter = ',', default_value = "srvr", value_parser = word)]
    words: Vec<String>,
    /// A file of those who may authenticate with SASL (DIGEST-MD5): a line name:password each, readable by its user only.
    #[arg(long, value_name = "FILE")]
    users: Option<PathBuf>,
    /// Write down who asks for which change and what comes of it, a JSON object a line: to this file, or to standard output
    /// where it is -.
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// Write down requests that take so many milliseconds or more, and where their time went.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    slow: Option<u64>,
    /// The file for that; standard output where it is -.
    #[arg(long, value_name = "FILE", default_value = "-", requires = "slow")]
    slow_log: PathBuf,
    /// Bytes of a file of these logs after which another is begun.
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20, value_parser = clap::value_parser!(u64).range(1 << 16..))]
    log_bytes: u64,
    /// Files of each of these logs that are kept; the oldest goes.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    log_files: u32,
    /// Stop when standard input ends; `troth up` starts it so.
    #[arg(long, hide = true)]
    until_stdin_ends: bool,
}

/// An address to listen on, as it is given on the command line.
///
/// # Errors
/// What to write instead.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let text = text.trim();
    let local = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
    if let Some(port) = local {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    text.parse().map_err(|_| {
        "write an IP address and a port: 127.0.0.1:2181, [::1]:2181, or 0.0.0.0:2181 for all addresses of this machine".to_owned()
    })
}

/// One of the four-letter words, or `*`.
fn word(text: &str) -> Result<String, String> {
    let word = text.trim();
    if word == "*" || FOUR_LETTER_WORDS.contains(&word) {
        return Ok(word.to_owned());
    }
    Err(format!(
        "the words that can be answered are {}, and * for all of these",
        FOUR_LETTER_WORDS.join(", ")
    ))
}

/// What reads show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Reads {
    /// All that anybody was told before; a replica that is away makes them slower.
    Linearizable,
    /// All that the session itself saw; f+1 replicas are enough.
    Sequential,
}

impl From<Reads> for Consistency {
    fn from(reads: Reads) -> Self {
        match reads {
            Reads::Linearizable => Self::Linearizable,
            Reads::Sequential => Self::Sequential,
        }
    }
}

impl ZooKeeper {
    /// A log in this file, or on standard output.
    fn log(&self, path: &Path) -> Log {
        let place = if path == Path::new("-") { Place::Stdout } else { Place::File(path.to_owned()) };
        Log { place, file_bytes: self.log_bytes, files: self.log_files }
    }

    /// Where clients connect with TLS, and how.
    fn secure(&self) -> Option<(Vec<SocketAddr>, TlsFiles)> {
        // The command line has either all of these or none.
        let (certificates, key) = self.tls_certificates.clone().zip(self.tls_key.clone())?;
        let required = !self.tls_clients_optional;
        let clients = self.tls_clients.clone().map(|authorities| TlsClients { authorities, required });
        Some((self.tls_listen.clone(), TlsFiles { certificates, key, clients }))
    }
}

pub(crate) fn run(gateway: &Gateway) -> Result<(), Failure> {
    let Kind::Zookeeper(asked) = &gateway.kind;
    let layout = Layout::new(&gateway.dir.dir);
    let cluster = present(&layout)?;
    let settings = settings(asked, &cluster)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| Failure::system("cannot start", &why))?;
    runtime.block_on(serve(asked, &layout, &cluster, settings))
}

/// The cluster, of a group that is a coordination service.
pub(crate) fn present(layout: &Layout) -> Result<Cluster, Failure> {
    let file = layout.cluster();
    // Whoever reads of other commands how a cluster is made makes one for other clients.
    if matches!(file.try_exists(), Ok(false)) {
        let or_up = match layout.is_free() {
            true => ", or by `troth up --zookeeper` while that runs",
            false => "",
        };
        return Err(Failure::usage(format!(
            "{} is not there\n  mend: give the directory of a cluster with --dir, or have one made there by `troth init --service \
             zookeeper`{or_up}",
            file.display()
        )));
    }
    let cluster = session::present(layout)?;
    if cluster.service == Service::ZooKeeper {
        return Ok(cluster);
    }
    Err(Failure::usage(format!(
        "the group in {} serves \"{}\", which ZooKeeper's clients cannot use\n  mend: make another in a directory of its own, \
         with `troth init --dir OTHER --service zookeeper`, or try one with `troth up --dir OTHER --zookeeper`",
        layout.root().display(),
        cluster.service.name()
    )))
}

/// The longest packet that fits one frame of this group, in bytes.
pub(crate) fn most_packet_bytes(cluster: &Cluster) -> usize {
    cluster.limits.frame_bytes - AROUND.min(cluster.limits.frame_bytes)
}

/// What the gateway is told, where it can be one of this group.
fn settings(asked: &ZooKeeper, cluster: &Cluster) -> Result<Settings, Failure> {
    let most = most_packet_bytes(cluster);
    if !(1..=most).contains(&asked.packet_bytes) {
        return Err(Failure::usage(format!(
            "--packet-bytes {} cannot be: it is 1 to {most}, since a packet must fit one frame of this group (frame_bytes in \
             cluster.toml)",
            asked.packet_bytes
        )));
    }
    let least = asked.packet_bytes.max(Settings::default().outstanding_bytes);
    if asked.memory < least {
        return Err(Failure::usage(format!(
            "--memory {} is too little: one connection may have {least} bytes outstanding, and should not fill all of it",
            asked.memory
        )));
    }
    let twice = asked.slow.is_some() && asked.audit_log.as_ref() == Some(&asked.slow_log);
    if twice && asked.slow_log != Path::new("-") {
        return Err(Failure::usage(format!(
            "--audit-log and --slow-log are both {}\n  mend: give each a file of its own",
            asked.slow_log.display()
        )));
    }
    let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    // From half of what does no harm on, but not where an honest primary's time and a good clock may be so far apart.
    let bound = cluster.timing.clock_bound_ms;
    let harmless = (u64::from(cluster.zookeeper.grace) / 2).saturating_sub(bound + bound / 2);
    let apart = (harmless / 2).max(2 * bound).min(harmless);
    Ok(Settings {
        clock_behind: Duration::from_millis(apart),
        listen: asked.listen.clone(),
        secure: asked.secure(),
        admin: asked.admin,
        limits: cluster.limits,
        packet_bytes: asked.packet_bytes,
        connections: number(asked.connections),
        connections_per_address: number(asked.connections_per_address),
        memory_bytes: asked.memory,
        audit: asked.audit_log.as_deref().map(|path| asked.log(path)),
        slow: asked.slow.map(|millis| (Duration::from_millis(millis), asked.log(&asked.slow_log))),
        consistency: asked.consistency.into(),
        words: asked.words.iter().cloned().collect::<BTreeSet<_>>(),
        users: asked.users.as_deref().map(passwords::read).transpose()?.unwrap_or_default(),
        ..Settings::default()
    })
}

async fn serve(
    asked: &ZooKeeper,
    layout: &Layout,
    cluster: &Cluster,
    settings: Settings,
) -> Result<(), Failure> {
    let failed = |why| Failure::system("cannot listen for signals", &why);
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let (alive, mut orphaned) = oneshot::channel::<()>();
    let _alive = if asked.until_stdin_ends { watch_stdin(alive) } else { Some(alive) };
    let told = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = &mut orphaned => {}
        }
    };
    tokio::pin!(told);

    // While the group is away nothing else would tell, and its unit would end when the group comes.
    troth_zookeeper_gateway::Gateway::check(&settings).await.map_err(|why| not_started(&why))?;
    let session = tokio::select! {
        session = Session::open_at_last(layout, cluster, asked.client.map(ClientId), Patience::for_answers(ANSWER)) => session?,
        () = &mut told => return Ok(()),
    };
    let client = session.client.clone();
    let mut gateway =
        troth_zookeeper_gateway::Gateway::start(settings, client).await.map_err(|why| not_started(&why))?;
    let addresses: Vec<String> = gateway.addresses().iter().map(ToString::to_string).collect();
    if let Some(pages) = gateway.admin() {
        say!("Admin pages: http://{pages}/commands, metrics: http://{pages}/metrics");
    }
    let secure: Vec<String> = gateway.secure_addresses().iter().map(ToString::to_string).collect();
    if !secure.is_empty() {
        say!("With TLS: {}", secure.join(", "));
    }
    say!("{SERVES}{}", addresses.join(", "));
    tokio::select! {
        () = gateway.ended() => return Err(Failure::new(NOT_DONE, "the session with the group has ended")),
        () = &mut told => {}
    }
    gateway.stop().await;
    session.client.close().await;
    Ok(())
}

fn not_started(why: &StartError) -> Failure {
    let mend = match why {
        StartError::Listen { source, .. } if source.kind() == io::ErrorKind::AddrNotAvailable => {
            "\n  mend: this machine does not have that address: give one of its own (--listen, --tls-listen or --admin, whichever \
             names this one; with `troth up` --zookeeper=ADDRESS:PORT), or 0.0.0.0 for all of them"
        }
        StartError::Listen { .. } => {
            "\n  mend: give another address (--listen, --tls-listen or --admin, whichever names this one; with `troth up` \
             --zookeeper=ADDRESS:PORT), or end what listens there (another gateway, a ZooKeeper server)"
        }
        StartError::Tls(_) => {
            "\n  mend: see --tls-certificates, --tls-key and --tls-clients: PEM files that this user may read. A keystore \
             becomes one with `openssl pkcs12 -in keystore.p12 -nodes -out own.pem`, which may be both certificates and key"
        }
        StartError::Log { .. } => {
            "\n  mend: see --audit-log and --slow-log: files that this user may write, or - for standard output"
        }
        StartError::Client(_) => "",
    };
    // Its unit does not start again what would only say the same; a place for logs may come back.
    let code = if matches!(why, StartError::Listen { .. } | StartError::Tls(_)) { USAGE } else { NOT_DONE };
    Failure::new(code, format!("{why}{mend}"))
}

/// Drops `alive` when standard input ends. The thread blocks in a read and ends with the process.
fn watch_stdin(alive: oneshot::Sender<()>) -> Option<oneshot::Sender<()>> {
    std::thread::spawn(move || {
        let ended = io::copy(&mut io::stdin().lock(), &mut io::sink());
        drop((ended, alive));
    });
    None
}
