//! A replica goes on with a new host, or its host with new keys.

use super::Operator;
use crate::failure::Failure;
use crate::how_to_start::{self, Which};
use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use troth_node::config::{Durability, Layout, ReplicaKeys, TrustedHome, TrustedKind};
use troth_node::remains;
use troth_trusted::Epoch;
use troth_types::{Change, Configuration, Member, ReplicaId, Seq};

/// Where a host is.
pub(super) struct Place<'a> {
    pub(super) address: &'a str,
    pub(super) http: Option<&'a str>,
}

impl Place<'_> {
    fn check(&self) -> Result<(), Failure> {
        for address in std::iter::once(self.address).chain(self.http) {
            let good = address.len() <= 256
                && address.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-_:[]%".contains(letter))
                && address.rsplit_once(':').is_some_and(|(host, port)| {
                    !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port != 0)
                });
            if !good {
                return Err(Failure::usage(format!(
                    "{address:?} is no address; write host:port, for example 10.0.0.9:4700"
                )));
            }
        }
        Ok(())
    }
}

/// Makes all that a new machine needs below `out`, and orders that it is the replica from now on.
pub(super) fn replace(
    operator: &mut Operator,
    replica: ReplicaId,
    place: &Place<'_>,
    out: &Layout,
    shared_key_from: Option<&Path>,
) -> Result<(), Failure> {
    place.check()?;
    let member = operator.member(replica)?;
    let present = member.admission().epoch;
    let done_before = |keys: &ReplicaKeys| keys.epoch.0 == present && keys.host() == *member.host();
    let keys = if out.replica_secret(replica).exists() {
        let keys = ReplicaKeys::load(out, &operator.cluster, replica)?;
        let usable = keys.epoch.0 > present && keys.address.as_deref() == Some(place.address);
        if !(usable || done_before(&keys)) || !remains(out, &operator.cluster, replica).is_empty() {
            let problem = format!("{} is of another replacement; choose another --out", out.root().display());
            return Err(Failure::usage(problem));
        }
        if !done_before(&keys) {
            // The call that left them may have been refused.
            operator.admissible(replica)?;
        }
        keys
    } else {
        operator.admissible(replica)?;
        let shared = shared_key(operator, replica, shared_key_from)?;
        let mut keys = ReplicaKeys::new(replica, Epoch(present.saturating_add(1)), shared)?;
        keys.address = Some(place.address.to_owned());
        keys.http = place.http.map(str::to_owned);
        directories(operator, out, replica)
            .map_err(|why| Failure::system(&format!("cannot make {}", out.root().display()), &why))?;
        keys.write(out, &operator.cluster)?;
        keys
    };
    let ordered = if done_before(&keys) {
        operator.order(&Change::Show)?
    } else {
        let (epoch, component) = (keys.epoch.0, keys.component(&operator.cluster));
        operator.order(&Change::Admit { replica, epoch, component, host: Some(keys.host()) })?
    };
    remember(operator, &keys)?;
    operator.known.save(out, &operator.cluster)?;
    let (at, configuration) = ordered;
    let mut words = vec![
        format!(
            "Replica {} is the host at {} with epoch {}; the one before counts for nothing.",
            replica.0, place.address, keys.epoch.0
        ),
        format!("Copy {} to its machine, and start it there:", out.root().display()),
    ];
    words.extend(how_to_start::lines(out, operator.cluster.trusted_home, Which::One(replica)));
    words.push(format!(
        "Copy {} to the machines of clients that cannot find it, and of replicas that were stopped.",
        operator.layout.known().display()
    ));
    operator.tell(at, &configuration, &words)
}

/// The key that all components share, where they do.
fn shared_key(
    operator: &Operator,
    replica: ReplicaId,
    from: Option<&Path>,
) -> Result<Option<[u8; 32]>, Failure> {
    let (layout, cluster) = (&operator.layout, &operator.cluster);
    if cluster.trusted != TrustedKind::Hmac {
        return Ok(None);
    }
    if let Some(file) = from {
        return found(ReplicaKeys::shared_in(file, cluster)?, file);
    }
    let all = std::iter::once(replica).chain(cluster.group.all());
    let Some(file) = all.map(|any| layout.replica_secret(any)).find(|file| file.exists()) else {
        return Err(Failure::usage(format!(
            "all components of this group share a key (trusted = \"hmac\"), and no replica's secret.toml is below {}; \
             give one with --shared-key-from",
            layout.root().display()
        )));
    };
    found(ReplicaKeys::shared_in(&file, cluster)?, &file)
}

fn found(key: Option<[u8; 32]>, file: &Path) -> Result<Option<[u8; 32]>, Failure> {
    if key.is_none() {
        let problem = format!("{} holds no trusted_secret; give another replica's file", file.display());
        return Err(Failure::usage(problem));
    }
    Ok(key)
}

fn directories(operator: &Operator, out: &Layout, replica: ReplicaId) -> std::io::Result<()> {
    let make = |path: &Path, mode| DirBuilder::new().recursive(true).mode(mode).create(path);
    make(out.root(), 0o700)?;
    make(&out.replica(replica), 0o700)?;
    if operator.cluster.trusted_home == TrustedHome::Process {
        make(&out.counters(replica, TrustedHome::Process), 0o700)?;
        std::fs::set_permissions(out.trusted(replica), Permissions::from_mode(0o700))?;
        // Two users go through these, each to a directory of its own.
        for path in
            [Some(out.root().to_path_buf()), out.trusted_socket(replica).parent().map(Path::to_path_buf)]
        {
            let Some(path) = path else { continue };
            make(&path, 0o755)?;
            std::fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        }
    }
    std::fs::copy(operator.layout.cluster(), out.cluster()).map(drop)
}

/// Remembers where the replica serves its status, which is no part of the configuration.
fn remember(operator: &mut Operator, keys: &ReplicaKeys) -> Result<(), Failure> {
    match (&keys.address, &keys.http) {
        (Some(_), Some(http)) => drop(operator.known.http.insert(keys.replica, http.clone())),
        _ => drop(operator.known.http.remove(&keys.replica)),
    }
    Ok(operator.known.save(&operator.layout, &operator.cluster)?)
}

/// Gives a replica's host new link and signing keys, and another place where that is asked for.
pub(super) fn rekey(
    operator: &mut Operator,
    replica: ReplicaId,
    place: Option<&Place<'_>>,
) -> Result<(), Failure> {
    place.map_or(Ok(()), Place::check)?;
    if operator.cluster.durability == Durability::Memory {
        return Err(Failure::usage(
            "with durability = \"memory\" nothing makes sure that a replica starts again with the component that it has; \
             mend: `troth admin replace`, which gives it a new one with its new keys",
        ));
    }
    let member = operator.member(replica)?;
    let (layout, cluster) = (operator.layout.clone(), operator.cluster.clone());
    let present = ReplicaKeys::load(&layout, &cluster, replica)?;
    let file = layout.replica(replica).join("next.toml");
    // Kept until the change is ordered: an interrupted call must find them again.
    let next = if file.exists() {
        present.with_host_of(&file, &cluster)?
    } else {
        renewed(operator, &present, place)?
    };
    if !file.exists() {
        next.write_replica(&file, &cluster)?;
    }
    let (at, configuration) = settle(operator, replica, &member, &present, &next)?;
    next.write_replica(&layout.replica_secret(replica), &cluster)?;
    remember(operator, &next)?;
    std::fs::remove_file(&file)
        .map_err(|why| Failure::system(&format!("cannot remove {}", file.display()), &why))?;
    operator.tell(
        at,
        &configuration,
        &[
            format!(
                "Replica {} has new keys from batch {} on, in {}.",
                replica.0,
                at.0,
                layout.replica(replica).display()
            ),
            "It is cut off until it runs with them: stop it (SIGTERM) and start it again now.".to_owned(),
        ],
    )
}

fn renewed(
    operator: &Operator,
    present: &ReplicaKeys,
    place: Option<&Place<'_>>,
) -> Result<ReplicaKeys, Failure> {
    let mut next = present.clone();
    next.renew_host()?;
    if let Some(place) = place {
        let before = present.http.clone().or_else(|| operator.cluster.replica(present.replica).http.clone());
        next.address = Some(place.address.to_owned());
        next.http = place.http.map(str::to_owned).or(before);
    }
    Ok(next)
}

fn settle(
    operator: &mut Operator,
    replica: ReplicaId,
    member: &Member,
    present: &ReplicaKeys,
    next: &ReplicaKeys,
) -> Result<(Seq, Configuration), Failure> {
    if *member.host() == next.host() {
        return operator.order(&Change::Show);
    }
    if member.host().link != present.host().link {
        return Err(Failure::usage(format!(
            "{} is not of replica {}'s present host, which has other keys; give the --dir of that host",
            operator.layout.replica_secret(replica).display(),
            replica.0
        )));
    }
    operator.order(&Change::Rekey { replica, host: next.host() })
}
