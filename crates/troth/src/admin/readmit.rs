//! A replica comes back on its host with a new trusted component and an empty disk: its disk or its component
//! is lost, or not trusted any more (protocols.md §7.3).

use super::Operator;
use crate::failure::Failure;
use troth_node::config::ReplicaKeys;
use troth_node::{Stopped, put_aside, remains};
use troth_trusted::Epoch;
use troth_types::{Change, ReplicaId, Seq};

pub(super) fn readmit(operator: &mut Operator, replica: ReplicaId) -> Result<(), Failure> {
    let member = operator.member(replica)?;
    let present = member.admission().epoch;
    let (layout, cluster) = (&operator.layout, &operator.cluster);
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
    let mut words = Vec::new();
    let (at, configuration) = if keys.epoch.0 == present && member.admission().at > Seq(0) && !left {
        words.push(format!(
            "Replica {} was admitted with epoch {present} and has not started yet.",
            replica.0
        ));
        operator.order(&Change::Show)?
    } else {
        operator.admissible(replica)?;
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
        let done = operator.order(&Change::Admit { replica, epoch, component, host: None })?;
        words.push(format!(
            "Replica {} is admitted with epoch {epoch} from batch {} on.",
            replica.0, done.0.0
        ));
        done
    };
    words.push(format!("Start it: troth replica {} --id {}", operator.dir(), replica.0));
    words.push("It fetches the state and votes a little later; `troth status` says when.".to_owned());
    operator.tell(at, &configuration, &words)
}
