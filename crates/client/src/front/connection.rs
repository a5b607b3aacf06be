//! One replica's connection: made, kept up, and made again.

use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use troth_link::{Identity, LinkError, LinkKey, LinkReader, LinkWriter, Settings};
use troth_types::{ReplicaId, ToClient, Wire};

/// Messages handed to the task at once.
const BATCH: usize = 256;
/// Bytes after which a batch is handed over though more have been received.
const BATCH_BYTES: usize = 1 << 20;
/// Messages on their way to one connection.
const OUTGOING: usize = 1024;

/// What connections tell the task that owns the machine.
#[derive(Debug)]
pub(super) enum Inbound {
    Up(ReplicaId),
    Down(ReplicaId),
    Messages(ReplicaId, Vec<ToClient>),
}

/// The task's end of a connection: bounded in messages and bytes. What does not fit is dropped, as
/// a network drops; the machine sends it again.
#[derive(Debug)]
pub(super) struct Outlet {
    messages: mpsc::Sender<Bytes>,
    waiting: Arc<AtomicUsize>,
    most: usize,
}

impl Outlet {
    pub(super) fn send(&self, message: &Bytes) {
        let waiting = self.waiting.load(Ordering::Relaxed);
        if waiting > 0 && waiting + message.len() > self.most {
            return;
        }
        if self.messages.try_send(message.clone()).is_ok() {
            self.waiting.fetch_add(message.len(), Ordering::Relaxed);
        }
    }
}

/// The other end.
#[derive(Debug)]
struct Inlet {
    messages: mpsc::Receiver<Bytes>,
    waiting: Arc<AtomicUsize>,
}

/// Where and how to reach a replica.
pub(super) struct Target {
    pub(super) replica: ReplicaId,
    pub(super) address: String,
    pub(super) key: LinkKey,
    pub(super) identity: Identity,
    pub(super) settings: Settings,
    pub(super) reconnect_first: Duration,
    pub(super) reconnect_longest: Duration,
}

/// A connection that is not made yet: what the task keeps, and the work to spawn.
pub(super) fn prepare(
    target: Target,
    inbound: mpsc::Sender<Inbound>,
) -> (Outlet, impl Future<Output = ()> + Send + 'static) {
    let (sender, messages) = mpsc::channel(OUTGOING);
    let waiting = Arc::new(AtomicUsize::new(0));
    let outlet = Outlet { messages: sender, waiting: Arc::clone(&waiting), most: target.settings.max_unsent };
    (outlet, keep_up(target, inbound, Inlet { messages, waiting }))
}

async fn keep_up(target: Target, inbound: mpsc::Sender<Inbound>, mut inlet: Inlet) {
    let mut pause = target.reconnect_first;
    loop {
        let address = target.address.as_str();
        if let Ok((reader, writer)) =
            troth_link::connect(address, &target.identity, &target.key, &target.settings).await
        {
            // Left from the connection before; the machine repeats it when it learns of this one.
            inlet.clear();
            if inbound.send(Inbound::Up(target.replica)).await.is_err() {
                return;
            }
            let heard = use_link(&target, &inbound, &mut inlet, reader, writer).await;
            if inbound.send(Inbound::Down(target.replica)).await.is_err() {
                return;
            }
            // A replica that accepts and hangs up at once is not tried without pause.
            if heard {
                pause = target.reconnect_first;
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(target.reconnect_longest);
    }
}

/// Until either direction ends. Answers whether the replica ever said anything.
async fn use_link(
    target: &Target,
    inbound: &mpsc::Sender<Inbound>,
    inlet: &mut Inlet,
    reader: LinkReader,
    writer: LinkWriter,
) -> bool {
    let mut heard = false;
    tokio::select! {
        _ = read_all(target.replica, inbound, reader, &mut heard) => {}
        _ = write_all(inlet, writer) => {}
    }
    heard
}

async fn read_all(
    replica: ReplicaId,
    inbound: &mpsc::Sender<Inbound>,
    mut reader: LinkReader,
    heard: &mut bool,
) -> Result<(), LinkError> {
    while let Some(first) = reader.next().await? {
        let mut bytes = first.len();
        let mut next = Some(first);
        let mut batch = Vec::new();
        while let Some(message) = next {
            match ToClient::from_wire(&message) {
                Ok(decoded) => batch.push(decoded),
                // A later release may say more than this one understands.
                Err(_) if message.first().is_some_and(|kind| *kind >= ToClient::KINDS) => {}
                // A replica that sends nonsense is left, like one that does not answer.
                Err(_) => return Ok(()),
            }
            if batch.len() >= BATCH || bytes >= BATCH_BYTES {
                break;
            }
            next = reader.buffered()?;
            bytes += next.as_ref().map_or(0, Bytes::len);
        }
        *heard = true;
        if inbound.send(Inbound::Messages(replica, batch)).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

async fn write_all(inlet: &mut Inlet, mut writer: LinkWriter) -> Result<(), LinkError> {
    let mut batch = Vec::new();
    loop {
        if inlet.messages.recv_many(&mut batch, OUTGOING).await == 0 {
            return Ok(());
        }
        for message in batch.drain(..) {
            inlet.took(&message);
            match writer.queue(&message) {
                Err(LinkError::Full) => {
                    writer.flush().await?;
                    writer.queue(&message)?;
                }
                other => other?,
            }
        }
        writer.flush().await?;
    }
}

impl Inlet {
    fn took(&self, message: &Bytes) {
        self.waiting.fetch_sub(message.len(), Ordering::Relaxed);
    }

    fn clear(&mut self) {
        while let Ok(message) = self.messages.try_recv() {
            self.took(&message);
        }
    }
}
