//! `cluster.toml` as it is written, before anything is checked beyond names and types.

use serde::Deserialize;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawCluster {
    pub(crate) version: Spanned<u64>,
    pub(crate) protocol: Spanned<String>,
    pub(crate) auth: Option<Spanned<String>>,
    pub(crate) service: Spanned<String>,
    pub(crate) durability: Spanned<String>,
    pub(crate) durability_interval_ms: Option<Spanned<u64>>,
    pub(crate) trusted: Option<Spanned<String>>,
    pub(crate) trusted_home: Option<Spanned<String>>,
    pub(crate) nonce: Spanned<String>,
    pub(crate) genesis: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) limits: RawLimits,
    #[serde(default)]
    pub(crate) timing: RawTiming,
    pub(crate) zookeeper: Option<Spanned<RawZooKeeper>>,
    #[serde(default)]
    pub(crate) replica: Vec<Spanned<RawReplica>>,
    #[serde(default)]
    pub(crate) client: Vec<Spanned<RawClient>>,
    pub(crate) operator: Option<Spanned<RawOperator>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawReplica {
    pub(crate) id: Spanned<u64>,
    pub(crate) address: Spanned<String>,
    pub(crate) http: Option<Spanned<String>>,
    pub(crate) link_key: Spanned<String>,
    pub(crate) host_key: Spanned<String>,
    pub(crate) epoch: Option<Spanned<u64>>,
    pub(crate) trusted_key: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawClient {
    pub(crate) id: Spanned<u64>,
    pub(crate) link_key: Spanned<String>,
    pub(crate) key: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawOperator {
    pub(crate) link_key: Spanned<String>,
    pub(crate) key: Spanned<String>,
}

/// Absent values take the defaults of [`troth_types::Limits`].
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawLimits {
    pub(crate) client_window: Option<Spanned<u64>>,
    pub(crate) frame_operations: Option<Spanned<u64>>,
    pub(crate) frame_bytes: Option<Spanned<u64>>,
    pub(crate) batch_frames: Option<Spanned<u64>>,
    pub(crate) result_bytes: Option<Spanned<u64>>,
    pub(crate) outbox_events: Option<Spanned<u64>>,
    pub(crate) client_bytes: Option<Spanned<u64>>,
}

/// Absent values take the defaults of [`super::Timing`].
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTiming {
    pub(crate) suspect_after_ms: Option<Spanned<u64>>,
    pub(crate) view_timeout_ms: Option<Spanned<u64>>,
    pub(crate) status_interval_ms: Option<Spanned<u64>>,
    pub(crate) clock_bound_ms: Option<Spanned<u64>>,
    pub(crate) checkpoint_interval: Option<Spanned<u64>>,
    pub(crate) window: Option<Spanned<u64>>,
    pub(crate) pipeline: Option<Spanned<u64>>,
    pub(crate) primary_slower_by: Option<Spanned<u64>>,
}

/// Absent values take the defaults of [`troth_zookeeper::ZooKeeper`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawZooKeeper {
    pub(crate) superuser: Option<Spanned<String>>,
    pub(crate) min_session_timeout_ms: Option<Spanned<u64>>,
    pub(crate) max_session_timeout_ms: Option<Spanned<u64>>,
    pub(crate) session_grace_ms: Option<Spanned<u64>>,
    pub(crate) gateway_sessions: Option<Spanned<u64>>,
    pub(crate) enforce_quotas: Option<Spanned<bool>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawReplicaSecret {
    pub(crate) replica: Spanned<u64>,
    pub(crate) group: Spanned<String>,
    pub(crate) link_secret: Spanned<String>,
    pub(crate) host_secret: Spanned<String>,
    pub(crate) trusted_secret: Option<Spanned<String>>,
    pub(crate) epoch: Option<Spanned<u64>>,
    pub(crate) address: Option<Spanned<String>>,
    pub(crate) http: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTrustedSecret {
    pub(crate) replica: Spanned<u64>,
    pub(crate) group: Spanned<String>,
    pub(crate) trusted_secret: Spanned<String>,
    pub(crate) epoch: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawClientSecret {
    pub(crate) client: Spanned<u64>,
    pub(crate) group: Spanned<String>,
    pub(crate) link_secret: Spanned<String>,
    pub(crate) secret: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawOperatorSecret {
    pub(crate) group: Spanned<String>,
    pub(crate) link_secret: Spanned<String>,
    pub(crate) secret: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawKnown {
    pub(crate) group: Spanned<String>,
    pub(crate) configuration: Spanned<String>,
    #[serde(default)]
    pub(crate) http: Vec<Spanned<RawHttp>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawHttp {
    pub(crate) replica: Spanned<u64>,
    pub(crate) address: Spanned<String>,
}
