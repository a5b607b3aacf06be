//! Who may read and write the cluster's files on this machine.

use super::Finding;
use crate::how_to_start::{closed_to, how_to_open};
use crate::trusted_start;
use crate::words::replicas;
use std::collections::BTreeMap;
use std::fs::{Metadata, ReadDir};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use troth_node::awaits_its_component;
use troth_node::config::{
    Cluster, Durability, Known, Layout, ReplicaSecret, TrustedHome, TrustedSecret, seen_by_others,
};
use troth_types::ReplicaId;

const SUBJECT: &str = "files";
/// What a replica keeps beside its component.
const LOG: &str = "log and snapshots";

pub(super) fn look(layout: &Layout, cluster: &Cluster, here: &[ReplicaId]) -> Vec<Finding> {
    let mut findings = vec![Finding::ok(
        "cluster",
        format!(
            "{} defines a group of {}, {} of which may fail",
            layout.cluster().display(),
            cluster.group.n(),
            cluster.group.f()
        ),
    )];
    let before = findings.len();
    findings.extend(forgetful(layout, cluster, here));
    findings.extend(succeeded(layout, cluster, here));
    findings.extend(unwritable(layout.root()));
    findings.extend(unwritable(&layout.cluster()));
    for replica in here {
        findings.extend(private(&layout.replica(*replica)));
        let kept = layout.component(*replica, cluster.trusted_home);
        for place in [layout.replica(*replica), layout.data(*replica)].into_iter().chain(kept) {
            findings.extend(closed_to_its_owner(&place));
        }
        let open = private(&layout.replica_secret(*replica));
        // One that is open to others is not read, for that very reason.
        findings.extend(open.or_else(|| readable(layout, cluster, *replica)));
        findings.extend(whole(layout, cluster, *replica));
        if cluster.trusted_home == TrustedHome::Process {
            findings.extend(private(&layout.trusted(*replica)));
            findings.extend(private(&layout.trusted_secret(*replica)));
            if let Some(place) = layout.trusted_socket(*replica).parent() {
                findings.extend(unwritable(place));
            }
        }
    }
    if cluster.trusted_home == TrustedHome::Process {
        findings.extend(out_of_reach(layout, here));
    }
    let clients = cluster.clients.keys().map(|client| layout.client_secret(*client));
    for secret in clients.chain([layout.operator_secret()]) {
        if secret.exists() {
            findings.extend(private(&secret));
        }
    }
    if findings.len() == before {
        findings.push(Finding::ok(SUBJECT, "nobody but their owners may read secrets or change anything"));
    }
    if here.len() > 1 {
        findings.push(Finding::warn(
            "machines",
            format!("{} replicas' keys are on this one machine: whoever has it has all of them", here.len()),
            "right for trying it out; else have each replica's directory on a machine of its own, and nowhere else",
        ));
    }
    findings
}

/// A directory or file that nobody but its owner may open, judged as by who refuses to use it.
fn private(path: &Path) -> Option<Finding> {
    if let Err(finding) = look_at(path) {
        return finding;
    }
    seen_by_others(path).map(|why| Finding::fail(SUBJECT, why.said(), why.mend))
}

/// A directory in which its owner, whose replica or component is to run, cannot make files.
fn closed_to_its_owner(path: &Path) -> Option<Finding> {
    // What is missing, or is not for us to see, is said elsewhere.
    let mode = std::fs::metadata(path).ok()?.mode() & 0o777;
    (mode & 0o300 != 0o300).then(|| {
        Finding::fail(
            SUBJECT,
            format!("{} is closed to its owner (mode {mode:o}), who cannot write there", path.display()),
            format!("chmod u+rwx {}", path.display()),
        )
    })
}

/// Components' directories to which their owners do not get: as whom the components run, in no group but its own.
fn out_of_reach(layout: &Layout, here: &[ReplicaId]) -> Vec<Finding> {
    let mut alike: BTreeMap<_, Vec<ReplicaId>> = BTreeMap::new();
    for id in here {
        let path = layout.trusted(*id);
        // Root's is another matter (isolation.rs).
        let Some(data) = std::fs::metadata(&path).ok().filter(|data| data.uid() != 0) else { continue };
        if let Some(closed) = closed_to(&path, data.uid(), data.gid()) {
            alike.entry((data.uid(), closed)).or_default().push(*id);
        }
    }
    let finding = |((user, closed), ids): ((u32, PathBuf), Vec<ReplicaId>)| {
        let said = format!(
            "{}: the trusted component does not start, as user {user}, whose directory it has, does not get there: {} is closed \
             to that user",
            replicas(&ids),
            closed.display()
        );
        Finding::fail(SUBJECT, said, how_to_open(&closed, user))
    };
    alike.into_iter().map(finding).collect()
}

/// A directory or file that nobody but its owner may change.
fn unwritable(path: &Path) -> Option<Finding> {
    let data = match look_at(path) {
        Ok(data) => data,
        Err(finding) => return finding,
    };
    (data.mode() & 0o022 != 0).then(|| {
        Finding::fail(
            SUBJECT,
            format!("others may change {} (mode {:o})", path.display(), data.mode() & 0o777),
            format!("chmod go-w {}", path.display()),
        )
    })
}

/// What is there; nothing to say where a directory on the way is closed to us, which is as it should be.
fn look_at(path: &Path) -> Result<Metadata, Option<Finding>> {
    std::fs::metadata(path).map_err(|why| match why.kind() {
        io::ErrorKind::PermissionDenied => None,
        io::ErrorKind::NotFound => Some(Finding::fail(
            SUBJECT,
            format!("{} is not there", path.display()),
            "copy the replica's directories to this machine as `troth init` made them",
        )),
        _ => Some(Finding::fail(SUBJECT, format!("{}: {why}", path.display()), "look at the file system")),
    })
}

/// Whether a replica's keys fit the configuration, where we may read them.
fn readable(layout: &Layout, cluster: &Cluster, replica: ReplicaId) -> Option<Finding> {
    let path = layout.replica_secret(replica);
    match std::fs::File::open(&path) {
        Err(why) if why.kind() == io::ErrorKind::PermissionDenied => Some(Finding::warn(
            SUBJECT,
            format!("{} may not be read by this user, so what is in it was not checked", path.display()),
            "run `troth doctor` as the replica's user or as root",
        )),
        // What is missing has been said.
        Err(_) => None,
        Ok(_) => ReplicaSecret::load(&path, cluster).err().map(|why| {
            let said = why.said();
            Finding::fail(SUBJECT, said, why.mend)
        }),
    }
}

/// Replicas whose place another host has, or which have other keys by now, as far as is known here.
fn succeeded(layout: &Layout, cluster: &Cluster, here: &[ReplicaId]) -> Option<Finding> {
    // What cannot be read is said elsewhere.
    let known = Known::load(layout, cluster).ok()?;
    let is_succeeded = |id: &ReplicaId| {
        let secret = ReplicaSecret::load(&layout.replica_secret(*id), cluster).ok();
        secret.is_some_and(|secret| secret.is_succeeded(cluster, &known.configuration))
    };
    let ids: Vec<ReplicaId> = here.iter().copied().filter(is_succeeded).collect();
    (!ids.is_empty()).then(|| {
        Finding::warn(
            SUBJECT,
            format!(
                "{}: the operator gave the place to a host with other keys (`troth admin replace`, or `rekey`), as {} says: what \
                 is here counts for nothing",
                replicas(&ids),
                layout.known().display()
            ),
            "stop it, and start it again only with the new keys, where they are its own",
        )
    })
}

/// Whether replicas keep nothing that they could start from again.
fn forgets(cluster: &Cluster) -> bool {
    cluster.durability == Durability::Memory && cluster.protocol.has_components()
}

/// Those that have run and must not again.
fn forgetful(layout: &Layout, cluster: &Cluster, here: &[ReplicaId]) -> Option<Finding> {
    let ran: Vec<ReplicaId> = here.iter().copied().filter(|id| layout.started(*id).exists()).collect();
    (forgets(cluster) && !ran.is_empty()).then(|| {
        Finding::warn(
            SUBJECT,
            format!(
                "{} ran, with nothing kept (durability \"memory\"): what has stopped must not start again{}",
                replicas(&ran),
                match cluster.trusted_home {
                    TrustedHome::Process => ", unless its `troth trusted` runs on",
                    _ => "",
                }
            ),
            "none is needed while every replica runs, also one that was readmitted; the next cluster had better have durability \
             \"always\"",
        )
    })
}

/// Whether the replica would refuse to start.
fn whole(layout: &Layout, cluster: &Cluster, replica: ReplicaId) -> Vec<Finding> {
    let ran = layout.started(replica).exists();
    if forgets(cluster) && ran {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if ran {
        findings.extend(kept(&layout.data(replica), cluster, replica, LOG));
    }
    let places = [("counters", layout.counters(replica, cluster.trusted_home))];
    let logs = ("attested logs", layout.component_logs(replica, cluster.trusted_home));
    let logs = cluster.protocol.uses_logs().then_some(logs);
    let secret = ReplicaSecret::load(&layout.replica_secret(replica), cluster).ok();
    let awaited = |secret: &ReplicaSecret| awaits_its_component(layout, cluster, replica, secret.epoch);
    let ran_with_it = ran && !secret.as_ref().is_some_and(awaited);
    for (what, place) in places.into_iter().chain(logs) {
        findings.extend(component(layout, cluster, replica, ran_with_it, (what, &place)));
    }
    let genesis = layout.genesis(replica);
    if cluster.genesis.is_some() && matches!(genesis.try_exists(), Ok(false)) {
        findings.push(Finding::fail(
            SUBJECT,
            format!("this group was restored from a backup, and {} is not there", genesis.display()),
            "copy the file genesis from another replica's directory",
        ));
    }
    findings
}

/// What the component of a replica that ran, or that ran itself, keeps in this place.
fn component(
    layout: &Layout,
    cluster: &Cluster,
    replica: ReplicaId,
    ran: bool,
    (what, place): (&str, &Path),
) -> Option<Finding> {
    if cluster.trusted_home == TrustedHome::InProcess {
        return ran.then(|| kept(place, cluster, replica, what)).flatten();
    }
    if cluster.trusted_home == TrustedHome::Nowhere {
        return None;
    }
    if let Err(why) = std::fs::read_dir(layout.trusted(replica))
        && why.kind() == io::ErrorKind::PermissionDenied
    {
        return Some(Finding::warn(
            SUBJECT,
            format!(
                "{} may not be read by this user, so whether {what} are missing there was not checked",
                layout.trusted(replica).display()
            ),
            "run `troth doctor` as the trusted component's user or as root",
        ));
    }
    // The process makes none itself, so that a disk which is not mounted is not taken for a first start.
    if ran || component_ran(layout, cluster, replica) {
        kept(place, cluster, replica, what)
    } else {
        look_at(place).err().flatten()
    }
}

/// Whether the component of the epoch that the secret file names has started. What cannot be read says nothing
/// here: that is found elsewhere.
fn component_ran(layout: &Layout, cluster: &Cluster, replica: ReplicaId) -> bool {
    let reached = trusted_start::read(&layout.trusted_started(replica)).ok().flatten();
    let present = TrustedSecret::load(&layout.trusted_secret(replica), cluster).ok();
    reached.zip(present).is_some_and(|(reached, present)| reached >= present.epoch)
}

/// Whether a directory lacks what it is for. A replica that was refused leaves other files beside its log's.
fn is_without(entries: ReadDir, what: &str) -> bool {
    let mut names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    match what {
        LOG => !names.any(|name| name.to_string_lossy().starts_with("log-")),
        _ => names.next().is_none(),
    }
}

/// Something that a replica which ran cannot start without.
fn kept(place: &Path, cluster: &Cluster, replica: ReplicaId, what: &str) -> Option<Finding> {
    let gone = match std::fs::read_dir(place) {
        Ok(entries) => is_without(entries, what).then_some("there is none in the directory"),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Some("there is no such directory"),
        Err(why) if why.kind() == io::ErrorKind::PermissionDenied => {
            return Some(Finding::warn(
                SUBJECT,
                format!("{} may not be read by this user, so what is in it was not checked", place.display()),
                "run `troth doctor` as its owner or as root",
            ));
        }
        Err(why) => {
            return Some(Finding::fail(
                SUBJECT,
                format!("{}: {why}", place.display()),
                "look at the file system",
            ));
        }
    };
    gone.map(|how| {
        Finding::fail(
            SUBJECT,
            format!(
                "replica {} ran before, and its {what} in {} are gone: {how}, and it will not start",
                replica.0,
                place.display()
            ),
            match what != LOG && cluster.protocol.renews_components() || cluster.protocol.readmits() {
                true => format!(
                    "mount what belongs there; if that is lost: troth admin readmit --replica {} \
                     (docs/operating/readmission.md)",
                    replica.0
                ),
                false => format!("mount what belongs there; if that is lost {}", cluster.protocol.way_back()),
            },
        )
    })
}
