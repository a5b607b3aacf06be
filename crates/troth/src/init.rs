//! `troth init`.

use crate::cli::{DurabilityName, HomeName, Init, ServiceName, Shape, TrustedName};
use crate::failure::Failure;
use crate::how_to_start::{self, Which};
use crate::print::say;
use crate::up::OURS;
use crate::users;
use clap::Args;
use std::os::unix::fs::chown;
use troth_node::config::{
    Auth, Durability, Layout, MakeError, Plan, Protocol, Service, TrustedHome, TrustedKind, ZooKeeper, make,
};
use troth_trusted_process::User;
use troth_types::ReplicaId;

/// Where the `/status` port stands from the group's port.
const HTTP_OFFSET: u16 = 100;

/// What the replicas of a coordination service have alike; only with --service zookeeper.
#[derive(Args, Debug)]
pub(crate) struct ZooKeeperSettings {
    /// With --service zookeeper: who may do everything, as name:digest, the digest being the Base64 of the SHA-1 of
    /// name:password. Nobody where absent.
    #[arg(long, value_name = "NAME:DIGEST")]
    pub(crate) superuser: Option<String>,
    /// With --service zookeeper: the shortest time-out of a session, in milliseconds; 4000 where absent.
    #[arg(long, value_name = "MS")]
    pub(crate) min_session_timeout: Option<u32>,
    /// With --service zookeeper: the longest; 40000 where absent.
    #[arg(long, value_name = "MS")]
    pub(crate) max_session_timeout: Option<u32>,
    /// With --service zookeeper: refuse what would pass the hard limit of a quota.
    #[arg(long)]
    pub(crate) enforce_quotas: bool,
}

pub(crate) fn run(init: &Init) -> Result<(), Failure> {
    let service = match init.service {
        ServiceName::Kv => Service::Kv,
        ServiceName::Null => Service::Null,
        ServiceName::Zookeeper => Service::ZooKeeper,
    };
    let zookeeper = settings(&init.zookeeper, service)?;
    let layout = Layout::new(&init.dir.dir);
    let usual = Usual { protocol: Protocol::default(), auth: Auth::Signed, f: 1 };
    create(&layout, &init.shape, service, usual, |plan| make(&layout, &Plan { zookeeper, ..plan.clone() }))
}

/// The settings of the coordination service that were asked for.
fn settings(asked: &ZooKeeperSettings, service: Service) -> Result<ZooKeeper, Failure> {
    let ZooKeeperSettings { superuser, min_session_timeout, max_session_timeout, enforce_quotas } = asked;
    let usual = ZooKeeper::default();
    let settings = ZooKeeper {
        superuser: superuser.clone(),
        timeouts: (
            min_session_timeout.unwrap_or(usual.timeouts.0),
            max_session_timeout.unwrap_or(usual.timeouts.1),
        ),
        enforces_quotas: *enforce_quotas,
        ..usual.clone()
    };
    if service != Service::ZooKeeper && settings != usual {
        return Err(Failure::usage(
            "--superuser, --min-session-timeout, --max-session-timeout and --enforce-quotas are for --service zookeeper",
        ));
    }
    Ok(settings)
}

/// What a new group is where its shape leaves that open.
pub(crate) struct Usual {
    /// How its replicas agree.
    pub(crate) protocol: Protocol,
    /// How requests prove who sent them, where the protocol takes that.
    pub(crate) auth: Auth,
    /// How many faulty replicas it bears.
    pub(crate) f: u16,
}

/// Makes a cluster of this shape and tells what is where.
pub(crate) fn create(
    layout: &Layout,
    init: &Shape,
    service: Service,
    usual: Usual,
    make: impl FnOnce(&Plan) -> Result<(), MakeError>,
) -> Result<(), Failure> {
    let plan = plan(init, service, usual)?;
    let owner = owner(init, plan.trusted_home)?;
    if layout.root().join(OURS).exists() {
        return Err(Failure::usage(format!(
            "{dir} belongs to a `troth up`, which removes what is in it; give another --dir, or remove {dir} if \
             nothing runs from it",
            dir = layout.root().display()
        )));
    }
    make(&plan)?;
    let n = plan.protocol.replicas(plan.faults);
    if let Some(owner) = owner {
        (0..n).try_for_each(|replica| give(layout, ReplicaId(replica), owner))?;
    }
    let dir = layout.root().display();
    say!("Made a group of {n} replicas, {} of which may fail, in {dir}.", plan.faults);
    say!("");
    say!("  {dir}/cluster.toml          public: the same on every machine");
    say!("  {dir}/replica-N/            secret: on replica N's machine only");
    if plan.trusted_home == TrustedHome::Process {
        say!("  {dir}/trusted-N/            secret: replica N's trusted component, on that machine only");
        say!("  {dir}/socket-N/             where replica N asks its trusted component, on that machine");
    }
    say!("  {dir}/clients/client-N.toml secret: on client N's machine only");
    say!("  {dir}/clients/operator.toml secret: for `troth admin`, on the operator's machine only");
    say!("");
    let lines = how_to_start::lines(layout, plan.trusted_home, Which::Each(n));
    // On machines of their own they do not all run here.
    for line in lines.iter().filter(|line| init.hosts.is_empty() || !line.contains(how_to_start::ALL)) {
        say!("{line}");
    }
    if service == Service::ZooKeeper {
        say!(
            "ZooKeeper's clients connect to a gateway on their own machine, which is one of the group's clients:"
        );
        say!("  troth gateway zookeeper --dir {dir}");
    }
    Ok(())
}

/// Refuses proofs of requests that a protocol does not take.
pub(crate) fn fits(protocol: Protocol, auth: Auth) -> Result<(), Failure> {
    if auth == Auth::Mac && !protocol.takes_authenticators() {
        return Err(Failure::usage(format!(
            "--protocol {} takes no --auth mac: one replica's word for a request decides a view change there, so each must \
             check every signature itself; leave --auth away, or use --protocol pbft",
            protocol.name()
        )));
    }
    if !protocol.takes(auth) {
        return Err(Failure::usage(format!(
            "--protocol {} takes no --auth {}; leave --auth away, or use --protocol pbft",
            protocol.name(),
            auth.name()
        )));
    }
    Ok(())
}

fn plan(init: &Shape, service: Service, usual: Usual) -> Result<Plan, Failure> {
    let protocol = init.protocol.unwrap_or(usual.protocol);
    let auth = if protocol.takes(usual.auth) { usual.auth } else { Auth::Signed };
    let (auth, faults) = (init.auth.unwrap_or(auth), init.f.unwrap_or(usual.f));
    let n = protocol.replicas(faults);
    let asks_for_components =
        init.trusted.is_some() || init.trusted_home.is_some() || init.trusted_user.is_some();
    if !protocol.has_components() && asks_for_components {
        return Err(Failure::usage(format!(
            "the replicas of --protocol {} have no trusted components; leave --trusted, --trusted-home and --trusted-user away",
            protocol.name()
        )));
    }
    if protocol.uses_logs() && matches!(init.trusted, Some(TrustedName::Hmac)) {
        return Err(Failure::usage(format!(
            "clients of --protocol {} check what components attest, and HMACs only those can check who could make them; leave \
             --trusted away",
            protocol.name()
        )));
    }
    fits(protocol, auth)?;
    let home = init.trusted_home.unwrap_or(HomeName::InProcess);
    if !init.hosts.is_empty() && init.hosts.len() != usize::from(n) {
        return Err(Failure::usage(format!(
            "--f {faults} makes {n} replicas with {}, and --hosts names {}; name one machine per replica",
            protocol.name(),
            init.hosts.len()
        )));
    }
    check_hosts(init, faults)?;
    let addresses = (0..n).map(|replica| {
        let host = init.hosts.get(usize::from(replica)).map_or("127.0.0.1", String::as_str);
        // One machine each: the same port everywhere. All on one machine: a port each.
        let port = if init.hosts.is_empty() { init.base_port + replica } else { init.base_port };
        (format!("{host}:{port}"), format!("{host}:{}", port + HTTP_OFFSET))
    });
    let trusted_home = match home {
        HomeName::InProcess => TrustedHome::InProcess,
        HomeName::Process => TrustedHome::Process,
    };
    let trusted = match init.trusted {
        Some(TrustedName::Ed25519) => TrustedKind::Ed25519,
        Some(TrustedName::Hmac) => TrustedKind::Hmac,
        None => protocol.usual_kind(trusted_home),
    };
    let (trusted, trusted_home) = protocol.components(trusted, trusted_home);
    Ok(Plan {
        protocol,
        auth,
        faults,
        service,
        zookeeper: ZooKeeper::default(),
        trusted,
        trusted_home,
        durability: match init.durability {
            DurabilityName::Always => Durability::Always,
            DurabilityName::Interval => Durability::interval(),
            DurabilityName::Memory => Durability::Memory,
        },
        clients: init.clients,
        addresses: addresses.collect(),
        timing: String::new(),
    })
}

/// Each of the machines has one replica, on the same port as all others.
fn check_hosts(init: &Shape, faults: u16) -> Result<(), Failure> {
    let (port, http) = (init.base_port, init.base_port + HTTP_OFFSET);
    for host in &init.hosts {
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if bare.is_none() && host.contains(':') {
            return Err(Failure::usage(format!(
                "--hosts takes machines without ports, and {host:?} has a \":\" in it\n  mend: write the name or address \
                 alone (an IPv6 address in brackets); every replica listens on port {port} of its machine, and on \
                 {http} for /status, which --base-port changes"
            )));
        }
        let twice: Vec<String> = (0..)
            .zip(&init.hosts)
            .filter(|(_, other)| *other == host)
            .map(|(id, _): (u16, _)| id.to_string())
            .collect();
        if twice.len() > 1 {
            return Err(Failure::usage(format!(
                "--hosts names {host} for replicas {}: all of them would listen on its port {port}\n  mend: for all replicas \
                 on this one machine leave --hosts away, and replica N gets port {port} + N of 127.0.0.1; otherwise name \
                 another machine for each, since the group bears {faults} that {}",
                twice.join(" and "),
                if faults == 1 { "fails" } else { "fail" },
            )));
        }
    }
    Ok(())
}

/// Whom the components' directories are for.
fn owner(init: &Shape, home: TrustedHome) -> Result<Option<User>, Failure> {
    let Some(name) = &init.trusted_user else { return Ok(None) };
    if home != TrustedHome::Process {
        return Err(Failure::usage(
            "--trusted-user is for components in a process of their own; add --trusted-home process",
        ));
    }
    if User::current().uid != 0 {
        return Err(Failure::usage(
            "only root gives directories to another user; run `troth init` as root, or without --trusted-user",
        ));
    }
    users::find(name).map(Some)
}

/// Gives a component's directory to its user.
pub(crate) fn give(layout: &Layout, replica: ReplicaId, user: User) -> Result<(), Failure> {
    let kept = layout.component(replica, TrustedHome::Process);
    for path in [layout.trusted(replica), layout.trusted_secret(replica)].into_iter().chain(kept) {
        chown(&path, Some(user.uid), Some(user.gid)).map_err(|why| {
            Failure::system(&format!("cannot give {} to user {}", path.display(), user.uid), &why)
        })?;
    }
    Ok(())
}
