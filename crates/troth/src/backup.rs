//! `troth backup`: a certified state of the running group, from a replica of this machine.

use crate::cli::Dir;
use crate::failure::{Failure, NOT_DONE};
use crate::print::{self, note, say};
use crate::session::{Patience, Session, has_keys};
use crate::words::{count, count_of};
use clap::Args;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use troth_kv::Operation;
use troth_node::backup::{self, BackupError, Manifest, Progress, Source};
use troth_node::config::{Cluster, Known, Layout, ReplicaSecret, Service, hex};
use troth_types::{ClientId, ReplicaId, Seq, Wire};

/// Between two lines that tell how far it is.
const TELL: Duration = Duration::from_secs(1);
/// Between two looks whether a checkpoint is stable.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Args, Debug)]
pub(crate) struct Backup {
    #[command(flatten)]
    pub(crate) dir: Dir,
    /// Where to put the backup: a directory that does not exist.
    #[arg(long, value_name = "DIRECTORY", value_parser = plain)]
    pub(crate) to: PathBuf,
    /// The replica of this machine to ask; the first that has a socket where absent.
    #[arg(long)]
    pub(crate) id: Option<u16>,
    /// Take the last stable checkpoint as it is. Otherwise, where a client's keys are here, operations that
    /// change nothing are ordered until a checkpoint holds everything acknowledged so far.
    #[arg(long)]
    pub(crate) last: bool,
    /// The client to order those as, whose keys are in clients/client-N.toml below --dir; a free one where absent.
    #[arg(long)]
    pub(crate) client: Option<u64>,
    /// Seconds to wait for a checkpoint to become stable.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) wait: u64,
    /// Print the manifest as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A path without a slash at its end, so that a name can be put behind it.
fn plain(path: &str) -> Result<PathBuf, String> {
    let path: PathBuf = Path::new(path).components().collect();
    match path.file_name() {
        Some(_) => Ok(path),
        None => Err("it has no name of its own; name a new directory".to_owned()),
    }
}

pub(crate) fn run(arguments: &Backup) -> Result<(), Failure> {
    let layout = Layout::new(&arguments.dir.dir);
    let cluster = Cluster::load(&layout.cluster())?;
    let parent = arguments.to.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
        let place = parent.display();
        return Err(Failure::usage(format!("{place} is no directory\n  mend: mkdir -p {place}")));
    }
    // Before a large state is fetched for nothing.
    backup::try_place(&arguments.to)?;
    let give_up = Instant::now() + Duration::from_secs(arguments.wait);
    let (replica, secret) = replica(&layout, &cluster, arguments.id)?;
    let socket = layout.backup_socket(replica);
    let known = Known::load(&layout, &cluster)?;
    let (present, configuration) = (known.present(&cluster), known.configuration);
    let ask = || Source::open(&cluster, &configuration, &secret, &socket);
    let (mut source, holds_all) = if arguments.last {
        (last(give_up, &ask)?, false)
    } else {
        // Those of a client that was removed are keys, too: that they are of no use is to be said.
        let has_keys = has_keys(&layout, &cluster) || has_keys(&layout, &present);
        current(arguments, &layout, &present, has_keys, give_up, &ask)?
    };

    note!("replica {} shows checkpoint {}, {}; fetching it", replica.0, source.seq.0, certified(&cluster));
    let mut told = Instant::now();
    let state = source.fetch(|progress| {
        if told.elapsed() >= TELL {
            told = Instant::now();
            tell(progress);
        }
    })?;
    note!("fetched and verified the state; writing {}", arguments.to.display());
    let manifest = backup::write(&arguments.to, &layout, &cluster, replica, &source, &state)?;
    // What was written is read again, so that a disk that lies is found now and not when it is needed.
    let backup = backup::read(&arguments.to)?;
    if arguments.json {
        return print::output(
            (serde_json::to_string(&manifest).expect("a manifest is plain data") + "\n").as_bytes(),
        );
    }
    say!(
        "Wrote {}: everything up to batch {}, {}.",
        arguments.to.display(),
        manifest.number,
        certified(&cluster)
    );
    report(&manifest, &content_of(cluster.service, backup.content.entries()), source.executed, holds_all);
    say!("content digest {}", hex::encode(&backup.content_digest().0));
    Ok(())
}

/// By how many of its replicas the group's checkpoints are certified.
pub(crate) fn certified(cluster: &Cluster) -> String {
    let words = if cluster.protocol.replicas(1) == 3 { "f+1" } else { "2f+1" };
    format!("certified by {} of the group's {} replicas ({words})", cluster.group.quorum(), cluster.group.n())
}

/// How many entries there are of what a backup brings back, and what they are.
pub(crate) fn content_of(service: Service, entries: u64) -> String {
    let what = match service {
        Service::Kv => " (one for each key, and one that counts the writes)",
        Service::Null => "",
        Service::ZooKeeper => " (nodes, sessions, their ephemeral nodes and watches)",
    };
    format!("{} of the service's content{what}", count_of(entries, "entry", "entries"))
}

fn report(manifest: &Manifest, content: &str, executed: Seq, holds_all: bool) {
    say!(
        "{content}, which `troth restore` brings back; {} in all, with what is kept for clients and of the group itself. {}.",
        manifest.entries,
        count(manifest.state_bytes, "byte")
    );
    match executed.0.saturating_sub(manifest.number) {
        // What brought the group to a checkpoint comes behind, and is nothing that anybody would miss.
        _ if holds_all => say!("All that was acknowledged before it was begun is in it."),
        0 => {}
        1 => say!("One later batch, which the replica had executed when it was asked, is not in it."),
        beyond => {
            say!("{beyond} later batches, which the replica had executed when it was asked, are not in it.");
        }
    }
}

fn tell(progress: Progress) {
    note!(
        "{} of at least {}, {} kB",
        progress.pieces,
        count(progress.wanted, "piece"),
        progress.bytes / 1000
    );
}

/// The replica to ask, and its keys.
fn replica(
    layout: &Layout,
    cluster: &Cluster,
    wanted: Option<u16>,
) -> Result<(ReplicaId, ReplicaSecret), Failure> {
    let secret = |id: ReplicaId| Ok((id, ReplicaSecret::load(&layout.replica_secret(id), cluster)?));
    if let Some(id) = wanted {
        if !cluster.group.contains(ReplicaId(id)) {
            return Err(Failure::no_such_replica(&cluster.group, "--id", ReplicaId(id)));
        }
        return secret(ReplicaId(id));
    }
    let answers = |id: &ReplicaId| UnixStream::connect(layout.backup_socket(*id)).is_ok();
    let Some(found) = cluster.group.all().find(answers) else {
        return Err(Failure::new(
            NOT_DONE,
            format!(
                "no replica of this group runs from {} on this machine\n  mend: run this where a replica runs, as its \
                 user or as root, with the same --dir; `troth status` shows which replicas answer",
                layout.root().display()
            ),
        ));
    };
    secret(found)
}

/// The last stable checkpoint, as soon as the replica has one and nobody else takes a backup of it.
fn last(give_up: Instant, ask: &dyn Fn() -> Result<Source, BackupError>) -> Result<Source, Failure> {
    loop {
        match ask() {
            Err(BackupError::Refused(_)) if Instant::now() < give_up => std::thread::sleep(LOOK),
            asked => return Ok(asked?),
        }
    }
}

/// A checkpoint that holds everything acknowledged before now, and true, where that can be had; else the last one.
fn current(
    arguments: &Backup,
    layout: &Layout,
    cluster: &Cluster,
    has_keys: bool,
    give_up: Instant,
    ask: &dyn Fn() -> Result<Source, BackupError>,
) -> Result<(Source, bool), Failure> {
    // A replica's machine need not have a client's keys. Where it has, and they are of no use, that is to be mended: a
    // backup that lacks what they are there for would not be noticed.
    if arguments.client.is_none() && !has_keys {
        note!(
            "no client's keys are here: takes the last stable checkpoint, which may lack the last {} batches",
            2 * cluster.timing.checkpoint_interval
        );
        return Ok((last(give_up, ask)?, false));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| Failure::system("cannot start", &why))?;
    runtime.block_on(async {
        let wait = give_up.saturating_duration_since(Instant::now());
        let patience = Patience::for_answers(wait);
        let client = Session::open(layout, cluster, arguments.client.map(ClientId), patience).await?;
        let nothing = Operation::Get { key: bytes::Bytes::new() }.to_wire();
        client.client.execute(nothing.clone()).await?;
        // Whatever was acknowledged to anybody before has a lower number.
        let target = client.client.status().await?.confirmed;
        loop {
            match ask() {
                Ok(source) if source.seq >= target => return Ok((source, true)),
                Ok(_) | Err(BackupError::Refused(_)) => {}
                Err(why) => return Err(why.into()),
            }
            if Instant::now() >= give_up {
                return Err(BackupError::NotYet(target).into());
            }
            if client.client.status().await?.confirmed.0 > target.0 + 2 * cluster.timing.checkpoint_interval {
                // Enough is ordered: the replicas are about to take the checkpoint, or the one asked is behind.
                tokio::time::sleep(LOOK).await;
                continue;
            }
            // A few between two looks; one after the other, so that each is a batch of its own.
            for _ in 0..8 {
                client.client.execute(nothing.clone()).await?;
            }
        }
    })
}
