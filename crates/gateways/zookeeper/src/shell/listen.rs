//! Addresses that clients connect to.

use super::StartError;
use super::hub::{Accepted, Inbound};
use super::tls::{Tls, subject};
use core::net::SocketAddr;
use core::time::Duration;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// The pause where a connection cannot be taken, for want of descriptors for example.
const PAUSE: Duration = Duration::from_millis(50);

/// Clients that are on the way through TLS at a time.
const HANDSHAKES: usize = 256;

/// Listens on an address, and says which it is.
pub(super) async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// Hands all who connect to the machine's task, until that is gone.
pub(super) async fn accept_all(listener: TcpListener, inbound: mpsc::Sender<Inbound>) {
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                // Where it cannot be had, replies only come later.
                let _ = stream.set_nodelay(true);
                if inbound.send(Inbound::Opened(Accepted::Plain(stream), address)).await.is_err() {
                    return;
                }
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// The same with TLS, which a client must come through in this time.
pub(super) async fn accept_secure(
    listener: TcpListener,
    mut tls: Tls,
    within: Duration,
    inbound: mpsc::Sender<Inbound>,
) {
    let places = Arc::new(Semaphore::new(HANDSHAKES));
    let mut handshakes = JoinSet::new();
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        while handshakes.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, address)) => {
                let _ = stream.set_nodelay(true);
                let (acceptor, inbound) = (tls.acceptor(), inbound.clone());
                handshakes.spawn(async move {
                    if let Ok(Ok(stream)) = tokio::time::timeout(within, acceptor.accept(stream)).await {
                        let subject = subject(&stream);
                        let accepted = Accepted::Secure(Box::new(stream), subject);
                        // The gateway is going down where nobody takes it.
                        let _ = inbound.send(Inbound::Opened(accepted, address)).await;
                    }
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
