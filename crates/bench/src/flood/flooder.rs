//! A process that floods: at a given rate where it is let, and as fast as it is let where it is not.

use super::dear;
use super::junk::{ClientJunk, Junk, PartialJunk};
use super::peer::PeerJunk;
use super::until_stdin_ends;
use crate::Failure;
use crate::cli::{FloodKind, Flooder};
use crate::hub::flush;
use crate::null::authenticators;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use troth_a2m_pbft_e::A2mPbftE;
use troth_a2m_pbft_ea::A2mPbftEa;
use troth_auth::Ed25519Signer;
use troth_link::{Identity, LinkKey, LinkReader, LinkWriter, PeerId, Settings, Versions, connect};
use troth_minbft::MinBft;
use troth_node::config::{ClientSecret, Cluster, Layout, Protocol, ReplicaSecret};
use troth_pbft::Pbft;
use troth_types::{ClientId, ReplicaId};

/// Between two rounds of sending.
const TICK: Duration = Duration::from_millis(2);
/// Bytes that wait for a socket before no more is made for it.
const UNSENT: usize = 256 << 10;
/// What a flooder that was not let may send at once when it is let again: this part of a second's bytes.
const BURST: u64 = 20;
/// Before a connection that was lost is made again.
const PAUSE: Duration = Duration::from_millis(200);
/// The same, of one on which nothing comes.
const IDLE_PAUSE: Duration = Duration::from_secs(30);
/// Between two dials, so that idle connections are no flood of handshakes.
const IDLE_DIAL: Duration = Duration::from_millis(4);
/// Before one that was not answered is made again.
const IDLE_AGAIN: Duration = Duration::from_secs(1);
/// Between two lines that say how much was sent.
const SAY: Duration = Duration::from_millis(200);

/// One that is flooded.
struct Victim {
    replica: ReplicaId,
    address: String,
    key: LinkKey,
}

/// Floods until standard input ends.
pub(crate) fn run(flooder: &Flooder) -> Result<(), Failure> {
    let layout = Layout::new(&flooder.dir);
    let cluster = Cluster::load(&layout.cluster())?;
    let mut victims: Vec<Victim> =
        flooder.to.iter().map(|word| victim(&cluster, word)).collect::<Result<_, _>>()?;
    let parent = until_stdin_ends();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let sent = Rc::new(Cell::new(0));
        if matches!(flooder.kind, FloodKind::Dear | FloodKind::Crowding) {
            let secret = ClientSecret::load(&layout.client_secret(ClientId(flooder.own)), &cluster)?;
            let servers: Vec<_> = victims.drain(..).map(|victim| (victim.address, victim.replica)).collect();
            return tokio::select! {
                ended = dear::run(&cluster, &secret, &servers, flooder.kind) => ended,
                _ = parent => Ok(()),
            };
        }
        if flooder.kind != FloodKind::Idle {
            for victim in victims.drain(..) {
                let (identity, junk) = arm(flooder, &layout, &cluster, victim.replica)?;
                let (rate, sent) = (flooder.rate, Rc::clone(&sent));
                let settings = Settings::new(cluster.group.id());
                tokio::task::spawn_local(async move {
                    loop {
                        flood(&victim, &identity, &settings, rate, &junk, &sent).await;
                        tokio::time::sleep(PAUSE).await;
                    }
                });
            }
        }
        let say = async {
            loop {
                tokio::time::sleep(SAY).await;
                println!("{}", sent.get());
            }
        };
        tokio::select! {
            () = say => Ok(()),
            _ = parent => Ok(()),
            held = hold(flooder, &layout, &cluster, &victims, &sent), if !victims.is_empty() => held,
        }
    })
}

fn victim(cluster: &Cluster, word: &str) -> Result<Victim, Failure> {
    let (address, replica) = word.split_once('=').ok_or("a target is address=replica")?;
    let replica = ReplicaId(replica.parse()?);
    let key = LinkKey(cluster.replica(replica).link_key);
    Ok(Victim { replica, address: address.to_owned(), key })
}

type Arms = (Identity, Rc<RefCell<dyn Junk>>);

fn arm(flooder: &Flooder, layout: &Layout, cluster: &Cluster, victim: ReplicaId) -> Result<Arms, Failure> {
    if flooder.kind.is_replica() {
        let me = ReplicaId(u16::try_from(flooder.own)?);
        let secret = ReplicaSecret::load(&layout.replica_secret(me), cluster)?;
        let identity = Identity::new(PeerId::Replica(me), secret.link);
        let (group, kind) = (cluster.group, flooder.kind);
        let junk: Rc<RefCell<dyn Junk>> = match cluster.protocol {
            Protocol::MinBft => Rc::new(RefCell::new(PeerJunk::<MinBft>::new(group, me, secret.host, kind))),
            Protocol::Pbft => Rc::new(RefCell::new(PeerJunk::<Pbft>::new(group, me, secret.host, kind))),
            Protocol::A2mPbftE => {
                Rc::new(RefCell::new(PeerJunk::<A2mPbftE>::new(group, me, secret.host, kind)))
            }
            Protocol::A2mPbftEa => {
                Rc::new(RefCell::new(PeerJunk::<A2mPbftEa>::new(group, me, secret.host, kind)))
            }
        };
        return Ok((identity, junk));
    }
    let secret = ClientSecret::load(&layout.client_secret(ClientId(flooder.own)), cluster)?;
    let identity = Identity::new(PeerId::Client(secret.client), secret.link);
    if flooder.kind == FloodKind::Partial {
        let keys = authenticators(cluster, &secret).ok_or("this group's clients sign")?;
        let junk = PartialJunk::new(cluster.group, secret.client, cluster.limits.client_window, keys, victim);
        return Ok((identity, Rc::new(RefCell::new(junk))));
    }
    let signer = Ed25519Signer::from_seed(secret.seed);
    Ok((identity, Rc::new(RefCell::new(ClientJunk::new(cluster.group, secret.client, signer, flooder.kind)))))
}

/// Floods over one connection until that is lost.
async fn flood(
    victim: &Victim,
    identity: &Identity,
    settings: &Settings,
    rate: u64,
    junk: &Rc<RefCell<dyn Junk>>,
    sent: &Cell<u64>,
) {
    let Ok((reader, mut writer)) = connect(victim.address.as_str(), identity, &victim.key, settings).await
    else {
        return;
    };
    if matches!(identity.peer(), PeerId::Replica(_))
        && writer.queue(&Versions::SPOKEN.first_message()).is_err()
    {
        return;
    }
    tokio::select! {
        () = hear(reader, junk) => {}
        () = send(&mut writer, rate, junk, sent) => {}
    }
}

async fn hear(mut reader: LinkReader, junk: &Rc<RefCell<dyn Junk>>) {
    while let Ok(Some(message)) = reader.next().await {
        junk.borrow_mut().hear(&message);
    }
}

async fn send(writer: &mut LinkWriter, rate: u64, junk: &Rc<RefCell<dyn Junk>>, sent: &Cell<u64>) {
    let (mut last, mut due, mut said) = (Instant::now(), 0, 0);
    loop {
        let now = Instant::now();
        let since = u64::try_from(now.duration_since(last).as_micros()).unwrap_or(u64::MAX);
        last = now;
        due = (due + rate.saturating_mul(since) / 1_000_000).min(rate / BURST);
        while due > 0 && writer.unsent() < UNSENT {
            let message = junk.borrow_mut().next();
            due = due.saturating_sub(message.len() as u64);
            if writer.queue(&message).is_err() {
                return;
            }
        }
        if flush(writer).is_err() {
            return;
        }
        let bytes = writer.counters().bytes;
        sent.set(sent.get() + bytes - said);
        said = bytes;
        tokio::time::sleep(TICK).await;
    }
}

/// Holds connections on which nothing comes: every other one a client's, the rest without a handshake. `held`
/// counts those of clients that stand.
async fn hold(
    flooder: &Flooder,
    layout: &Layout,
    cluster: &Cluster,
    victims: &[Victim],
    held: &Rc<Cell<u64>>,
) -> Result<(), Failure> {
    let settings = Settings::new(cluster.group.id());
    for number in 0..u64::from(flooder.count) {
        let client = ClientId(flooder.own + number / 2);
        let identity = match number % 2 {
            0 => {
                let secret = ClientSecret::load(&layout.client_secret(client), cluster)?;
                Some(Identity::new(PeerId::Client(secret.client), secret.link))
            }
            _ => None,
        };
        for victim in victims {
            let (address, key, held) = (victim.address.clone(), victim.key, Rc::clone(held));
            match identity.clone() {
                Some(identity) => {
                    tokio::task::spawn_local(async move {
                        loop {
                            if let Ok((mut reader, _writer)) =
                                connect(address.as_str(), &identity, &key, &settings).await
                            {
                                held.set(held.get() + 1);
                                while let Ok(Some(_)) = reader.next().await {}
                                held.set(held.get() - 1);
                            }
                            tokio::time::sleep(IDLE_AGAIN).await;
                        }
                    });
                }
                None => {
                    tokio::task::spawn_local(async move {
                        loop {
                            if let Ok(mut stream) = TcpStream::connect(&address).await {
                                let _ = stream.read(&mut [0; 64]).await;
                            }
                            tokio::time::sleep(IDLE_PAUSE).await;
                        }
                    });
                }
            }
        }
        tokio::time::sleep(IDLE_DIAL).await;
    }
    std::future::pending().await
}
