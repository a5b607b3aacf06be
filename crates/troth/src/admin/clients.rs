//! Clients come and go.

use super::Operator;
use crate::failure::Failure;
use std::path::Path;
use troth_node::config::ClientSecret;
use troth_types::{Change, ClientId, OPERATOR};

pub(super) fn add(operator: &mut Operator, wanted: Option<u64>, out: Option<&Path>) -> Result<(), Failure> {
    let (at, configuration) = operator.order(&Change::Show)?;
    let highest =
        configuration.clients().map(|(client, _)| client).filter(|client| *client != OPERATOR).max();
    let client = ClientId(wanted.unwrap_or_else(|| highest.map_or(1, |highest| highest.0.saturating_add(1))));
    let file = out.map_or_else(|| operator.layout.client_secret(client), Path::to_path_buf);
    // An interrupted call left one.
    let secret = if file.exists() {
        ClientSecret::load_new(&file, &operator.cluster)?
    } else {
        let secret = ClientSecret::new(client)?;
        secret.write(&file, &operator.cluster)?;
        secret
    };
    if secret.client != client {
        let problem = format!("{} is client {}'s; choose another --out", file.display(), secret.client.0);
        return Err(Failure::usage(problem));
    }
    let (key, link) = (secret.entry().key.0, secret.entry().link_key);
    let there = configuration.client(client);
    let (at, configuration) = match there {
        Some(entry) if entry.key == key && !entry.removed => (at, configuration),
        _ => operator.order(&Change::AddClient { client, key, link })?,
    };
    operator.tell(
        at,
        &configuration,
        &[
            format!("Client {} may have operations ordered. Its keys: {}", client.0, file.display()),
            format!(
                "On another machine it needs that file as clients/client-{}.toml below its --dir, and there cluster.toml and {}.",
                client.0,
                operator.layout.known().display()
            ),
        ],
    )
}

pub(super) fn remove(operator: &mut Operator, client: u64) -> Result<(), Failure> {
    // Ordered again, it would count as one more change.
    let (at, configuration) = operator.order(&Change::Show)?;
    if configuration.is_removed(ClientId(client)) {
        let words =
            [format!("Client {client} was removed already, and is refused for ever. Nothing changed.")];
        return operator.tell(at, &configuration, &words);
    }
    let (at, configuration) = operator.order(&Change::RemoveClient(ClientId(client)))?;
    let words = [format!("Client {client} is refused from batch {} on, for ever.", at.0)];
    operator.tell(at, &configuration, &words)
}
