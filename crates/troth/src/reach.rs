//! Tells whoever waits for events of others whether the group could tell of any.

use crate::print::note;
use crate::session;
use crate::suggest;
use std::path::Path;
use std::time::Duration;
use troth_client::front::Client;
use troth_node::config::Cluster;
use troth_types::ReplicaId;

/// Between two looks at the connections.
const LOOK: Duration = Duration::from_millis(250);

/// Whether enough replicas are connected to hear from the group.
#[derive(Debug)]
pub(crate) struct Reach {
    /// Replicas of the group.
    n: usize,
    /// As many as must tell of an event.
    needed: usize,
    lost: bool,
}

impl Reach {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        Self { n: cluster.group.n(), needed: session::needed(cluster), lost: false }
    }

    /// What is to be said of these connections that was not said before.
    pub(crate) fn news(&mut self, unreachable: &[ReplicaId]) -> Option<String> {
        let (n, needed) = (self.n, self.needed);
        let up = n - unreachable.len();
        let are = if up == 1 { "is" } else { "are" };
        let was = std::mem::replace(&mut self.lost, up < needed);
        match (was, self.lost) {
            (false, true) => Some(format!(
                "The group cannot be reached any more: {up} of its {n} replicas {are} connected, and {needed} are needed. \
                 Goes on trying; `troth status` shows who answers."
            )),
            (true, false) => Some("The group is reached again.".to_owned()),
            _ => None,
        }
    }

    /// Says it on standard error, for as long as the client of the cluster in this directory is open.
    pub(crate) async fn tell(mut self, client: &Client, dir: &Path) {
        while let Ok(status) = client.status().await {
            if let Some(news) = self.news(&status.unreachable) {
                note!("{}", suggest::in_dir(&news, dir));
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
