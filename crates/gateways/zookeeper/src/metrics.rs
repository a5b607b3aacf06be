//! A gateway's counts in the text format of OpenMetrics, which Prometheus reads. `docs/reference/metrics.md` lists them.

use crate::machine::{
    BOUNDS, ENDED, ENTERED, Gauges, Histogram, Measures, OPERATIONS, OUTCOMES, PATHS, REFUSED,
};
use crate::shell::{Counts, LogCounts};
use core::fmt;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::sync::Arc;
use troth_client::front::Status;

/// The media type of [`text`].
pub(crate) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All that a page tells.
#[derive(Debug)]
pub(crate) struct Scrape {
    pub(crate) measures: Measures,
    pub(crate) gauges: Gauges,
    pub(crate) counts: Arc<Counts>,
    /// Of the audit log and of the log of slow requests, where they are written.
    pub(crate) logs: [Option<Arc<LogCounts>>; 2],
    /// Nothing where the group's client does not say.
    pub(crate) group: Option<Status>,
    /// When the process began to serve, in seconds since the epoch.
    pub(crate) started: f64,
}

/// The page.
pub(crate) fn text(scrape: Scrape) -> String {
    let mut registry = Registry::with_prefix("troth_gateway");
    registry.register_collector(Box::new(scrape));
    let mut text = String::new();
    encode(&mut text, &registry).expect("writing to a string does not fail");
    text
}

/// Writes metrics, one after the other.
struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    fn gauge(&mut self, name: &str, help: &str, unit: Option<&Unit>, value: i64) -> fmt::Result {
        self.0.encode_descriptor(name, help, unit, MetricType::Gauge)?.encode_gauge(&value)
    }

    /// Counters of one name, each under the values of these labels.
    fn counters<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        labels: [&'static str; N],
        values: impl IntoIterator<Item = ([String; N], u64)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (of, value) in values {
            let set: Vec<(&str, String)> = labels.into_iter().zip(of).collect();
            metric.encode_family(&set)?.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
        }
        Ok(())
    }

    /// The same, where there is one count for each of these names.
    fn named<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        (names, values): ([&str; N], [u64; N]),
    ) -> fmt::Result {
        let values = names.into_iter().map(|name| [name.to_owned()]).zip(values);
        self.counters(name, help, [label], values)
    }

    /// Gauges, one for each replica.
    fn replicas(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (usize, i64)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (replica, value) in values {
            metric.encode_family(&[("replica", replica.to_string())])?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn latencies(&mut self, histograms: &[Histogram; PATHS.len()]) -> fmt::Result {
        let help = "From a request's packet to its reply, of those that the group answered";
        let (name, unit) = ("request_duration", Some(&Unit::Seconds));
        let mut metric = self.0.encode_descriptor(name, help, unit, MetricType::Histogram)?;
        for (path, histogram) in PATHS.iter().zip(histograms) {
            let bounds = BOUNDS.iter().map(|bound| seconds(*bound)).chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(histogram.buckets).collect();
            let count = histogram.buckets.iter().sum();
            metric.encode_family(&[("path", *path)])?.encode_histogram::<NoLabelSet>(
                seconds(histogram.sum),
                count,
                &buckets,
                None,
            )?;
        }
        Ok(())
    }
}

fn seconds(micros: u64) -> f64 {
    // Exact up to 2^53 microseconds, which are centuries.
    micros as f64 / 1e6
}

fn number(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page(encoder);
        self.requests(&mut page)?;
        self.connections(&mut page)?;
        self.group(&mut page)?;
        self.logs(&mut page)
    }
}

impl Scrape {
    fn requests(&self, page: &mut Page<'_>) -> fmt::Result {
        let measures = &self.measures;
        let all = OPERATIONS.iter().zip(&measures.requests).flat_map(|(operation, counts)| {
            let of = |outcome: &str| [(*operation).to_owned(), outcome.to_owned()];
            OUTCOMES.into_iter().map(of).zip(*counts)
        });
        page.counters(
            "requests",
            "Requests by what they ask for and what came of them: ok, error, or lost with the connection before the reply",
            ["operation", "outcome"],
            all,
        )?;
        page.latencies(&measures.latencies)?;
        let outstanding = number(self.gauges.outstanding);
        page.gauge("outstanding_requests", "Requests without a reply", None, outstanding)?;
        let refused = REFUSED.into_iter().zip(measures.refused);
        let refused = refused.chain([("too_long", self.counts.too_long.get())]);
        page.counters(
            "packets_refused",
            "Packets that were refused, by the reason",
            ["reason"],
            refused.map(|(reason, count)| ([reason.to_owned()], count)),
        )?;
        page.counter("watches_set", "Requests that set watches, and succeeded", measures.watches)?;
        page.counter("events_delivered", "Events of watches written to clients", measures.events)?;
        page.counter(
            "lost_event_markers",
            "Times that events were lost, so that all clients were sent to set their watches anew",
            measures.lost_markers,
        )
    }

    fn connections(&self, page: &mut Page<'_>) -> fmt::Result {
        let (measures, gauges, counts) = (&self.measures, &self.gauges, &self.counts);
        page.gauge("connections", "Connections of clients", None, number(gauges.connections))?;
        page.gauge("sessions", "Sessions attached here", None, number(gauges.sessions))?;
        page.named(
            "handshakes",
            "First packets, by what came of them",
            "outcome",
            (ENTERED, measures.entered),
        )?;
        let [in_all, of_address] = measures.rejected;
        let refused = [
            ("too_many", in_all),
            ("too_many_of_address", of_address),
            ("tls_failed", counts.handshakes_failed.get()),
            ("tls_too_many", counts.handshakes_refused.get()),
            ("accept_failed", counts.accept_failed.get()),
        ];
        page.counters(
            "connections_refused",
            "Connections that were refused, by the reason",
            ["reason"],
            refused.map(|(reason, count)| ([reason.to_owned()], count)),
        )?;
        page.named(
            "connections_ended",
            "Connections that the gateway ended out of turn, by the reason",
            "reason",
            (ENDED, measures.ended),
        )?;
        let bytes = Some(&Unit::Bytes);
        page.gauge("held", "What all connections make it hold", bytes, number(gauges.held_bytes))?;
        page.gauge("held_bound", "The most of that", bytes, number(gauges.memory_bytes))?;
        let reloads = [("ok", counts.reloads.get()), ("failed", counts.reloads_failed.get())];
        page.counters(
            "tls_reloads",
            "Times that changed certificates were read again",
            ["outcome"],
            reloads.map(|(outcome, count)| ([outcome.to_owned()], count)),
        )?;
        page.gauge("last_zxid", "The last transaction that an answer or event showed", None, gauges.known)?;
        let started = "When it began to serve, in seconds since the epoch";
        let unit = Some(&Unit::Seconds);
        let mut metric = page.0.encode_descriptor("start_time", started, unit, MetricType::Gauge)?;
        metric.encode_gauge(&self.started)
    }

    fn group(&self, page: &mut Page<'_>) -> fmt::Result {
        let help = "Whether the group answers, in five seconds at most";
        page.gauge("serving", help, None, i64::from(self.gauges.serves))?;
        if let Some(tally) = self.gauges.tally {
            let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
            page.gauge("nodes", "Nodes of the group, when it said so last", None, number(tally.nodes))?;
            let ephemerals = number(tally.ephemerals);
            page.gauge("ephemeral_nodes", "Those of them that go with a session", None, ephemerals)?;
            let bytes = Some(&Unit::Bytes);
            page.gauge("data", "Paths and data of all nodes", bytes, number(tally.bytes))?;
            page.gauge("watched_paths", "Paths that sessions watch", None, number(tally.watches))?;
        }
        let help = "By how much this machine's clock is behind the group's; 0 where it is no more than clocks may differ by";
        let unit = Some(&Unit::Seconds);
        let mut metric = page.0.encode_descriptor("clock_behind", help, unit, MetricType::Gauge)?;
        metric.encode_gauge(&seconds(self.gauges.clock_behind))?;
        let Some(group) = &self.group else { return Ok(()) };
        page.counter("fast_reads", "Reads answered without being ordered", group.fast_reads)?;
        let help = "Reads that were ordered because too few replicas answered alike in time";
        page.counter("fast_reads_fallen_back", help, group.fallen_back)?;
        let replicas = || group.replicas.iter().enumerate();
        let connected = replicas().map(|(one, standing)| (one, i64::from(standing.connected)));
        page.replicas("replica_connected", "Whether a replica is connected", connected)?;
        let behind = |(one, standing): (usize, &troth_client::Standing)| {
            (one, i64::try_from(standing.behind).unwrap_or(i64::MAX))
        };
        page.replicas(
            "replica_behind_frames",
            "Frames of this gateway that were answered since the last that this replica answered",
            replicas().map(behind),
        )?;
        let answers = replicas().flat_map(|(one, standing)| {
            let of = |verdict: &str, count| ([one.to_string(), verdict.to_owned()], count);
            [
                of("matching", standing.matching),
                of("mismatching", standing.mismatching),
                of("refused", standing.refused),
                of("read_unanswered", standing.unanswered_reads),
            ]
        });
        page.counters(
            "replica_answers",
            "Answers of each replica, by how they stand to the accepted ones; fast reads given up before it answered",
            ["replica", "verdict"],
            answers,
        )
    }

    fn logs(&self, page: &mut Page<'_>) -> fmt::Result {
        page.counter("slow_requests", "Requests slower than the threshold of their log", self.measures.slow)?;
        let untold = self.measures.slow_untold;
        page.counter("slow_requests_untold", "Those that have no line, because there were too many", untold)?;
        let logs = || ["audit", "slow"].into_iter().zip(&self.logs);
        let of = |count: fn(&LogCounts) -> u64| {
            logs().filter_map(move |(log, counts)| Some(([log.to_owned()], count(counts.as_ref()?))))
        };
        let written = of(|counts| counts.written.get());
        page.counters("log_lines", "Lines that were written, by the log", ["log"], written)?;
        let lost = of(|counts| counts.lost.get());
        let help = "Lines that were lost because they could not be written in time, by the log";
        page.counters("log_lines_lost", help, ["log"], lost)
    }
}
