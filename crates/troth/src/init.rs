//! `troth init`.

use crate::cli::{DurabilityName, Init, ServiceName, TrustedName};
use crate::failure::Failure;
use crate::print::say;
use crate::up::OURS;
use troth_node::config::{Durability, Layout, Plan, Service, TrustedKind, make};

/// Where the `/status` port stands from the group's port.
const HTTP_OFFSET: u16 = 100;

pub(crate) fn run(init: &Init) -> Result<(), Failure> {
    let layout = Layout::new(&init.dir.dir);
    let n = 2 * init.f + 1;
    if !init.hosts.is_empty() && init.hosts.len() != usize::from(n) {
        return Err(Failure::usage(format!(
            "--f {} makes {n} replicas, and --hosts names {}; name one machine per replica",
            init.f,
            init.hosts.len()
        )));
    }
    let addresses = (0..n).map(|replica| {
        let host = init.hosts.get(usize::from(replica)).map_or("127.0.0.1", String::as_str);
        // One machine each: the same port everywhere. All on one machine: a port each.
        let port = if init.hosts.is_empty() { init.base_port + replica } else { init.base_port };
        (format!("{host}:{port}"), format!("{host}:{}", port + HTTP_OFFSET))
    });
    let plan = Plan {
        faults: init.f,
        service: match init.service {
            ServiceName::Kv => Service::Kv,
            ServiceName::Null => Service::Null,
        },
        trusted: match init.trusted {
            TrustedName::Hmac => TrustedKind::Hmac,
            TrustedName::Ed25519 => TrustedKind::Ed25519,
        },
        durability: match init.durability {
            DurabilityName::Always => Durability::Always,
            DurabilityName::Memory => Durability::Memory,
        },
        clients: init.clients,
        addresses: addresses.collect(),
        timing: String::new(),
    };
    if layout.root().join(OURS).exists() {
        return Err(Failure::usage(format!(
            "{dir} belongs to a `troth up`, which removes what is in it; give another --dir, or remove {dir} if \
             nothing runs from it",
            dir = layout.root().display()
        )));
    }
    make(&layout, &plan)?;
    let dir = layout.root().display();
    say!("Made a group of {n} replicas, {} of which may fail, in {dir}.", init.f);
    say!("");
    say!("  {dir}/cluster.toml          public: the same on every machine");
    say!("  {dir}/replica-N/            secret: on replica N's machine only");
    say!("  {dir}/clients/client-N.toml secret: on client N's machine only");
    say!("");
    say!("Run each replica once: troth replica --dir {dir} --id N, for N from 0 to {}.", n - 1);
    say!("Or all of them here:   troth up --dir {dir}");
    Ok(())
}
