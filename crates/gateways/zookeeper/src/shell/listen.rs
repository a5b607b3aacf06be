//! Addresses that clients connect to.

use super::StartError;
use super::hub::Inbound;
use core::net::SocketAddr;
use core::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// The pause where a connection cannot be taken, for want of descriptors for example.
const PAUSE: Duration = Duration::from_millis(50);

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
                if inbound.send(Inbound::Opened(stream, address)).await.is_err() {
                    return;
                }
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
