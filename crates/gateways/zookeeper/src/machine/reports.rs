//! What the admin pages say: the four-letter words under their longer names, as JSON.

use super::Machine;
use super::connection::{Connection, Stage};
use super::statistics::Numbers;
use super::words::{NOT_SERVING, VERSION};
use serde_json::{Map, Value, json};
use troth_types::Time;

/// What is answered; the first name of each is the one that an answer has.
const REPORTS: &[&[&str]] = &[
    &["configuration", "conf", "config"],
    &["connection_stat_reset", "crst"],
    &["connections", "cons"],
    &["environment", "env", "envi"],
    &["is_read_only", "isro"],
    &["monitor", "mntr"],
    &["ruok"],
    &["server_stats", "srvr"],
    &["stat_reset", "srst"],
    &["stats", "stat"],
];

/// Those that say nothing of the group, and are there as ever where it does not answer.
const ITS_OWN: &[&str] = &["environment", "ruok"];

/// The first names of what [`Machine::report`] answers.
pub(crate) fn reports() -> impl Iterator<Item = &'static str> {
    REPORTS.iter().map(|names| names[0])
}

impl Machine {
    /// What an admin page of this name says (`/commands/<name>`), as JSON; nothing where there is no such page. The settings of
    /// the words do not matter here: who may not ask must not reach the pages.
    pub fn report(&mut self, now: Time, name: &str) -> Option<String> {
        let names = REPORTS.iter().find(|names| names.contains(&name))?;
        let serves = ITS_OWN.contains(&names[0]) || !self.is_cut_off(now);
        let mut page = if serves { self.page(names[0]) } else { Map::new() };
        page.insert("command".to_owned(), json!(names[0]));
        page.insert("error".to_owned(), if serves { Value::Null } else { json!(NOT_SERVING) });
        Some(Value::Object(page).to_string())
    }

    fn page(&mut self, name: &str) -> Map<String, Value> {
        let page = match name {
            "configuration" => json!({
                "client_port": self.settings.listen.first().map_or(0, core::net::SocketAddr::port),
                "max_client_cnxns": self.settings.connections_per_address,
            }),
            "connections" => json!({ "connections": self.connections_page(), "secure_connections": [] }),
            "connection_stat_reset" => {
                self.reset_connections();
                json!({})
            }
            "environment" => {
                let mut page = Map::new();
                page.insert("zookeeper.version".to_owned(), json!(VERSION));
                let others = &self.settings.environment;
                page.extend(others.iter().map(|(name, value)| (name.clone(), json!(value))));
                Value::Object(page)
            }
            "is_read_only" => json!({ "read_only": false }),
            "monitor" => {
                let page = self.monitored().into_iter().map(|(name, value)| (name.to_owned(), value));
                Value::Object(page.collect())
            }
            "server_stats" => self.server_page(),
            "stats" => {
                let mut page = self.server_page();
                page["connections"] = json!(self.connections_page());
                page
            }
            "stat_reset" => {
                self.reset_totals();
                json!({})
            }
            _ => json!({}),
        };
        match page {
            Value::Object(page) => page,
            _ => Map::new(),
        }
    }

    fn server_page(&self) -> Value {
        let Numbers { received, sent, latency, .. } = &self.statistics.totals;
        let mut page = json!({
            "version": VERSION,
            "read_only": false,
            "server_stats": {
                "packets_sent": sent,
                "packets_received": received,
                "last_processed_zxid": self.known,
                "outstanding_requests": self.outstanding(),
                "server_state": "standalone",
                "avg_latency": latency.average(),
                "max_latency": latency.most(),
                "min_latency": latency.least(),
                "num_alive_client_connections": self.connections.len(),
            },
        });
        if let Some(tally) = self.tally() {
            page["node_count"] = json!(tally.nodes);
        }
        page
    }

    fn connections_page(&self) -> Vec<Value> {
        self.connections.values().map(connection_page).collect()
    }
}

fn connection_page(connection: &Connection) -> Value {
    let Numbers { received, sent, latency, last } = &connection.statistics;
    let mut page = json!({
        "remote_socket_address": connection.address.to_string(),
        "interest_ops": 1,
        "outstanding_requests": connection.line.len(),
        "packets_received": received,
        "packets_sent": sent,
    });
    if let Stage::Attached(session) = &connection.stage {
        page["session_id"] = json!(session.at.session);
        page["session_timeout"] = json!(session.timeout / 1000);
        page["established"] = json!(connection.opened.0 / 1000);
        page["last_operation"] = json!(last.map_or("NA", |last| last.operation));
        page["last_cxid"] = json!(last.map_or(-1, |last| last.xid));
        page["last_zxid"] = json!(last.map_or(-1, |last| last.zxid));
        page["last_response_time"] = json!(last.map_or(0, |last| last.at.0 / 1000));
        page["last_latency"] = json!(last.map_or(0, |last| last.latency));
        page["min_latency"] = json!(latency.least());
        page["avg_latency"] = json!(latency.whole_average());
        page["max_latency"] = json!(latency.most());
    }
    page
}
