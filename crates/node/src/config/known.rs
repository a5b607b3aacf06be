//! The newest configuration of the group that was shown here. `cluster.toml` says what the group began with
//! and names it for ever; who its replicas and clients are now is part of the replicated state, and
//! `troth admin` leaves what the group said of it in `configuration.toml`.

use super::cluster::{ClientEntry, Cluster};
use super::error::{ConfigError, Source};
use super::make::MakeError;
use super::raw::RawKnown;
use super::renew::replace_file;
use super::{Layout, checks::Checks, hex};
use core::fmt::Write as _;
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_auth::PublicKey;
use troth_trusted::{Epoch, SignatureVerifier};
use troth_types::{ComponentKey, Configuration, OPERATOR, ReplicaId, Wire};

/// Who the replicas and clients are, as far as this machine knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// What the group said, or what the group began with.
    pub configuration: Arc<Configuration>,
    /// Where replicas that were replaced serve `/status` and `/metrics`; no part of the configuration.
    pub http: BTreeMap<ReplicaId, String>,
}

impl Known {
    /// Reads `configuration.toml`; without one, what the group began with.
    ///
    /// # Errors
    /// Names the file, the line and the mend.
    pub fn load(layout: &Layout, cluster: &Cluster) -> Result<Self, ConfigError> {
        const MEND: &str = "remove the file and have it written again by `troth admin show` where the operator's key is, or copy \
                            it from there";
        let file = layout.known();
        if !file.exists() {
            return Ok(Self { configuration: cluster.configuration(), http: BTreeMap::new() });
        }
        let source = Source::read(&file, MEND)?;
        // Nobody writes it by hand, so no line of it is to be mended.
        let raw: RawKnown = source.parse().map_err(|why| ConfigError { mend: MEND.to_owned(), ..why })?;
        if *raw.group.get_ref() != hex::encode(&cluster.group.id().0) {
            return Err(source.error(raw.group.span(), "this is the configuration of another group", MEND));
        }
        let bad = |why: String| source.error(raw.configuration.span(), why, MEND);
        let bytes = hex::decode_all(raw.configuration.get_ref())
            .ok_or_else(|| bad("the configuration is not in hexadecimal digits".to_owned()))?;
        let configuration = Configuration::from_wire(&bytes.into())
            .map_err(|why| bad(format!("this is no configuration: {why}")))?;
        if configuration.members().len() != cluster.group.n() {
            return Err(bad("the configuration has another number of replicas than the group".to_owned()));
        }
        let checks = Checks(&source);
        let mut http = BTreeMap::new();
        for entry in &raw.http {
            let entry = entry.get_ref();
            let last = cluster.group.n() as u64 - 1;
            let replica = checks.number(&entry.replica, 0, last, "the replica's number")?;
            let replica = ReplicaId(u16::try_from(replica).expect("below the number of replicas"));
            http.insert(replica, checks.address(&entry.address)?);
        }
        Ok(Self { configuration: Arc::new(configuration), http })
    }

    /// Writes `configuration.toml`, in one step.
    ///
    /// # Errors
    /// [`MakeError::File`].
    pub fn save(&self, layout: &Layout, cluster: &Cluster) -> Result<(), MakeError> {
        let mut text = format!(
            "# Who the replicas and clients are now, as the group said: written by `troth admin`. Public; copy it to\n\
             # machines that cannot find a replica that was replaced.\n# number {}\ngroup = \"{}\"\nconfiguration = \"{}\"\n",
            self.configuration.number,
            hex::encode(&cluster.group.id().0),
            hex::encode(&self.configuration.to_wire()),
        );
        for (replica, address) in &self.http {
            write!(text, "\n[[http]]\nreplica = {}\naddress = \"{address}\"\n", replica.0)
                .expect("a string takes all");
        }
        replace_file(&layout.known(), text.as_bytes(), 0o644)
    }

    /// The cluster with the replicas and clients that it has now, for whoever wants to reach them. Not for a
    /// replica: what the group began with is where its state begins.
    #[must_use]
    pub fn present(&self, cluster: &Cluster) -> Cluster {
        let mut cluster = cluster.clone();
        for ((id, replica), member) in
            (0..).map(ReplicaId).zip(&mut cluster.replicas).zip(self.configuration.members())
        {
            let host = member.host();
            replica.link_key = host.link;
            replica.host_key = PublicKey(host.signing);
            // Who checks histories needs those that the group began with; which others count, replies say.
            if !cluster.protocol.uses_logs() {
                replica.epoch = Epoch(member.admission().epoch);
                replica.trusted_key = match member.admission().component {
                    ComponentKey::Group => None,
                    ComponentKey::Ed25519(key) => SignatureVerifier::from_bytes(&key),
                };
            }
            if !host.address.is_empty() {
                replica.address.clone_from(&host.address);
                replica.http = None;
            }
            if let Some(http) = self.http.get(&id) {
                replica.http = Some(http.clone());
            }
        }
        let present = |entry: &troth_types::ClientEntry| ClientEntry {
            link_key: entry.link,
            key: PublicKey(entry.key),
        };
        let clients = self.configuration.clients();
        cluster.clients = clients
            .filter(|(id, entry)| *id != OPERATOR && !entry.removed)
            .map(|(id, entry)| (id, present(entry)))
            .collect();
        cluster
    }
}
