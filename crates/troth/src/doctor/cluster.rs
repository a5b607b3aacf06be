//! Whether the replicas can be reached, and what they say.

use super::{Finding, clocks};
use crate::session::opens;
use crate::words::{answering, replicas};
use std::collections::BTreeMap;
use troth_node::Snapshot;
use troth_node::config::{Cluster, Durability, Layout, TrustedHome};
use troth_types::ReplicaId;

/// What was seen of one replica.
pub(crate) struct Seen {
    /// Whether it ran since its component began; nothing where its directory is not on this machine.
    pub(crate) ran: Option<bool>,
    /// Why its port does not open, if it does not.
    pub(crate) port: Result<(), String>,
    /// What it says of itself, where it has an HTTP port.
    pub(crate) says: Option<Result<Snapshot, String>>,
    pub(crate) clock: Option<clocks::Beside>,
}

pub(super) fn look(layout: &Layout, cluster: &Cluster, here: &[ReplicaId]) -> Vec<Finding> {
    let seen: Vec<Seen> = std::thread::scope(|scope| {
        let asked: Vec<_> = cluster
            .group
            .all()
            .zip(&cluster.replicas)
            .map(|(id, replica)| {
                let ran = here.contains(&id).then(|| layout.started(id).exists());
                scope.spawn(move || {
                    let port = opens(&replica.address);
                    let (says, clock) = match &replica.http {
                        Some(http) => {
                            let (says, clock) = clocks::ask_one(http);
                            (Some(says), clock)
                        }
                        None => (None, None),
                    };
                    Seen { ran, port, says, clock }
                })
            })
            .collect();
        asked.into_iter().map(|asked| asked.join().expect("asking does not panic")).collect()
    });
    let mut findings = judge(cluster, &seen);
    let clocks: Vec<_> =
        (0..).zip(&seen).filter_map(|(id, seen)| seen.clock.map(|clock| (id, clock))).collect();
    findings.extend(clocks::judge(cluster, &clocks));
    findings
}

/// What it means for the group.
pub(crate) fn judge(cluster: &Cluster, seen: &[Seen]) -> Vec<Finding> {
    const SUBJECT: &str = "peers";
    let (n, quorum) = (seen.len(), cluster.group.quorum());
    let up = seen.iter().filter(|seen| seen.port.is_ok()).count();
    let mut findings = Vec::new();
    if up > 0 {
        findings.extend(silent(cluster, seen, up >= quorum));
    }
    for (id, seen) in seen.iter().enumerate() {
        if let Some(Ok(says)) = &seen.says {
            findings.extend(judge_one(cluster, id, says, up));
        } else if let (Ok(()), Some(Err(why))) = (&seen.port, &seen.says) {
            let said = format!("replica {id}'s /status: {why}");
            findings.push(Finding::warn(SUBJECT, said, "open its http port to the operator's network"));
        }
    }
    findings.extend(without_primary(seen));
    findings.push(match up {
        0 if seen.iter().any(|seen| seen.ran == Some(true)) => Finding::fail(
            SUBJECT,
            "no replica answers, and one of this machine ran before: all have ended, or none can be reached from here",
            if forgets(cluster) {
                "nothing where they run and only cannot be reached; if they have ended, this group is over (durability \
                 \"memory\"): make a new one in another directory"
            } else {
                "start the replicas, unless the group is meant to rest"
            },
        ),
        0 => Finding::warn(
            SUBJECT,
            "no replica answers: none runs yet, or none can be reached from here",
            "nothing where the group is not meant to run yet; else start the replicas",
        ),
        up if up < quorum => Finding::fail(
            SUBJECT,
            format!("{}, and {quorum} are needed: the group cannot order requests", answering(up, n)),
            if forgets(cluster) {
                "see the lines above; where more than f replicas have ended, the group is lost with what it held: make \
                 a new one, with `troth restore` where there is a backup"
            } else {
                "see the lines above"
            },
        ),
        up => Finding::ok(SUBJECT, answering(up, n)),
    });
    findings
}

/// Whether a replica that has ended has forgotten what it certified, whatever ended it.
fn forgets(cluster: &Cluster) -> bool {
    cluster.durability == Durability::Memory && cluster.trusted_home == TrustedHome::InProcess
}

/// What to do about replicas that do not answer: not each that has ended may start again, and admitting one anew takes
/// a group that `orders`.
fn bring_back(cluster: &Cluster, ids: &[ReplicaId], ran: Option<bool>, orders: bool) -> String {
    let start = "start it there, or let this machine through its firewall";
    // With the component alone in a process that has ended, the log of a replica that did not is whole.
    let component = cluster.durability == Durability::Memory && cluster.trusted_home == TrustedHome::Process;
    let readmit = match cluster.protocol.readmits() || (component && cluster.protocol.renews_components()) {
        true => {
            let which = match ids {
                [id] => id.0.to_string(),
                _ => "N for each".to_owned(),
            };
            let first = match orders {
                true => String::new(),
                false => format!("once {} answer, as it takes to admit it: ", cluster.group.quorum()),
            };
            format!(
                "{first}troth admin readmit --replica {which} (docs/operating/readmission.md), then start it"
            )
        }
        false => cluster.protocol.way_back(),
    };
    match (cluster.durability, cluster.trusted_home) {
        (Durability::Always, _) => start.to_owned(),
        // It has not begun yet.
        _ if ran == Some(false) => start.to_owned(),
        (_, TrustedHome::Nowhere) => {
            format!("{start}; where its machine was started anew since it ran: {readmit}")
        }
        (Durability::Interval(_), _) => {
            format!("{start}; where its machine was started anew since it ran: {readmit}")
        }
        (Durability::Memory, TrustedHome::Process) => {
            format!("{start}; where its trusted component has ended since it ran: {readmit}")
        }
        (Durability::Memory, TrustedHome::InProcess) => format!(
            "if it has ended it must not start again, as it kept nothing (durability \"memory\"): {readmit}; if it \
             runs, or never ran: {start}"
        ),
    }
}

/// Replicas that do not answer, a line for each reason and what is to be done.
fn silent(cluster: &Cluster, seen: &[Seen], orders: bool) -> Vec<Finding> {
    let mut alike: BTreeMap<_, Vec<ReplicaId>> = BTreeMap::new();
    for (id, seen) in (0..).map(ReplicaId).zip(seen) {
        if let Err(why) = &seen.port {
            alike.entry((why, seen.ran)).or_default().push(id);
        }
    }
    let finding = |((why, ran), ids): ((&String, _), Vec<ReplicaId>)| {
        let places: Vec<&str> = ids.iter().map(|id| cluster.replica(*id).address.as_str()).collect();
        let does = if ids.len() == 1 { "does" } else { "do" };
        let said = format!("{} {does} not answer at {}: {why}", replicas(&ids), places.join(", "));
        Finding::warn("peers", said, bring_back(cluster, &ids, ran, orders))
    };
    alike.into_iter().map(finding).collect()
}

/// Replicas that wait for a new primary, a line for each view.
fn without_primary(seen: &[Seen]) -> Vec<Finding> {
    let mut waiting: BTreeMap<u64, Vec<ReplicaId>> = BTreeMap::new();
    for (id, seen) in (0..).map(ReplicaId).zip(seen) {
        if let Some(Ok(says)) = &seen.says
            && !says.active
        {
            waiting.entry(says.view).or_default().push(id);
        }
    }
    let finding = |(view, ids): (u64, Vec<ReplicaId>)| {
        Finding::warn(
            "replica",
            format!("no primary yet in view {view}, awaited by {}", replicas(&ids)),
            "look again in a minute; if it stays so, too few replicas reach each other",
        )
    };
    waiting.into_iter().map(finding).collect()
}

fn judge_one(cluster: &Cluster, id: usize, says: &Snapshot, up: usize) -> Vec<Finding> {
    const SUBJECT: &str = "replica";
    let mut findings = Vec::new();
    if says.group != troth_node::config::hex::encode(&cluster.group.id().0) {
        findings.push(Finding::fail(
            SUBJECT,
            format!("what answers as replica {id} belongs to another group"),
            "stop that group where it uses this one's ports, or give one of the two other ports; only where it should be \
             this group: copy the same cluster.toml to every machine",
        ));
    }
    if says.peers.len() + 1 < up {
        findings.push(Finding::warn(
            SUBJECT,
            format!("replica {id} is connected to {} of the {} others that answer here", says.peers.len(), up - 1),
            "let the replicas reach each other's addresses; the debug log (RUST_LOG=debug) says why a connection fails",
        ));
    }
    if !says.accused.is_empty() {
        findings.push(Finding::warn(
            SUBJECT,
            format!("replica {id} has proof that these broke a rule: {:?}", says.accused),
            "take them off the network and look into them; each counts as one of f",
        ));
    }
    if !says.accused_clients.is_empty() {
        findings.push(Finding::warn(
            SUBJECT,
            format!("replica {id} saw these clients sign two frames under one number: {:?}", says.accused_clients),
            "find out whether two programs use one key; if not, `troth admin remove-client` puts it on the group's list \
             of those whose frames do nothing",
        ));
    }
    findings
}
