//! The configuration for people and for programs.

use super::Operator;
use crate::failure::Failure;
use crate::{print, status};
use serde_json::{Value, json};
use troth_node::config::hex;
use troth_types::{ComponentKey, Configuration, Member, OPERATOR, ReplicaId, Seq};

pub(super) fn print(operator: &Operator, at: Seq, configuration: &Configuration) -> Result<(), Failure> {
    let text = if operator.json {
        print::json(&object(operator, at, configuration)) + "\n"
    } else {
        table(operator, at, configuration)
    };
    print::output(text.as_bytes())
}

fn address<'a>(operator: &'a Operator, replica: ReplicaId, member: &'a Member) -> &'a str {
    match member.host().address.as_str() {
        "" => &operator.cluster.replica(replica).address,
        address => address,
    }
}

fn component(operator: &Operator, key: &ComponentKey) -> String {
    match key {
        _ if !operator.cluster.protocol.has_components() => "none".to_owned(),
        ComponentKey::Group => "hmac".to_owned(),
        ComponentKey::Ed25519(key) => hex::encode(key),
    }
}

fn object(operator: &Operator, at: Seq, configuration: &Configuration) -> Value {
    let replicas = (0..).map(ReplicaId).zip(configuration.members()).map(|(replica, member)| {
        let admission = member.admission();
        json!({
            "replica": replica.0,
            "address": address(operator, replica, member),
            "epoch": admission.epoch,
            "admitted_at": admission.at.0,
            "component": component(operator, &admission.component),
            "link_key": hex::encode(&member.host().link),
            "host_key": hex::encode(&member.host().signing),
        })
    });
    let clients = configuration.clients().filter(|(client, _)| *client != OPERATOR).map(|(client, entry)| {
        json!({
            "client": client.0,
            "link_key": hex::encode(&entry.link),
            "key": hex::encode(&entry.key),
            "removed": entry.removed,
        })
    });
    json!({
        "changes": configuration.number,
        "batch": at.0,
        "replicas": replicas.collect::<Vec<_>>(),
        "clients": clients.collect::<Vec<_>>(),
    })
}

fn table(operator: &Operator, at: Seq, configuration: &Configuration) -> String {
    let head = ["replica", "address", "epoch", "admitted at", "component", "link key"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (replica, member) in (0..).map(ReplicaId).zip(configuration.members()) {
        let admission = member.admission();
        let short = |text: String| text.chars().take(16).collect::<String>();
        rows.push(vec![
            replica.0.to_string(),
            print::foreign(address(operator, replica, member)),
            admission.epoch.to_string(),
            if admission.at == Seq(0) {
                "the beginning".to_owned()
            } else {
                format!("batch {}", admission.at.0)
            },
            short(component(operator, &admission.component)),
            short(hex::encode(&member.host().link)),
        ]);
    }
    let listed = |removed: bool| {
        let clients =
            configuration.clients().filter(|(client, entry)| *client != OPERATOR && entry.removed == removed);
        let numbers: Vec<u64> = clients.map(|(client, _)| client.0).collect();
        ranges(&numbers)
    };
    format!(
        "Configuration {} as of batch {}.\n\n{}\nclients  {}\nremoved  {}\n",
        configuration.number,
        at.0,
        status::render(&rows),
        listed(false),
        listed(true)
    )
}

/// Ascending numbers, runs of them as `1-16`.
fn ranges(numbers: &[u64]) -> String {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let words: Vec<String> = runs
        .into_iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
        .collect();
    if words.is_empty() { "-".to_owned() } else { words.join(",") }
}
