//! Sockets, the clock and the group's client around the machine: one task that owns the machine, one for each connection, and
//! one for each address that is listened on.

mod admin;
mod clock;
mod connection;
mod counts;
mod group;
mod hub;
mod listen;
mod log;
mod tls;

#[cfg(feature = "fuzz")]
pub(crate) use admin::read_head;
#[cfg(test)]
pub(crate) use clock::{Clock, since_start};
pub(crate) use counts::Counts;
pub use group::Group;
pub(crate) use log::LogCounts;
#[cfg(test)]
pub(crate) use log::{Files, Sink};

use crate::{Log, Place, Settings};
use core::net::SocketAddr;
use hub::{Doors, Hub, Logs};
pub(crate) use log::Writer;
use std::sync::Arc;
use thiserror::Error;
pub(crate) use tls::Tls;
#[cfg(feature = "fuzz")]
pub(crate) use tls::read_subject;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use troth_client::ClientError;
use troth_client::front::Client;
use troth_types::Event;

/// Messages on their way to the machine's task.
const INBOX: usize = 1024;

/// Why a gateway could not be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// The group's client is closed.
    #[error("the client of the group: {0}")]
    Client(#[from] ClientError),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The certificates cannot be served with.
    #[error("certificates: {0}")]
    Tls(std::io::Error),
    /// A log cannot be written.
    #[error("cannot write to {}: {source}", place.display())]
    Log {
        /// Which file.
        place: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// A gateway that serves. It ends when it is dropped.
#[derive(Debug)]
pub struct Gateway {
    addresses: Vec<SocketAddr>,
    secure: Vec<SocketAddr>,
    admin: Option<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    hub: JoinHandle<()>,
}

impl Gateway {
    /// Listens, and serves on the current tokio runtime, which must have I/O and time. The group must run
    /// [`troth_zookeeper::ZooKeeper`]; the client must not be used by anybody else, whose events would come here.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(settings: Settings, client: Client) -> Result<Self, StartError> {
        let events = client.events().await?;
        Self::over(settings, client, events).await
    }

    /// Looks whether these settings can be served with on this machine: addresses, certificates and logs. Nobody is listened to
    /// afterwards, so that clients go elsewhere until the gateway starts.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn check(settings: &Settings) -> Result<(), StartError> {
        let secure = settings.secure.iter().flat_map(|(addresses, _)| addresses);
        let mut taken = Vec::new();
        for address in settings.listen.iter().chain(secure).chain(&settings.admin) {
            taken.push(listen::bind(*address).await?);
        }
        if let Some((_, files)) = &settings.secure {
            Tls::load(files.clone(), Arc::new(Counts::default())).map_err(StartError::Tls)?;
        }
        let logs = settings.audit.iter().chain(settings.slow.iter().map(|(_, log)| log));
        for log in logs.filter(|log| log.place != Place::Stdout) {
            start_log(log)?.end().await;
        }
        Ok(())
    }

    /// The same with anything that answers like a group, and tells its events before the answers that reveal them.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn over(
        mut settings: Settings,
        group: impl Group,
        events: mpsc::Receiver<Event>,
    ) -> Result<Self, StartError> {
        let (inbound, inbox) = mpsc::channel(INBOX);
        let counts = Arc::new(Counts::default());
        let mut listeners = Vec::new();
        for address in &mut settings.listen {
            let (listener, bound) = listen::bind(*address).await?;
            *address = bound;
            listeners.push((listener, None));
        }
        if let Some((addresses, files)) = &mut settings.secure {
            for address in addresses {
                let (listener, bound) = listen::bind(*address).await?;
                *address = bound;
                let tls = Tls::load(files.clone(), Arc::clone(&counts)).map_err(StartError::Tls)?;
                listeners.push((listener, Some(tls)));
            }
        }
        let pages = match &mut settings.admin {
            Some(address) => {
                let (listener, bound) = listen::bind(*address).await?;
                *address = bound;
                Some(listener)
            }
            None => None,
        };
        let (addresses, admin) = (settings.listen.clone(), settings.admin);
        let secure = settings.secure.as_ref().map_or(Vec::new(), |(addresses, _)| addresses.clone());
        let (stop, stopped) = oneshot::channel();
        let start = |log: Option<&Log>| log.map(start_log).transpose();
        let audit = start(settings.audit.as_ref())?;
        let slow = start(settings.slow.as_ref().map(|(_, log)| log))?;
        if let Some((threshold, _)) = &settings.slow {
            group.name_late_after(u64::try_from(threshold.as_micros()).unwrap_or(u64::MAX)).await;
        }
        let doors = Doors { listeners, pages, counts };
        let hub = Hub::new(settings, group, events, (inbound, inbox), doors, Logs { audit, slow });
        let hub = tokio::spawn(hub.run(stopped));
        Ok(Self { addresses, secure, admin, stop: Some(stop), hub })
    }

    /// Where clients connect.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where clients connect with TLS.
    #[must_use]
    pub fn secure_addresses(&self) -> &[SocketAddr] {
        &self.secure
    }

    /// Where the admin pages are.
    #[must_use]
    pub fn admin(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// Waits until the gateway serves no longer because the group's client was closed.
    pub async fn ended(&mut self) {
        // That it was taken down, too, is an end.
        let _ = (&mut self.hub).await;
    }

    /// Closes all connections, after what was written has gone out, and listens no longer. Sessions stay as they are:
    /// their clients find them through another gateway.
    pub async fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        self.ended().await;
    }
}

fn start_log(log: &Log) -> Result<Writer, StartError> {
    let place = match &log.place {
        Place::Stdout => "/dev/stdout".into(),
        Place::File(path) => path.clone(),
    };
    Writer::start(log).map_err(|source| StartError::Log { place, source })
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.hub.abort();
    }
}
