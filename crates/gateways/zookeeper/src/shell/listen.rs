//! Addresses that clients connect to.

use super::StartError;
use super::counts::Counts;
use super::hub::{Accepted, Inbound};
use super::tls::{Tls, subject};
use crate::Settings;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

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
pub(super) async fn accept_all(
    listener: TcpListener,
    only: Option<SocketAddr>,
    inbound: mpsc::Sender<Inbound>,
    counts: Arc<Counts>,
) {
    loop {
        match listener.accept().await {
            Ok((_, address)) if is_other(only, address) => {}
            Ok((stream, address)) => {
                // Where it cannot be had, replies only come later.
                let _ = stream.set_nodelay(true);
                if inbound.send(Inbound::Opened(Accepted::Plain(stream), address)).await.is_err() {
                    return;
                }
            }
            Err(_) => {
                counts.accept_failed.add(1);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn is_other(only: Option<SocketAddr>, address: SocketAddr) -> bool {
    only.is_some_and(|only| only != address)
}

/// Clients on their way through TLS, the oldest first.
#[derive(Debug, Default)]
struct Handshakes {
    tasks: JoinSet<()>,
    underway: VecDeque<(IpAddr, AbortHandle)>,
}

impl Handshakes {
    /// Makes room for one of this address, if there is any for it. Where there are too many in all the oldest gives way: who
    /// means it needs a moment only.
    fn make_room(&mut self, address: IpAddr, of_address: usize) -> bool {
        while self.tasks.try_join_next().is_some() {}
        self.underway.retain(|(_, task)| !task.is_finished());
        rule!("ZKG-B3");
        let same = self.underway.iter().filter(|(of, _)| *of == address).count();
        if of_address > 0 && same >= of_address {
            return false;
        }
        if self.underway.len() >= HANDSHAKES
            && let Some((_, oldest)) = self.underway.pop_front()
        {
            oldest.abort();
        }
        true
    }

    fn begin(&mut self, address: IpAddr, handshake: impl Future<Output = ()> + Send + 'static) {
        self.underway.push_back((address, self.tasks.spawn(handshake)));
    }
}

/// The same with TLS, which a client must come through in time.
pub(super) async fn accept_secure(
    listener: TcpListener,
    mut tls: Tls,
    settings: Settings,
    inbound: mpsc::Sender<Inbound>,
    counts: Arc<Counts>,
) {
    let (within, of_address) = (settings.handshake, settings.connections_per_address);
    let mut handshakes = Handshakes::default();
    loop {
        match listener.accept().await {
            Ok((_, address)) if is_other(settings.only, address) => {}
            Ok((stream, address)) => {
                let ip = address.ip().to_canonical();
                if !handshakes.make_room(ip, of_address) {
                    counts.handshakes_refused.add(1);
                    continue;
                }
                let _ = stream.set_nodelay(true);
                let (acceptor, inbound) = (tls.acceptor(), inbound.clone());
                let counts = Arc::clone(&counts);
                handshakes.begin(ip, async move {
                    if let Ok(Ok(stream)) = tokio::time::timeout(within, acceptor.accept(stream)).await {
                        let subject = subject(&stream);
                        let accepted = Accepted::Secure(Box::new(stream), subject);
                        // The gateway is going down where nobody takes it.
                        let _ = inbound.send(Inbound::Opened(accepted, address)).await;
                    } else {
                        counts.handshakes_failed.add(1);
                    }
                });
            }
            Err(_) => {
                counts.accept_failed.add(1);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
