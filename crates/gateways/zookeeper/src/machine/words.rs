//! The four-letter words: what tools ask a server about itself. Only what this gateway knows is said: of the nodes and watches
//! of the group it knows how many there were when the group said so last.

use super::connection::{Connection, Stage};
use super::measures::{Ended, Refused};
use super::statistics::Numbers;
use super::{ConnectionId, Machine};
use bytes::Bytes;
use core::fmt::Write;
use serde_json::{Value, json};
use troth_types::Time;

/// What this says it is: the protocol's version, and in the place of a commit whose it is.
pub(crate) const VERSION: &str =
    concat!("3.9.5-troth-", env!("CARGO_PKG_VERSION"), ", built on 2026-11-23 00:00 UTC");

/// The words that are answered where the settings allow it.
pub const FOUR_LETTER_WORDS: &[&str] =
    &["conf", "cons", "crst", "envi", "isro", "mntr", "ruok", "srst", "srvr", "stat"];
/// Those that say nothing of the group, and are answered as ever where it does not answer.
const ITS_OWN: &[&str] = &["envi", "ruok"];
/// What the others say then, in ZooKeeper's words.
pub(super) const NOT_SERVING: &str = "This ZooKeeper instance is not currently serving requests";

/// Others that ZooKeeper answers.
const OTHERS: &[&str] = &["dirs", "dump", "gtmk", "hash", "icfg", "stmk", "sysp", "wchc", "wchp", "wchs"];

/// Whether the first bytes of a connection are a word, and not the length of a packet.
#[must_use]
pub fn is_word(bytes: [u8; 4]) -> bool {
    name(bytes).is_some()
}

fn name(bytes: [u8; 4]) -> Option<&'static str> {
    FOUR_LETTER_WORDS.iter().chain(OTHERS).find(|word| word.as_bytes() == bytes).copied()
}

impl Machine {
    /// A client has sent a word in the place of its first packet.
    pub fn word(&mut self, now: Time, id: ConnectionId, word: [u8; 4]) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.statistics.received += 1;
        self.statistics.totals.received += 1;
        let Some(word) = name(word).filter(|_| matches!(connection.stage, Stage::New)) else {
            return self.end(id, false, Ended::Malformed);
        };
        rule!("ZKG-W1");
        let allowed = self.settings.words.contains("*") || self.settings.words.contains(word);
        let answer = match allowed && FOUR_LETTER_WORDS.contains(&word) {
            true if ITS_OWN.contains(&word) || !self.is_cut_off(now) => self.say(word),
            true if word == "isro" => "null".to_owned(),
            true => format!("{NOT_SERVING}\n"),
            false => {
                self.measures.refuse(Refused::Word);
                format!("{word} is not executed because it is not in the whitelist.\n")
            }
        };
        self.write(id, Bytes::from(answer));
        self.close(id, true);
    }

    fn say(&mut self, word: &str) -> String {
        match word {
            "ruok" => "imok".to_owned(),
            "isro" => "rw".to_owned(),
            "conf" => self.configuration(),
            "envi" => self.environment(),
            "cons" => self.clients(false) + "\n",
            "stat" => {
                format!("Zookeeper version: {VERSION}\nClients:\n{}\n{}", self.clients(true), self.server())
            }
            "srvr" => format!("Zookeeper version: {VERSION}\n{}", self.server()),
            "mntr" => self
                .monitored()
                .into_iter()
                .map(|(name, value)| match value {
                    Value::String(text) => format!("zk_{name}\t{text}\n"),
                    number => format!("zk_{name}\t{number}\n"),
                })
                .collect(),
            "srst" => {
                self.reset_totals();
                "Server stats reset.\n".to_owned()
            }
            "crst" => {
                self.reset_connections();
                "Connection stats reset.\n".to_owned()
            }
            _ => String::new(),
        }
    }

    /// Requests without a reply. Anybody may ask for it, so it is counted as they come and go.
    pub(super) fn outstanding(&self) -> usize {
        let lines = || self.connections.values().map(|connection| connection.line.len());
        debug_assert_eq!(self.outstanding, lines().sum::<usize>(), "each is counted once");
        self.outstanding
    }

    fn server(&self) -> String {
        let Numbers { received, sent, latency, .. } = &self.statistics.totals;
        let count = self.tally().map(|tally| format!("Node count: {}\n", tally.nodes)).unwrap_or_default();
        format!(
            "Latency min/avg/max: {}/{:?}/{}\nReceived: {received}\nSent: {sent}\nConnections: {}\nOutstanding: {}\n\
             Zxid: 0x{:x}\nMode: standalone\n{count}",
            latency.least(),
            latency.average(),
            latency.most(),
            self.connections.len(),
            self.outstanding(),
            self.known,
        )
    }

    /// What there is to monitor, under ZooKeeper's names.
    pub(super) fn monitored(&self) -> Vec<(&'static str, Value)> {
        let Numbers { received, sent, latency, .. } = &self.statistics.totals;
        let mut all = vec![
            ("version", json!(VERSION)),
            ("server_state", json!("standalone")),
            ("avg_latency", json!(latency.average())),
            ("min_latency", json!(latency.least())),
            ("max_latency", json!(latency.most())),
            ("packets_received", json!(received)),
            ("packets_sent", json!(sent)),
            ("num_alive_connections", json!(self.connections.len())),
            ("outstanding_requests", json!(self.outstanding())),
            ("connection_rejected", json!(self.statistics.rejected)),
            ("global_sessions", json!(self.attached.len())),
        ];
        if let Some(tally) = self.tally() {
            all.extend([
                ("znode_count", json!(tally.nodes)),
                ("watch_count", json!(tally.watches)),
                ("ephemerals_count", json!(tally.ephemerals)),
                ("approximate_data_size", json!(tally.bytes)),
            ]);
        }
        all
    }

    pub(super) fn reset_totals(&mut self) {
        self.statistics.totals = Numbers::default();
    }

    pub(super) fn reset_connections(&mut self) {
        self.connections.values_mut().for_each(|connection| connection.statistics = Numbers::default());
    }

    fn configuration(&self) -> String {
        let port = self.settings.listen.first().map_or(0, core::net::SocketAddr::port);
        format!("clientPort={port}\nmaxClientCnxns={}\n", self.settings.connections_per_address)
    }

    fn environment(&self) -> String {
        let mut out = format!("Environment:\nzookeeper.version={VERSION}\n");
        for (name, value) in &self.settings.environment {
            let _ = writeln!(out, "{name}={value}");
        }
        out
    }

    fn clients(&self, brief: bool) -> String {
        self.connections.values().map(|connection| client(connection, brief)).collect()
    }
}

/// A line about a connection. Whether a server is interested in reading and writing is said as a mask; this one always is in
/// reading.
fn client(connection: &Connection, brief: bool) -> String {
    let Numbers { received, sent, latency, last } = &connection.statistics;
    let (address, queued) = (connection.address, connection.line.len());
    let mut out = format!(" /{address}[1](queued={queued},recved={received},sent={sent}");
    if let (Stage::Attached(session), false) = (&connection.stage, brief) {
        let operation = last.map_or("NA", |last| last.operation);
        let (established, timeout) = (connection.opened.0 / 1000, session.timeout / 1000);
        let _ = write!(out, ",sid=0x{:x},lop={operation},est={established},to={timeout}", session.at.session);
        if let Some(last) = last.filter(|last| last.xid >= 0) {
            let _ = write!(out, ",lcxid=0x{:x}", last.xid);
        }
        let zxid = last.map_or(-1, |last| last.zxid);
        let (at, took) = last.map_or((0, 0), |last| (last.at.0 / 1000, last.latency));
        let _ = write!(
            out,
            ",lzxid=0x{zxid:x},lresp={at},llat={took},minlat={},avglat={},maxlat={}",
            latency.least(),
            latency.whole_average(),
            latency.most(),
        );
    }
    out.push_str(")\n");
    out
}
