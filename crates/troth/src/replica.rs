//! `troth replica`: one replica in this process.

use crate::cli::Replica;
use crate::failure::{Failure, MUST_NOT_START};
use crate::trusted::no_component;
use std::ffi::OsString;
use std::time::Duration;
use troth_node::config::{Cluster, Layout, Protocol, ReplicaSecret, TrustedHome, seen_by_others};
use troth_node::{Options, TrustedDelay, serve};
use troth_types::ReplicaId;

pub(crate) fn run(replica: &Replica, log: Option<&str>) -> Result<(), Failure> {
    let layout = Layout::new(&replica.dir.dir);
    let cluster = Cluster::load(&layout.cluster())?;
    let id = ReplicaId(replica.id);
    if !cluster.group.contains(id) {
        return Err(Failure::no_such_replica(&cluster.group, "--id", id));
    }
    if let Some(open) = seen_by_others(&layout.replica(id)) {
        return Err(open.into());
    }
    let secret_file = layout.replica_secret(id);
    let secret = ReplicaSecret::load(&secret_file, &cluster)?;
    if secret.replica != id {
        return Err(Failure::keys_of_another(&secret_file, secret.replica, id));
    }
    let of_component = replica.trusted_socket.is_some() || replica.trusted_delay > 0;
    if of_component && !cluster.protocol.has_components() {
        return Err(Failure::usage(no_component(&cluster)));
    }
    if replica.trusted_socket.is_some() && cluster.trusted_home != TrustedHome::Process {
        return Err(Failure::usage(
            "--trusted-socket is for a component in a process of its own; this cluster's live in their replicas \
             (trusted_home in cluster.toml)",
        ));
    }
    let options = Options {
        trusted_socket: replica.trusted_socket.clone(),
        trusted_command: trusted_command(replica, log)?,
        trusted_delay: TrustedDelay { call: Duration::from_micros(replica.trusted_delay), each: false },
        null_result: 0,
        keeps_nothing: false,
        until_stdin_ends: replica.until_stdin_ends,
        #[cfg(feature = "demo-adversary")]
        lie: matches!(replica.adversary, Some(crate::cli::Adversary::Liar)),
        #[cfg(feature = "demo-adversary")]
        miscompute: matches!(replica.adversary, Some(crate::cli::Adversary::Miscompute)),
        #[cfg(feature = "demo-adversary")]
        tyranny: replica.adversary.and_then(crate::cli::Adversary::tyranny),
        #[cfg(feature = "faults")]
        faults: crate::faulty_store::of_replica(&replica.misfortune)?,
    };
    if let Err(why) = troth_allocator::free_beside() {
        tracing::warn!(%why, "freed memory goes back to the system in the loop's turns");
    }
    let protocol = cluster.protocol;
    serve(cluster, secret, &layout, options).map_err(|why| {
        let of_component = why.is_of_component();
        with_way_back(why.into(), protocol, id, of_component)
    })
}

/// Adds what can be done with a replica that must not vote again as it is: refusals come from many places, which do not
/// know what the protocol allows. `of_component` where it is the component alone that is lost.
pub(crate) fn with_way_back(
    mut failure: Failure,
    protocol: Protocol,
    replica: ReplicaId,
    of_component: bool,
) -> Failure {
    if failure.code != MUST_NOT_START {
        return failure;
    }
    let command = format!("troth admin readmit --replica {}", replica.0);
    if protocol.readmits() || (of_component && protocol.renews_components()) {
        if !failure.message.contains(&command) {
            failure.message += &format!(
                "\n  to bring it back with a new component: {command} (docs/operating/readmission.md)"
            );
            if protocol.renews_components() {
                failure.message += "\n  with durability = \"memory\" see first that all others run: one that sleeps through it has to be \
                     given the configuration";
            }
        }
        return failure;
    }
    if let Some(why) = protocol.no_way_back()
        && !failure.message.contains(&why)
    {
        let said =
            if failure.message.contains("mend: ") { why } else { format!("mend: {}", protocol.way_back()) };
        failure.message += &format!("\n  {said}");
    }
    failure
}

/// What starts the trusted process of this replica.
fn trusted_command(replica: &Replica, log: Option<&str>) -> Result<Vec<OsString>, Failure> {
    let program = std::env::current_exe().map_err(|why| Failure::system("cannot find this program", &why))?;
    let mut command = vec![program.into_os_string()];
    command.extend(["trusted", "--until-stdin-ends", "--dir"].map(OsString::from));
    command.push(replica.dir.dir.clone().into_os_string());
    command.extend(["--id".to_owned(), replica.id.to_string()].map(OsString::from));
    command.extend(log.into_iter().flat_map(|filter| ["--log", filter]).map(OsString::from));
    Ok(command)
}
