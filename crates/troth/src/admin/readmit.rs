//! A replica comes back on its host with a new trusted component and an empty disk: its disk or its component
//! is lost, or not trusted any more (guide.md §7.3).

use super::Operator;
use crate::failure::{Failure, NO};
use crate::how_to_start::{self, Which};
use std::path::{Path, PathBuf};
use troth_node::config::{Cluster, Layout, ReplicaKeys, TrustedHome};
use troth_node::{Stopped, awaits_its_component, put_aside, remains};
use troth_trusted::Epoch;
use troth_types::{Change, ReplicaId, Seq};

pub(super) fn readmit(operator: &mut Operator, replica: ReplicaId) -> Result<(), Failure> {
    let member = operator.member(replica)?;
    let present = member.admission().epoch;
    let (layout, cluster) = (&operator.layout, &operator.cluster);
    if let Some(lost) = lost_secret(layout, cluster, replica) {
        return Err(Failure::usage(no_keys(&lost, replica)));
    }
    let mut keys = ReplicaKeys::load(layout, cluster, replica).map_err(|why| {
        Failure::usage(format!(
            "{why}\n  if its keys are lost too: troth admin replace --replica {}",
            replica.0
        ))
    })?;
    if keys.host().link != member.host().link {
        return Err(Failure::usage(format!(
            "{} is not of replica {}'s present host, which has other keys; mend: give the --dir of that host, or \
             `troth admin replace --replica {}`",
            layout.replica_secret(replica).display(),
            replica.0,
            replica.0
        )));
    }
    let left = !remains(layout, cluster, replica).is_empty();
    // Where the component is lost again, nothing of it is left either, but the replica's own log says that it ran.
    let is_new =
        !cluster.protocol.renews_components() || awaits_its_component(layout, cluster, replica, keys.epoch);
    let mut words = Vec::new();
    let admitted = keys.epoch.0 == present && member.admission().at > Seq(0);
    let (at, configuration) = if admitted && is_new && !left {
        words.push(format!(
            "Replica {} was admitted with epoch {present} and has not started yet.",
            replica.0
        ));
        operator.order(&Change::Show)?
    } else {
        // Where it does not run that is known before the group is asked for anything.
        let renews = operator.cluster.protocol.renews_components();
        if renews && Stopped::hold(&operator.layout, replica).is_ok() {
            has_its_log(&operator.layout, replica)?;
        }
        operator.admissible(replica)?;
        if renews {
            has_its_log(&operator.layout, replica)?;
        }
        let (layout, cluster) = (&operator.layout, &operator.cluster);
        // What is here may be of an epoch that was prepared and never admitted: it gets another one, so that no
        // epoch begins twice.
        if left || keys.epoch.0 <= present {
            let ended = keys.epoch;
            keys.renew_component(cluster, Epoch(ended.0.max(present).saturating_add(1)))?;
            // Before anything changes: a replica that runs must be able to start again as it is.
            let stopped = Stopped::hold(layout, replica)?;
            // First the keys: an old epoch on an empty disk could tell a second story.
            keys.write(layout, cluster)?;
            for aside in put_aside(layout, cluster, &stopped, ended)? {
                words.push(format!("Kept as {}.", aside.display()));
            }
        }
        let (epoch, component) = (keys.epoch.0, keys.component(cluster));
        let done = operator.admit(replica, epoch, component)?;
        words.push(format!(
            "Replica {} is admitted with epoch {epoch} from batch {} on.",
            replica.0, done.0.0
        ));
        done
    };
    words.push("Start it:".to_owned());
    words.extend(how_to_start::lines(&operator.layout, operator.cluster.trusted_home, Which::One(replica)));
    words.push(
        match operator.cluster.protocol.renews_components() {
            true => "It goes on with its log, and vouches for what it does a little later; `troth status` says when.",
            false => "It fetches the state and votes a little later; `troth status` says when.",
        }
        .to_owned(),
    );
    operator.tell(at, &configuration, &words)
}

/// Refuses a replica that has not kept what it promised the others, where that does not rest on its component: with another
/// one it could promise something else.
fn has_its_log(layout: &Layout, replica: ReplicaId) -> Result<(), Failure> {
    let stopped = Stopped::hold(layout, replica)?;
    if stopped.has_log() {
        return Ok(());
    }
    Err(Failure::new(
        NO,
        format!(
            "there is no log in {}: replica {} has forgotten what it promised the others, and another trusted component makes \
             nothing of that good; nothing was touched\n  mend: mount what belongs there and repeat this; if it never ran: start \
             it as it is; if the log is lost: leave the replica stopped for good, and where f replicas must be borne again, \
             `troth backup`, then `troth restore` into a new group",
            layout.data(replica).display(),
            replica.0
        ),
    ))
}

/// A secret file without which the replica's host or its component has no keys to begin from. One that this
/// user may not look for is not taken for lost.
fn lost_secret(layout: &Layout, cluster: &Cluster, replica: ReplicaId) -> Option<PathBuf> {
    let mut files = vec![layout.replica_secret(replica)];
    if cluster.trusted_home == TrustedHome::Process {
        files.push(layout.trusted_secret(replica));
    }
    files.into_iter().find(|file| matches!(file.try_exists(), Ok(false)))
}

/// What to do where the whole directory is lost: `troth init`, which reading the file would point to, would make
/// another group.
fn no_keys(lost: &Path, replica: ReplicaId) -> String {
    format!(
        "{} is not there, so the keys by which the others know replica {} are lost, or on another machine; nothing was \
         touched\n  mend: give the --dir of the machine where it is. Where its disk is lost: make the directory again (mode \
         700) with a copy of this one file in it (mode 600, its user's; an old copy will do, unless the host was rekeyed \
         since), nothing else of what was there, and repeat this. Without a copy: troth admin replace --replica {} \
         --address HOST:PORT --out DIRECTORY (docs/operating/readmission.md)",
        lost.display(),
        replica.0,
        replica.0
    )
}
