//! A server that lets every caller in and throws away what it sends: the silent replica of a group that
//! bears one, and the socket that takes a flood in the baseline. It opens none of what it reads, so a flood
//! costs it only what the kernel's copies cost.

use super::until_stdin_ends;
use crate::Failure;
use crate::cli::Server;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;
use troth_link::{Identity, LinkKey, PeerId, Settings, accept};
use troth_node::config::{Cluster, Layout, ReplicaSecret};
use troth_types::Configuration;

/// Bytes thrown away in one read.
const GULP: usize = 256 << 10;

/// Serves until standard input ends. Callers who make no handshake are held all the same.
pub(crate) fn run(server: &Server) -> Result<(), Failure> {
    let layout = Layout::new(&server.dir);
    let cluster = Cluster::load(&layout.cluster())?;
    let secret = ReplicaSecret::load(&layout.replica_secret(server.id()), &cluster)?;
    let identity = Identity::new(PeerId::Replica(secret.replica), secret.link);
    let settings = Settings { handshake_timeout: super::DAY, ..Settings::new(cluster.group.id()) };
    let parent = until_stdin_ends();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind(&server.address).await?;
        let everybody = cluster.configuration();
        let listen = async {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let (identity, everybody) = (identity.clone(), Arc::clone(&everybody));
                tokio::task::spawn_local(async move {
                    let met = accept(stream, &identity, &settings, |caller| key(&everybody, caller)).await;
                    if let Ok((_, reader, _writer)) = met {
                        discard(reader.into_socket()).await;
                    }
                });
            }
        };
        tokio::select! {
            () = listen => {}
            _ = parent => {}
        }
        Ok(())
    })
}

fn key(everybody: &Configuration, caller: PeerId) -> Option<LinkKey> {
    match caller {
        PeerId::Replica(replica) => Some(LinkKey(everybody.member(replica)?.host().link)),
        PeerId::Client(client) => Some(LinkKey(everybody.client(client)?.link)),
    }
}

async fn discard(mut socket: impl AsyncRead + Unpin) {
    let mut gulp = vec![0; GULP];
    while socket.read(&mut gulp).await.is_ok_and(|count| count > 0) {}
}

/// Whether somebody listens there.
pub(crate) async fn listens(address: &str) -> bool {
    TcpStream::connect(address).await.is_ok()
}
