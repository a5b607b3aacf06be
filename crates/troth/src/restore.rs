//! `troth restore`: a new cluster that begins with the content of a backup.

use crate::backup::content_of;
use crate::cli::{Dir, Shape};
use crate::failure::{Failure, NO};
use crate::init::{Usual, create};
use crate::print::{note, say};
use crate::words::count;
use clap::Args;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};
use troth_node::backup;
use troth_node::config::{Cluster, Layout, Service, hex, make_restored};

#[derive(Args, Debug)]
pub(crate) struct Restore {
    #[command(flatten)]
    pub(crate) dir: Dir,
    /// The backup: the directory that `troth backup --to` made.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) from: PathBuf,
    /// Go on only if the content has this digest, as `troth backup` printed it.
    #[arg(long, value_name = "DIGITS", value_parser = content_digest)]
    pub(crate) content_digest: Option<String>,
    #[command(flatten)]
    pub(crate) shape: Shape,
}

/// A digest as somebody copied it, if it is all of one.
fn content_digest(digits: &str) -> Result<String, String> {
    let digits = digits.to_ascii_lowercase();
    if hex::decode::<32>(&digits).is_some() {
        return Ok(digits);
    }
    let has = match digits.chars().find(|character| !character.is_ascii_hexdigit()) {
        Some(odd) => format!("{odd:?}, which is no such digit"),
        None => count(digits.chars().count(), "character"),
    };
    Err(format!(
        "a content digest has 64 hexadecimal digits, as `troth backup` printed it, and this has {has}"
    ))
}

pub(crate) fn run(restore: &Restore) -> Result<(), Failure> {
    let backup = backup::read(&restore.from)?;
    let digest = hex::encode(&backup.content_digest().0);
    if let Some(wanted) = &restore.content_digest
        && *wanted != digest
    {
        let problem = format!(
            "the content of {} has digest {digest}, and not {wanted}: it is another backup, or somebody changed it\n  mend: \
             look for the right one; nothing was restored",
            restore.from.display()
        );
        return Err(Failure::new(NO, problem));
    }
    // Agreed time goes on from the backup's, and replicas vote for no time that is ahead of their clocks.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let behind = u128::from(backup.content.time().0).saturating_sub(now.as_micros());
    if behind > u128::from(backup.cluster.timing.clock_bound_ms) * 1000 {
        let problem = format!(
            "this machine's clock is {} s behind the time in the backup: a group restored now would order nothing until then\n  \
             mend: set the clocks of the new machines",
            behind / 1_000_000
        );
        return Err(Failure::usage(problem));
    }
    let layout = Layout::new(&restore.dir.dir);
    let before = Usual {
        protocol: backup.cluster.protocol,
        auth: backup.cluster.auth,
        // A group bears far fewer than this number tells apart.
        f: u16::try_from(backup.cluster.group.f()).unwrap_or(u16::MAX),
    };
    create(&layout, &restore.shape, backup.cluster.service, before, |plan| {
        make_restored(&layout, plan, &backup.content, &backup.cluster)
    })?;
    if !backup.certified {
        note!(
            "the certificates in the backup are HMACs: they were checked when the backup was made, and only secrets of the old group could \
             check them again here"
        );
    }
    say!("");
    say!(
        "It begins with what the backup's group had at batch {}: {}, in the file genesis of every replica.",
        backup.manifest.number,
        content_of(backup.cluster.service, backup.content.entries())
    );
    say!(
        "Clients have new keys and begin anew; {}.",
        match backup.cluster.service {
            Service::ZooKeeper => "sessions go on when their clients connect to gateways of this group",
            Service::Kv | Service::Null => "what was kept for the old ones (results, watches) is not there",
        }
    );
    let other = differences(&backup.cluster, &Cluster::load(&layout.cluster())?);
    if !other.is_empty() {
        say!("Otherwise than in the backup's group: {}.", other.join(", "));
    }
    say!("content digest {digest}");
    Ok(())
}

/// What options choose and the new group has otherwise than the backup's: who forgot one must see it before the directories
/// are on their machines.
pub(crate) fn differences(before: &Cluster, now: &Cluster) -> Vec<String> {
    let mut other = Vec::new();
    if before.group.f() != now.group.f() {
        other.push(format!("it bears {} faulty (before: {})", now.group.f(), before.group.f()));
    }
    if now.protocol != before.protocol {
        other.push(format!("protocol {} (before: {})", now.protocol.name(), before.protocol.name()));
    }
    if now.auth != before.auth {
        other.push(format!("--auth {} (before: {})", now.auth, before.auth));
    }
    // What a protocol without components has of them is said by its name.
    let components = now.protocol.has_components() && before.protocol.has_components();
    if components && now.trusted != before.trusted {
        other.push(format!("--trusted {} (before: {})", now.trusted.name(), before.trusted.name()));
    }
    if components && now.trusted_home != before.trusted_home {
        let (now, before) = (now.trusted_home.name(), before.trusted_home.name());
        other.push(format!("--trusted-home {now} (before: {before})"));
    }
    let (now, before) = (now.durability.name(), before.durability.name());
    if now != before {
        other.push(format!("--durability {now} (before: {before})"));
    }
    other
}
