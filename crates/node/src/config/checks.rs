//! The checks on single values, each with the sentence that tells how to mend it.

use super::error::{ConfigError, Source};
use super::raw::{RawCluster, RawLimits, RawTiming};
use super::{Service, Timing, hex};
use std::collections::BTreeMap;
use toml::Spanned;
use troth_types::Limits;

/// The most replicas of a group.
pub(crate) const MAX_REPLICAS: u16 = 101;

/// Checks values of one file.
pub(crate) struct Checks<'a>(pub(crate) &'a Source);

impl Checks<'_> {
    /// A number within bounds.
    pub(crate) fn number(
        &self,
        value: &Spanned<u64>,
        least: u64,
        most: u64,
        what: &str,
    ) -> Result<u64, ConfigError> {
        let number = *value.get_ref();
        if (least..=most).contains(&number) {
            return Ok(number);
        }
        let mend = if least == most { format!("write {least}") } else { format!("write {least} to {most}") };
        Err(self.0.error(value.span(), format!("{what} cannot be {number}"), mend))
    }

    /// One of some names.
    pub(crate) fn one_of<T: Copy>(
        &self,
        value: &Spanned<String>,
        known: &[(&str, T)],
        what: &str,
    ) -> Result<T, ConfigError> {
        let name = value.get_ref();
        known.iter().find(|(candidate, _)| candidate == name).map(|(_, meaning)| *meaning).ok_or_else(|| {
            let names: Vec<String> = known.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            self.0.error(
                value.span(),
                format!("there is no {what} \"{name}\" in this version"),
                format!("write {}", names.join(" or ")),
            )
        })
    }

    /// Exactly `N` bytes in hexadecimal digits.
    pub(crate) fn bytes<const N: usize>(
        &self,
        value: &Spanned<String>,
        what: &str,
    ) -> Result<[u8; N], ConfigError> {
        hex::decode(value.get_ref()).ok_or_else(|| {
            self.0.error(
                value.span(),
                format!("{what} is not {} hexadecimal digits", 2 * N),
                "copy it whole from the file that `troth init` wrote",
            )
        })
    }

    /// `host:port`.
    pub(crate) fn address(&self, value: &Spanned<String>) -> Result<String, ConfigError> {
        let text = value.get_ref();
        let good = text
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port != 0));
        if good {
            return Ok(text.clone());
        }
        Err(self.0.error(
            value.span(),
            format!("\"{text}\" is no address"),
            "write host:port, for example \"127.0.0.1:4700\"",
        ))
    }

    /// The limits, with defaults for what is absent.
    pub(crate) fn limits(&self, raw: &RawLimits) -> Result<Limits, ConfigError> {
        let default = Limits::DEFAULT;
        let size = |value: &Option<Spanned<u64>>, default: usize, least, most, what| match value {
            None => Ok(default),
            Some(value) => self
                .number(value, least, most, what)
                .map(|number| usize::try_from(number).expect("bounded far below")),
        };
        Ok(Limits {
            client_window: match &raw.client_window {
                None => default.client_window,
                Some(value) => self.number(value, 1, 1024, "client_window")?,
            },
            frame_operations: size(
                &raw.frame_operations,
                default.frame_operations,
                1,
                1 << 16,
                "frame_operations",
            )?,
            frame_bytes: size(&raw.frame_bytes, default.frame_bytes, 1 << 10, 1 << 23, "frame_bytes")?,
            batch_frames: size(&raw.batch_frames, default.batch_frames, 1, 256, "batch_frames")?,
            result_bytes: size(&raw.result_bytes, default.result_bytes, 1 << 10, 1 << 23, "result_bytes")?,
            outbox_events: size(&raw.outbox_events, default.outbox_events, 2, 1 << 16, "outbox_events")?,
            client_bytes: size(
                &raw.client_bytes,
                default.client_bytes,
                1 << 12,
                troth_exec::MAX_CLIENT_BYTES as u64,
                "client_bytes",
            )?,
        })
    }

    /// Patience and pipelining, with defaults for what is absent.
    pub(crate) fn timing(&self, raw: &RawTiming, service: Service) -> Result<Timing, ConfigError> {
        let default = Timing::of(service);
        let value = |value: &Option<Spanned<u64>>, default, most, what| match value {
            None => Ok(default),
            Some(value) => self.number(value, 1, most, what),
        };
        let interval =
            value(&raw.checkpoint_interval, default.checkpoint_interval, 1024, "checkpoint_interval")?;
        let window = value(&raw.window, default.window, 2048, "window")?;
        if window < 2 * interval {
            let span = raw.window.as_ref().or(raw.checkpoint_interval.as_ref()).map_or(0..0, Spanned::span);
            let problem = format!(
                "with a checkpoint every {interval} batches, a window of {window} would make ordering wait at its edge"
            );
            return Err(self.0.error(span, problem, format!("make window at least {}", 2 * interval)));
        }
        Ok(Timing {
            suspect_after_ms: value(
                &raw.suspect_after_ms,
                default.suspect_after_ms,
                600_000,
                "suspect_after_ms",
            )?,
            view_timeout_ms: value(
                &raw.view_timeout_ms,
                default.view_timeout_ms,
                600_000,
                "view_timeout_ms",
            )?,
            status_interval_ms: value(
                &raw.status_interval_ms,
                default.status_interval_ms,
                60_000,
                "status_interval_ms",
            )?,
            clock_bound_ms: value(&raw.clock_bound_ms, default.clock_bound_ms, 3_600_000, "clock_bound_ms")?,
            checkpoint_interval: interval,
            window,
            pipeline: value(&raw.pipeline, default.pipeline, 1024, "pipeline")?,
            primary_slower_by: value(
                &raw.primary_slower_by,
                default.primary_slower_by,
                1_000_000,
                "primary_slower_by",
            )?,
        })
    }

    /// No two parties may share a key or an address: one would be taken for the other.
    pub(crate) fn distinct_keys(&self, raw: &RawCluster) -> Result<(), ConfigError> {
        let mut links: BTreeMap<&str, String> = BTreeMap::new();
        let mut signers: BTreeMap<&str, String> = BTreeMap::new();
        let mut addresses: BTreeMap<&str, String> = BTreeMap::new();
        for replica in &raw.replica {
            let replica = replica.get_ref();
            let whose = format!("replica {}", replica.id.get_ref());
            self.once(&mut links, &replica.link_key, "link_key", &whose)?;
            self.once(&mut signers, &replica.host_key, "host_key", &whose)?;
            self.once(&mut addresses, &replica.address, "address", &whose)?;
            if let Some(http) = &replica.http {
                self.once(&mut addresses, http, "address", &whose)?;
            }
        }
        for client in &raw.client {
            let client = client.get_ref();
            let whose = format!("client {}", client.id.get_ref());
            self.once(&mut links, &client.link_key, "link_key", &whose)?;
            self.once(&mut signers, &client.key, "key", &whose)?;
        }
        if let Some(operator) = &raw.operator {
            self.once(&mut links, &operator.get_ref().link_key, "link_key", "the operator")?;
            self.once(&mut signers, &operator.get_ref().key, "key", "the operator")?;
        }
        Ok(())
    }

    fn once<'r>(
        &self,
        seen: &mut BTreeMap<&'r str, String>,
        value: &'r Spanned<String>,
        what: &str,
        whose: &str,
    ) -> Result<(), ConfigError> {
        match seen.insert(value.get_ref(), whose.to_owned()) {
            None => Ok(()),
            Some(other) => Err(self.0.error(
                value.span(),
                format!("{whose} has the same {what} as {other}"),
                "give each its own",
            )),
        }
    }
}
